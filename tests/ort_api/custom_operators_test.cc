// Operators of the program's: what models may do with them, and how programs bring them.
#include <dlfcn.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "ort_api/test_operator.h"

namespace sardonyx::ort_api {
namespace {

OrtStatus* add_one(OrtKernelContext* context) { return add(context, 1); }

// Output 0 is how many inputs the node has, and 10 for each that is absent.
OrtStatus* count_inputs(OrtKernelContext* context) {
  size_t count = 0;
  require(api().KernelContext_GetInputCount(context, &count));
  float sum = 0;
  for (size_t i = 0; i < count; ++i) {
    const OrtValue* value = nullptr;
    require(api().KernelContext_GetInput(context, i, &value));
    sum += value == nullptr ? 10 : 1;
  }
  give_floats(context, 0, {sum}, {1});
  return nullptr;
}

OrtStatus* double_ints(OrtKernelContext* context) {
  const OrtValue* value = nullptr;
  require(api().KernelContext_GetInput(context, 0, &value));
  const auto shape = shape_of(value);
  void *from = nullptr, *to = nullptr;
  require(api().GetTensorMutableData(const_cast<OrtValue*>(value), &from));
  require(api().GetTensorMutableData(output(context, 0, shape), &to));
  for (int64_t i = 0; i < shape[0]; ++i)
    static_cast<int64_t*>(to)[i] = 2 * static_cast<int64_t*>(from)[i];
  return nullptr;
}

// --- Types and places -----------------------------------------------------------------------

TEST(CustomOperators, RunBetweenOthers) {
  TestOperator op;
  op.compute = add_one;
  {
    const Program program({&op});
    const auto session = program.session(model_text(
        "(float[N] x) => (float[N] y) { a = Mul (x, x)\n b = test.Foo (a)\n y = Neg (b) }"));
    EXPECT_EQ(run_floats(session.get(), {1, 2, 3}, {3}), (std::vector<float>{-2, -5, -10}));
    EXPECT_EQ(run_floats(session.get(), {}, {0}), (std::vector<float>{}));
    EXPECT_EQ(run_floats(session.get(), {4}, {1}), (std::vector<float>{-17}));
  }
  EXPECT_EQ(op.made, 1);
  EXPECT_EQ(op.destroyed, 1);
}

TEST(CustomOperators, SeveralTypesUnderOneName) {
  TestOperator floats_op, ints_op;
  floats_op.compute = add_one;
  ints_op.input_types = ints_op.output_types = {int64_type};
  ints_op.compute = double_ints;
  const Program program({&floats_op, &ints_op});
  const auto session = program.session(
      model_text("(float[N] x) => (float[N] y) { a = Cast <to = 7> (x)\n b = test.Foo (a)\n"
                 " c = Cast <to = 1> (b)\n y = test.Foo (c) }"));
  EXPECT_EQ(run_floats(session.get(), {1, 2}, {2}), (std::vector<float>{3, 5}));
}

TEST(CustomOperators, TheFirstThatFitsIsTaken) {
  TestOperator first, second;
  first.compute = add_one;
  second.compute = [](OrtKernelContext* context) { return add(context, 100); };
  const Program program({&first, &second});
  EXPECT_EQ(run_floats(program.session(one_node()).get(), {1}, {1}), (std::vector<float>{2}));
}

TEST(CustomOperators, TypesThatNoneTakesAreRefused) {
  TestOperator floats_op, ints_op;
  floats_op.compute = add_one;
  ints_op.input_types = ints_op.output_types = {int64_type};
  const Program program({&floats_op, &ints_op});
  Held<OrtSession> session;
  EXPECT_REFUSED(
      program.make(model_text("(double[N] x) => (y) { [node] y = test.Foo (x) }"), session),
      ORT_INVALID_GRAPH, "node");
  TestOperator two, other;
  two.input_types = {float_type, int64_type};
  other.input_types = {int64_type, float_type};
  const Program pairs({&two, &other});
  EXPECT_REFUSED(
      pairs.make(model_text("(float[N] x) => (float[N] y) { [node] y = test.Foo (x, x) }"),
                 session),
      is_sardonyx() ? ORT_INVALID_GRAPH : ORT_FAIL,
      "the program's operator takes (float, int64) or (int64, float); the node has (float, float)");
}

TEST(CustomOperators, AnyTypeIsThatOfTheInput) {
  TestOperator op;
  op.input_types = op.output_types = {any_type};
  op.compute = [](OrtKernelContext* context) {
    const OrtValue* value = nullptr;
    require(api().KernelContext_GetInput(context, 0, &value));
    OrtTensorTypeAndShapeInfo* info = nullptr;
    ONNXTensorElementDataType type = any_type;
    require(api().GetTensorTypeAndShape(value, &info));
    require(api().GetTensorElementType(info, &type));
    api().ReleaseTensorTypeAndShapeInfo(info);
    return type == int64_type ? double_ints(context) : add_one(context);
  };
  const Program program({&op});
  const auto session = program.session(
      model_text("(float[N] x) => (float[N] y) { a = Cast <to = 7> (x)\n b = test.Foo (a)\n"
                 " c = Cast <to = 1> (b)\n y = test.Foo (c) }"));
  EXPECT_EQ(run_floats(session.get(), {1, 2}, {2}), (std::vector<float>{3, 5}));
}

TEST(CustomOperators, OptionalInputsAndOutputs) {
  TestOperator op;
  op.input_types = {float_type, float_type, float_type};
  op.input_kinds = {INPUT_OUTPUT_REQUIRED, INPUT_OUTPUT_OPTIONAL, INPUT_OUTPUT_OPTIONAL};
  op.output_types = {float_type, float_type};
  op.output_kinds = {INPUT_OUTPUT_REQUIRED, INPUT_OUTPUT_OPTIONAL};
  bool has_second = false;
  op.compute = [&](OrtKernelContext* context) {
    OrtValue* const second = output(context, 1, {1});
    has_second = second != nullptr;
    if (has_second) give_floats(context, 1, {7}, {1});
    return count_inputs(context);
  };
  const Program program({&op});
  const auto counted = [&](const char* graph) {
    return run_floats(program.session(model_text(graph)).get(), {1, 2}, {2})[0];
  };
  EXPECT_EQ(counted("(float[N] x) => (float[M] y) { y = test.Foo (x) }"), 1);
  EXPECT_FALSE(has_second);
  EXPECT_EQ(counted("(float[N] x) => (float[M] y) { y = test.Foo (x, , x) }"), 12);
  EXPECT_EQ(counted("(float[N] x) => (float[M] y) { z, y = test.Foo (x, x) }"), 7);
  EXPECT_TRUE(has_second);
  Held<OrtSession> session;
  EXPECT_REFUSED(
      program.make(model_text("(float[N] x) => (float[M] y) { y = test.Foo (, x) }"), session),
      ORT_INVALID_GRAPH, "in0");
}

TEST(CustomOperators, ListsOfValues) {
  TestOperator op;
  op.input_kinds = op.output_kinds = {INPUT_OUTPUT_VARIADIC};
  op.least = 2;
  op.compute = [](OrtKernelContext* context) {
    size_t count = 0;
    require(api().KernelContext_GetOutputCount(context, &count));
    for (size_t i = 1; i < count; ++i) give_floats(context, i, {static_cast<float>(i)}, {1});
    return count_inputs(context);
  };
  const Program program({&op});
  const auto session = program.session(
      model_text("(float[N] x) => (float[1] y, float[1] z) { y, a, z = test.Foo (x, x, x, x) }"));
  std::vector<float> values{1};
  const auto x = floats(values, {1});
  const auto outputs = run(session.get(), {{"x", x.get()}}, {"y", "z"});
  EXPECT_EQ(floats_of(outputs[0].get())[0], 4);
  EXPECT_EQ(floats_of(outputs[1].get())[0], 2);
  Held<OrtSession> other;
  EXPECT_REFUSED(
      program.make(model_text("(float[N] x) => (float[1] y) { y, z = test.Foo (x) }"), other),
      ORT_INVALID_GRAPH, "2");
}

TEST(CustomOperators, ListsOfSeveralTypes) {
  TestOperator op;
  op.input_types = {any_type};
  op.input_kinds = {INPUT_OUTPUT_VARIADIC};
  op.compute = count_inputs;
  const std::string model =
      model_text("(float[N] x) => (float[1] y) { a = Cast <to = 7> (x)\n y = test.Foo (x, a, x) }");
  Held<OrtSession> session;
  EXPECT_REFUSED(Program({&op}).make(model, session), is_sardonyx() ? ORT_INVALID_GRAPH : ORT_FAIL,
                 "must have one type");
  op.is_homogeneous = false;
  const Program program({&op});
  EXPECT_EQ(run_floats(program.session(model).get(), {1}, {1}), (std::vector<float>{3}));
}

TEST(CustomOperators, OverloadsDifferInTypesAlone) {
  TestOperator one, two;
  two.input_types = {float_type, float_type};
  one.compute = two.compute = add_one;
  const Program program({&one, &two});
  Held<OrtSession> session;
  EXPECT_REFUSED(program.make(one_node(), session), ORT_FAIL,
                 "(float) -> (float) and (float, float)");
}

TEST(CustomOperators, Strings) {
  TestOperator op;
  op.input_types = op.output_types = {string_type};
  op.compute = [](OrtKernelContext* context) -> OrtStatus* {
    const OrtValue* value = nullptr;
    require(api().KernelContext_GetInput(context, 0, &value));
    std::vector<std::string> texts = texts_of(value);
    std::vector<const char*> pointers;
    for (std::string& text : texts) pointers.push_back((text += "!").c_str());
    require(api().FillStringTensor(output(context, 0, shape_of(value)), pointers.data(),
                                   pointers.size()));
    return nullptr;
  };
  const Program program({&op});
  const auto session = program.session(
      model_text("(string[N] x) => (string[N] y) { a = test.Foo (x)\n y = test.Foo (a) }"));
  const int64_t shape[] = {2};
  OrtValue* made = nullptr;
  ASSERT_OK(api().CreateTensorAsOrtValue(allocator(), shape, 1, string_type, &made));
  const auto x = hold(made);
  const char* const texts[] = {"a", "a longer text than fits into the object itself"};
  ASSERT_OK(api().FillStringTensor(x.get(), texts, 2));
  const auto outputs = run(session.get(), {{"x", x.get()}}, {"y"});
  EXPECT_EQ(texts_of(outputs[0].get()),
            (std::vector<std::string>{"a!!", "a longer text than fits into the object itself!!"}));
  EXPECT_EQ(texts_of(x.get())[0], "a");
}

TEST(CustomOperators, ValuesThatAreNoTensorsAreRefused) {
  TestOperator op;
  op.input_types = {any_type};
  op.compute = count_inputs;
  const Program program({&op});
  Held<OrtSession> session;
  const Outcome found = outcome(program.make(
      model_text("(float[N] x) => (float[1] y) { s = SequenceConstruct (x)\n y = test.Foo (s) }"),
      session));
  EXPECT_NE(found.code, ORT_OK);
  if (is_sardonyx()) {
    EXPECT_NE(found.message.find("in0"), std::string::npos) << found.message;
  }
}

// --- Where nodes are ------------------------------------------------------------------------

TEST(CustomOperators, InsideBodiesAndFunctions) {
  TestOperator op;
  op.compute = add_one;
  const Program program({&op});
  const auto branches = program.session(
      model_text("(float[N] x) => (float[N] y) {\n zero = Constant <value = float {0}> ()\n"
                 " sum = ReduceSum <keepdims = 0> (x)\n c = Greater (sum, zero)\n"
                 " y = If (c) <then_branch = yes () => (t) { t = test.Foo (x) },"
                 " else_branch = no () => (e) { h = test.Foo (x)\n e = test.Foo (h) }>\n}"));
  EXPECT_EQ(run_floats(branches.get(), {1, 2}, {2}), (std::vector<float>{2, 3}));
  EXPECT_EQ(run_floats(branches.get(), {-1, -2}, {2}), (std::vector<float>{1, 0}));
  const auto loop = program.session(
      model_text("(float[N] x) => (y) {\n n = Constant <value = int64 {5}> ()\n"
                 " y = Loop (n, , x) <body = b (int64 i, bool c, s) => (c_out, s_out)"
                 " { c_out = Identity (c)\n s_out = test.Foo (s) }>\n}"));
  EXPECT_EQ(run_floats(loop.get(), {1, 2}, {2}), (std::vector<float>{6, 7}));
  TestOperator step;
  step.compute = [](OrtKernelContext* context) { return add(context, 2); };
  float amount = 0;
  step.create = [&](const OrtKernelInfo* info) {
    return api().KernelInfoGetAttribute_float(info, "by", &amount);
  };
  const Program functions({&step});
  const auto session = functions.session(
      "<ir_version: 10, opset_import: [\"\" : 21, \"test\" : 1, \"own\" : 1]>\n"
      "g (float[N] x) => (float[N] y) { y = own.Step <by = 0.25> (x) }\n"
      "<domain: \"own\", opset_import: [\"test\" : 1]>\n"
      "Step <by> (x) => (y) { h = test.Foo <by: float = @by> (x)\n y = test.Foo <by = 0.25> (h) }");
  EXPECT_EQ(run_floats(session.get(), {1}, {1}), (std::vector<float>{5}));
  EXPECT_EQ(amount, 0.25f);
}

TEST(CustomOperators, OfOneModelInManyThreads) {
  TestOperator op;
  std::atomic<int> calls = 0;
  op.compute = [&](OrtKernelContext* context) {
    ++calls;
    return add(context, 1);
  };
  const Program program({&op});
  const auto session = program.session(
      model_text("(float[N] x) => (float[N] y) { a = test.Foo (x)\n y = test.Foo (a) }"));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const float value = static_cast<float>(t * 1000 + i);
        const std::vector<float> found = run_floats(session.get(), {value, -value}, {2});
        wrong += found != std::vector<float>{value + 2, -value + 2};
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(calls, 800);
}

TEST(CustomOperators, ConstantInputsAreComputedByEachRun) {
  TestOperator op;
  int calls = 0;
  op.compute = [&](OrtKernelContext* context) {
    ++calls;
    return add(context, 1);
  };
  const Program program({&op});
  const auto session = program.session(model_text(
      "(float[N] x) => (float[N] y) <float[1] k = {4}> { a = test.Foo (k)\n b = test.Foo (k)\n"
      " c = Add (a, b)\n y = Add (c, x) }"));
  EXPECT_EQ(run_floats(session.get(), {1}, {1}), (std::vector<float>{11}));
  EXPECT_EQ(run_floats(session.get(), {1}, {1}), (std::vector<float>{11}));
  EXPECT_EQ(calls, 4);
}

TEST(CustomOperators, HaveOneKernelForANode) {
  TestOperator op;
  op.compute = add_one;
  int constants = 0;
  op.input_types = {float_type, float_type};
  op.create = [&](const OrtKernelInfo* info) -> OrtStatus* {
    int is_constant = 0;
    const OrtValue* constant = nullptr;
    EXPECT_OK(api().KernelInfoGetConstantInput_tensor(info, 1, &is_constant, &constant));
    constants += is_constant;
    return nullptr;
  };
  const Program program({&op});
  // Of open rank, of a rank that sizes decide of, and inside a loop on values of open rank.
  const auto session = program.session(model_text(
      "(float[A, B] x) => (y) <float[1] k = {0}> {\n a = test.Foo (x, k)\n b = test.Foo (a, k)\n"
      " s = Squeeze (x)\n c = test.Foo (s, k)\n n = Constant <value = int64 {3}> ()\n"
      " l = Loop (n, , b) <body = body (int64 i, bool c, t) => (c_out, t_out)"
      " { c_out = Identity (c)\n t_out = test.Foo (t, k) }>\n"
      " zero = Constant <value = float {0}> ()\n f = ReduceSum <keepdims = 0> (c)\n"
      " m = Mul (f, zero)\n y = Add (l, m)\n}"));
  EXPECT_EQ(run_floats(session.get(), {1, 2}, {1, 2}), (std::vector<float>{6, 7}));
  EXPECT_EQ(run_floats(session.get(), {1, 2}, {1, 2}), (std::vector<float>{6, 7}));
  EXPECT_EQ(run_floats(session.get(), {1, 2}, {2, 1}), (std::vector<float>{6, 7}));
  EXPECT_EQ(run_floats(session.get(), {1, 2, 3, 4}, {2, 2}), (std::vector<float>{6, 7, 8, 9}));
  EXPECT_EQ(op.made, 4);
  EXPECT_GE(constants, 3);
}

// --- Failures -------------------------------------------------------------------------------

TEST(CustomOperators, AKernelThatIsNotMadeEndsTheSession) {
  TestOperator op;
  op.create = [](const OrtKernelInfo*) {
    return api().CreateStatus(ORT_NOT_IMPLEMENTED, "not on Mondays");
  };
  const Program program({&op});
  Held<OrtSession> session;
  EXPECT_REFUSED(program.make(one_node(), session), ORT_RUNTIME_EXCEPTION, "not on Mondays");
  EXPECT_REFUSED(program.make(one_node(), session), ORT_RUNTIME_EXCEPTION, "Foo 'node'");
  op.create = [](const OrtKernelInfo*) -> OrtStatus* { throw std::runtime_error("thrown"); };
  EXPECT_REFUSED(program.make(one_node(), session), ORT_RUNTIME_EXCEPTION, "Foo 'node': thrown");
  EXPECT_EQ(op.destroyed, 0);
}

TEST(CustomOperators, AKernelThatFailsEndsTheRun) {
  TestOperator op;
  OrtErrorCode code = ORT_FAIL;
  op.compute = [&](OrtKernelContext*) { return api().CreateStatus(code, "a bad day"); };
  const Program program({&op});
  const auto session = program.session(one_node());
  for (const OrtErrorCode one :
       {ORT_FAIL, ORT_INVALID_ARGUMENT, ORT_NO_SUCHFILE, ORT_NO_MODEL, ORT_NOT_IMPLEMENTED,
        ORT_INVALID_GRAPH, ORT_EP_FAIL, ORT_NOT_FOUND, ORT_RUNTIME_EXCEPTION}) {
    code = one;
    const Outcome found = outcome_of_run(session.get(), {1}, {1});
    EXPECT_EQ(found.code, one);
    EXPECT_NE(found.message.find("Foo"), std::string::npos) << found.message;
    EXPECT_NE(found.message.find("'node'"), std::string::npos) << found.message;
    EXPECT_NE(found.message.find("a bad day"), std::string::npos) << found.message;
  }
  op.compute = [](OrtKernelContext*) -> OrtStatus* { throw std::runtime_error("thrown"); };
  const Outcome found = outcome_of_run(session.get(), {1}, {1});
  EXPECT_EQ(found.code, ORT_RUNTIME_EXCEPTION);
  EXPECT_NE(found.message.find("thrown"), std::string::npos) << found.message;
  // The session goes on.
  op.compute = add_one;
  EXPECT_EQ(run_floats(session.get(), {1}, {1}), (std::vector<float>{2}));
}

TEST(CustomOperators, OfOtherDevicesAreNotTaken) {
  TestOperator device, own;
  device.provider = "CUDAExecutionProvider";
  own.provider = "CPUExecutionProvider";
  own.compute = add_one;
  Held<OrtSession> session;
  EXPECT_REFUSED(Program({&device}).make(one_node(), session), ORT_NOT_IMPLEMENTED,
                 is_sardonyx() ? "test.Foo is for other devices" : "Foo");
  const Program both({&device, &own});
  EXPECT_EQ(run_floats(both.session(one_node()).get(), {1}, {1}), (std::vector<float>{2}));
}

// --- Versions -------------------------------------------------------------------------------

TEST(CustomOperators, OldOnesAreNotAskedForWhatTheyLack) {
  // What an operator of version 8 has; what lies behind it is anything.
  alignas(OrtCustomOp) unsigned char memory[sizeof(OrtCustomOp)];
  std::fill(std::begin(memory), std::end(memory), 0xcd);
  auto* const op = reinterpret_cast<OrtCustomOp*>(memory);
  op->version = 8;
  op->GetName = [](const OrtCustomOp*) { return "Foo"; };
  op->GetExecutionProviderType = [](const OrtCustomOp*) -> const char* { return nullptr; };
  op->GetInputTypeCount = op->GetOutputTypeCount = [](const OrtCustomOp*) { return size_t{1}; };
  op->GetInputType = op->GetOutputType = [](const OrtCustomOp*, size_t) { return float_type; };
  op->GetInputCharacteristic = op->GetOutputCharacteristic = [](const OrtCustomOp*, size_t) {
    return INPUT_OUTPUT_REQUIRED;
  };
  op->CreateKernel = [](const OrtCustomOp* self, const OrtApi*, const OrtKernelInfo*) -> void* {
    return const_cast<OrtCustomOp*>(self);
  };
  op->KernelCompute = [](void*, OrtKernelContext* context) { add(context, 1); };
  op->KernelDestroy = [](void*) {};
  const Program program({});
  ASSERT_OK(api().CustomOpDomain_Add(program.domain.get(), op));
  EXPECT_EQ(run_floats(program.session(one_node()).get(), {1}, {1}), (std::vector<float>{2}));
}

// A model that anybody wrote says nothing of what the program's operator takes.
TEST(CustomOperators, NamesOfAttributesThatAreNone) {
  if (!is_sardonyx()) GTEST_SKIP() << "takes any text for a name";
  TestOperator op;
  op.compute = add_one;
  const Program program({&op});
  std::string bytes = model_bytes(one_node("<aaaaaaaaaaaaaaaaaaaaaaaa = 1>").c_str());
  const std::string before(24, 'a');
  bytes.replace(bytes.find(before), 24, "a: int\nsince 2\nattr bbbb");
  OrtSession* session = nullptr;
  EXPECT_REFUSED(api().CreateSessionFromArray(program.env.get(), bytes.data(), bytes.size(),
                                              program.options.get(), &session),
                 ORT_INVALID_GRAPH, "has an attribute");
}

TEST(CustomOperators, NewerOnesThanTheInterfaceAreTaken) {
  TestOperator op;
  op.version = 99;
  op.compute = add_one;
  const Program program({&op});
  EXPECT_EQ(run_floats(program.session(one_node()).get(), {1}, {1}), (std::vector<float>{2}));
}

TEST(CustomOperators, AnEndBelowTheBeginningIsNone) {
  TestOperator op;
  op.compute = add_one;
  op.last = -1;  // the largest number without a sign
  const Program program({&op});
  std::vector<float> x{1, 2};
  const auto input = floats(x, {2});
  const auto session =
      make_session(program.env.get(), R"(<ir_version: 8, opset_import: ["" : 17, "test" : 1]>
    g (float[2] x) => (float[2] y) { y = test.Foo(x) })",
                   program.options.get());
  EXPECT_EQ(floats_of(run(session.get(), {{"x", input.get()}}, {"y"})[0].get()),
            (std::vector<float>{2, 3}));
}

TEST(CustomOperators, BeginWithAVersionOfTheirDomain) {
  TestOperator op;
  op.first = 2;
  op.compute = add_one;
  const Program program({&op});
  const std::string graph = "(float[N] x) => (float[N] y) { y = test.Foo (x) }";
  Held<OrtSession> session;
  EXPECT_NE(outcome(program.make(model_text(graph, 1), session)).code, ORT_OK);
  for (const int version : {2, 3})
    EXPECT_EQ(run_floats(program.session(model_text(graph, version)).get(), {1}, {1}),
              (std::vector<float>{2}));
  if (!is_sardonyx()) return;  // ONNX Runtime only knows the first version that was added
  TestOperator newer;
  newer.first = 4;
  newer.input_types = newer.output_types = {any_type};
  newer.compute = [](OrtKernelContext* context) { return add(context, 100); };
  op.last = 3;
  const Program both({&op, &newer});
  EXPECT_EQ(run_floats(both.session(model_text(graph, 3)).get(), {1}, {1}),
            (std::vector<float>{2}));
  EXPECT_EQ(run_floats(both.session(model_text(graph, 4)).get(), {1}, {1}),
            (std::vector<float>{101}));
}

TEST(CustomOperators, OfADomainThatTheModelDoesNotImport) {
  TestOperator op;
  op.compute = add_one;
  const Program program({&op});
  const auto session = program.session(
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[N] x) => (float[N] y) { y = test.Foo (x) }");
  EXPECT_EQ(run_floats(session.get(), {1}, {1}), (std::vector<float>{2}));
}

// --- Domains and libraries ------------------------------------------------------------------

TEST(CustomOperators, AreReadWhenASessionIsMade) {
  TestOperator op;
  op.compute = add_one;
  const Program program({});
  ASSERT_OK(api().CustomOpDomain_Add(program.domain.get(), &op));
  EXPECT_EQ(run_floats(program.session(one_node()).get(), {1}, {1}), (std::vector<float>{2}));
}

TEST(CustomOperators, OfTheDomainOfTheExtensions) {
  TestOperator op("Upper");
  op.compute = add_one;
  const Program program({&op}, "ai.onnx.contrib");
  const auto session = program.session(
      "<ir_version: 10, opset_import: [\"\" : 21, \"ai.onnx.contrib\" : 1]>\n"
      "g (float[N] x) => (float[N] y) { y = ai.onnx.contrib.Upper (x) }");
  EXPECT_EQ(run_floats(session.get(), {1}, {1}), (std::vector<float>{2}));
}

const std::string triple_model = model_text("(float[N] x) => (float[N] y) { y = test.Triple (x) }");

TEST(CustomOperatorLibraries, StayAsLongAsWhatUsesThem) {
  Held<OrtSession> session;
  const std::string bytes = model_bytes(triple_model.c_str());
  const auto env = make_env();
  {
    const auto options = make_options();
    ASSERT_OK(api().RegisterCustomOpsLibrary_V2(options.get(), TEST_OPERATORS));
    OrtSession* made = nullptr;
    ASSERT_OK(
        api().CreateSessionFromArray(env.get(), bytes.data(), bytes.size(), options.get(), &made));
    session = {made, {api().ReleaseSession}};
  }
  EXPECT_EQ(run_floats(session.get(), {1, 2}, {2}), (std::vector<float>{3, 6}));
}

TEST(CustomOperatorLibraries, WhoseHandleIsTheCallers) {
  const Program program({}, "other");
  void* handle = nullptr;
  ASSERT_OK(api().RegisterCustomOpsLibrary(program.options.get(), TEST_OPERATORS, &handle));
  ASSERT_NE(handle, nullptr);
  EXPECT_EQ(run_floats(program.session(triple_model).get(), {1, 2}, {2}),
            (std::vector<float>{3, 6}));
  dlclose(handle);
}

TEST(CustomOperatorLibraries, MadeForSardonyx) {
  if (!is_sardonyx()) return;
  const std::string model =
      "<ir_version: 10, opset_import: [\"com.example\" : 1]>\n"
      "g (float[N] x) => (float[N] y) { y = com.example.Leaky <slope = 0.5> (x) }";
  const Program program({}, "other");
  ASSERT_OK(api().RegisterCustomOpsLibrary_V2(program.options.get(), EXAMPLE_OPERATORS));
  EXPECT_EQ(run_floats(program.session(model).get(), {1, -2}, {2}), (std::vector<float>{1, -1}));
}

TEST(CustomOperatorLibraries, WhatIsNoneIsRefused) {
  const auto options = make_options();
  void* handle = &handle;
  EXPECT_REFUSED(api().RegisterCustomOpsLibrary(options.get(), "/nowhere/x.so", &handle), ORT_FAIL,
                 "/nowhere/x.so");
  EXPECT_EQ(handle, nullptr);
  EXPECT_REFUSED(api().RegisterCustomOpsLibrary_V2(options.get(), "/nowhere/x.so"), ORT_FAIL,
                 "/nowhere/x.so");
  EXPECT_REFUSED(api().RegisterCustomOpsLibrary_V2(options.get(), TEST_NO_OPERATORS), ORT_FAIL,
                 "exports no RegisterCustomOps");
  EXPECT_REFUSED(api().RegisterCustomOpsUsingFunction(options.get(), "no_such_function"), ORT_FAIL,
                 "no_such_function");
  EXPECT_REFUSED(api().EnableOrtCustomOps(options.get()), ORT_FAIL, "onnxruntime-extensions");
}

}  // namespace
}  // namespace sardonyx::ort_api

