// Sizes that are fixed, initializers that are replaced, values that become outputs, processors.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <string>

#include "sardonyx/session.h"
#include "support.h"

#ifndef _WIN32
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace sardonyx {
using test::ScratchFolder;

namespace {

Model model_of(const std::string& graph) {
  return Model::from_text("<ir_version: 10, opset_import: [\"\" : 21]>\n" + graph);
}

#ifndef _WIN32
// What a child process found out under a limit that leaves room for few threads' stacks.
int told_of_fewer_threads() {
  std::string warned;
  const Model model = Model::from_text(
      "<ir_version: 10, opset_import: [\"\" : 21]>\ng (float[n] x) => (float[n] y) { y = Relu(x) }",
      {.warn = [&](const Warning& one) { warned = one.to_string(); }});
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{400} << 20);
  const rlimit limit{most, most};
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 1;
  const Session session(model, {.threads = 2000});
  return warned.find("2000 threads were asked for; the system started") != std::string::npos ? 0
                                                                                             : 2;
}
#endif

Tensor filled(Shape shape, float with = 1) {
  Tensor tensor(ElementType::float32, std::move(shape));
  std::ranges::fill(tensor.mutable_elements<float>(), with);
  return tensor;
}

std::string refusal(const std::function<void()>& call, ErrorCode code = ErrorCode::bad_input) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "nothing was thrown";
}

std::vector<std::string> kernels_of(const Session& session) {
  std::vector<std::string> kernels;
  for (const StepDescription& step : session.steps())
    kernels.push_back(step.node + " " + step.kernel);
  return kernels;
}

// What reads the sizes of its input as numbers, where they are such.
std::string reading_sizes(const std::string& shape) {
  return "g (float[" + shape + R"(] x) => (float[m] y) {
    s = Shape(x) k = ReduceProd<keepdims = 1>(s) r = Reshape(x, k) y = Relu(r) })";
}

// Of numbers so small that their halves are below the normal ones.
TEST(FlushDenormals, HoldsForRuns) {
  constexpr float least = std::numeric_limits<float>::min();
  const Model model = model_of(R"(g (float[n] x) => (float[n] y) {
    h = Constant<value_float = 0.5>() y = Mul(x, h) })");
  const Tensor x = filled({100000}, least);
  for (const bool reference : {false, true}) {
    for (const bool flush : {false, true}) {
      const Session session(model,
                            {.threads = 2, .reference = reference, .flush_denormals = flush});
      const auto made = session.run({{"x", x}});
      for (const float y : made[0].tensor().elements<float>())
        ASSERT_EQ(y, flush ? 0.0f : least / 2) << reference;
      const volatile float own = least;  // the thread is as it was
      EXPECT_EQ(own / 2, least / 2);
    }
  }
}

class Dimensions : public testing::TestWithParam<bool> {};

TEST_P(Dimensions, AreAsIfTheModelDeclaredThem) {
  const Session fixed(
      model_of(reading_sizes("batch, ?")),
      {.threads = 1, .reference = GetParam(), .dimensions = {{"batch", 8}, {"x.1", 3}}});
  const Session declared(model_of(reading_sizes("8, 3")), {.threads = 1, .reference = GetParam()});
  EXPECT_EQ(kernels_of(fixed), kernels_of(declared));
  EXPECT_EQ(fixed.inputs()[0].type, "float[8,3]");
  EXPECT_EQ((*fixed.inputs()[0].shape)[0].size, 8);
  EXPECT_EQ(fixed.run({{"x", filled({8, 3})}})[0].tensor().shape(), Shape{24});
  EXPECT_NE(refusal([&] {
              fixed.run({{"x", filled({4, 3})}});
            }).find("dimension 0 must be 8"),
            std::string::npos);
  EXPECT_EQ(refusal([&] {
              fixed.run({{"x", filled({4, 3})}});
            }),
            refusal([&] {
              declared.run({{"x", filled({4, 3})}});
            }));
}

TEST_P(Dimensions, OneNameIsOneSize) {
  const Session session(model_of(R"(g (float[n, k] a, float[k, n] b) => (float[n, n] y) {
                          y = MatMul(a, b) })"),
                        {.threads = 1, .reference = GetParam(), .dimensions = {{"n", 2}}});
  EXPECT_EQ(session.inputs()[1].type, "float[k,2]");
  EXPECT_EQ(session.run({{"a", filled({2, 5})}, {"b", filled({5, 2})}})[0].tensor().shape(),
            (Shape{2, 2}));
  EXPECT_THROW(session.run({{"a", filled({2, 5})}, {"b", filled({5, 3})}}), Error);
}

