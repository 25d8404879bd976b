// Protobuf's JSON and text format: what they say, what they refuse, and round trips.
#include "wire/named_forms.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "builder.h"
#include "random_model.h"
#include "wire/read.h"
#include "wire/text_parse.h"
#include "wire/write.h"

namespace sardonyx {
namespace {

using wire::NamedForm;
using wire_test::error_of;
using wire_test::number;

constexpr NamedForm both[] = {NamedForm::json, NamedForm::textproto};

std::string round_trip(const ir::Model& model, NamedForm form) {
  return wire::write_model(wire::read_named_model(wire::named_text(model, form), form));
}

TEST(NamedForms, EveryFieldComesBack) {
  for (const char* name : {"every_field.onnx", "types.onnx", "small.onnx"}) {
    const ir::Model model = wire::read_model(wire_test::fixture(name));
    for (const NamedForm form : both)
      EXPECT_EQ(round_trip(model, form), wire::write_model(model)) << name;
  }
}

TEST(NamedForms, RandomModelsComeBack) {
  size_t bytes = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const ir::Model model = wire_test::random_model(seed);
    const std::string binary = wire::write_model(model);
    bytes += binary.size();
    EXPECT_EQ(wire::write_model(wire::read_model(wire_test::bytes_of(binary + number(99, 1)))),
              binary + number(99, 1))
        << seed;
    for (const NamedForm form : both) EXPECT_EQ(round_trip(model, form), binary) << seed;
  }
  EXPECT_GT(bytes, 100'000u);
}

TEST(NamedForms, RandomFieldsOfNewerEditionsSurvive) {
  size_t bytes = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const ir::Model model = wire_test::random_model(seed, wire_test::Content::unknown);
    const std::string binary = wire::write_model(model);
    bytes += binary.size();
    EXPECT_EQ(wire::write_model(wire::read_model(wire_test::bytes_of(binary))), binary) << seed;
  }
  EXPECT_GT(bytes, 100'000u);
}

ir::Model with_attribute(float value) {
  ir::Model model = wire::parse_model(
      R"(<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y)
      { y = LeakyRelu <alpha = 0.5> (x) })");
  model.graph->nodes[0].attributes[0].f = value;
  return model;
}

TEST(NamedForms, FloatsKeepTheirValue) {
  for (const float value :
       {0.1f, 1.0f, -0.0f, 1e-45f, 3.4028235e38f, 16777217.0f, 7.038531e-26f,
        std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
    for (const NamedForm form : both) {
      const ir::Model again =
          wire::read_named_model(wire::named_text(with_attribute(value), form), form);
      const float found = again.graph->nodes[0].attributes[0].f.value();
      EXPECT_EQ(found, value);
      EXPECT_EQ(std::signbit(found), std::signbit(value));
    }
  }
  for (const NamedForm form : both) {
    const ir::Model again =
        wire::read_named_model(wire::named_text(with_attribute(std::nanf("")), form), form);
    EXPECT_TRUE(std::isnan(again.graph->nodes[0].attributes[0].f.value()));
  }
}

// Readers built on protobuf take numbers as double first, and -0 as an integer.
TEST(NamedForms, FloatsThatOthersRead) {
  constexpr float largest = std::numeric_limits<float>::max();
  for (const float value : {7.038531e-26f, 0.1f, -0.0f, largest, -largest}) {
    for (const NamedForm form : both) {
      const std::string text = wire::named_text(with_attribute(value), form);
      const std::string key = form == NamedForm::json ? "\"f\": " : " f: ";
      const double read = std::strtod(text.c_str() + text.find(key) + key.size(), nullptr);
      EXPECT_EQ(static_cast<float>(read), value) << text;
      EXPECT_LE(std::abs(read), largest) << text;
    }
  }
  EXPECT_NE(wire::named_text(with_attribute(-0.0f), NamedForm::json).find("\"f\": -0.0"),
            std::string::npos);
}

TEST(NamedForms, NumbersOutOfRange) {
  const auto read = [](const char* number, NamedForm form) {
    const std::string text =
        form == NamedForm::json
            ? fmt::format(R"({{"graph": {{"initializer": [{{"floatData": [{}]}}]}}}})", number)
            : fmt::format("graph {{ initializer {{ float_data: {} }} }}", number);
    const ir::Model model = wire::read_named_model(text, form);
    float value = 0;
    std::memcpy(&value, model.graph->initializers[0].float_data.data(), sizeof value);
    return value;
  };
  for (const NamedForm form : both) {
    EXPECT_EQ(read("1e-50", form), 0);
    EXPECT_EQ(read("1e-400", form), 0);
  }
  EXPECT_EQ(read("-1e39", NamedForm::textproto), -std::numeric_limits<float>::infinity());
  const Error error = error_of([&] { read("1e39", NamedForm::json); });
  EXPECT_NE(std::string(error.what()).find("1e39 is too large for 32 bits"), std::string::npos)
      << error.what();
}

// As protobuf writes text format: each number with the name of its list, one a line.
TEST(NamedForms, NumbersOneByOne) {
  constexpr int count = 500'000;
  std::string text = "graph { initializer { float_data: [0.5, 1.5] ";
  for (int i = 0; i < count; ++i) text += i % 2 == 0 ? "float_data: 2 " : "double_data: 3 ";
  const ir::Model model = wire::read_named_model(text + "} }", NamedForm::textproto);
  const ir::TensorProto& tensor = model.graph->initializers[0];
  std::vector<float> floats(2 + count / 2, 2);
  floats[0] = 0.5f, floats[1] = 1.5f;
  const std::vector<double> doubles(count / 2, 3);
  EXPECT_TRUE(std::ranges::equal(tensor.float_data.span(), std::as_bytes(std::span(floats))));
  EXPECT_TRUE(std::ranges::equal(tensor.double_data.span(), std::as_bytes(std::span(doubles))));
}

TEST(NamedForms, StringsOfAnyBytes) {
  ir::Model model = with_attribute(1);
  model.doc_string = "a \"quote\", a \\, a\nline,\ttab, \x01, é and 漢";
  for (const NamedForm form : both) EXPECT_EQ(round_trip(model, form), wire::write_model(model));
  model.graph->nodes[0].attributes[0].s = std::string("\xff\x00\x80", 3);
  for (const NamedForm form : both) EXPECT_EQ(round_trip(model, form), wire::write_model(model));
  model.doc_string = "\xff";
  EXPECT_EQ(round_trip(model, NamedForm::textproto), wire::write_model(model));
  const Error error = error_of([&] { wire::named_text(model, NamedForm::json); });
  EXPECT_EQ(error.code(), ErrorCode::unsupported);
}

TEST(NamedForms, JsonIsProtobufsMapping) {
  const std::string text = wire::named_text(with_attribute(0.5f), NamedForm::json);
  for (const char* part : {"\"irVersion\": \"8\"", "\"opType\": \"LeakyRelu\"",
                           "\"type\": \"FLOAT\"", "\"dimValue\": \"2\"", "\"elemType\": 1"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  // Names as the standard writes them, numbers without quotes, null for what is absent.
  const ir::Model model = wire::read_named_model(
      R"({"ir_version": 8, "graph": {"name": "g", "node": [{"op_type": "Relu", "input": ["x"],
          "attribute": [{"name": "a", "type": 2, "i": "-3"}], "domain": null}]}})",
      NamedForm::json);
  EXPECT_EQ(model.ir_version, 8);
  EXPECT_EQ(model.graph->nodes[0].attributes[0].i, -3);
  for (const char* number : {"8.0", "\"8.0\"", "0.8e1", "\"80e-1\""}) {
    const std::string with = fmt::format("{{\"irVersion\": {}}}", number);
    EXPECT_EQ(wire::read_named_model(with, NamedForm::json).ir_version, 8) << number;
  }
}

