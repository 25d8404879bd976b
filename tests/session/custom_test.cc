// Operators from outside: added by the program, and from the example's library.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "check/check.h"
#include "sardonyx/custom.h"
#include "sardonyx/infer.h"
#include "sardonyx/session.h"
#include "scratch_folder.h"
#include "session/model.h"
#include "tools/convert.h"

namespace sardonyx {
namespace {

using InferCall = void (*)(ShapeInferenceContext&);
using RunCall = void (*)(KernelContext&);
using PrepareCall = void (*)(KernelBuilder&);

struct Kernel final : CustomKernel {
  explicit Kernel(RunCall run) : run_(run) {}
  std::string name() const override { return "test.kernel"; }
  int64_t scratch_bytes(const CustomShapes& shapes) const override {
    return shapes.has_input(0) && !shapes.input_shape(0).empty() ? shapes.input_shape(0)[0] : 0;
  }
  void run(KernelContext& run) const override { run_(run); }
  RunCall run_;
};

struct Operator final : CustomOperator {
  Operator(InferCall infer, RunCall run, PrepareCall prepare = nullptr)
      : infer_(infer), run_(run), prepare_(prepare) {}
  void infer(ShapeInferenceContext& context) const override { infer_(context); }
  std::unique_ptr<CustomKernel> prepare(KernelBuilder& context) const override {
    if (prepare_ != nullptr) prepare_(context);
    return std::make_unique<Kernel>(run_);
  }
  InferCall infer_;
  RunCall run_;
  PrepareCall prepare_;
};

constexpr const char* unary = "Op\n since 1\n in x: T\n out y: T\n where T in float int32";

void same(ShapeInferenceContext& context) { context.set_output_like(0, 0); }
void plus_one(KernelContext& run) {
  const auto x = run.input(0).elements<float>();
  const auto y = run.output(0).mutable_elements<float>();
  run.parallel_for(static_cast<int64_t>(x.size()), 2, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) y[i] = x[i] + 1;
  });
}

std::shared_ptr<CustomOperators> one_operator(InferCall infer, RunCall run,
                                              PrepareCall prepare = nullptr,
                                              const char* signature = unary) {
  auto operators = std::make_shared<CustomOperators>();
  operators->add("com.example", signature, std::make_shared<Operator>(infer, run, prepare));
  return operators;
}

Model model_of(const std::string& graph, std::shared_ptr<const CustomOperators> operators) {
  LoadOptions options;
  options.custom_operators = std::move(operators);
  return Model::from_text(
      "<ir_version: 10, opset_import: [\"\" : 21, \"com.example\" : 1]>\n" + graph, options);
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return std::string(name_of(error.code())) + ": " + error.what();
  }
  return "";
}

const Tensor three = Tensor::of<float>({1, 2, 3}, {3});

std::vector<float> floats(const Value& value) {
  const auto elements = value.tensor().elements<float>();
  return {elements.begin(), elements.end()};
}

TEST(CustomOperators, RunBetweenOthersPlannedAndPlain) {
  const Model model = model_of(
      "g (float[N] x) => (float[N] y) {\n a = Mul (x, x)\n b = com.example.Op (a)\n y = Neg (b)\n}",
      one_operator(same, plus_one));
  for (const bool plain : {false, true}) {
    for (const int threads : {1, 3}) {
      const Session session(model, {.threads = threads, .reference = plain});
      EXPECT_EQ(floats(session.run({{"x", three}})[0]), (std::vector<float>{-2, -5, -10}));
      EXPECT_EQ(floats(session.run({{"x", Tensor::of<float>({}, {0})}})[0]), std::vector<float>());
      if (plain) continue;
      bool found = false;
      for (const StepDescription& step : session.steps()) found |= step.kernel == "test.kernel";
      EXPECT_TRUE(found);
    }
  }
}