TEST_P(Dimensions, ZeroIsASize) {
  const Session session(model_of("g (float[n] x) => (float[n] y) { y = Neg(x) }"),
                        {.threads = 1, .reference = GetParam(), .dimensions = {{"n", 0}}});
  EXPECT_EQ(session.run({{"x", filled({0})}})[0].tensor().size(), 0);
  EXPECT_THROW(session.run({{"x", filled({1})}}), Error);
}

INSTANTIATE_TEST_SUITE_P(PlannedAndPlain, Dimensions, testing::Bool(),
                         [](const auto& info) { return info.param ? "plain" : "planned"; });

TEST(DimensionOptions, WrongOnesAreRefused) {
  const Model model = model_of("g (float[batch, 3] x) => (float[batch, 3] y) { y = Neg(x) }");
  const auto with = [&](const char* name, int64_t size) {
    return refusal([&] {
      const Session made(model, {.threads = 1, .dimensions = {{name, size}}});
    });
  };
  EXPECT_NE(with("bacth", 8).find("did you mean 'batch'?"), std::string::npos);
  EXPECT_NE(with("x.1", 3).find("no open size"), std::string::npos);
  EXPECT_EQ(with("batch", -1), "size 'batch': -1 is negative; a size is 0 or more");
}

TEST(DimensionOptions, SessionsShareNothingThatDiffers) {
  const Model model = model_of("g (float[batch] x) => (float[batch] y) { y = Neg(x) }");
  const Session any(model, {.threads = 1});
  const Session two(model, {.threads = 1, .dimensions = {{"batch", 2}}});
  const Session three(model, {.threads = 1, .dimensions = {{"batch", 3}}});
  for (const int64_t n : {2, 3}) {
    EXPECT_NO_THROW(any.run({{"x", filled({n})}}));
    EXPECT_NO_THROW((n == 2 ? two : three).run({{"x", filled({n})}}));
    EXPECT_THROW((n == 2 ? three : two).run({{"x", filled({n})}}), Error);
  }
}

const char* const linear = R"(g (float[n, 2] x) => (float[n, 2] y)
  <float[2, 2] w = {1, 0, 0, 1}, float[2] b = {0, 0}> { m = MatMul(x, w) y = Add(m, b) })";

class Initializers : public testing::TestWithParam<bool> {
 protected:
  SessionOptions with(std::vector<NamedValue> values) const {
    return {.threads = 1, .reference = GetParam(), .initializers = std::move(values)};
  }
};

TEST_P(Initializers, AreReplaced) {
  const Model model = model_of(linear);
  const Session own(model, with({}));
  const Session other(model, with({{"w", Tensor::of<float>({2, 0, 0, 3}, {2, 2})}}));
  const Session both(model, with({{"b", Tensor::of<float>({10, 20}, {2})},
                                  {"w", Tensor::of<float>({0, 1, 1, 0}, {2, 2})}}));
  const auto run = [](const Session& session) {
    const Value made = session.run({{"x", Tensor::of<float>({1, 5}, {1, 2})}})[0];
    const auto elements = made.tensor().elements<float>();
    return std::vector<float>(elements.begin(), elements.end());
  };
  EXPECT_EQ(run(own), (std::vector<float>{1, 5}));
  EXPECT_EQ(run(other), (std::vector<float>{2, 15}));
  EXPECT_EQ(run(both), (std::vector<float>{15, 21}));
  EXPECT_EQ(run(own), (std::vector<float>{1, 5}));
}

TEST_P(Initializers, MemoryWithoutAnOwnerIsCopied) {
  std::vector<float> weights{2, 0, 0, 2};
  const Session session(
      model_of(linear),
      with({{"w", Tensor::view(ElementType::float32, {2, 2}, weights.data(), 16)}}));
  std::ranges::fill(weights, 100.0f);
  const Value made = session.run({{"x", filled({1, 2})}})[0];
  EXPECT_EQ(made.tensor().elements<float>()[0], 2);
}

TEST_P(Initializers, ThatAreDefaultsOfInputs) {
  const Model model = model_of(R"(g (float[1] x, float[1] d) => (float[1] y) <float[1] d = {1}> {
    y = Add(x, d) })");
  const Session session(model, with({{"d", filled({1}, 5)}}));
  EXPECT_EQ(session.run({{"x", filled({1})}})[0].tensor().elements<float>()[0], 6);
  EXPECT_EQ(
      session.run({{"x", filled({1})}, {"d", filled({1}, 7)}})[0].tensor().elements<float>()[0], 8);
}

