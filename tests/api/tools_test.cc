// sardonyx/check.h, convert.h, compose.h, operator_set.h, signatures.h, info.h, and infer.h's
// models.
#include <algorithm>
#include <filesystem>

#include "api/support.h"
#include "sardonyx/about.h"
#include "sardonyx/check.h"
#include "sardonyx/compose.h"
#include "sardonyx/convert.h"
#include "sardonyx/edit.h"
#include "sardonyx/infer.h"
#include "sardonyx/info.h"
#include "sardonyx/operator_set.h"
#include "sardonyx/session.h"
#include "sardonyx/signatures.h"

namespace sardonyx {
namespace {

using test::example;
using test::expect_error;
using test::ScratchFolder;

const Model unsorted = Model::from_text(
    "<ir_version: 9, opset_import: [\"\": 17]> g (float[2] x) => (float[2] y) "
    "{ [late] y = Relu (a) [early] a = Abs (x) }");

TEST(Check, GivesDiagnosticsAsValues) {
  EXPECT_FALSE(check_model(example()).has_errors());
  const CheckReport report = check_model(unsorted);
  ASSERT_TRUE(report.has_errors());
  EXPECT_EQ(report.count(Severity::error), 1);
  const auto found = std::ranges::find(report.diagnostics, Severity::error, &Diagnostic::severity);
  EXPECT_EQ(found->rule, "G-03");
  EXPECT_EQ(found->place.graph, "graph 'g'");
  EXPECT_EQ(found->place.node_index, 0);
  EXPECT_EQ(found->place.node_name, "late");
  EXPECT_EQ(found->place.op, "Relu");
  EXPECT_NE(found->to_string().find("error: graph 'g', node 0 Relu 'late'"), std::string::npos);
  EXPECT_EQ(name_of(found->severity), "error");
}

TEST(Check, TakesFilesAndOptions) {
  const ScratchFolder folder;
  unsorted.save(folder / "m.onnx");
  EXPECT_TRUE(check_file(folder / "m.onnx").has_errors());
  EXPECT_EQ(check_file(folder / "m.onnx", {.max_diagnostics = 0}).count(Severity::error),
            check_file(folder / "m.onnx", {.max_diagnostics = 0}).count(Severity::error));
  expect_error(ErrorCode::unreadable, "none.onnx", [&] { check_file(folder / "none.onnx"); });
  expect_error(ErrorCode::unreadable, "none.opset",
               [&] { check_file(folder / "m.onnx", {.operator_sets = {folder / "none.opset"}}); });
  const Model wrong = Model::from_text(
      "<ir_version: 9, opset_import: [\"\": 17]> g (float[2] x, float[3] z) => (float[2] y) "
      "{ y = Add (x, z) }");
  EXPECT_FALSE(check_model(wrong).has_errors());
  EXPECT_GT(check_model(wrong, {.full = true}).diagnostics.size(), 0u);
}

TEST(Check, ListsItsRules) {
  const std::vector<CheckRule> rules = check_rules();
  const auto found = std::ranges::find(rules, "G-03", &CheckRule::id);
  ASSERT_NE(found, rules.end());
  EXPECT_EQ(found->standard, CheckLevel::error);
  EXPECT_FALSE(found->title.empty());
}

TEST(Convert, CarriesModelsUpAndDown) {
  const Model old = Model::from_text(
      "<ir_version: 3, opset_import: [\"\": 7]> g (float[2,3] x) => (float[2,3] y) "
      "{ y = Upsample <scales = [1.0, 1.0]> (x) }");
  const Model current = convert_version(old, {.opset = 13});
  EXPECT_EQ(current.opset(), 13);
  EXPECT_NE(current.graph().nodes()[0].op_type(), "Upsample");
  EXPECT_FALSE(check_model(current).has_errors());
  EXPECT_EQ(old.opset(), 7);
  const Model back = convert_version(current, {.opset = 7});
  EXPECT_EQ(back.opset(), 7);
  EXPECT_EQ(back.ir_version(), 3);
  EXPECT_EQ(back.graph().nodes()[0].op_type(), "Upsample");
  EXPECT_FALSE(check_model(back).has_errors());
  expect_error(ErrorCode::bad_input, "opset 7 is the least",
               [&] { convert_version(current, {.opset = 6}); });
  expect_error(ErrorCode::bad_input, "opset", [&] { convert_version(old, {.opset = 100'000}); });
  expect_error(ErrorCode::out_of_memory, "ConvertOptions::memory_limit",
               [&] { convert_version(old, {.memory_limit = 10}); });
}

std::vector<Value> answers(const Model& model) {
  return Session(model).run(
      {{"x", Tensor::of<float>({1, -2, 3}, {1, 3})}, {"choice", Tensor::scalar(false)}});
}

TEST(Convert, InlinesFunctions) {
  const Model model = example();
  const Model inlined = inline_functions(model);
  EXPECT_EQ(inlined.functions().size(), 0u);
  EXPECT_EQ(inlined.opset(), 17);
  bool calls = false;
  inlined.for_each_node([&](const NodePlace&, const NodeView& node) {
    calls |= node.domain() == "local";
    return true;
  });
  EXPECT_FALSE(calls);
  EXPECT_FALSE(check_model(inlined, {.full = true}).has_errors());
  const auto expected = answers(model), actual = answers(inlined);
  ASSERT_EQ(actual[0].tensor().size(), 2);
  EXPECT_EQ(actual[0].tensor().elements<float>()[0], expected[0].tensor().elements<float>()[0]);
  EXPECT_EQ(actual[0].tensor().elements<float>()[1], expected[0].tensor().elements<float>()[1]);
}

TEST(Convert, InlinesCallsInsideGraphsAndFunctions) {
  const Model model = Model::from_text(R"(<ir_version: 9, opset_import: ["": 17, "local": 1]>
g (float[2] x, bool c) => (float[2] y) {
  y = If (c) <then_branch = t () => (float[2] a) { a = local.Twice (x) },
              else_branch = e () => (float[2] b) { b = Neg (x) }>
}
<domain: "local", opset_import: ["": 17, "local": 1]>
Twice (a) => (r) { b = local.Same (a) r = Add (b, b) }
<domain: "local", opset_import: ["": 17]>
Same (a) => (r) { r = Identity (a) }
)");
  const Model inlined = inline_functions(model);
  const auto outputs =
      Session(inlined).run({{"x", Tensor::of<float>({1, 2}, {2})}, {"c", Tensor::scalar(true)}});
  EXPECT_EQ(outputs[0].tensor().elements<float>()[1], 4);
  EXPECT_FALSE(check_model(inlined).has_errors());
}

// A branch inside a function may have values that are called as those of the caller.
TEST(Convert, ValuesOfSubgraphsInFunctionsHideNoneOfTheCaller) {
  const Model model = Model::from_text(R"(<ir_version: 9, opset_import: ["": 17, "local": 1]>
g (float[2] t, bool c) => (float[2] y, float[2] p) {
  y = local.F (t, c)
  p = Neg (y)
}
<domain: "local", opset_import: ["": 17]>
F (a, c) => (r) {
  r = If (c) <then_branch = yes () => (float[2] p) { t = Abs (a) p = Add (t, a) },
              else_branch = no () => (float[2] q) { q = Identity (a) }>
}
)");
  const Model models[] = {model, inline_functions(model), convert_version(model, {.opset = 18})};
  for (const Model& one : models) {
    EXPECT_FALSE(check_model(one).has_errors());
    const auto outputs =
        Session(one).run({{"t", Tensor::of<float>({-1, 2}, {2})}, {"c", Tensor::scalar(true)}});
    EXPECT_EQ(outputs[0].tensor().elements<float>()[0], 0);
    EXPECT_EQ(outputs[0].tensor().elements<float>()[1], 4);
  }
}

TEST(Convert, RefusesWhatCanNotBeInlined) {
  const Model circle = Model::from_text(R"(<ir_version: 9, opset_import: ["": 17, "local": 1]>
g (float[2] x) => (float[2] y) { y = local.F (x) }
<domain: "local", opset_import: ["": 17, "local": 1]> F (a) => (r) { r = local.F (a) }
)");
  expect_error(ErrorCode::invalid_model, "circles", [&] { inline_functions(circle); });
  const Model older = Model::from_text(R"(<ir_version: 9, opset_import: ["": 17, "local": 1]>
g (float[2,3] x) => (float[2,3] y) { y = local.F (x) }
<domain: "local", opset_import: ["": 11]> F (a) => (r) { r = Softmax (a) }
)");
  expect_error(ErrorCode::unsupported, "version 11 of ai.onnx", [&] { inline_functions(older); });
  const Model same = Model::from_text(R"(<ir_version: 9, opset_import: ["": 17, "local": 1]>
g (float[2,3] x) => (float[2,3] y) { y = local.F (x) }
<domain: "local", opset_import: ["": 14]> F (a) => (r) { r = Relu (a) }
)");
  EXPECT_EQ(inline_functions(same).graph().nodes()[0].op_type(), "Relu");
}

TEST(Compose, ExtractsParts) {
  const Model part = extract(example(), {"x"}, {"xw"});
  EXPECT_EQ(part.graph().nodes().size(), 1u);
  EXPECT_EQ(part.graph().initializers().size(), 1u);
  EXPECT_EQ(part.functions().size(), 0u);
  EXPECT_EQ(part.graph().output("xw")->type_text(), "float[batch,2]");
  const auto outputs = Session(part).run({{"x", Tensor::of<float>({1, 1, 1}, {1, 3})}});
  EXPECT_EQ(outputs[0].tensor().elements<float>()[0], 9);
  expect_error(ErrorCode::bad_input, "none", [&] { extract(example(), {"none"}, {"xw"}); });
  expect_error(ErrorCode::bad_input, "'x'", [&] { extract(example(), {}, {"xw"}); });
}

TEST(Compose, MergesModels) {
  const Model first = extract(example(), {"x"}, {"xw"});
  const Model second = Model::from_text(
      "<ir_version: 9, opset_import: [\"\": 17]> h (float[n,2] z) => (float[n,2] r) "
      "{ r = Neg (z) }");
  const Model both = merge(first, second, {.connections = {{"xw", "z"}}});
  const auto outputs = Session(both).run({{"x", Tensor::of<float>({1, 1, 1}, {1, 3})}});
  EXPECT_EQ(outputs[0].tensor().elements<float>()[0], -9);
  const Model prefixed = merge(first, first, {.first_prefix = "a_", .outputs = {"xw"}});
  EXPECT_TRUE(prefixed.graph().input("a_x"));
  expect_error(ErrorCode::bad_input, "none", [&] {
    merge(first, second, {.connections = {{"none", "z"}}});
  });
}

TEST(Compose, MergesExternalDataOfOneFolderOnly) {
  const ScratchFolder folder, other;
  const SaveOptions outside{.external_data = "w.data", .threshold = 8};
  extract(example(), {"x"}, {"xw"}).save(folder / "a.onnx", outside);
  const Model a(folder / "a.onnx", {.load_external_data = false});
  const Model inside = extract(example(), {"x"}, {"xw"});
  expect_error(ErrorCode::bad_input, "external data",
               [&] { merge(inside, a, {.first_prefix = "p_"}); });
  const Model merged = merge(a, inside, {.first_prefix = "p_"});
  EXPECT_TRUE(merged.has_external_data());
  merged.save(other / "m.onnx", {.embed = true});
  EXPECT_FALSE(Model(other / "m.onnx", {.load_external_data = false}).has_external_data());
}

TEST(Compose, Renames) {
  const Model renamed = rename(example(), {.values = {{"x", "image"}},
                                           .nodes = {{"product", "first"}},
                                           .dimensions = {{"batch", "N"}},
                                           .functions = {{"Add1", "Plus"}}});
  EXPECT_EQ(renamed.graph().input("image")->type_text(), "float[N,3]");
  EXPECT_EQ(renamed.graph().nodes()[0].name(), "first");
  EXPECT_EQ(renamed.functions()[0].name(), "Plus");
  EXPECT_TRUE(rename(example(), {.prefix = "p_"}).graph().input("p_x"));
  expect_error(ErrorCode::bad_input, "none", [&] {
    rename(example(), {.values = {{"none", "n"}}});
  });
  expect_error(ErrorCode::bad_input, "", [&] { rename(example(), {.values = {{"x", "y"}}}); });
}

TEST(Compose, FindsDifferences) {
  const Model model = example();
  EXPECT_TRUE(diff(model, example()).same());
  const Model other = ModelEditor(model)
                          .set_producer_name("else")
                          .replace_initializer("b", Tensor::of<float>({10, 21}, {2}))
                          .finish();
  const DiffResult found = diff(model, other);
  ASSERT_EQ(found.differences.size(), 2u);
  EXPECT_EQ(found.differences[0].kind, ModelDifference::Kind::changed);
  EXPECT_EQ(diff(model, other, {.annotations = false}).differences.size(), 1u);
  EXPECT_TRUE(diff(model, other, {.absolute = 2, .annotations = false}).same());
  EXPECT_EQ(diff(model, other, {.most = 1}).left_out, 1u);
  const ScratchFolder folder;
  model.save(folder / "m.onnx", {.external_data = "m.data", .threshold = 8});
  const Model outside(folder / "m.onnx", {.load_external_data = false});
  EXPECT_TRUE(diff(model, outside).same());
#ifndef _WIN32  // where a file that is mapped does not go
  std::filesystem::remove(folder / "m.data");
  expect_error(ErrorCode::unreadable, "m.data", [&] { diff(model, outside); });
#endif
}

TEST(Infer, GivesModelsWithTypes) {
  Inference inference;
  const Model typed = with_inferred_types(example(), {.sizes = {{"batch", 4}}}, &inference);
  EXPECT_FALSE(inference.has_errors());
  EXPECT_EQ(typed.graph().input("x")->type_text(), "float[4,3]");
  std::vector<std::string> declared;
  for (const ValueInfoView& info : typed.graph().value_info())
    declared.push_back(std::string(info.name()) + " " + info.type_text());
  EXPECT_NE(std::ranges::find(declared, "xw float[4,2]"), declared.end());
  EXPECT_EQ(example().graph().value_info().size(), 0u);
  expect_error(ErrorCode::bad_input, "none", [&] {
    with_inferred_types(example(), {.sizes = {{"none", 4}}});
  });
}

TEST(OperatorSet, IsReadCheckedAndWritten) {
  const ScratchFolder folder;
  const OperatorSet standard = OperatorSet::of_standard("ai.onnx.ml", 3);
  EXPECT_EQ(standard.domain(), "ai.onnx.ml");
  EXPECT_EQ(standard.version(), 3);
  EXPECT_FALSE(standard.operators().empty());
  EXPECT_FALSE(standard.check().has_errors());
  for (const char* name : {"ml.opset", "ml.json", "ml.textproto"}) {
    standard.save(folder / name);
    if (std::string_view(name) == "ml.opset") continue;
    const OperatorSet again(folder / name);
    EXPECT_EQ(again.operators().size(), standard.operators().size());
  }
  const auto newest = OperatorSet::of_standard("ai.onnx").operators();
  const auto body =
      std::ranges::find_if(newest, [](const auto& op) { return op.body.has_value(); });
  EXPECT_NE(body, newest.end());
  expect_error(ErrorCode::bad_input, "no domain", [] { OperatorSet::of_standard("com.none"); });
  expect_error(ErrorCode::bad_input, "versions", [] { OperatorSet::of_standard("", 100'000); });
  expect_error(ErrorCode::bad_input, "no form", [&] { standard.save(folder / "ml.exe"); });
  expect_error(ErrorCode::unreadable, "none", [&] { OperatorSet(folder / "none.json"); });
  test::write_bytes(folder / "broken.json", "{");
  expect_error(ErrorCode::invalid_model, "broken.json",
               [&] { OperatorSet(folder / "broken.json"); });
}

TEST(Signatures, AreData) {
  const auto versions = operator_versions("ai.onnx", "Softmax");
  ASSERT_EQ(versions.size(), 3u);
  EXPECT_EQ(versions[0].since, 1);
  EXPECT_EQ(versions[2].since, 13);
  ASSERT_EQ(versions[2].attributes.size(), 1u);
  EXPECT_EQ(versions[2].attributes[0].name, "axis");
  EXPECT_EQ(versions[2].attributes[0].type, AttributeType::int_);
  EXPECT_EQ(versions[2].attributes[0].default_int, -1);
  EXPECT_EQ(versions[2].inputs[0].type, "T");
  EXPECT_EQ(versions[2].constraints[0].types, versions[2].inputs[0].types);
  EXPECT_NE(std::ranges::find(versions[2].inputs[0].types, "tensor(float)"),
            versions[2].inputs[0].types.end());
  EXPECT_EQ(find_signature("", "Softmax", 12)->since, 11);
  EXPECT_FALSE(find_signature("", "Softmax", 0));
  EXPECT_FALSE(find_signature("", "None", 12));
  EXPECT_EQ(find_signature("", "Concat", 13)->max_inputs, OperatorSignature::unlimited);
  EXPECT_TRUE(operator_versions("com.none", "Softmax").empty());
  EXPECT_TRUE(operator_names("com.none").empty());
  const auto names = operator_names("");
  EXPECT_TRUE(std::ranges::is_sorted(names));
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
  EXPECT_NE(std::ranges::find(names, "Softmax"), names.end());
  int64_t count = 0;
  for (const OperatorDomain& domain : operator_domains()) {
    for (const std::string_view name : operator_names(domain.domain)) {
      const auto all = operator_versions(domain.domain, name);
      ASSERT_FALSE(all.empty()) << name;
      count += std::ranges::any_of(all, [](const auto& one) { return !one.is_extra; });
    }
  }
  EXPECT_EQ(count, about().operators);
  EXPECT_EQ(standard_releases().back().name, about().onnx_release);
}

TEST(Info, DescribesModels) {
  const ScratchFolder folder;
  const Model model = example();
  const ModelInfo info = model_info(model, {{"batch", 4}});
  EXPECT_EQ(info.graph_name, "main");
  EXPECT_EQ(info.nodes, 8);
  EXPECT_EQ(info.parameters, 8 + 0);
  ASSERT_TRUE(info.cost);
  EXPECT_GT(info.cost->flops, 0);
  EXPECT_TRUE(std::ranges::all_of(info.operators, &ModelInfo::OperatorCount::supported));
  model.save(folder / "m.onnx");
  EXPECT_EQ(model_info(folder / "m.onnx").nodes, info.nodes);
  expect_error(ErrorCode::bad_input, "none", [&] { model_info(model, {{"none", 4}}); });
  expect_error(ErrorCode::unreadable, "none", [&] { model_info(folder / "none.onnx"); });
}

}  // namespace
}  // namespace sardonyx