TEST(CustomOperators, AsManyTypesAsOneLikes) {
  constexpr int count = 40;
  std::string signature = "Op\n since 1\n", constraints, arguments, inputs;
  for (int i = 0; i < count; ++i) {
    signature += fmt::format(" in x{}: T{}\n", i, i / 2);
    if (i % 2 == 0) constraints += fmt::format(" where T{} in float int32\n", i / 2);
    inputs += fmt::format("{}{}[N] x{}", i ? ", " : "", i == count - 1 ? "int32" : "float", i);
    arguments += fmt::format("{}x{}", i ? ", " : "", i);
  }
  signature += " out y: T0\n" + constraints;
  const auto operators = one_operator(same, plus_one, nullptr, signature.c_str());
  const std::string message = message_of([&] {
    Session session(
        model_of("g (" + inputs + ") => (float[N] y) { y = com.example.Op (" + arguments + ") }",
                 operators));
  });
  EXPECT_NE(message.find("must have one type; they have tensor(float) and tensor(int32)"),
            std::string::npos)
      << message;
}

TEST(CustomOperators, ConstantsAreFoldedUnlessRandom) {
  const std::string graph =
      "g () => (float[2] y) {\n a = Constant <value = float[2] {1, 2}> ()\n y = com.example.Op "
      "(a)\n}";
  const Session folded(model_of(graph, one_operator(same, plus_one)));
  EXPECT_TRUE(folded.steps().empty());
  EXPECT_EQ(floats(folded.run({})[0]), (std::vector<float>{2, 3}));
  const Session random(model_of(graph, one_operator(same, plus_one, nullptr,
                                                    "Op\n since 1\n in x: T\n out y: T\n where T "
                                                    "in float\n nondeterministic")));
  EXPECT_EQ(random.steps().size(), 1u);
}

TEST(CustomOperators, InsideFunctionsAndSubgraphs) {
  const Model model = model_of(
      R"(g (bool c, float[N] x) => (float[N] y) {
  y = If (c) <then_branch = yes () => (t) { t = com.example.Op (x) },
              else_branch = no () => (e) { e = own.Twice (x) }>
}
<domain: "own", opset_import: ["com.example" : 1]>
Twice (x) => (y) { h = com.example.Op (x)
 y = com.example.Op (h) })",
      one_operator(same, plus_one));
  for (const bool plain : {false, true}) {
    const Session session(model, {.reference = plain});
    const auto run = [&](bool c) {
      return floats(session.run({{"c", Tensor::scalar(c)}, {"x", three}})[0]);
    };
    EXPECT_EQ(run(true), (std::vector<float>{2, 3, 4}));
    EXPECT_EQ(run(false), (std::vector<float>{3, 4, 5}));
  }
}

TEST(CustomOperators, SizesAreExpressions) {
  const auto infer = [](ShapeInferenceContext& context) {
    const SymbolicDim n = context.size(0, 0), m = context.size(0, -1);
    context.require_equal(n, m, "x must be square");
    context.set_output(0, context.element(0),
                       {n * 2 + 1, floor_div(m, 2), ceil_div(m, 2), min(n, 7), max(n, 2),
                        context.broadcast(m, 1)});
  };
  const Model model = model_of("g (float[N,M] x) => (y) {\n y = com.example.Op (x)\n}",
                               one_operator(infer, [](KernelContext&) {}));
  const Inference inferred = infer_types(model);
  EXPECT_FALSE(inferred.has_errors());
  EXPECT_EQ(inferred.values.back().type(),
            "float[2*N + 1,floor(N/2),floor((N + 1)/2),min(N, 7),max(N, 2),N]");
  const Session session(model);
  EXPECT_EQ(session.run({{"x", Tensor(ElementType::float32, {3, 3})}})[0].tensor().shape(),
            (Shape{7, 1, 2, 3, 3, 3}));
  EXPECT_NE(message_of([&] {
              session.run({{"x", Tensor(ElementType::float32, {3, 4})}});
            }).find("x must be square"),
            std::string::npos);
}