TEST_P(Initializers, WhoseDataIsNotThere) {
  const ScratchFolder folder;
  const std::string path = folder / "model.onnx";
  model_of(linear).save(path, {.external_data = "w.bin", .threshold = 16});
  ASSERT_EQ(std::remove((folder / "w.bin").c_str()), 0);
  EXPECT_THROW(Model{path}, Error);
  const Model model(path, {.load_external_data = false});
  const Session session(model, with({{"w", Tensor::of<float>({2, 0, 0, 3}, {2, 2})}}));
  const Value made = session.run({{"x", Tensor::of<float>({1, 5}, {1, 2})}})[0];
  EXPECT_EQ(made.tensor().elements<float>()[1], 15);
  const Session again(model, with({{"w", Tensor::of<float>({0, 1, 1, 0}, {2, 2})}}));
  EXPECT_EQ(again.run({{"x", Tensor::of<float>({1, 5}, {1, 2})}})[0].tensor().elements<float>()[0],
            5);
  EXPECT_EQ(refusal([&] {
              const Session made(model, with({{"w", filled({2})}}));
            }),
            "initializer 'w': is to be replaced by float[2], the model has float[2,2]");
  test::expect_error(ErrorCode::unreadable, "w.bin", [&] { const Session made(model, with({})); });
}

TEST_P(Initializers, WrongOnesAreRefused) {
  const Model model = model_of(linear);
  const auto refused = [&](std::vector<NamedValue> values) {
    return refusal([&] { const Session made(model, with(std::move(values))); });
  };
  EXPECT_EQ(refused({{"w", filled({2})}}),
            "initializer 'w': is to be replaced by float[2], the model has float[2,2]");
  EXPECT_EQ(refused({{"b", Tensor::of<int64_t>({1, 2}, {2})}}),
            "initializer 'b': is to be replaced by int64[2], the model has float[2]");
  EXPECT_EQ(refused({{"b", Sequence{}}}),
            "initializer 'b': is to be replaced by a sequence, the model has float[2]");
  EXPECT_NE(refused({{"m", filled({2})}}).find("no initializer of this name"), std::string::npos);
  EXPECT_NE(refused({{"b", filled({2})}, {"b", filled({2})}}).find("is given twice"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(PlannedAndPlain, Initializers, testing::Bool(),
                         [](const auto& info) { return info.param ? "plain" : "planned"; });

class ExtraOutputs : public testing::TestWithParam<bool> {};

TEST_P(ExtraOutputs, StandBehindTheModelsOwn) {
  const Model model = model_of(R"(g (float[n] x) => (float[n] y) {
    a = Add(x, x) b = Mul(a, x) c = Neg(b) y = Abs(c) })");
  const Session session(
      model, {.threads = 1, .reference = GetParam(), .extra_outputs = {"c", "a", "y", "c"}});
  ASSERT_EQ(session.outputs().size(), 3u);
  EXPECT_EQ(session.outputs()[1].name, "c");
  EXPECT_EQ(session.outputs()[2].name, "a");
  EXPECT_EQ(session.outputs()[2].type, GetParam() ? "?" : "float[n]");  // what a plan knows
  const std::vector<Value> made = session.run({{"x", filled({2}, 3)}});
  EXPECT_EQ(made[0].tensor().elements<float>()[0], 18);
  EXPECT_EQ(made[1].tensor().elements<float>()[0], -18);
  EXPECT_EQ(made[2].tensor().elements<float>()[1], 6);
}

// Values inside functions are there only once these are inlined.
TEST_P(ExtraOutputs, StandInTheirOrderWhereverTheyAreMade) {
  const Model model = Model::from_text(R"(<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
    g (float[2] x) => (float[2] y) { a = Neg(x) b = f.F(a) y = Neg(b) }
    <domain: "f", opset_import: ["" : 21]> F (p) => (q) { t = Abs(p) q = Exp(t) })");
  const Session all(model, {.threads = 1, .reference = true, .all_outputs = true});
  ASSERT_EQ(all.outputs().size(), 4u);
  const std::string inside = all.outputs()[2].name;
  const Session session(
      model, {.threads = 1, .reference = GetParam(), .extra_outputs = {"b", inside, "a"}});
  ASSERT_EQ(session.outputs().size(), 4u);
  EXPECT_EQ(session.outputs()[1].name, "b");
  EXPECT_EQ(session.outputs()[2].name, inside);
  EXPECT_EQ(session.outputs()[3].name, "a");
}

TEST_P(ExtraOutputs, HaveTheTypeThatTheModelDeclares) {
  const Model model = model_of(R"(g (float[n, 2] x) => (float[n, 2] y) <float[n, 2] a> {
    a = Add(x, x) y = Abs(a) })");
  const Session session(model, {.threads = 1, .reference = GetParam(), .extra_outputs = {"a"}});
  EXPECT_EQ(session.outputs()[1].type, "float[n,2]");
}

TEST_P(ExtraOutputs, UnknownNamesAreRefused) {
  const Model model =
      model_of("g (float[n] x) => (float[n] y) { hidden = Neg(x) y = Abs(hidden) }");
  EXPECT_EQ(refusal([&] {
              const Session made(
                  model, {.threads = 1, .reference = GetParam(), .extra_outputs = {"hiden"}});
            }),
            "value 'hiden': the model has no node with an output of this name; did you mean "
            "'hidden'?");
}

INSTANTIATE_TEST_SUITE_P(PlannedAndPlain, ExtraOutputs, testing::Bool(),
                         [](const auto& info) { return info.param ? "plain" : "planned"; });

// Each value that the nodes of a model make, one at a time, with all fusions around it.
TEST(ExtraOutputsOfAModel, AreWhatAReferenceRunGives) {
  const Model model(std::string(SARDONYX_SOURCE_DIR) + "/examples/digits/digits.onnx");
  const Session reference(model, {.threads = 1, .reference = true, .all_outputs = true});
  Shape shape;
  for (const auto& dim : *reference.inputs()[0].shape) shape.push_back(dim.size.value_or(1));
  const std::vector<NamedValue> inputs{{reference.inputs()[0].name, filled(shape, 0.5f)}};
  const std::vector<Value> expected = reference.run(inputs);
  ASSERT_GT(expected.size(), 5u);
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string& name = reference.outputs()[i].name;
    SCOPED_TRACE(name);
    const Session session(model, {.threads = 1, .extra_outputs = {name}});
    const Tensor made = session.run(inputs).back().tensor(), wanted = expected[i].tensor();
    ASSERT_EQ(made.shape(), wanted.shape());
    ASSERT_EQ(made.element_type(), wanted.element_type());
    if (made.element_type() != ElementType::float32) continue;
    for (int64_t k = 0; k < made.size(); ++k) {
      const float value = wanted.elements<float>()[static_cast<size_t>(k)];
      ASSERT_NEAR(made.elements<float>()[static_cast<size_t>(k)], value,
                  1e-5f * (1 + std::fabs(value)));
    }
  }
}