// Found by its name among what the program exports.
extern "C" [[gnu::visibility("default")]] sardonyx::ort_api::OrtStatus* register_test_operators(
    sardonyx::ort_api::OrtSessionOptions*, const sardonyx::ort_api::OrtApiBase*);
sardonyx::ort_api::OrtStatus* register_test_operators(sardonyx::ort_api::OrtSessionOptions* options,
                                                      const sardonyx::ort_api::OrtApiBase* base) {
  using namespace sardonyx::ort_api;
  static const TestOperator op = [] {
    TestOperator made;
    made.compute = add_one;
    return made;
  }();
  static OrtCustomOpDomain* const domain = [&] {
    OrtCustomOpDomain* made = nullptr;
    require(base->GetApi(12)->CreateCustomOpDomain("test", &made));
    require(base->GetApi(12)->CustomOpDomain_Add(made, &op));
    return made;
  }();
  return base->GetApi(12)->AddCustomOpDomain(options, domain);
}

namespace sardonyx::ort_api {
namespace {

TEST(CustomOperatorLibraries, AFunctionOfTheProgram) {
  const Program program({}, "other");
  ASSERT_OK(api().RegisterCustomOpsUsingFunction(program.options.get(), "register_test_operators"));
  EXPECT_EQ(run_floats(program.session(one_node()).get(), {1}, {1}), (std::vector<float>{2}));
}

TEST(CustomOperators, NullArguments) {
  if (!is_sardonyx()) return;
  const Program program({}, "other");
  OrtCustomOpDomain* domain = nullptr;
  TestOperator op;
  EXPECT_REFUSED(api().CreateCustomOpDomain(nullptr, &domain), ORT_INVALID_ARGUMENT, "'domain'");
  EXPECT_REFUSED(api().CreateCustomOpDomain("x", nullptr), ORT_INVALID_ARGUMENT, "'out'");
  EXPECT_REFUSED(api().CustomOpDomain_Add(nullptr, &op), ORT_INVALID_ARGUMENT, "domain");
  EXPECT_REFUSED(api().CustomOpDomain_Add(program.domain.get(), nullptr), ORT_INVALID_ARGUMENT,
                 "'op'");
  EXPECT_REFUSED(api().AddCustomOpDomain(nullptr, program.domain.get()), ORT_INVALID_ARGUMENT,
                 "'options'");
  EXPECT_REFUSED(api().AddCustomOpDomain(program.options.get(), nullptr), ORT_INVALID_ARGUMENT,
                 "domain");
  EXPECT_REFUSED(api().RegisterCustomOpsLibrary(program.options.get(), "x", nullptr),
                 ORT_INVALID_ARGUMENT, "library_handle");
  EXPECT_REFUSED(api().RegisterCustomOpsLibrary_V2(program.options.get(), nullptr),
                 ORT_INVALID_ARGUMENT, "library_name");
  EXPECT_REFUSED(api().KernelContext_GetInput(nullptr, 0, nullptr), ORT_INVALID_ARGUMENT,
                 "'context'");
  EXPECT_REFUSED(api().KernelInfo_GetNodeName(nullptr, nullptr, nullptr), ORT_INVALID_ARGUMENT,
                 "'info'");
  api().ReleaseCustomOpDomain(nullptr);
  api().ReleaseKernelInfo(nullptr);
  api().ReleaseOp(nullptr);
  api().ReleaseOpAttr(nullptr);
}

}  // namespace
}  // namespace sardonyx::ort_api