TEST(CustomOperators, NamesAndShapesWhenTheyArePrepared) {
  const auto infer = [](ShapeInferenceContext& context) {
    if (context.text_of(context.size(0, 0) * 2 - context.size(0, 0)) != "N" ||
        context.text_of(context.size(0, 1)) != "3")
      context.fail("the sizes are not N and 3: " + context.text_of(context.size(0, 0)));
    context.set_output_like(0, 0);
  };
  const auto prepare = [](KernelBuilder& context) {
    const std::vector<int64_t> shape{-1, 3};
    if (context.node_name() != "one" || context.input_name(0) != "x" ||
        context.output_name(0) != "y" || context.input_name(1) != "" ||
        context.output_name(7) != "" || context.input_shape(0) != shape ||
        context.output_shape(0) != shape || context.input_shape(1) != std::nullopt ||
        context.output_element(0) != ElementType::float32 ||
        context.output_element(7) != ElementType::undefined)
      context.fail("a name or a shape is not what it should be");
  };
  const Session session(
      model_of("g (float[N,3] x) => (float[N,3] y) {\n [one] y = com.example.Op (x)\n}",
               one_operator(infer, plus_one, prepare)));
  EXPECT_EQ(floats(session.run({{"x", Tensor::of<float>({1, 2, 3}, {1, 3})}})[0]),
            (std::vector<float>{2, 3, 4}));
}

// Counts how often it is prepared, and how often it makes what it keeps.
class Counting final : public CustomOperator {
 public:
  explicit Counting(bool without_ranks) : without_ranks_(without_ranks) {}
  void infer(ShapeInferenceContext& context) const override { context.set_output_like(0, 0); }
  std::unique_ptr<CustomKernel> prepare(KernelBuilder& context) const override {
    ++prepared;
    const auto kept = context.once([&] {
      ++made;
      return std::make_shared<int>(made);
    });
    if (context.once([] { return std::make_shared<int>(0); }) != kept)
      context.fail("something else was kept");
    return std::make_unique<Kernel>(plus_one);
  }
  bool prepares_without_ranks() const override { return without_ranks_; }
  mutable int prepared = 0, made = 0;

 private:
  bool without_ranks_;
};

TEST(CustomOperators, WhatIsMadeOnceForANode) {
  const auto open = std::make_shared<Operator>(
      [](ShapeInferenceContext& context) { context.set_output_of_any_rank(0, context.element(0)); },
      [](KernelContext& run) {
        const CustomTensor x = run.input(0);
        const CustomTensor y = run.allocate(0, {x.shape.begin(), x.shape.end()});
        std::ranges::copy(x.elements<float>(), y.mutable_elements<float>().begin());
      },
      [](KernelBuilder& context) { context.allocates_outputs(); });
  for (const bool without_ranks : {false, true}) {
    const auto counting = std::make_shared<Counting>(without_ranks);
    auto operators = std::make_shared<CustomOperators>();
    operators->add("com.example", unary, counting);
    operators->add("com.example", "Open\n since 1\n in x: T\n out y: T\n where T in float", open);
    const Session session(
        model_of("g (float[] x) => (y) {\n a = com.example.Open (x)\n y = com.example.Op (a)\n}",
                 operators));
    const auto run = [&](const Tensor& x) { return session.run({{"x", x}})[0].tensor(); };
    for (int i = 0; i < 3; ++i) EXPECT_EQ(floats(run(three)), (std::vector<float>{2, 3, 4}));
    EXPECT_EQ(run(Tensor::of<float>({1, 2}, {2, 1})).shape(), (Shape{2, 1}));
    EXPECT_EQ(run(Tensor::scalar(1.0f)).elements<float>()[0], 2);
    EXPECT_EQ(counting->made, 1);
    EXPECT_EQ(counting->prepared, without_ranks ? 3 : 5);  // one plan for each rank of x
  }
}