#ifndef _WIN32
std::vector<int> own_processors() {
  cpu_set_t set;
  std::vector<int> list;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return list;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(static_cast<size_t>(i), &set)) list.push_back(i);
  }
  return list;
}

TEST(Processors, WorkersStayOnThem) {
  const std::vector<int> before = own_processors();
  ASSERT_FALSE(before.empty());
  const int last = before.back();
  const Session session(model_of("g (float[n] x) => (float[n] y) { y = Neg(x) }"),
                        {.threads = 2, .processors = {last}});
  EXPECT_EQ(own_processors(), before);
  std::vector<int> there;
  std::promise<void> told;
  session.run_async({{"x", filled({2})}}, [&](std::vector<Value>, std::exception_ptr) {
    there = own_processors();
    told.set_value();
  });
  told.get_future().wait();
  EXPECT_EQ(there, std::vector<int>{last});
}

TEST(Processors, WrongOnesAreRefused) {
  const Model model = model_of("g (float[n] x) => (float[n] y) { y = Neg(x) }");
  const std::vector<int> before = own_processors();
  EXPECT_THROW(Session(model, {.processors = {-1}}), Error);
  EXPECT_THROW(Session(model, {.processors = {100000}}), Error);
  EXPECT_NE(refusal([&] {
              const Session made(model, {.processors = {CPU_SETSIZE - 1}});
            }).find("may use"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              const Session made(model, {.shared_threads = Threads(1), .processors = {0}});
            }).find("shared threads"),
            std::string::npos);
  EXPECT_EQ(own_processors(), before);
}

TEST(SessionOptions, FewerThreadsThanAskedForAreToldOf) {
#ifdef SARDONYX_SANITIZED
  GTEST_SKIP() << "sanitizers reserve more address space than any limit leaves";
#endif
  if (std::getenv("SARDONYX_EMULATED") != nullptr)
    GTEST_SKIP() << "the limits are the emulator's, which ends where it starts no thread";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(told_of_fewer_threads());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

}  // namespace
}  // namespace sardonyx
