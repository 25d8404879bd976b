// Constants that inference computes must be those that the kernels compute.
#include <gtest/gtest.h>

#include "sardonyx/session.h"

namespace sardonyx {
namespace {

struct Bounds {
  const char* type;
  const char* low;
  const char* high;
};

constexpr Bounds types[] = {
    {"uint8", "0", "255"},
    {"int8", "-128", "127"},
    {"uint16", "0", "65535"},
    {"int16", "-32768", "32767"},
    {"uint32", "0", "4294967295"},
    {"int32", "-2147483648", "2147483647"},
    {"int64", "-9223372036854775808", "9223372036854775807"},
};

Tensor run(const std::string& text, bool plain) {
  const Model model = Model::from_text("<ir_version: 10, opset_import: [\"\" : 21]>\n" + text);
  return Session(model, {.reference = plain}).run(std::vector<NamedValue>{})[0].tensor();
}

// Every operator on every pair of bounds, then widened.
TEST(KnownElements, WrapAsTheirTypesDo) {
  for (const Bounds& type : types) {
    for (const char* op : {"Add", "Sub", "Mul", "Max", "Min"}) {
      for (const char* a : {type.low, type.high, "3"}) {
        for (const char* b : {type.low, type.high, "2"}) {
          const std::string element = type.type;
          const std::string text = "g () => (int64[1] y) {\n a = Constant <value = " + element +
                                   "[1] {" + a + "}> ()\n b = Constant <value = " + element +
                                   "[1] {" + b + "}> ()\n c = " + op +
                                   " (a, b)\n d = Cast <to = 7> (c)\n one = Constant <value = "
                                   "int64[1] {1}> ()\n y = Max (d, d)\n}";
          const Tensor planned = run(text, false), plain = run(text, true);
          EXPECT_EQ(planned.elements<int64_t>()[0], plain.elements<int64_t>()[0]) << text;
        }
      }
    }
  }
}

TEST(KnownElements, NegationAndSizesWrap) {
  for (const char* type : {"int8", "int32", "int64"}) {
    const std::string low = std::string(type) == "int8"    ? "-128"
                            : std::string(type) == "int32" ? "-2147483648"
                                                           : "-9223372036854775808";
    const std::string text = "g () => (int64[1] y) {\n a = Constant <value = " + std::string(type) +
                             "[1] {" + low + "}> ()\n n = Neg (a)\n y = Cast <to = 7> (n)\n}";
    EXPECT_EQ(run(text, false).elements<int64_t>()[0], run(text, true).elements<int64_t>()[0]);
  }
}

// Functions whose bodies hold two calls each inside subgraphs: few nodes in every list, 2^n in all.
TEST(KnownElements, ExponentialCallsEnd) {
  std::string text =
      "<ir_version: 10, opset_import: [\"\" : 21, \"f\" : 1]>\n"
      "g (bool c, float[1] x) => (float[1] y) { y = f.f0 (c, x) }\n";
  for (int i = 0; i < 30; ++i) {
    const std::string next = "f.f" + std::to_string(i + 1);
    text += "<domain: \"f\", opset_import: [\"\" : 21, \"f\" : 1]>\nf" + std::to_string(i) +
            " (c, x) => (y) {\n y = If (c) <then_branch = t () => (a) { a = " + next +
            " (c, x) }, else_branch = e () => (b) { b = " + next + " (c, x) }>\n}\n";
  }
  text += "<domain: \"f\", opset_import: [\"\" : 21]>\nf30 (c, x) => (y) { y = Relu (x) }\n";
  try {
    const Session session(Model::from_text(text));
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_model);
    EXPECT_NE(std::string(error.what()).find("add more than 250000 nodes"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace sardonyx