TEST(CustomOperators, AttributesComeFromTheNodeOrTheSignature) {
  const auto prepare = [](KernelBuilder& context) {
    if (context.attribute_int("i") != 4 || context.attribute_float("f") != 0.5f ||
        context.attribute_string("s") != "text" ||
        context.attribute_ints("is") != std::vector<int64_t>{1, 2} ||
        context.attribute_floats("fs") != std::vector<float>{2.5f} ||
        context.attribute_strings("ss") != std::vector<std::string>{"a", "b"} ||
        context.attribute_tensor("t").elements<float>()[1] != 8 || context.has_attribute("s") ||
        context.since() != 1)
      context.fail("an attribute is not what it should be");
  };
  const char* signature =
      "Op\n since 1\n in x: T\n out y: T\n where T in float\n attr i: int = 3\n attr f: float\n"
      "attr s: string = \"text\"\n attr is: ints = [1, 2]\n attr fs: floats\n attr t: tensor\n"
      "attr ss: strings = [\"a\", \"b\"]";
  const std::string graph =
      "g (float[3] x) => (float[3] y) {\n y = com.example.Op <i = 4, f = 0.5, fs = [2.5], t = "
      "float[2] {7, 8}> (x)\n}";
  EXPECT_EQ(
      message_of([&] {
        const Session session(model_of(graph, one_operator(same, plus_one, prepare, signature)));
      }),
      "");
  const std::string missing = message_of([&] {
    const Session session(
        model_of("g (float[3] x) => (float[3] y) {\n y = com.example.Op <i = 4> "
                 "(x)\n}",
                 one_operator(same, plus_one, prepare, signature)));
  });
  EXPECT_NE(missing.find("attribute 'f' is required and absent"), std::string::npos) << missing;
}

TEST(CustomOperators, WhatTheirCodeThrowsNamesTheNode) {
  const std::string graph = "g (float[N] x) => (y) {\n [\"here\"] y = com.example.Op (x)\n}";
  const auto refused = [&](InferCall infer, RunCall run, PrepareCall prepare = nullptr) {
    return message_of([&] {
      const Session session(model_of(graph, one_operator(infer, run, prepare)));
      session.run({{"x", three}});
    });
  };
  const auto nothing = [](KernelContext&) {};
  EXPECT_EQ(refused([](ShapeInferenceContext& c) { c.fail("no"); }, nothing),
            "invalid model: com.example.Op 'here': no");
  EXPECT_EQ(refused([](ShapeInferenceContext&) { throw std::runtime_error("thrown"); }, nothing),
            "invalid model: com.example.Op 'here': thrown");
  EXPECT_EQ(
      refused([](ShapeInferenceContext&) { throw Error(ErrorCode::unsupported, "why"); }, nothing),
      "unsupported: com.example.Op 'here': why");
  EXPECT_EQ(
      refused(same, nothing, [](KernelBuilder&) { throw Error(ErrorCode::out_of_memory, "why"); }),
      "out of memory: com.example.Op 'here': why");
  EXPECT_EQ(refused(same, [](KernelContext&) { throw Error(ErrorCode::cancelled, "why"); }),
            "cancelled: com.example.Op 'here': why");
  EXPECT_EQ(refused(same, nothing, [](KernelBuilder&) { throw 3; }),
            "invalid model: com.example.Op 'here': the operator's code threw something that is no "
            "std::exception");
  EXPECT_EQ(refused(same, [](KernelContext& run) { run.fail("values"); }),
            "run failed: com.example.Op 'here': values");
  EXPECT_EQ(refused(same, [](KernelContext& run) { run.input(0).elements<int32_t>(); }),
            "run failed: com.example.Op 'here': the elements of a tensor are read as another type "
            "than they have");
  EXPECT_EQ(refused(same, [](KernelContext& run) { run.allocate(0, {3}); }),
            "run failed: com.example.Op 'here': the kernel allocates an output without having said "
            "so when it was prepared");
  EXPECT_EQ(
      refused([](ShapeInferenceContext& c) { c.set_output(0, ElementType::int8, {1}); }, nothing),
      "invalid model: com.example.Op 'here': the operator's inference makes output 0 ('y') "
      "tensor(int8), which its signature does not allow");
  EXPECT_EQ(refused([](ShapeInferenceContext& c) { c.set_output(0, ElementType::float32, {-1}); },
                    nothing),
            "invalid model: com.example.Op 'here': dimension 0 of output 0 comes out as -1");
  EXPECT_EQ(
      refused([](ShapeInferenceContext&) {}, nothing),
      "invalid model: com.example.Op 'here': the operator's inference has not set the type of "
      "output 0");
  EXPECT_NE(refused([](ShapeInferenceContext& c) { c.set_output_like(3, 0); }, nothing), "");
  EXPECT_NE(refused(same, nothing, [](KernelBuilder& c) { c.may_share(0, 5); }), "");
  const auto allocates = [](KernelBuilder& c) { c.allocates_outputs(); };
  const auto unknown = [](ShapeInferenceContext& c) {
    c.set_output(0, ElementType::float32, {c.unknown(c.size(0, 0))});
  };
  EXPECT_EQ(refused(unknown, nothing, allocates),
            "run failed: com.example.Op 'here': the kernel has not allocated output 0");
  EXPECT_NE(refused(
                unknown,
                [](KernelContext& run) {
                  run.allocate(0, {1, 1});
                },
                allocates),
            "");
  EXPECT_NE(refused(
                unknown, [](KernelContext& run) { run.allocate(0, {-1}); }, allocates),
            "");
  EXPECT_NE(refused(unknown, nothing), "");
}

