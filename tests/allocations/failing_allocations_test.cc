// An allocation that fails anywhere between reading a model and its answer costs an exception:
// nothing ends the program, and what survived it works afterwards.
#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <string>
#include <vector>

#include "allocations/failing_new.h"
#include "sardonyx/session.h"

namespace sardonyx {
namespace {

using failing_new::left;

struct Small {
  const char* name;
  const char* graph;
};

// One for each way through the engine: arithmetic, products, images, control flow, sequences, text,
// sizes that only data decide, functions of the standard, constants that are folded and packed.
constexpr Small models[] = {
    {"elementwise", "g (float[4] x) => (y) { a = Mul(x, x) b = Add(a, x) y = Relu(b) }"},
    {"constants",
     "g (float[4] x) => (y) <float[4] w = {1, 2, 3, 4}> { a = Add(w, w) y = Mul(x, a) }"},
    {"product",
     "g (float[4] x) => (y) <float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}, int64[2] s = {1, 4}>"
     " { r = Reshape(x, s) m = MatMul(r, w) y = Softmax(m) }"},
    {"convolution",
     "g (float[4] x) => (y) <float[1,1,1,1] w = {2}, int64[4] s = {1, 1, 2, 2}>"
     " { r = Reshape(x, s) c = Conv(r, w) p = MaxPool<kernel_shape = [2, 2]>(c)"
     " y = GlobalAveragePool(p) }"},
    {"branches",
     "g (float[4] x) => (y) <float z = {0}> { s = ReduceSum<keepdims = 0>(x) c = Greater(s, z)"
     " y = If(c) <then_branch = t () => (a) { a = Neg(x) }, else_branch = e () => (b)"
     " { b = Abs(x) }> }"},
    {"loop",
     "g (float[4] x) => (y) <int64 n = {3}, bool c = {1}> { y = Loop(n, c, x) <body = b (int64 i,"
     " bool k, float[4] s) => (bool o, float[4] t) { o = Identity(k) t = Add(s, x) }> }"},
    {"sequence",
     "g (float[4] x) => (y) <int64 p = {1}> { s = SequenceConstruct(x, x) t = SequenceInsert(s, x)"
     " u = SequenceErase(t, p) y = ConcatFromSequence<axis = 0>(u) }"},
    {"optional", "g (float[4] x) => (y) { o = Optional(x) y = OptionalGetElement(o) }"},
    {"text",
     "g (float[4] x) => (y) <string[2] w = {\"a b\", \"c\"}>"
     " { a, n = StringSplit(w) b = Cast<to = 1>(n) z = ReduceSum<keepdims = 0>(b) y = Add(x, z) }"},
    {"late sizes", "g (float[4] x) => (y) { i = NonZero(x) j = Cast<to = 1>(i) y = Exp(j) }"},
    {"unique", "g (float[4] x) => (y) { u, i = Unique(x) y = Neg(u) }"},
    {"function",
     "g (float[4] x) => (y) { a = MeanVarianceNormalization<axes = [0]>(x)"
     " y = Celu(a) }"},
};

Model read(const Small& small) {
  return Model::from_text(std::string("<ir_version: 10, opset_import: [\"\" : 21]>\n") +
                          small.graph);
}

std::vector<Value> run(const Session& session) {
  const std::vector<float> numbers{1, -2, 0, 4};
  return session.run({{"x", Tensor::of<float>(numbers, {4})}});
}

bool same(const std::vector<Value>& a, const std::vector<Value>& b) {
  const auto left = a.at(0).tensor().elements<float>(), right = b.at(0).tensor().elements<float>();
  return std::equal(left.begin(), left.end(), right.begin(), right.end());
}

// Calls `work` with the n-th allocation failing, for n = 0, 1 … until nothing fails any more.
// Returns how often it failed.
template <class Work>
long fail_each(Work&& work, const std::vector<Value>& expected) {
  long failures = 0;
  for (long n = 0;; ++n) {
    std::vector<Value> made;
    bool threw = false;
    left = n;
    try {
      made = work();
    } catch (const std::bad_alloc&) {
      threw = true;
    } catch (const Error& error) {
      left = std::min(left.load(), -1L);
      threw = true;
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
    }
    const bool reached = left.exchange(-1) < 0;
    const bool is_right = threw || made.empty() || same(made, expected);
    EXPECT_TRUE(is_right);
    failures += threw;
    if (!reached) return failures;
  }
}

class FailingAllocations : public testing::TestWithParam<bool> {};

TEST_P(FailingAllocations, CostAnException) {
  SessionOptions options;
  options.threads = 1;
  options.reference = GetParam();
  for (const Small& small : models) {
    SCOPED_TRACE(small.name);
    const Model model = read(small);
    const Session session(model, options);
    const std::vector<Value> expected = run(session);
    using Values = std::vector<Value>;
    const auto failures = [&](auto&& work) { return fail_each(work, expected); };
    EXPECT_GT(failures([&] { return (void)read(small), Values(); }), 10);
    EXPECT_GT(failures([&] { return run(Session(read(small), options)); }), 10);
    // What a session or a run could not have, the next one gets: nothing is left half made.
    EXPECT_GT(failures([&] { return (void)Session(model, options), Values(); }), 5);
    EXPECT_TRUE(same(run(Session(model, options)), expected));
    EXPECT_GT(failures([&] { return run(session); }), 1);
    EXPECT_TRUE(same(run(session), expected));
  }
}

INSTANTIATE_TEST_SUITE_P(PlannedAndPlain, FailingAllocations, testing::Bool(),
                         [](const auto& info) { return info.param ? "plain" : "planned"; });

}  // namespace
}  // namespace sardonyx
