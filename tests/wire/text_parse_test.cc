#include "wire/text_parse.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "sardonyx/error.h"
#include "wire/text_print.h"

namespace sardonyx {
namespace {

using ir::AttributeKind;
using Kind = ir::TypeProto::Kind;

std::vector<float> floats_of(const ir::TensorProto& tensor) {
  std::vector<float> values(tensor.float_data.size() / sizeof(float));
  std::memcpy(values.data(), tensor.float_data.data(), tensor.float_data.size());
  return values;
}

TEST(TextParse, Model) {
  const ir::Model model = wire::parse_model(R"(
<
  ir_version: 7,            # a comment
  opset_import: [ "" : 10, "com.microsoft" : 1 ],
  producer_name: "maker", producer_version: "1.2", domain: "org.example",
  model_version: 3, doc_string: "says \"hello\" \\ \n",
  metadata_props: [ "a" : "b", "c":"d" ]
>
agraph (float[N, 128] X, float[128, 10] W, float[10] B = {1,2,3,4,5,6,7,8,9,10}) => (float[N, 10] C)
<float[N, ?] T, int64[2] shape = {1, -2}>
{
    T = MatMul(X, W)
    [sum] S = Add(T, B)
    C, "" = com.microsoft.Softmax <axis = 1> (S, "", x)
}
<domain: "local", opset_import: ["" : 12], overload: "o">
f <a, b: int = 2> (x, float y) => (z) { z = Add:over (x, y) }
)");
  EXPECT_EQ(model.ir_version, 7);
  ASSERT_EQ(model.opset_imports.size(), 2u);
  EXPECT_EQ(model.opset_imports[1].domain, "com.microsoft");
  EXPECT_EQ(model.doc_string, "says \"hello\" \\ n");  // a backslash makes 'n' an 'n'
  EXPECT_EQ(model.metadata_props[1].value, "d");
  const ir::Graph& graph = *model.graph;
  EXPECT_EQ(graph.name, "agraph");
  ASSERT_EQ(graph.inputs.size(), 3u);
  EXPECT_EQ(graph.inputs[0].type->shape->dims[0].param, "N");
  EXPECT_EQ(graph.inputs[0].type->shape->dims[1].value, 128);
  ASSERT_EQ(graph.initializers.size(), 2u);
  EXPECT_EQ(graph.initializers[0].name, "B");
  EXPECT_EQ(floats_of(graph.initializers[0]).back(), 10.0f);
  EXPECT_EQ(graph.initializers[1].int64_data, (std::vector<int64_t>{1, -2}));
  ASSERT_EQ(graph.value_info.size(), 1u);
  EXPECT_FALSE(graph.value_info[0].type->shape->dims[1].value.has_value());
  ASSERT_EQ(graph.nodes.size(), 3u);
  EXPECT_EQ(graph.nodes[1].name, "sum");
  EXPECT_EQ(graph.nodes[2].domain, "com.microsoft");
  EXPECT_EQ(graph.nodes[2].op_type, "Softmax");
  EXPECT_EQ(graph.nodes[2].outputs, (std::vector<std::string>{"C", ""}));
  EXPECT_EQ(graph.nodes[2].inputs, (std::vector<std::string>{"S", "", "x"}));
  const ir::Function& function = model.functions.at(0);
  EXPECT_EQ(function.overload, "o");
  EXPECT_EQ(function.attributes, std::vector<std::string>{"a"});
  EXPECT_EQ(function.attribute_protos.at(0).i, 2);
  EXPECT_EQ(function.inputs, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(function.value_info.at(0).name, "y");
  EXPECT_EQ(function.nodes.at(0).overload, "over");
}

TEST(TextParse, OperandsMayBeLeftOut) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(wire::parse_node("y = Op ()").inputs, Names());
  EXPECT_EQ(wire::parse_node("y = Op (,x)").inputs, (Names{"", "x"}));
  EXPECT_EQ(wire::parse_node("y = Op (\"\")").inputs, Names{""});
  EXPECT_EQ(wire::parse_node("y = Op (,)").inputs, Names{""});
  EXPECT_EQ(wire::parse_node("y = Op (x,)").inputs, Names{"x"});
  EXPECT_EQ(wire::parse_node("y = Op (x,,\"a b\")").inputs, (Names{"x", "", "a b"}));
  EXPECT_EQ(wire::parse_node("= Op (x)").outputs, Names());
  EXPECT_EQ(wire::parse_node("y = Op (x) <a = 1>").attributes.at(0).i, 1);
}

TEST(TextParse, AttributeKinds) {
  const auto kind = [](std::string_view text) { return wire::parse_attribute(text).kind; };
  EXPECT_EQ(kind("a = 1"), AttributeKind::int_);
  EXPECT_EQ(kind("a = -1.5"), AttributeKind::float_);
  EXPECT_EQ(kind("a = 1e3"), AttributeKind::float_);
  EXPECT_EQ(kind("a = -Infinity"), AttributeKind::float_);
  EXPECT_EQ(kind("a : float = 1"), AttributeKind::float_);
  EXPECT_EQ(kind("a = \"s\""), AttributeKind::string);
  EXPECT_EQ(kind("a = float[2] {1, 2}"), AttributeKind::tensor);
  EXPECT_EQ(kind("a = float[2] name = {1, 2}"), AttributeKind::tensor);
  EXPECT_EQ(kind("a = float[2]"), AttributeKind::type_proto);
  EXPECT_EQ(kind("a = seq(optional(float[]))"), AttributeKind::type_proto);
  EXPECT_EQ(kind("a = g (float x) => (y) { y = Relu(x) }"), AttributeKind::graph);
  EXPECT_EQ(kind("a = \"a/b\" () => () {}"), AttributeKind::graph);
  EXPECT_EQ(kind("a = sparse_tensor(float[3]) {float[1] {1}, int64[1] {2}}"),
            AttributeKind::sparse_tensor);
  EXPECT_EQ(kind("a = [1, 2]"), AttributeKind::ints);
  EXPECT_EQ(kind("a = [1.0, nan]"), AttributeKind::floats);
  EXPECT_EQ(kind("a : floats = [1, 2]"), AttributeKind::floats);
  EXPECT_EQ(kind("a = [\"x\"]"), AttributeKind::strings);
  EXPECT_EQ(kind("a = [float {1}, int64[1] {2}]"), AttributeKind::tensors);
  EXPECT_EQ(kind("a = [g () => () {}, h () => () {}]"), AttributeKind::graphs);
  EXPECT_EQ(kind("a = [float, seq(int64)]"), AttributeKind::type_protos);
  EXPECT_EQ(kind("a : ints = []"), AttributeKind::ints);
  EXPECT_EQ(kind("a : sparse_tensors = []"), AttributeKind::sparse_tensors);
  EXPECT_EQ(kind("a : ints = @b"), AttributeKind::ints);
  EXPECT_EQ(kind("a = @b"), AttributeKind::undefined);
  EXPECT_EQ(wire::parse_attribute("a : int = @b").ref_attr_name, "b");
  EXPECT_TRUE(std::signbit(*wire::parse_attribute("a : float = -0").f));
}

TEST(TextParse, Types) {
  EXPECT_FALSE(wire::parse_type("float[]").shape.has_value());
  EXPECT_TRUE(wire::parse_type("float").shape->dims.empty());
  const ir::TypeProto map = wire::parse_type("map(string, seq(float[N, 3, \"a b\", ?]))");
  EXPECT_EQ(map.kind, Kind::map);
  EXPECT_EQ(map.element_type(), ElementType::string);
  EXPECT_EQ(map.nested->kind, Kind::sequence);
  EXPECT_EQ(map.nested->nested->shape->dims.at(2).param, "a b");
  EXPECT_EQ(wire::parse_type("sparse_tensor(float8e8m0[2])").kind, Kind::sparse_tensor);
  EXPECT_EQ(wire::parse_type("opaque(test.rng.RNG)").opaque_name, "test.rng.RNG");
  const ir::TypeProto opaque = wire::parse_type("opaque(test.rng, RNG)");
  EXPECT_EQ(opaque.opaque_domain, "test.rng");
  EXPECT_EQ(opaque.opaque_name, "RNG");
  EXPECT_EQ(wire::parse_type("opaque()").kind, Kind::opaque);
  EXPECT_EQ(wire::parse_type("$99[3]").elem_type, 99);
  EXPECT_EQ(wire::parse_type("?").kind, Kind::none);
}

TEST(TextParse, Tensors) {
  EXPECT_EQ(wire::parse_tensor("int8[2] {-128, 127}").int32_data,
            (std::vector<int32_t>{-128, 127}));
  EXPECT_EQ(wire::parse_tensor("uint64 {18446744073709551615}").uint64_data.at(0), ~uint64_t{0});
  EXPECT_EQ(wire::parse_tensor("string[2] {\"a\\\"b\", e\"\\n\\x00\"}").string_data,
            (std::vector<std::string>{"a\"b", std::string("\n\0", 2)}));
  EXPECT_EQ(floats_of(wire::parse_tensor("complex64[1] {1, -2.5e-1}")),
            (std::vector<float>{1, -0.25f}));
  EXPECT_EQ(floats_of(wire::parse_tensor("float[3] {1e-60, -1e-60, 1e-42}")).at(2), 1e-42f);
  // Two 4-bit elements, four 2-bit elements an entry, the first in the lowest bits.
  EXPECT_EQ(wire::parse_tensor("int4[3] {-1, 7, -8}").int32_data, (std::vector<int32_t>{0x7f, 8}));
  EXPECT_EQ(wire::parse_tensor("uint2[5] {0, 1, 2, 3, 1}").int32_data,
            (std::vector<int32_t>{0xe4, 1}));
  const ir::TensorProto external =
      wire::parse_tensor("float[2] w = [\"location\": \"w.bin\", \"offset\": \"0\"]");
  EXPECT_TRUE(external.is_external());
  EXPECT_EQ(external.external_data.at(1).key, "offset");
}

struct SyntaxError {
  std::string_view text;
  std::string_view location;
  std::string_view message;  // a part of it
};

TEST(TextParse, ErrorsSayWhereAndWhat) {
  const SyntaxError cases[] = {
      {"", "line 1, column 1", "expected the name of a graph; found the end of the text"},
      {"<ir_version 7>", "line 1, column 13", "expected ':' after the key 'ir_version'"},
      {"<ir_versoin: 7> g () => () {}", "line 1, column 2",
       "'ir_versoin' is no key of the model's header"},
      {"<ir_version: 7.5> g () => () {}", "line 1, column 14", "an integer; found '7.5'"},
      {"<ir_version: 99999999999999999999> g () => () {}", "line 1, column 14",
       "does not fit 64 bits"},
      {"<opset_import: [\"\" 7]> g () => () {}", "line 1, column 20",
       "expected ':' after a domain"},
      {"g (x) -> (y) {}", "line 1, column 7", "expected '=>' between the inputs and the outputs"},
      {"g (x) = > (y) {}", "line 1, column 7", "expected '=>'"},
      {"g (float x y) => () {}", "line 1, column 12", "expected ')' or ','"},
      {"g () => () {\n  y = Relu(x)\n", "line 3, column 1", "expected '}' after the nodes"},
      {"g () => () {\n  y Relu(x)\n}", "line 2, column 5",
       "expected '=' after the outputs of a node; found 'Relu'"},
      {"g () => () { y = Relu x }", "line 1, column 23", "expected '(' before the inputs of Relu"},
      {"g () => () { y = Relu (x }", "line 1, column 26",
       "expected ')' or ',' after the inputs of Relu"},
      {"g () => () { y = a. (x) }", "line 1, column 21", "after '.'"},
      {"g () => () { y = R <a> (x) }", "line 1, column 22",
       "expected '=' before the value of the attribute 'a'"},
      {"g () => () { y = R <a = > (x) }", "line 1, column 25",
       "expected the value of an attribute"},
      {"g () => () { y = R <a = []> (x) }", "line 1, column 25", "an empty list needs its kind"},
      {"g () => () { y = R <a : int = [1]> (x) }", "line 1, column 31", "is one int, not a list"},
      {"g () => () { y = R <a : int = 1.5> (x) }", "line 1, column 31",
       "expected a value of kind int; found one of kind float"},
      {"g () => () { y = R <a : ints = 1> (x) }", "line 1, column 32",
       "expected a value of kind ints"},
      {"g () => () { y = R <a = [1, \"x\"]> (x) }", "line 1, column 29",
       "a list of int holds a string"},
      {"g () => () { y = R <a : integer = 1> (x) }", "line 1, column 25",
       "expected the kind of an attribute"},
      {"g () => () { y = R <a = \"x> (x) }", "line 1, column 25", "the closing '\"'"},
      {"g () => () { y = R <a = e\"\\q\"> (x) }", "line 1, column 27", "unknown escape"},
      {"g () => () { y = R <a = 1e> (x) }", "line 1, column 25", "an exponent without digits"},
      {"g () => () { y = R <a = 1e39> (x) }", "line 1, column 25", "too large for 32 bits"},
      {"g (float[-] x) => () {}", "line 1, column 10", "expected a dimension"},
      {"g (seq float x) => () {}", "line 1, column 8", "expected '(' after 'seq'"},
      {"g (map(seq(float), float) x) => () {}", "line 1, column 8",
       "expected the key type of a map"},
      {"g () => () <w = {1}> {}", "line 1, column 17", "expected a type before 'w'"},
      {"g () => () <float[] w = {1}> {}", "line 1, column 25", "a tensor of known shape"},
      {"g () => () <float[N] w = {1}> {}", "line 1, column 26", "dimensions that are numbers"},
      {"g () => () <seq(float) w = {1}> {}", "line 1, column 28", "expected a tensor type"},
      {"g () => () <int64[1] w = {1.5}> {}", "line 1, column 27", "an integer; found '1.5'"},
      {"g () => () <int4[1] w = {8}> {}", "line 1, column 26", "must be in [-8, 7]; found 8"},
      {"g () => () <int8[1] w = {4294967296}> {}", "line 1, column 26", "does not fit 32 bits"},
      {"g () => () <float16[1] w = {1.5}> {}", "line 1, column 29", "bit patterns"},
      {"g () => () <uint64[1] w = {-1}> {}", "line 1, column 28",
       "an integer in [0, 2^64); found '-1'"},
      {"g () => () <float[9] w = {1, ...}> {}", "line 1, column 30", "elements that were cut"},
      {"g () => () {} rest", "line 1, column 19",
       "expected '(' before the inputs or outputs of a function"},
      {"g () => () {} {doc: \"x\"}", "line 1, column 16",
       "'doc' is no key of a graph's annotations"},
      {"\x01", "line 1, column 1", "found the byte 0x01"},
  };
  for (const SyntaxError& expected : cases) {
    try {
      wire::parse_model(expected.text);
      ADD_FAILURE() << "no error: " << expected.text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_model);
      EXPECT_EQ(error.location(), expected.location) << expected.text << "\n" << error.what();
      EXPECT_NE(error.message().find(expected.message), std::string::npos) << expected.text << "\n"
                                                                           << error.what();
    }
  }
}

TEST(TextParse, ErrorsShowTheLine) {
  const auto shown = [](std::string_view text) {
    try {
      wire::parse_model(text);
      return std::string("no error");
    } catch (const Error& error) {
      const std::string& message = error.message();
      return message.substr(std::min(message.find('\n'), message.size()));
    }
  };
  EXPECT_EQ(shown("g () => () {\n  y Relu(x)\n}"), "\n      y Relu(x)\n        ^");
  EXPECT_EQ(shown(""), "\n    \n    ^");
  EXPECT_EQ(shown("g () => () {\n\t\"\u00e9\u00e9\" Relu(x)\n}"),
            "\n     \"\u00e9\u00e9\" Relu(x)\n          ^");
  const std::string long_line =
      "g () => () { y = Relu(" + std::string(500, 'x') + "!" + std::string(500, 'x');
  EXPECT_EQ(shown(long_line), "\n    ..." + std::string(60, 'x') + "!" + std::string(29, 'x') +
                                  "...\n    " + std::string(63, ' ') + "^");
}

std::string repeated(std::string_view text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

TEST(TextParse, DepthIsBounded) {
  const auto nested_graphs = [](int depth) {
    return repeated("g () => () { = If <b = ", depth) + "0" + repeated("> () }", depth);
  };
  const auto nested_types = [](int depth) {
    return repeated("seq(", depth) + "float" + repeated(")", depth);
  };
  EXPECT_NO_THROW(wire::parse_graph(nested_graphs(wire::max_text_depth)));
  EXPECT_NO_THROW(wire::parse_type(nested_types(wire::max_text_depth - 1)));
  EXPECT_THROW(wire::parse_graph(nested_graphs(wire::max_text_depth + 1)), Error);
  EXPECT_THROW(wire::parse_graph(nested_graphs(100000)), Error);
  EXPECT_THROW(wire::parse_type(nested_types(100000)), Error);
}

constexpr std::string_view varied_model = R"(
<ir_version: 11, opset_import: ["": 21, "my-domain": 1], doc_string: "text",
 metadata_props: ["k": "v"],
 configuration: [{name: "c", num_devices: 2, device: ["a", "b"]}],
 training_info: [{initialization: init () => (float[2] w0) { w0 = RandomNormal <shape = [2]> () },
                  initialization_binding: ["w": "w0"],
                  algorithm: train () => (float[2] w1) { w1 = Add(w, w) } {doc_string: e"a\nb"},
                  update_binding: ["w": "w1"]}]>
"main graph" (float[N, 3, ?, ""] x {doc_string: e"two\nlines"}, optional(seq(float[])) o,
    int64[2 {denotation: "DATA_BATCH"}] {denotation: "TENSOR"} typed, untyped)
  => (float[] "out put", ? unknown)
  <float[2] w = {1, inf} {doc_string: "d", metadata_props: ["a": "b"], segment: [0, 2]},
   float16[1] h = {15360}, bool b = {1}, string[1] s = {"x"},
   sparse_tensor(float[3, 3]) sp = {float[2] {1, 2}, int64[2] {0, 5}},
   int4[3] i4 = {-8, 7, 1}, float[9] far = ["location": "f.bin"],
   float[N] mid, seq(map(int64, string)) maps>
{
  [first] a, "", "b c" = "my-domain".Op:o <i = 1, f = 2.5, s = "q\"uote", is = [1, 2], fs = [1.0],
     ss = ["a"], none: strings = [], t = float[2] {1, 2}, tp = seq(float[]),
     sp = sparse_tensor(double[4]) {double[1] {1.5}, int64[1] {3}}, u: undefined = 3,
     ts = [float {1}, int32[1] {2}], tps = [float, ?], no: tensor = {}> (x, "", "w")
     {doc_string: e"line\nline", metadata_props: ["x": "y"],
      device_configurations: [{configuration_id: "c", pipeline_stage: 1,
        sharding_spec: [{tensor_name: "x", device: [0, 1], index_to_device_group_map: [-1: [0, 1]],
          sharded_dim: [{axis: 0, simple_sharding: [{dim_param: "N", num_shards: 2},
                                                    {dim_value: 4, num_shards: 2}]}]}]}]}
  c = If (b) <then_branch = "then/branch" () => (y) { y = Identity (x) } {doc_string: "inner"},
              else_branch {doc_string: "of an attribute"} = map2 () => (z) <float z> { z = Neg (x) }>
  = Sink ()
} {doc_string: "graph", metadata_props: ["m": "n"],
   quantization_annotation: [{tensor_name: "x", quant_parameter_tensor_names: ["SCALE_TENSOR": "w"]}]}
<domain: "local", opset_import: ["": 21], doc_string: "f">
fn <a, b: ints = [1], "odd name"> (x, "float") => (y) <float[] x> {
  y = Cast <to: int = @a> (x)
} {metadata_props: ["q": "r"], since_version: 1, status: 1}
)";

TEST(TextPrint, ReadsBackAsItself) {
  const ir::Model model = wire::parse_model(varied_model);
  const std::string text = wire::print(model);
  ir::Model again;
  try {
    again = wire::parse_model(text);
  } catch (const Error& error) {
    FAIL() << error.what() << "\n" << text;
  }
  EXPECT_EQ(wire::print(again), text);
  // What the printed text must still hold.
  EXPECT_EQ(again.graph->inputs[0].doc_string, "two\nlines");
  EXPECT_EQ(again.graph->inputs[0].type->shape->dims.at(3).param, "");
  EXPECT_EQ(again.graph->inputs[2].type->denotation, "TENSOR");
  EXPECT_EQ(again.graph->inputs[2].type->shape->dims.at(0).denotation, "DATA_BATCH");
  EXPECT_FALSE(again.graph->inputs[3].type.has_value());
  EXPECT_EQ(again.graph->outputs[1].type->kind, Kind::none);
  EXPECT_EQ(again.graph->initializers.at(0).segment->end, 2);
  EXPECT_EQ(again.graph->initializers.at(0).metadata_props.at(0).value, "b");
  EXPECT_EQ(again.graph->sparse_initializers.at(0).values.name, "sp");
  EXPECT_EQ(again.graph->sparse_initializers.at(0).dims, (std::vector<int64_t>{3, 3}));
  EXPECT_EQ(again.graph->initializers.at(4).int32_data, (std::vector<int32_t>{0x78, 1}));
  EXPECT_TRUE(again.graph->initializers.at(5).is_external());
  EXPECT_EQ(again.graph->value_info.size(), 2u);
  const ir::Node& op = again.graph->nodes.at(0);
  EXPECT_EQ(op.domain, "my-domain");
  EXPECT_EQ(op.overload, "o");
  EXPECT_EQ(op.attributes.size(), 14u);
  EXPECT_EQ(op.find("u")->kind, AttributeKind::undefined);
  EXPECT_EQ(op.find("none")->kind, AttributeKind::strings);
  EXPECT_EQ(op.find("no")->kind, AttributeKind::tensor);
  EXPECT_EQ(op.find("no")->t, nullptr);
  EXPECT_EQ(op.doc_string, "line\nline");
  const ir::NodeDeviceConfiguration& device = op.device_configurations.at(0);
  EXPECT_EQ(device.pipeline_stage, 1);
  EXPECT_EQ(device.sharding_spec.at(0).index_to_device_group_map.at(0).key, -1);
  EXPECT_EQ(device.sharding_spec.at(0).sharded_dim.at(0).simple_sharding.at(1).dim_value, 4);
  EXPECT_EQ(again.graph->nodes.at(1).find("then_branch")->g->name, "then/branch");
  EXPECT_EQ(again.graph->nodes.at(1).find("then_branch")->g->doc_string, "inner");
  EXPECT_EQ(again.graph->nodes.at(1).find("else_branch")->doc_string, "of an attribute");
  EXPECT_EQ(again.graph->nodes.at(2).inputs.size() + again.graph->nodes.at(2).outputs.size(), 0u);
  EXPECT_EQ(again.graph->quantization_annotation.at(0).quant_parameter_tensor_names.at(0).value,
            "w");
  EXPECT_EQ(again.configuration.at(0).device.size(), 2u);
  EXPECT_EQ(again.training_info.at(0).algorithm->doc_string, "a\nb");
  EXPECT_EQ(again.training_info.at(0).update_binding.at(0).value, "w1");
  EXPECT_EQ(again.functions.at(0).since_version, 1);
  EXPECT_EQ(again.functions.at(0).attributes.at(1), "odd name");
}

// What other readers skip may not hold what they need, nor reach into their lines.
TEST(TextPrint, AnnotationsAreWholeLines) {
  const std::string text = wire::print(wire::parse_model(varied_model));
  EXPECT_NE(text.find("#@ {doc_string: e\"two\\nlines\"}"), std::string::npos) << text;
  wire::PrintOptions options;
  options.annotations = false;
  const std::string plain = wire::print(wire::parse_model(varied_model), options);
  EXPECT_EQ(plain.find("#@"), std::string::npos);
  EXPECT_EQ(plain.find("doc_string"), std::string::npos);
  EXPECT_NO_THROW(wire::parse_model(plain));
}

TEST(TextPrint, CutsLongTensors) {
  wire::PrintOptions options;
  options.max_elements = 3;
  const ir::TensorProto tensor = wire::parse_tensor("int64[5] {1, 2, 3, 4, 5}");
  EXPECT_EQ(wire::print(tensor, options), "int64[5] {1, 2, 3, ...}");
  EXPECT_EQ(wire::print(tensor), "int64[5] {1, 2, 3, 4, 5}");
  options.max_elements = 0;
  EXPECT_EQ(wire::print(tensor, options), "int64[5] {...}");
}

TEST(TextPrint, RawDataOfEveryType) {
  for (int32_t number = 1; number < element_type_count; ++number) {
    const auto type = static_cast<ElementType>(number);
    if (bit_width(type) == 0) continue;
    ir::TensorProto raw;
    raw.data_type = number;
    raw.dims = {5};
    raw.has_raw_data = true;
    std::vector<std::byte> bytes(static_cast<size_t>(byte_size(type, 5)));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 11);
    if (bit_width(type) == 6) bytes.back() &= std::byte{0x3f};
    if (bit_width(type) == 4) bytes.back() &= std::byte{0x0f};
    if (bit_width(type) == 2) bytes.back() &= std::byte{0x03};
    raw.raw_data = Bytes::copy_of(bytes);
    const std::string text = wire::print(raw);
    const ir::TensorProto typed = wire::parse_tensor(text);
    EXPECT_EQ(wire::print(typed), text);
    EXPECT_EQ(typed.dims, raw.dims);
    EXPECT_EQ(typed.data_type, number);
    if (type == ElementType::uint32) {
      EXPECT_EQ(typed.uint64_data.size(), 5u);
    } else if (type == ElementType::float16) {
      EXPECT_EQ(typed.int32_data.at(0), 11 + (48 << 8));
    }
  }
}

