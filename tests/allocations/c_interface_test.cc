// Runs through the C interface with sizes like the one before, and with outputs that are given,
// allocate nothing, by position and by name.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "allocations/failing_new.h"
#include "sardonyx/sardonyx.h"

namespace {

using failing_new::left;

struct Small {
  const char* name;
  const char* graph;
  size_t inputs, outputs;
};

constexpr Small models[] = {
    {"one node", "g (float[n, 4] x) => (float[n, 4] y) { y = Softmax(x) }", 1, 1},
    {"two inputs", "g (float[n, 4] x, float[n, 4] b) => (float[n, 4] y) { y = Add(x, b) }", 2, 1},
    {"two outputs",
     "g (float[n, 4] x, float[n, 4] b) => (float[n, 4] y, float[n, 4] z)"
     " { y = Add(x, b) z = Exp(x) }",
     2, 2},
    {"many inputs",
     "g (float[n, 4] x, float[n, 4] b, float[n, 4] c, float[n, 4] d, float[n, 4] e,"
     " float[n, 4] f, float[n, 4] g, float[n, 4] h, float[n, 4] i, float[n, 4] j)"
     " => (float[n, 4] y) { y = Sum(x, b, c, d, e, f, g, h, i, j) }",
     10, 1},
};
constexpr const char* input_names[] = {"x", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
constexpr const char* output_names[] = {"y", "z"};

// Whether `work` ends with an allocation refused at its first attempt.
template <class Work>
bool allocates(const Work& work) {
  left = 0;
  sardonyx_status* const status = work();
  const bool was_asked = left.exchange(-1) != 0;
  sardonyx_status_release(status);
  return was_asked || status != nullptr;
}

class CInterface : public testing::TestWithParam<Small> {
 protected:
  void SetUp() override {
    const std::string text =
        std::string("<ir_version: 10, opset_import: [\"\" : 21]>\n") + GetParam().graph;
    sardonyx_model* model = nullptr;
    ok(sardonyx_model_parse(text.data(), text.size(), nullptr, &model));
    sardonyx_session_options options = SARDONYX_INIT(sardonyx_session_options);
    options.threads = 1;
    ok(sardonyx_session_create(model, &options, &session_));
    sardonyx_model_release(model);
    for (size_t i = 0; i < GetParam().inputs; ++i) inputs_.push_back(tensor());
    for (size_t i = 0; i < GetParam().outputs; ++i) outputs_.push_back(tensor());
  }
  void TearDown() override {
    for (const sardonyx_value* one : inputs_)
      sardonyx_value_release(const_cast<sardonyx_value*>(one));
    for (sardonyx_value* one : outputs_) sardonyx_value_release(one);
    sardonyx_session_release(session_);
  }

  static void ok(sardonyx_status* status) {
    ASSERT_EQ(status, nullptr) << sardonyx_status_message(status);
  }
  static sardonyx_value* tensor() {
    constexpr int64_t dims[] = {2, 4};
    sardonyx_value* made = nullptr;
    ok(sardonyx_tensor_create(SARDONYX_FLOAT32, 2, dims, &made));
    return made;
  }
  sardonyx_status* run_in_order(sardonyx_value** outputs) {
    return sardonyx_session_run_in_order(session_, nullptr, inputs_.data(), inputs_.size(), outputs,
                                         outputs_.size());
  }
  sardonyx_status* run_by_name() {
    return sardonyx_session_run(session_, nullptr, input_names, inputs_.data(), inputs_.size(),
                                output_names, outputs_.size(), outputs_.data());
  }

  sardonyx_session* session_ = nullptr;
  std::vector<const sardonyx_value*> inputs_;
  std::vector<sardonyx_value*> outputs_;
};

TEST_P(CInterface, RunsByPositionAllocateNothing) {
  for (int i = 0; i < 3; ++i) ok(run_in_order(outputs_.data()));
  EXPECT_FALSE(allocates([&] { return run_in_order(outputs_.data()); }));
}

TEST_P(CInterface, RunsByNameAllocateNothing) {
  for (int i = 0; i < 3; ++i) ok(run_by_name());
  EXPECT_FALSE(allocates([&] { return run_by_name(); }));
}

TEST_P(CInterface, RunsOfABindingAllocateNothing) {
  sardonyx_binding* binding = nullptr;
  ok(sardonyx_binding_create(session_, &binding));
  for (size_t i = 0; i < inputs_.size(); ++i)
    ok(sardonyx_binding_input(binding, input_names[i], inputs_[i]));
  for (size_t i = 0; i < outputs_.size(); ++i)
    ok(sardonyx_binding_output(binding, output_names[i], outputs_[i]));
  for (int i = 0; i < 3; ++i) ok(sardonyx_binding_run(binding, nullptr));
  EXPECT_FALSE(allocates([&] { return sardonyx_binding_run(binding, nullptr); }));
  sardonyx_binding_release(binding);
}

// What a thread keeps for its next run is room, not the values of the last one.
TEST_P(CInterface, RunsLetGoOfTheirValues) {
  constexpr int64_t dims[] = {2, 4};
  float memory[8] = {};
  int released = 0;
  sardonyx_value* wrapped = nullptr;
  ok(sardonyx_tensor_wrap(
      SARDONYX_FLOAT32, 2, dims, memory, sizeof memory,
      [](void* user) { ++*static_cast<int*>(user); }, &released, &wrapped));
  sardonyx_value_release(const_cast<sardonyx_value*>(inputs_[0]));
  inputs_[0] = wrapped;
  ok(run_in_order(outputs_.data()));
  ok(run_by_name());
  void* data = nullptr;
  ok(sardonyx_tensor_mutable_data(outputs_[0], &data, nullptr));  // nothing else shares it
  sardonyx_value_release(wrapped);
  inputs_[0] = tensor();
  EXPECT_EQ(released, 1);
}

TEST_P(CInterface, TheMeasureSeesAllocations) {
  std::vector<sardonyx_value*> fresh(outputs_.size(), nullptr);
  EXPECT_TRUE(allocates([&] { return run_in_order(fresh.data()); }));
  for (const sardonyx_value* one : fresh) EXPECT_EQ(one, nullptr);
}

// One string of many is read in a time that does not depend on how many there are.
TEST(CAttributes, OneOfManyStringsIsReadWithoutAList) {
  const std::string text =
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g () => (string[3] y) { y = Constant<value_strings = [\"a\", \"b\", \"c\"]>() }";
  sardonyx_model* model = nullptr;
  ASSERT_EQ(sardonyx_model_parse(text.data(), text.size(), nullptr, &model), nullptr);
  sardonyx_graph graph;
  sardonyx_node node;
  sardonyx_attribute strings;
  ASSERT_EQ(sardonyx_model_graph(model, &graph), nullptr);
  ASSERT_EQ(sardonyx_graph_node(graph, 0, &node), nullptr);
  ASSERT_EQ(sardonyx_node_attribute(node, 0, &strings), nullptr);
  const char* found = nullptr;
  EXPECT_FALSE(allocates([&] { return sardonyx_attribute_string(strings, 1, &found, nullptr); }));
  EXPECT_STREQ(found, "b");
  sardonyx_model_release(model);
}

INSTANTIATE_TEST_SUITE_P(Models, CInterface, testing::ValuesIn(models),
                         [](const auto& info) { return "Model" + std::to_string(info.index); });

}  // namespace