TEST(NamedForms, TextFormatOfOthers) {
  const ir::Model model = wire::read_named_model(R"(# a comment
      ir_version: 0x8; producer_name: 'one' "two"
      graph: < node { op_type: "Relu" input: "a" input: "b"
        attribute { name: "f", f: 1.5f type: FLOAT }
        attribute { name: "l" ints: [1, -2, 0x10] ints: 010 type: INTS } }
        node: [{ op_type: "A\x41\101\n" }, { op_type: "B" }] >)",
                                                 NamedForm::textproto);
  EXPECT_EQ(model.producer_name, "onetwo");
  ASSERT_EQ(model.graph->nodes.size(), 3u);
  EXPECT_EQ(model.graph->nodes[0].inputs.size(), 2u);
  EXPECT_EQ(model.graph->nodes[0].attributes[0].f, 1.5f);
  EXPECT_EQ(model.graph->nodes[0].attributes[1].ints, (std::vector<int64_t>{1, -2, 16, 8}));
  EXPECT_EQ(model.graph->nodes[1].op_type, "AAA\n");
}

TEST(NamedForms, ErrorsSayWhere) {
  struct Case {
    NamedForm form;
    const char* text;
    const char* part;
  };
  std::string deep_text;
  for (int i = 0; i < 300; ++i)
    deep_text += "graph { node { attribute { g { node { attribute { t {";
  for (const Case& c : {
           Case{NamedForm::json, "{\"irVersion\": \"8\", \"grph\": 1}", "no field 'grph'"},
           Case{NamedForm::json, "{\"irVersion\": 8.5}", "integer"},
           Case{NamedForm::json, "{\"irVersion\": 1e30}", "integer of 64 bits; found '1e30'"},
           Case{NamedForm::json, "{\"irVersion\": true}", "integer"},
           Case{NamedForm::json, "{\"docString\": \"\xff\"}", "not UTF-8"},
           Case{NamedForm::json, "{\"irVersion\": \"8\"", "expected"},
           Case{NamedForm::json, "{\"graph\": {\"node\": {}}}", "expected '['"},
           Case{NamedForm::json, "{\"docString\": \"abc", "does not end"},
           Case{NamedForm::json, "{} {}", "end of the text"},
           Case{NamedForm::json, "{\"graph\":{\"initializer\":[{\"dataType\": 99999999999}]}}",
                "outside the range"},
           Case{NamedForm::textproto, "graph {\n  nodes { }\n}", "no field 'nodes'"},
           Case{NamedForm::textproto, "graph {", "expected the name of a field or '}'"},
           Case{NamedForm::textproto, "ir_version: \"8\"", "integer"},
           Case{NamedForm::textproto, "[a.b]: 1", "extensions"},
           Case{NamedForm::textproto, "domain: \"\\400\"", "beyond \\377"},
           Case{NamedForm::textproto, "domain: \"a\" domain: \"b\"", "'domain', or another"},
           Case{NamedForm::textproto, "graph {} graph {}", "was there before"},
           Case{NamedForm::json, "{\"irVersion\": 8, \"ir_version\": 8}", "was there before"},
           Case{NamedForm::json,
                R"({"graph": {"initializer": [{"rawData": "AA==", "rawData": "AA=="}]}})",
                "was there before"},
           Case{NamedForm::textproto,
                "graph { input { type { tensor_type {} sequence_type {} } } }", "was there before"},
           Case{NamedForm::textproto,
                "graph { input { type { tensor_type { shape { dim { dim_value: 1 dim_param: \"N\" "
                "} } } } } }",
                "'dim_param', or another"},
           Case{NamedForm::textproto, "graph { node { attribute { type: FLOATY } } }",
                "'FLOATY' is no value of 'type'"},
           Case{NamedForm::textproto, deep_text.c_str(), "no field"},
       }) {
    const Error error = error_of([&] { wire::read_named_model(c.text, c.form); });
    EXPECT_NE(error.code(), ErrorCode::internal) << c.text << ": " << error.what();
    EXPECT_NE(std::string(error.what()).find(c.part), std::string::npos) << c.text << "\n"
                                                                         << error.what();
  }
}