TEST(TextPrint, FloatsKeepTheirBits) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    const uint32_t bits = random();
    float value;
    std::memcpy(&value, &bits, sizeof value);
    if (std::isnan(value)) continue;
    ir::Attribute attribute;
    attribute.name = "a";
    attribute.kind = AttributeKind::float_;
    attribute.f = value;
    const float again = *wire::parse_attribute(wire::print(attribute)).f;
    EXPECT_EQ(std::memcmp(&again, &value, sizeof value), 0) << wire::print(attribute);
  }
}

// Large tensors become text on several threads where it goes to a file.
TEST(TextPrint, PieceByPieceItIsTheSame) {
  std::mt19937 random(1);
  const auto tensor = [&](int32_t type, size_t count, size_t width) {
    ir::TensorProto made;
    made.name = "t" + std::to_string(type) + "_" + std::to_string(count);
    made.data_type = type;
    made.dims = {static_cast<int64_t>(count)};
    made.has_raw_data = true;
    std::vector<std::byte> bytes(count * width);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    made.raw_data = Bytes::copy_of(bytes);
    return made;
  };
  ir::Model model;
  model.graph.emplace().name = "g";
  for (const size_t count : {131'071, 131'072, 131'073, 1'000'003}) {
    model.graph->initializers.push_back(tensor(1, count, 4));
    model.graph->initializers.push_back(tensor(7, count, 8));
    model.graph->initializers.push_back(tensor(3, count, 1));
  }
  wire::StringSink sink;
  wire::print(model, sink);
  const std::string pieces = sink.take();
  EXPECT_TRUE(pieces == wire::print(model));
  EXPECT_TRUE(pieces == wire::print(wire::parse_model(pieces)));
}

// Whatever the text is: a model, or an Error.
TEST(TextParse, MutationsNeverCrash) {
  std::mt19937 random(7);
  const std::string_view alphabet = "(){}[]<>=,.:\"#@$?-e\\ \n0919afloatseqmap";
  int parsed = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text(varied_model);
    const int edits = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < edits; ++i) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text[at] = alphabet[random() % alphabet.size()]; break;
        case 1: text.erase(at, 1 + random() % 20); break;
        case 2: text.insert(at, 1, alphabet[random() % alphabet.size()]); break;
        default: text.resize(std::max<size_t>(at, 1)); break;
      }
    }
    try {
      const ir::Model model = wire::parse_model(text);
      const std::string printed = wire::print(model);
      EXPECT_EQ(wire::print(wire::parse_model(printed)), printed) << text;
      ++parsed;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_model) << error.what();
      EXPECT_NE(error.location().find("line "), std::string::npos) << error.what();
    }
  }
  EXPECT_GT(parsed, 100);
}

}  // namespace
}  // namespace sardonyx