TEST(CustomOperators, TypesAndArityAreThoseOfTheSignature) {
  const auto refused = [&](const std::string& graph) {
    return message_of(
        [&] { const Session session(model_of(graph, one_operator(same, plus_one))); });
  };
  EXPECT_NE(refused("g (int8[3] x) => (y) {\n y = com.example.Op (x)\n}")
                .find("must be tensor(float) or tensor(int32); it is tensor(int8)"),
            std::string::npos);
  EXPECT_NE(refused("g (float[3] x) => (y) {\n y = com.example.Op (x, x)\n}"), "");
  EXPECT_NE(refused("g (float[3] x) => (y) {\n y = com.example.Op <quux = 3> (x)\n}"), "x");
}

TEST(CustomOperators, TheCheckerKnowsThem) {
  const auto operators = one_operator(same, plus_one);
  const Model model = model_of(
      "g (float[3] x) => (float[3] y) {\n a = com.example.Op <quux = 3> (x)\n y = com.example.Opp "
      "(a)\n}",
      operators);
  std::string all;
  for (const auto& finding :
       check::check(model.implementation().model, {.more = &model.implementation().custom}))
    all += finding.to_string() + "\n";
  EXPECT_NE(all.find("quux"), std::string::npos) << all;
  EXPECT_NE(all.find("did you mean 'Op'?"), std::string::npos) << all;
}

TEST(CustomOperators, NamesThatAreTakenAreRefused) {
  CustomOperators operators;
  const auto op = std::make_shared<Operator>(same, plus_one);
  const auto refused = [&](const char* domain, const char* signature) {
    return message_of([&] { operators.add(domain, signature, op); });
  };
  const char* gelu = "Gelu\n since 1\n in x: float\n out y: float";
  EXPECT_NE(refused("", unary).find("is not free"), std::string::npos);
  EXPECT_NE(refused("ai.onnx", unary).find("is not free"), std::string::npos);
  EXPECT_NE(refused("ai.onnx.ml", unary).find("is not free"), std::string::npos);
  EXPECT_NE(refused("sardonyx", unary).find("is not free"), std::string::npos);
  EXPECT_EQ(refused("com.microsoft", gelu),
            "bad input: Sardonyx has the operator com.microsoft.Gelu itself");
  EXPECT_EQ(refused("com.microsoft", unary), "");
  EXPECT_EQ(refused("com.microsoft", unary),
            "bad input: the operator com.microsoft.Op has been added before");
  EXPECT_NE(message_of([&] { operators.add("com.example", unary, nullptr); }), "");
}

TEST(CustomOperators, WithoutThemTheModelIsRefused) {
  const std::string message = message_of([] {
    const Session session(model_of("g (float[3] x) => (y) {\n y = com.example.Op (x)\n}", nullptr));
  });
  EXPECT_NE(message.find("a library with the operator can be named when the model is loaded"),
            std::string::npos)
      << message;
}

