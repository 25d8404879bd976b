// Runs with sizes like the one before, and with outputs that are given, allocate nothing.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "allocations/failing_new.h"
#include "sardonyx/binding.h"
#include "sardonyx/session.h"

namespace sardonyx {
namespace {

using failing_new::left;

struct Small {
  const char* name;
  const char* graph;
};

constexpr Small models[] = {
    {"one node", "g (float[n, 4] x) => (float[n, 4] y) { y = Softmax(x) }"},
    {"elementwise",
     "g (float[n, 4] x) => (float[n, 4] y) { a = Mul(x, x) b = Add(a, x) y = Relu(b) }"},
    {"product",
     "g (float[n, 4] x) => (float[n, 2] y) <float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}>"
     " { m = MatMul(x, w) y = Softmax(m) }"},
    {"convolution",
     "g (float[n, 4] x) => (y) <float[1,1,1,1] w = {2}, int64[4] s = {-1, 1, 2, 2}>"
     " { r = Reshape(x, s) c = Conv(r, w) p = MaxPool<kernel_shape = [2, 2]>(c)"
     " y = GlobalAveragePool(p) }"},
    {"two outputs, one a view",
     "g (float[n, 4] x) => (float[m] y, float[n, 4] z) <int64[1] s = {-1}>"
     " { z = Exp(x) y = Reshape(z, s) }"},
    // Whose plan depends on the sizes of its inputs.
    {"a sized plan",
     "g (float[n, 4] x) => (y) <int64 one = {1}> { s = Shape<start = 0, end = 1>(x)"
     " t = Squeeze(s) c = Equal(t, one) y = If(c) <then_branch = a () => (u) { u = Squeeze(x) },"
     " else_branch = b () => (v) { v = Neg(x) }> }"},
};

Model read(const Small& small) {
  return Model::from_text(std::string("<ir_version: 10, opset_import: [\"\" : 21]>\n") +
                          small.graph);
}

Value numbers() { return Tensor::of<float>({1, -2, 0, 4, 5, 6, 7, 8}, {2, 4}); }

// Whether `work` ends with an allocation refused at its first attempt.
template <class Work>
bool allocates(const Work& work) {
  bool threw = false;
  left = 0;
  try {
    work();
  } catch (...) {
    threw = true;
  }
  const bool was_asked = left.exchange(-1) != 0;
  return threw || was_asked;
}

TEST(SteadyRuns, ByPosition) {
  for (const Small& small : models) {
    SCOPED_TRACE(small.name);
    const Session session(read(small), {.threads = 1});
    const std::vector<Value> inputs{numbers()};
    std::vector<Value> outputs(session.outputs().size());
    for (int i = 0; i < 3; ++i) session.run(inputs, outputs);
    EXPECT_FALSE(allocates([&] { session.run(inputs, outputs); }));
  }
}

TEST(SteadyRuns, OfABinding) {
  for (const Small& small : models) {
    SCOPED_TRACE(small.name);
    const Session session(read(small), {.threads = 1});
    Binding binding(session);
    binding.bind_input("x", numbers());
    for (int i = 0; i < 3; ++i) binding.run();
    EXPECT_FALSE(allocates([&] { binding.run(); }));
  }
}

TEST(SteadyRuns, OfABindingToMemory) {
  std::vector<float> x{1, -2, 0, 4, 5, 6, 7, 8}, y(8);
  const Session session(read(models[1]), {.threads = 1});
  Binding binding(session);
  binding.bind_input("x", TensorRef::of<float>(x, {2, 4}));
  binding.bind_output("y", MutableTensorRef::of<float>(y, {2, 4}));
  for (int i = 0; i < 3; ++i) binding.run();
  x[0] = 3;
  EXPECT_FALSE(allocates([&] { binding.run(); }));
  EXPECT_EQ(y[0], 12);
}

TEST(SteadyRuns, TheMeasureSeesAllocations) {
  const Session session(read(models[0]), {.threads = 1});
  const std::vector<Value> inputs{numbers()};
  EXPECT_TRUE(allocates([&] {
    std::vector<Value> outputs(1);
    session.run(inputs, outputs);
  }));
}

}  // namespace
}  // namespace sardonyx
