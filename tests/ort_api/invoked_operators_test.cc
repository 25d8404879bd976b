// Operators that kernels call.
#include <atomic>
#include <thread>

#include "ort_api/test_operator.h"

namespace sardonyx::ort_api {
namespace {

struct Attribute {
  OrtOpAttr* made = nullptr;
  Attribute(const char* name, const void* data, int count, OrtOpAttrType type) {
    EXPECT_OK(api().CreateOpAttr(name, data, count, type, &made));
  }
  Attribute(const Attribute&) = delete;
  Attribute& operator=(const Attribute&) = delete;
  ~Attribute() { api().ReleaseOpAttr(made); }
};

// A node whose kernel hands its work on to this operator, made with its kernel.
struct Caller : TestOperator {
  std::string op_name, op_domain;
  int op_version;
  std::vector<const OrtOpAttr*> attributes;
  int inputs = 1, outputs = 1;
  OrtOp* op = nullptr;

  Caller(std::string name_, int version_, std::string domain_ = "")
      : op_name(std::move(name_)), op_domain(std::move(domain_)), op_version(version_) {
    create = [this](const OrtKernelInfo* info) {
      const char* constraints[] = {"T"};
      const ONNXTensorElementDataType types[] = {float_type};
      return api().CreateOp(info, op_name.c_str(), op_domain.c_str(), op_version, constraints,
                            types, 1, attributes.data(), static_cast<int>(attributes.size()),
                            inputs, outputs, &op);
    };
    compute = [this](OrtKernelContext* context) {
      const OrtValue* x = nullptr;
      require(api().KernelContext_GetInput(context, 0, &x));
      std::vector<const OrtValue*> given(static_cast<size_t>(inputs), x);
      OrtValue* y = output(context, 0, input_shape(context, 0));
      return api().InvokeOp(context, op, given.data(), inputs, &y, 1);
    };
  }
  ~Caller() { api().ReleaseOp(op); }
};

TEST(InvokedOperators, FillTheOutputsThatTheyAreGiven) {
  Caller op("Add", 14);
  op.inputs = 2;
  const Program program({&op});
  const auto session = program.session(one_node());
  EXPECT_EQ(run_floats(session.get(), {1, 2, 3}, {3}), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(run_floats(session.get(), {5}, {1}), (std::vector<float>{10}));
}

TEST(InvokedOperators, WithAttributesOfEachKind) {
  const int64_t axis = 0;
  const Attribute with_axis("axis", &axis, 1, ORT_OP_ATTR_INT);
  Caller softmax("Softmax", 13);
  softmax.attributes = {with_axis.made};
  const auto run_of = [](Caller& op) {
    const Program program({&op});
    return run_floats(program.session(one_node()).get(), {1, 1}, {2});
  };
  EXPECT_EQ(run_of(softmax), (std::vector<float>{0.5f, 0.5f}));

  const float alpha = 3;
  const Attribute with_alpha("alpha", &alpha, 1, ORT_OP_ATTR_FLOAT);
  Caller elu("ThresholdedRelu", 10);
  elu.attributes = {with_alpha.made};
  EXPECT_EQ(run_of(elu), (std::vector<float>{0, 0}));

  const Attribute with_mode("approximate", "tanh", 4, ORT_OP_ATTR_STRING);
  Caller gelu("Gelu", 20);
  gelu.attributes = {with_mode.made};
  EXPECT_NEAR(run_of(gelu)[0], 0.8412f, 1e-4);

  const int64_t perm[] = {0};
  const Attribute with_perm("perm", perm, 1, ORT_OP_ATTR_INTS);
  Caller transpose("Transpose", 13);
  transpose.attributes = {with_perm.made};
  EXPECT_EQ(run_of(transpose), (std::vector<float>{1, 1}));
}

TEST(InvokedOperators, OfOtherDomains) {
  Caller op("QuickGelu", 1, "com.microsoft");
  const float alpha = 1;
  const Attribute with_alpha("alpha", &alpha, 1, ORT_OP_ATTR_FLOAT);
  op.attributes = {with_alpha.made};
  const Program program({&op});
  EXPECT_NEAR(run_floats(program.session(one_node()).get(), {1}, {1})[0], 0.731059f, 1e-5);
}

TEST(InvokedOperators, AbsentInputs) {
  Caller op("Clip", 13);
  op.inputs = 3;
  op.compute = [&](OrtKernelContext* context) {
    const OrtValue* x = nullptr;
    require(api().KernelContext_GetInput(context, 0, &x));
    std::vector<float> most{2};
    const auto limit = floats(most, {});
    const OrtValue* const given[] = {x, nullptr, limit.get()};
    OrtValue* y = output(context, 0, {3});
    return api().InvokeOp(context, op.op, given, 3, &y, 1);
  };
  const Program program({&op});
  EXPECT_EQ(run_floats(program.session(one_node()).get(), {1, 2, 3}, {3}),
            (std::vector<float>{1, 2, 2}));
}

TEST(InvokedOperators, AttributesThatTheyLackAreIgnored) {
  const int64_t axis = 0;
  const Attribute with_axis("axis", &axis, 1, ORT_OP_ATTR_INT);
  Caller op("Relu", 14);
  op.attributes = {with_axis.made};
  const Program program({&op});
  EXPECT_EQ(run_floats(program.session(one_node()).get(), {1, -2}, {2}),
            (std::vector<float>{1, 0}));
}

TEST(InvokedOperators, ThatThereAreNot) {
  Held<OrtSession> session;
  Caller none("NoSuchOperator", 14), elsewhere("Relu", 14, "no.domain");
  EXPECT_REFUSED(Program({&none}).make(one_node(), session), ORT_RUNTIME_EXCEPTION,
                 "no operator NoSuchOperator in version 14");
  EXPECT_REFUSED(Program({&elsewhere}).make(one_node(), session), ORT_RUNTIME_EXCEPTION,
                 "domain 'no.domain'");
}

TEST(InvokedOperators, FailuresReachTheRun) {
  Caller op("Add", 14);
  op.inputs = 2;
  op.compute = [&](OrtKernelContext* context) {
    const OrtValue* x = nullptr;
    require(api().KernelContext_GetInput(context, 0, &x));
    std::vector<float> two{1, 2};
    const auto other = floats(two, {2});
    const OrtValue* const given[] = {x, other.get()};
    OrtValue* y = output(context, 0, {3});
    return api().InvokeOp(context, op.op, given, 2, &y, 1);
  };
  const Program program({&op});
  const auto session = program.session(one_node());
  const Outcome found = outcome_of_run(session.get(), {1, 2, 3}, {3});
  EXPECT_NE(found.code, ORT_OK);
  EXPECT_NE(found.message.find("Foo"), std::string::npos) << found.message;
}

TEST(InvokedOperators, OutputsOfAnotherShapeAreRefused) {
  if (!is_sardonyx()) return;  // ONNX Runtime writes as many elements as there are
  Caller op("Relu", 14);
  op.compute = [&](OrtKernelContext* context) {
    const OrtValue* x = nullptr;
    require(api().KernelContext_GetInput(context, 0, &x));
    OrtValue* y = output(context, 0, {4});
    return api().InvokeOp(context, op.op, &x, 1, &y, 1);
  };
  const Program program({&op});
  const Outcome found = outcome_of_run(program.session(one_node()).get(), {1, 2, 3}, {3});
  EXPECT_EQ(found.code, ORT_INVALID_ARGUMENT);
  EXPECT_NE(found.message.find("output 0 of Relu is float[3]"), std::string::npos) << found.message;
}

TEST(InvokedOperators, WriteToTheirInput) {
  Caller op("Relu", 14);
  op.compute = [&](OrtKernelContext* context) {
    give_floats(context, 0, input_floats(context, 0), input_shape(context, 0));
    OrtValue* y = output(context, 0, input_shape(context, 0));
    const OrtValue* const given = y;
    return api().InvokeOp(context, op.op, &given, 1, &y, 1);
  };
  const Program program({&op});
  EXPECT_EQ(run_floats(program.session(one_node()).get(), {1, -2}, {2}),
            (std::vector<float>{1, 0}));
}

TEST(InvokedOperators, InManyThreads) {
  Caller op("Add", 14);
  op.inputs = 2;
  const Program program({&op});
  const auto session = program.session(one_node());
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const auto size = static_cast<size_t>(1 + i % 3);
        const std::vector<float> values(size, static_cast<float>(t));
        wrong += run_floats(session.get(), values, {static_cast<int64_t>(size)}) !=
                 std::vector<float>(size, static_cast<float>(2 * t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace sardonyx::ort_api