TEST(NamedForms, DepthIsBounded) {
  std::string text, json;
  for (int i = 0; i < 100000; ++i) text += "graph{node{attribute{g{node{attribute{g{";
  EXPECT_NE(error_of([&] { wire::read_named_model(text, NamedForm::textproto); }).code(),
            ErrorCode::internal);
  std::string nest = "graph { node { attribute { g ";
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += i == 0 ? nest : "{ node { attribute { g ";
  const Error error = error_of([&] { wire::read_named_model(deep, NamedForm::textproto); });
  EXPECT_NE(std::string(error.what()).find("100 deep"), std::string::npos) << error.what();
}

TEST(NamedForms, OperatorSets) {
  ir::OperatorSet set;
  set.magic = "ONNXOPSET";
  set.ir_version = 10;
  set.domain = "com.example";
  set.opset_version = 3;
  set.operators.push_back({"Twice", 2, 1, "doubles", {}});
  for (const NamedForm form : both) {
    const ir::OperatorSet again = wire::read_named_operator_set(wire::named_text(set, form), form);
    ASSERT_EQ(again.operators.size(), 1u);
    EXPECT_EQ(again.operators[0].status, 1);
    EXPECT_EQ(again.opset_version, 3);
  }
}

}  // namespace
}  // namespace sardonyx
