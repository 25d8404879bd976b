// sardonyx/model.h and sardonyx/graph.h.
#include "sardonyx/model.h"

#include <cstring>
#include <filesystem>
#include <vector>

#include "api/support.h"
#include "sardonyx/session.h"

namespace sardonyx {
namespace {

using test::bytes_of;
using test::example;
using test::expect_error;
using test::ScratchFolder;

TEST(Model, TellsItsHeader) {
  const Model model = example();
  EXPECT_EQ(model.path(), "");
  EXPECT_EQ(model.ir_version(), 9);
  EXPECT_EQ(model.producer_name(), "tests");
  EXPECT_EQ(model.producer_version(), "3");
  EXPECT_EQ(model.domain(), "org.example");
  EXPECT_EQ(model.model_version(), 7);
  EXPECT_EQ(model.doc_string(), "an example");
  ASSERT_EQ(model.metadata().size(), 2u);
  EXPECT_EQ(model.metadata()[0].key(), "license");
  EXPECT_EQ(model.metadata("owner"), "nobody");
  EXPECT_EQ(model.metadata("none"), std::nullopt);
  EXPECT_EQ(model.opset(), 17);
  EXPECT_EQ(model.opset("ai.onnx"), 17);
  EXPECT_EQ(model.opset("local"), 1);
  EXPECT_EQ(model.opset("ai.onnx.ml"), 0);
  ASSERT_EQ(model.opset_imports().size(), 2u);
  EXPECT_EQ(model.opset_imports()[1].domain(), "local");
  EXPECT_TRUE(model.has_graph());
  EXPECT_FALSE(model.has_training_info());
  EXPECT_FALSE(model.has_external_data());
}

TEST(Model, ShowsItsGraphWithoutCopies) {
  const Model model = example();
  const GraphView graph = model.graph();
  EXPECT_EQ(graph.name(), "main");
  ASSERT_EQ(graph.inputs().size(), 2u);
  EXPECT_EQ(graph.inputs()[0].type_text(), "float[batch,3]");
  const auto type = graph.input("x")->type();
  ASSERT_TRUE(type);
  EXPECT_EQ(type->kind(), TypeView::Kind::tensor);
  EXPECT_EQ(type->element_type(), ElementType::float32);
  ASSERT_TRUE(type->has_shape());
  EXPECT_EQ(type->shape()[0].name(), "batch");
  EXPECT_EQ(type->shape()[0].size(), std::nullopt);
  EXPECT_EQ(type->shape()[1].size(), 3);
  EXPECT_EQ(graph.output("y")->name(), "y");
  EXPECT_FALSE(graph.input("y"));
  std::vector<std::string> operators;
  for (const NodeView& node : graph.nodes()) operators.emplace_back(node.op_type());
  EXPECT_EQ(operators, (std::vector<std::string>{"MatMul", "Add1", "If"}));
  const NodeView call = graph.nodes()[1];
  EXPECT_EQ(call.domain(), "local");
  EXPECT_EQ(call.inputs()[1], "b");
  EXPECT_EQ(call.outputs()[0], "sum");
  EXPECT_FLOAT_EQ(call.attribute("scale")->float_value(), 1.5f);
  EXPECT_EQ(call.attribute("scale")->to_string(), "scale = 1.5");
  EXPECT_EQ(name_of(call.attribute("scale")->type()), "float");
  EXPECT_FALSE(call.attribute("none"));
  const AttributeView branch = *graph.nodes()[2].attribute("then_branch");
  EXPECT_EQ(branch.graph().nodes()[0].to_string(), "Relu 'relu'");
  ASSERT_EQ(model.functions().size(), 1u);
  const FunctionView function = model.functions()[0];
  EXPECT_EQ(function.name(), "Add1");
  EXPECT_EQ(function.inputs()[1], "c");
  EXPECT_EQ(function.attributes()[0], "scale");
  EXPECT_EQ(function.nodes()[0].attribute("value_float")->reference(), "scale");
}

TEST(Model, SharesItsWeights) {
  const Model model = example();
  const TensorView w = *model.graph().initializer("w");
  EXPECT_EQ(w.element_type(), ElementType::float32);
  EXPECT_EQ(std::vector<int64_t>(w.shape().begin(), w.shape().end()), (Shape{3, 2}));
  EXPECT_EQ(w.tensor().elements<float>()[5], 6);

  const std::string bytes = model.to_bytes();
  const auto owner = std::make_shared<std::string>(bytes);
  Tensor kept;
  {
    const Model again(owner->data(), owner->size(), {}, owner);
    kept = again.graph().initializer("w")->tensor();
  }
  EXPECT_EQ(kept.elements<float>()[5], 6);  // it lives on without its model
}

TEST(Model, AttributesOfOtherTypesAreErrors) {
  const Model model = example();
  const AttributeView scale = *model.graph().nodes()[1].attribute("scale");
  expect_error(ErrorCode::bad_input, "of type float, not int", [&] { (void)scale.int_value(); });
  expect_error(ErrorCode::bad_input, "not graph", [&] { (void)scale.graph(); });
  expect_error(ErrorCode::bad_input, "not tensors", [&] { (void)scale.tensors(); });
  const AttributeView passed = *model.functions()[0].nodes()[0].attribute("value_float");
  expect_error(ErrorCode::bad_input, "the call's attribute 'scale'",
               [&] { (void)passed.float_value(); });
}

TEST(Model, VisitsAllNodes) {
  const Model model = example();
  std::vector<std::string> seen;
  model.for_each_node([&](const NodePlace& place, const NodeView& node) {
    seen.push_back(place.graph + " " + std::to_string(place.index) + " " +
                   std::string(node.op_type()) + " " + std::to_string(place.depth));
    return true;
  });
  ASSERT_EQ(seen.size(), 8u);
  EXPECT_EQ(seen[0], "graph 'main' 0 MatMul 0");
  EXPECT_EQ(seen[3], "graph 'main', node 2 If 'branch', then_branch 'then_graph' 0 Relu 1");
  EXPECT_EQ(seen[7], "function 'local.Add1' 2 Add 0");
  expect_error(ErrorCode::bad_input, "no item", [&] { (void)model.graph().nodes()[3]; });
  expect_error(ErrorCode::bad_input, "no item", [&] { (void)ViewList<NodeView>()[0]; });
  int visited = 0;
  model.for_each_node([&](const NodePlace&, const NodeView&) { return ++visited < 2; });
  EXPECT_EQ(visited, 2);
  expect_error(ErrorCode::bad_input, "no function", [&] { model.for_each_node(nullptr); });
}

TEST(Model, GoesThroughEveryForm) {
  const Model model = example();
  const std::string text = model.to_text();
  for (const ModelForm form :
       {ModelForm::binary, ModelForm::text, ModelForm::json, ModelForm::textproto}) {
    const std::string bytes = model.to_bytes(form);
    const Model again(bytes.data(), bytes.size(), {}, nullptr, {.form = form});
    EXPECT_EQ(again.to_text(), text);
    std::string pieces;
    model.write([&](std::string_view piece) { pieces += piece; }, form);
    EXPECT_EQ(pieces, bytes);
  }
  EXPECT_EQ(model.to_json(), model.to_bytes(ModelForm::json));
  expect_error(ErrorCode::invalid_model, "", [&] {
    Model(text.data(), text.size());  // text is no binary model
  });
}

TEST(Model, ReadsStreams) {
  const std::string bytes = example().to_bytes();
  size_t at = 0;
  const auto dribble = [&](void* buffer, size_t size) {
    const size_t part = std::min({size, bytes.size() - at, size_t{7}});
    std::memcpy(buffer, bytes.data() + at, part);
    at += part;
    return part;
  };
  EXPECT_EQ(Model::from_stream(dribble).to_bytes(), bytes);
  expect_error(ErrorCode::bad_input, "were asked for",
               [] { Model::from_stream([](void*, size_t size) { return size + 1; }); });
  expect_error(ErrorCode::bad_input, "no function", [] { Model::from_stream(nullptr); });
  EXPECT_THROW(Model::from_stream([](void*, size_t) -> size_t { throw std::runtime_error("x"); }),
               std::runtime_error);
  expect_error(ErrorCode::out_of_memory, "memory_limit", [&] {
    Model::from_stream(
        [](void* buffer, size_t size) { return std::memset(buffer, 10, size), size; }, {},
        {.memory_limit = 10'000'000});
  });
}

TEST(Model, SavesAndReadsFiles) {
  const ScratchFolder folder;
  const Model model = example();
  for (const char* name : {"m.onnx", "m.onnxtxt", "m.json", "m.textproto"}) {
    const Saved saved = model.save(folder / name);
    EXPECT_EQ(saved.model_bytes, bytes_of(folder / name).size());
    const Model again(folder / name);
    EXPECT_EQ(again.path(), folder / name);
    EXPECT_EQ(again.folder(), folder.path());
    EXPECT_EQ(again.to_text(), model.to_text());
  }
  model.save(folder / "odd.name", {.form = ModelForm::text});
  EXPECT_EQ(bytes_of(folder / "odd.name"), model.to_text());
  expect_error(ErrorCode::bad_input, "says no form", [&] { model.save(folder / "other.name"); });
  expect_error(ErrorCode::unreadable, "", [&] { model.save(folder / "no/such/m.onnx"); });
  expect_error(ErrorCode::unreadable, "", [&] { Model(folder / "none.onnx"); });
  EXPECT_EQ(form_of("a.JSON"), ModelForm::json);
  EXPECT_EQ(ending_problem("m.onnx"), "");
  EXPECT_NE(ending_problem("m.exe"), "");
}

TEST(Model, MayBeSavedOverItsOwnFile) {
  const ScratchFolder folder;
  example().save(folder / "m.onnx");
  const Model model(folder / "m.onnx", {.load_external_data = false});
  const std::string before = bytes_of(folder / "m.onnx");
  model.save(folder / "m.onnx");
  EXPECT_EQ(bytes_of(folder / "m.onnx"), before);
}

TEST(Model, TellsOfExternalDataInSparseTensorsAndDefaultsOfFunctions) {
  const std::string head = R"(<ir_version: 10, opset_import: ["": 21, "own": 1]>
    g (float[6] x) => (float[6] y) { c = )",
                    tail = " y = Add (c, x) }", elsewhere = R"(float[3] = ["location": "w.bin"])",
                    indices = "int64[3] {0, 3, 5}";
  const auto says = [](const std::string& text) {
    return Model::from_text(text, {.load_external_data = false}).has_external_data();
  };
  EXPECT_TRUE(says(head + "Constant <sparse_value = sparse_tensor(float[6]) v = {" + elsewhere +
                   ", " + indices + "}> ()" + tail));
  EXPECT_FALSE(says(head + "Constant <sparse_value = sparse_tensor(float[6]) v = {" +
                    "float[3] {1, 2, 3}, " + indices + "}> ()" + tail));
  EXPECT_TRUE(says(head + "own.f (x)" + tail + R"(
    <domain: "own", opset_import: ["": 21]>
    f <t: tensor = )" +
                   elsewhere + R"(> (a) => (b) { b = Identity (a) })"));
}

TEST(Model, MovesWeightsToOtherFiles) {
  const ScratchFolder folder;
  const Model model = example();
  const Saved saved =
      model.save(folder / "m.onnx",
                 {.external_data = "m.data", .threshold = 16, .alignment = 64, .checksum = true});
  EXPECT_EQ(saved.data_bytes, 24u);  // w; b is smaller than the threshold
  const Model left(folder / "m.onnx", {.load_external_data = false});
  EXPECT_TRUE(left.has_external_data());
  const TensorView w = *left.graph().initializer("w");
  EXPECT_TRUE(w.is_external());
  EXPECT_EQ(w.external_data()[0].key(), "location");
  EXPECT_EQ(w.external_data()[0].value(), "m.data");
  EXPECT_EQ(w.tensor().elements<float>()[5], 6);
  EXPECT_FALSE(Model(folder / "m.onnx").has_external_data());
  const Model loaded = left.with_external_data(true);
  EXPECT_FALSE(loaded.has_external_data());
  EXPECT_EQ(loaded.to_text(), model.to_text());

  // What stays outside can only be written beside its data.
  left.save(folder / "copy.onnx");
  const ScratchFolder other;
  expect_error(ErrorCode::bad_input, "external data", [&] { left.save(other / "m.onnx"); });
  left.save(other / "m.onnx", {.embed = true});
  EXPECT_EQ(Model(other / "m.onnx").to_text(), model.to_text());
  expect_error(ErrorCode::bad_input, "not both",
               [&] { left.save(folder / "n.onnx", {.external_data = "n.data", .embed = true}); });

  // A session brings it in; a damaged file is an error then.
  const Session session(left);
  EXPECT_EQ(session.inputs().size(), 2u);
#ifndef _WIN32  // where a file that is mapped neither changes nor goes
  test::write_bytes(folder / "m.data", std::string(24, 'x'));
  expect_error(ErrorCode::invalid_model, "SHA-1", [&] { (void)left.with_external_data(true); });
  std::filesystem::remove(folder / "m.data");
  expect_error(ErrorCode::unreadable, "m.data", [&] {
    (void)Model(folder / "m.onnx", {.load_external_data = false})
        .graph()
        .initializer("w")
        ->tensor();
  });
  expect_error(ErrorCode::unreadable, "m.data", [&] {
    const Session none(Model(folder / "m.onnx", {.load_external_data = false}));
  });
#endif
}

TEST(Model, ShowsTextAndDrawings) {
  const ScratchFolder folder;
  const Model model = example();
  EXPECT_NE(model.to_text({.max_elements = 2}).find("{1, 2, ...}"), std::string::npos);
  EXPECT_EQ(model.to_text({.annotations = false}).find("#@"), std::string::npos);
  model.save_text(folder / "shown.txt", {.max_elements = 2});
  EXPECT_EQ(bytes_of(folder / "shown.txt"), model.to_text({.max_elements = 2}));
  EXPECT_NE(model.to_drawing(DrawingForm::svg).find("<svg"), std::string::npos);
  EXPECT_NE(model.to_drawing(DrawingForm::dot).find("digraph"), std::string::npos);
  model.save_drawing(folder / "drawn.txt", DrawingForm::dot);
  EXPECT_EQ(bytes_of(folder / "drawn.txt"), model.to_drawing(DrawingForm::dot));
  EXPECT_EQ(drawing_form_of("a.gv"), DrawingForm::dot);
  EXPECT_EQ(drawing_form_of("a.onnx"), std::nullopt);
  expect_error(ErrorCode::bad_input, "no function", [&] { model.draw({}, DrawingForm::svg); });
  expect_error(ErrorCode::bad_input, "no function", [&] { model.write_text({}); });
}

TEST(Model, WithoutGraphHasNoViewOfIt) {
  const std::string bytes = "\x08\x09\x12\x05tests";  // ir_version, producer_name
  const Model model(bytes.data(), bytes.size());
  EXPECT_FALSE(model.has_graph());
  EXPECT_EQ(model.producer_name(), "tests");
  expect_error(ErrorCode::invalid_model, "no graph", [&] { (void)model.graph(); });
}

TEST(Model, BrokenTensorsAreErrorsWhenTheyAreRead) {
  const Model model = Model::from_text(
      "<ir_version: 9, opset_import: [\"\": 17]> g () => (float[2] y) <float[2] w = {1, 2, 3}> "
      "{ y = Identity (w) }");
  expect_error(ErrorCode::invalid_model, "",
               [&] { (void)model.graph().initializer("w")->tensor(); });
}

}  // namespace
}  // namespace sardonyx