// ---- the example's library

const std::string library = EXAMPLE_OPERATORS;

// Null takes the variable away.
void set_environment(const char* name, const char* value) {
#ifdef _WIN32
  _putenv_s(name, value != nullptr ? value : "");
#else
  value != nullptr ? setenv(name, value, 1) : unsetenv(name);
#endif
}

LoadOptions with_library() {
  LoadOptions options;
  options.libraries = {library};
  return options;
}

TEST(OperatorLibrary, ItsOperatorsRun) {
  const Model model = Model::from_text(
      R"(<ir_version: 10, opset_import: ["" : 21, "com.example" : 1]>
g (float[R,C] x, float t) => (float[K] kept, int64 count, float[R,D] sums) {
  soft = com.example.Leaky <slope = 0.5> (x)
  sums = com.example.WindowSum (soft)
  kept, count = com.example.Above (sums, t)
})",
      with_library());
  const Tensor x = Tensor::of<float>({1, -2, 3, -4, 5, 6}, {2, 3});
  for (const bool plain : {false, true}) {
    const Session session(model, {.reference = plain});
    const auto outputs = session.run({{"x", x}, {"t", Tensor::scalar(1.0f)}});
    EXPECT_EQ(floats(outputs[2]), (std::vector<float>{0, 2, 3, 11}));
    EXPECT_EQ(floats(outputs[0]), (std::vector<float>{2, 3, 11}));
    EXPECT_EQ(outputs[1].tensor().elements<int64_t>()[0], 3);
  }
}

TEST(OperatorLibrary, ManyThreadsAndLongerThanTheModel) {
  std::optional<Session> session;
  {
    const Model model = Model::from_text(
        "<ir_version: 10, opset_import: [\"com.example\" : 1]>\ng (float[N] x) => (float[N] y) {\n "
        "y = com.example.Leaky <slope = 2.0> (x)\n}",
        with_library());
    session.emplace(model);
  }
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i)
        wrong += floats(session->run({{"x", Tensor::of<float>({-1, 1}, {2})}})[0]) !=
                 std::vector<float>{-2, 1};
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(OperatorLibrary, WhatIsNoneIsRefused) {
  const auto refused = [](const std::string& path) {
    return message_of([&] { CustomOperators().load(path); });
  };
  EXPECT_EQ(refused("/nowhere/x.so"), "unreadable: /nowhere/x.so: there is no such file");
  EXPECT_EQ(refused("libm.so.6"), "unreadable: libm.so.6: there is no such file");
  const test::ScratchFolder folder;
  const std::string text = folder / "text.so";
  std::ofstream(text) << "text";
  EXPECT_NE(refused(text).find("the library cannot be loaded"), std::string::npos);
  EXPECT_EQ(refused(OPERATORS_none),
            "unreadable: " OPERATORS_none
            ": it is no library of operators: it exports no sardonyx_operators_abi; "
            "SARDONYX_OPERATOR_LIBRARY of sardonyx/custom.h defines all that is needed");
  EXPECT_EQ(refused(OPERATORS_old_interface),
            "unsupported: " OPERATORS_old_interface
            ": it was built for version 1 of the interface of operators, this Sardonyx has version "
            "2; build it again with the headers of Sardonyx " +
                std::string(version()));
  EXPECT_NE(refused(OPERATORS_other_cxx).find("it was built with another one, this Sardonyx with"),
            std::string::npos);
  EXPECT_EQ(refused(OPERATORS_throws), "bad input: " OPERATORS_throws
                                       ": the library failed to add its operators: no luck today");
  set_environment("OPERATORS_THROW_A_NUMBER", "1");
  EXPECT_NE(refused(OPERATORS_throws).find("it threw something that is no std::exception"),
            std::string::npos);
  set_environment("OPERATORS_THROW_A_NUMBER", nullptr);
  CustomOperators twice;
  twice.load(library);
  EXPECT_NE(message_of([&] { twice.load(library); }).find("has been added before"),
            std::string::npos);
}

}  // namespace
}  // namespace sardonyx
