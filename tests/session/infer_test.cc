// infer_types: contradictions, lenient and strict; models of files beside the same in memory.
#include "sardonyx/infer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/bytes.h"
#include "sardonyx/error.h"
#include "sardonyx/session.h"
#include "scratch_folder.h"
#include "session/model.h"
#include "tools/inferred_model.h"
#include "wire/streaming_reader.h"
#include "wire/write.h"

namespace sardonyx {
namespace {

constexpr std::string_view contradictory =
    "<ir_version: 10, opset_import: [\"\" : 21]>\n"
    "g (float[n, 4] x) => (float[n, 5] y) <float[k, 4] h> { h = Neg(x)  y = Relu(h) }";

TEST(InferTypes, ContradictionsAreWarningsOrErrors) {
  const Model model = Model::from_text(contradictory);
  for (const bool strict : {false, true}) {
    const Inference inference = infer_types(model, {.strict = strict});
    ASSERT_EQ(inference.findings.size(), 1u);
    const InferFinding& finding = inference.findings[0];
    EXPECT_EQ(finding.is_error, strict);
    EXPECT_EQ(inference.has_errors(), strict);
    EXPECT_EQ(finding.place, "Relu making 'y'");
    EXPECT_EQ(finding.message,
              "the list of outputs declares 'y' as float[n,5]; the node makes float[n,4]; correct "
              "or remove the declaration");
    ASSERT_EQ(inference.names.size(), 1u);  // what agrees explains
    EXPECT_EQ(inference.names[0].name + " = " + inference.names[0].expression, "k = n");
    EXPECT_EQ(inference.values.back().type(), "float[n,4]");
    EXPECT_EQ(inference.count(InferredValue::State::known), 3);
  }
}

// What a run does and the standard forbids is an error where inference is strict, and nothing else.
TEST(InferTypes, StrictObjectsToWhatTheStandardForbids) {
  const struct {
    const char *graph, *message;
  } cases[] = {
      {"g (float[1,1,5,5] x, float[1,1,3,3] w) => (float[1,1,2,3] y) "
       "{ y = Conv <pads = [-1,0,0,0]> (x, w) }",
       "pads must not be negative; got -1"},
      {"g (float[1,1,4,4] x, float[1,1,3,3] w) => (float[1,1,4,4] y) "
       "{ y = ConvTranspose <auto_pad = \"SAME_UPPER\", pads = [0,1,1,0]> (x, w) }",
       "auto_pad and pads exclude each other; keep one"},
      {"g (float[2,3] x, float[4,2,3] w) => (float[4,2,3] y) "
       "{ y = Einsum <equation = \"...ij,...ij->...ij\"> (x, w) }",
       "every '...' must stand for as many dimensions; here for 0 and 1"},
      {"g (float x) => (float y) { y = Softmax (x) }",
       "the input must have at least one dimension; it is a scalar"},
      {"g (string[n] x) => (int64[n] y) { y = ai.onnx.ml.CategoryMapper (x) }",
       "cats_strings and cats_int64s are required; without them nothing is mapped"},
  };
  for (const auto& one : cases) {
    const std::string text =
        std::string("<ir_version: 10, opset_import: [\"\" : 22, \"ai.onnx.ml\" : 4]>\n") +
        one.graph;
    const Model model = Model::from_text(text);
    EXPECT_TRUE(infer_types(model).findings.empty()) << one.graph;
    const Inference inference = infer_types(model, {.strict = true});
    ASSERT_EQ(inference.findings.size(), 1u) << one.graph;
    EXPECT_TRUE(inference.findings[0].is_error);
    EXPECT_EQ(inference.findings[0].message, one.message);
    EXPECT_NE(inference.findings[0].place.find("making 'y'"), std::string::npos);
  }
}

// What no run can do is an error in any case.
TEST(InferTypes, TablesOfLabelsMustFit) {
  const std::string header = "<ir_version: 10, opset_import: [\"\" : 22, \"ai.onnx.ml\" : 4]>\n";
  for (const char* graph :
       {"g (string[n] x) => (int64[n] y) "
        "{ y = ai.onnx.ml.CategoryMapper <cats_int64s = [1, 2], cats_strings = [\"a\"]> (x) }",
        "g (string[n] x) => (int64[n] y) { y = ai.onnx.ml.LabelEncoder <keys_strings = [\"a\"], "
        "values_int64s = [1], default_tensor = int32[1] {0}> (x) }",
        "g (string[n] x) => (int64[n] y) { y = ai.onnx.ml.LabelEncoder <keys_strings = [\"a\"], "
        "values_int64s = [1], default_tensor = int64[2] {0, 1}> (x) }"}) {
    const Inference inference = infer_types(Model::from_text(header + graph));
    ASSERT_EQ(inference.findings.size(), 1u) << graph;
    EXPECT_TRUE(inference.has_errors());
  }
}

TEST(InferTypes, GivenSizesMayMakeAContradiction) {
  const Model model = Model::from_text(
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[n, 4] x) => (float[3, 4] y) { y = Relu(x) }");
  EXPECT_FALSE(infer_types(model, {.strict = true}).has_errors());  // it holds where n is 3
  EXPECT_TRUE(infer_types(model, {.sizes = {{"n", 3}}, .strict = true}).findings.empty());
  EXPECT_TRUE(infer_types(model, {.sizes = {{"n", 4}}, .strict = true}).has_errors());
}

// Up to opset 6 the second input is as large as the first or stretched to it, and all of Max are
// alike.
TEST(InferTypes, OldOperatorsTellShapesOfInputsWithoutARank) {
  const Inference inference = infer_types(Model::from_text(
      "<ir_version: 3, opset_import: [\"\" : 6]>\n"
      "g (float[n, 4] x, float[] v) => (float[] last) {\n"
      "  stretched = Add <broadcast = 1> (x, v)  unlike = Mul <broadcast = 1> (v, x)\n"
      "  alike = Sub (x, v)  most = Max (v, x, v)  last = Relu (most) }"));
  for (const InferredValue& value : inference.values) {
    const bool open = value.name == "v" || value.name == "unlike";
    EXPECT_EQ(value.type(), open ? "float[...]" : "float[n,4]") << value.name;
  }
  EXPECT_EQ(inference.values.size(), 7u);
}

TEST(InferTypes, SizesAreNumbersOrExpressionsAndLastAsLongAsACopy) {
  Inference kept;
  {
    const Inference inference = infer_types(Model::from_text(
        "<ir_version: 10, opset_import: [\"\" : 21]>\n"
        "g (float[n, 4] x, seq(float[n]) s, float v) => (y, n, u) {\n"
        "  y = Concat <axis = 0> (x, x)  n = Size (x)  u = Identity (s)  w = own.Unknown (x) }"));
    kept = inference;
  }
  ASSERT_EQ(kept.values.size(), 7u);
  const InferredValue& y = kept.values[3];
  ASSERT_EQ(y.name, "y");
  EXPECT_EQ(y.type(), "float[2*n,4]");
  ASSERT_TRUE(y.shape && y.shape->size() == 2);
  EXPECT_EQ((*y.shape)[0].number, -1);
  EXPECT_EQ((*y.shape)[0].expression, "2*n");
  EXPECT_EQ((*y.shape)[1].number, 4);
  EXPECT_EQ((*y.shape)[1].text(), "4");
  EXPECT_EQ(kept.values[4].type(), "int64[]");
  ASSERT_TRUE(kept.values[4].shape);
  EXPECT_TRUE(kept.values[4].shape->empty());
  EXPECT_EQ(kept.values[5].type(), "seq(float[u0])");
  EXPECT_FALSE(kept.values[5].shape);
  EXPECT_EQ(kept.values[6].state, InferredValue::State::unknown);
  EXPECT_EQ(kept.values[6].type(), ir::ValueType().to_string());
}

// Of weights the type is all that inference asks for, wherever they stand.
TEST(InferTypes, WeightsOfConstantAreNotRead) {
  const Model model = Model::from_text(
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[n, 300] x) => (y) {\n"
      "  w = Constant <value = float[1] {1}> ()  s = Constant <value = float[1] {2}> ()\n"
      "  m = MatMul (x, w)  y = Mul (m, s) }");
  ir::Model large = model.implementation().model;
  const std::vector<float> numbers(2400);
  auto weights = std::make_shared<ir::TensorProto>();
  weights->dims = {300, 8};
  weights->data_type = static_cast<int32_t>(ElementType::float32);
  weights->has_raw_data = true;
  weights->raw_data = Bytes::copy_of(std::as_bytes(std::span(numbers)));
  large.graph->nodes[0].attributes[0].t = weights;
  InferredModel inferred;
  infer_model(large, {}, {}, inferred);
  EXPECT_EQ(inferred.type("w").to_string(), "float[300,8]");
  EXPECT_EQ(inferred.type("y").to_string(), "float[n,8]");
  EXPECT_EQ(inferred.find_in(nullptr, "w")->constant, nullptr);
  EXPECT_NE(inferred.find_in(nullptr, "s")->constant, nullptr);
  weights->dims = {300, -2};
  InferredModel broken;
  infer_model(large, {}, {}, broken);
  ASSERT_FALSE(broken.problems.empty());
  EXPECT_NE(broken.problems[0].message.find("negative"), std::string::npos);
}

std::string described(const Inference& inference) {
  std::string text;
  for (const InferredValue& value : inference.values) {
    text += fmt::format("{}|{}|{}|{}\n", value.graph, value.name, value.type(),
                        static_cast<int>(value.state));
  }
  for (const InferredUnknown& unknown : inference.unknowns)
    text += unknown.name + "|" + unknown.bound + "|" + unknown.node + "|" + unknown.reason + "\n";
  for (const InferredName& name : inference.names) text += name.name + "=" + name.expression + "\n";
  for (const InferFinding& finding : inference.findings)
    text += finding.place + ": " + finding.message + "\n";
  return text;
}

std::string file_of(const Model& model, const test::ScratchFolder& folder) {
  const std::string path = folder / "types.onnx";
  wire::write_model(model.implementation().model, path);
  return path;
}

// Nodes of a file are read one after another, those of a model in memory are all there.
void expect_alike(std::string_view text) {
  const Model model = Model::from_text(text);
  const std::string expected = described(infer_types(model));
  EXPECT_FALSE(expected.empty());
  const test::ScratchFolder folder;
  EXPECT_EQ(described(infer_types(file_of(model, folder))), expected) << text;
}

TEST(InferTypes, FilesAreInferredAsModelsInMemoryAre) {
  expect_alike(contradictory);
  // Helper values whose names the model has taken, upgraded from old versions.
  expect_alike(
      "<ir_version: 7, opset_import: [\"\" : 11]>\n"
      "g (float[n, 4] x) => (float[m] z) { y = Unsqueeze <axes = [0]> (x)\n"
      "  constant__0 = Squeeze <axes = [0]> (y)  z = ReduceSum <axes = [1], keepdims = 0> "
      "(constant__0) }");
  // Subgraphs, functions, what the data decide, what can't be.
  expect_alike(
      "<ir_version: 10, opset_import: [\"\" : 17, \"own\" : 1]>\n"
      "g (bool c, float[n, 4] x) => (y, u, w) {\n"
      "  y = If (c) <then_branch = t () => (float[k] a) { a = own.Twice (x) },\n"
      "              else_branch = e () => (float[l] b) { b = Relu (x) }>\n"
      "  u = NonZero (x)  v = Reshape (x, u)  w = MatMul (x, x) }\n"
      "<domain: \"own\", opset_import: [\"\" : 17]>\n"
      "Twice (p) => (q) { r = Add (p, p)  q = Identity (r) }");
}

TEST(InferTypes, WhatIsWrongWithAFileIsSaidAsOfTheWhole) {
  for (const std::string_view text :
       {"<ir_version: 7, opset_import: [\"\" : 11]>\ng (float[2] x) => (y) { z = Relu (x) y = "
        "Squeeze () }",
        "<ir_version: 10, opset_import: [\"\" : 21, \"sardonyx\" : 1]>\n"
        "g (float x) => (y) { z = Relu (x) y = sardonyx.FusedElementwise (z) }"}) {
    const Model model = Model::from_text(text);
    std::string expected, found;
    try {
      infer_types(model);
    } catch (const Error& error) {
      expected = error.location() + ": " + error.message();
    }
    try {
      const test::ScratchFolder folder;
      infer_types(file_of(model, folder));
    } catch (const Error& error) {
      found = error.location() + ": " + error.message();
    }
    EXPECT_FALSE(expected.empty());
    EXPECT_EQ(found, expected);
  }
}

TEST(InferTypes, LongAttributesAreReadOnlyWhereTypesNeedThem) {
  std::string numbers;
  for (int i = 0; i < 200; ++i) numbers += (i > 0 ? ", " : "") + std::to_string(i % 7);
  const Model model = Model::from_text(
      "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.ml\" : 3]>\n"
      "g (float[n, 4] x) => (l, s) {\n"
      "  l, s = ai.onnx.ml.TreeEnsembleClassifier <nodes_treeids = [" +
      numbers + "], classlabels_int64s = [" + numbers + "]> (x) }");
  const test::ScratchFolder folder;
  const std::string path = file_of(model, folder);
  EXPECT_EQ(described(infer_types(path)), described(infer_types(model)));
  const MappedFile file(path);
  wire::StreamingReader outline(file);
  outline.leave_out([](std::string_view domain, std::string_view op_type, std::string_view name) {
    EXPECT_EQ(domain, "ai.onnx.ml");
    EXPECT_EQ(op_type, "TreeEnsembleClassifier");
    return name == "nodes_treeids";
  });
  const ir::Node* node = outline.next();
  ASSERT_NE(node, nullptr);
  ASSERT_EQ(node->attributes.size(), 1u);
  EXPECT_EQ(node->attributes[0].name, "classlabels_int64s");
  EXPECT_EQ(node->attributes[0].ints.size(), 200u);
  EXPECT_EQ(outline.next(), nullptr);
}

TEST(InferTypes, ListsLeftOutAreSound) {
  std::string numbers = "0";
  for (int i = 1; i < 200; ++i) numbers += ", " + std::to_string(i);
  const Model model = Model::from_text(
      "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.ml\" : 3]>\n"
      "g (float[n, 4] x) => (y) { y = ai.onnx.ml.TreeEnsembleRegressor <nodes_treeids = [" +
      numbers + "]> (x) }");
  const test::ScratchFolder folder;
  const std::string path = file_of(model, folder);
  std::string bytes(read_file(path).text());
  const size_t list = bytes.find("nodes_treeids");
  ASSERT_NE(list, std::string::npos);
  ASSERT_EQ(bytes[list + 13 + 2 * 100], '\x40');
  bytes[list + 13 + 2 * 100] = '\x47';  // a tag of wire type 7
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_THROW(infer_types(path), Error);
}

}  // namespace
}  // namespace sardonyx
