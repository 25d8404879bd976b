#include "formats/json_tensor.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "formats/low_precision.h"
#include "wire/builder.h"

namespace sardonyx::formats {
namespace {

using namespace wire_test;
using nlohmann::json;
using E = ElementType;

Tensor parsed(const char* text, Wanted wanted = {}) {
  return tensor_from_json(json::parse(text), wanted);
}
std::string refusal(const char* text, Wanted wanted = {}) {
  return error_of([&] { tensor_from_text(text, wanted); }).what();
}
void expect_in(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(JsonTensor, TypesAsFound) {
  EXPECT_EQ(parsed("[[1,2],[3,4]]").element_type(), E::int64);
  EXPECT_EQ(parsed("[[1,2],[3,4]]").shape(), (Shape{2, 2}));
  EXPECT_EQ(parsed("[1, 2.5]").element_type(), E::float32);
  EXPECT_EQ(parsed("[true]").element_type(), E::boolean);
  EXPECT_EQ(parsed("\"x\"").element_type(), E::string);
  EXPECT_EQ(parsed("7").rank(), 0);
  EXPECT_EQ(parsed("[[],[]]").shape(), (Shape{2, 0}));
}

TEST(JsonTensor, EveryElementTypeRoundTrips) {
  for (int32_t i = 1; i < element_type_count; ++i) {
    const auto type = static_cast<E>(i);
    std::string text = "[[0,1],[1,0]]";
    if (is_floating(type)) text = "[[0.5,1.0],[2.0,4.0]]";
    if (type == E::boolean) text = "[[false,true],[true,true]]";
    if (type == E::string) text = "[[\"a\",\"\"],[\"\u00e9\",\"b\"]]";
    if (type == E::complex64 || type == E::complex128)
      text = "[[[0.5,1.0],[2.0,-4.0]],[[1.0,0.0],[3.0,3.0]]]";
    const Tensor tensor = parsed(text.c_str(), {type, Shape{2, 2}});
    EXPECT_EQ(tensor.element_type(), type);
    EXPECT_EQ(json_from_tensor(tensor), json::parse(text)) << name_of(type);
  }
}

TEST(JsonTensor, IntegersKeepAllTheirBits) {
  EXPECT_EQ(json_from_tensor(parsed("[18446744073709551615]", {E::uint64, {}})).dump(),
            "[18446744073709551615]");
  EXPECT_EQ(json_from_tensor(parsed("[-9223372036854775808]", {E::int64, {}})).dump(),
            "[-9223372036854775808]");
  EXPECT_EQ(json_from_tensor(parsed("[1e19, -0.0]", {E::uint64, {}})).dump(),
            "[10000000000000000000,0]");
  EXPECT_EQ(json_from_tensor(parsed("[9.2e18, -1e3]", {E::int64, {}})).dump(),
            "[9200000000000000000,-1000]");
  EXPECT_EQ(json_from_tensor(parsed("[-8,7,-1]", {E::int4, {}})).dump(), "[-8,7,-1]");
  EXPECT_EQ(json_from_tensor(parsed("[-2,1,-1,0,1]", {E::int2, {}})).dump(), "[-2,1,-1,0,1]");
  EXPECT_EQ(json_from_tensor(parsed("[0.1]")).dump(), "[0.1]");
  EXPECT_EQ(json_from_tensor(parsed("[\"NaN\",\"-Infinity\",1]", {E::float32, {}})).dump(),
            "[\"NaN\",\"-Infinity\",1.0]");
}

TEST(JsonTensor, FloatsComeBack) {
  for (const float value : {7.038531e-26f, 0.1f, 16777216.0f, -0.0f, 1e-45f}) {
    const Tensor tensor = Tensor::of<float>({value}, {1});
    const Tensor again = parsed(json_from_tensor(tensor).dump().c_str(), {E::float32, {}});
    EXPECT_EQ(std::bit_cast<uint32_t>(again.elements<float>()[0]), std::bit_cast<uint32_t>(value));
  }
}

TEST(JsonTensor, WantedShapes) {
  EXPECT_EQ(parsed("[1,2,3,4]", {E::float32, Shape{1, 2, 2}}).shape(), (Shape{1, 2, 2}));
  EXPECT_EQ(parsed("[1,2,3,4]", {E::float32, Shape{-1, -1}}).shape(), (Shape{1, 4}));
  EXPECT_EQ(parsed("5", {E::float32, Shape{1}}).shape(), (Shape{1}));
  EXPECT_EQ(parsed("[5]", {E::float32, Shape{}}).shape(), (Shape{}));
  EXPECT_EQ(parsed("[[1,2],[3,4]]", {E::float32, Shape{-1, 2}}).shape(), (Shape{2, 2}));
  expect_in(refusal("[[1,2],[3,4]]", {E::float32, Shape{4}}), "shape [2,2]; [4] is wanted");
  expect_in(refusal("[1,2,3]", {E::float32, Shape{-1, 2}}), "wanted");
}

TEST(JsonTensor, TextOfNumbers) {
  EXPECT_EQ(json_from_tensor(tensor_from_text("1,2,3")).dump(), "[1,2,3]");
  EXPECT_EQ(json_from_tensor(tensor_from_text(" 1.5 ")).dump(), "1.5");
  EXPECT_EQ(json_from_tensor(tensor_from_text("1 2\n3 4\n", {E::float32, Shape{2, 2}})).dump(),
            "[[1.0,2.0],[3.0,4.0]]");
  EXPECT_EQ(json_from_tensor(tensor_from_text("nan, -inf;1e3", {E::float32, {}})).dump(),
            "[\"NaN\",\"-Infinity\",1000.0]");
  EXPECT_EQ(json_from_tensor(tensor_from_text("true false")).dump(), "[true,false]");
  EXPECT_EQ(json_from_tensor(tensor_from_text("hello world, you", {E::string, {}})).dump(),
            "[\"hello world\",\"you\"]");
  EXPECT_EQ(json_from_tensor(tensor_from_text("a,, b", {E::string, {}})).dump(),
            "[\"a\",\"\",\"b\"]");
  EXPECT_EQ(json_from_tensor(tensor_from_text("1, 2 ,3,\n4")).dump(), "[1,2,3,4]");
  EXPECT_EQ(json_from_tensor(tensor_from_text("[[1],[2]]")).dump(), "[[1],[2]]");
  EXPECT_EQ(tensor_from_text("", {E::float32, Shape{0}}).size(), 0);
}

TEST(JsonTensor, LinesAreRows) {
  const auto shape = [](std::string_view text, const Shape& wanted) {
    return tensor_from_text(text, {E::float32, wanted}).shape();
  };
  EXPECT_EQ(shape("1,2,3\r\n4,5,6\r\n", {-1, -1}), (Shape{2, 3}));
  EXPECT_EQ(shape("1 2 3\n\n4 5 6", {-1, 3}), (Shape{2, 3}));
  EXPECT_EQ(shape("1\n2\n3", {-1, -1}), (Shape{1, 3}));
  EXPECT_EQ(shape("1,2,3", {-1, -1}), (Shape{1, 3}));
  EXPECT_EQ(shape("1,2\n3,4,5", {-1, -1}), (Shape{1, 5}));
  EXPECT_EQ(shape("1,2\n3,4", {1, -1}), (Shape{1, 4}));
  EXPECT_EQ(shape("1,2\n3,4", {-1}), (Shape{4}));
  EXPECT_EQ(tensor_from_text("a\nb,c", {E::string, {}}).elements<std::string>()[0], "a\nb");
}

TEST(JsonTensor, WhatDoesNotFitIsRefused) {
  expect_in(refusal("[[1,2],[3]]"), "ragged");
  expect_in(refusal("[1,[2]]"), "ragged");
  expect_in(refusal("[[1],2]"), "ragged");
  expect_in(refusal("[[],[1]]"), "ragged");
  expect_in(refusal("[{\"a\":1}]"), "no place");
  expect_in(refusal("[null]"), "neither a number");
  expect_in(refusal("[1,\"x\"]"), "mixes");
  expect_in(refusal("[1.5]", {E::int64, {}}), "1.5 is no int64");
  expect_in(refusal("[300]", {E::uint8, {}}), "300 is no uint8");
  expect_in(refusal("[-1]", {E::uint64, {}}), "-1 is no uint64");
  expect_in(refusal("[8]", {E::int4, {}}), "8 is no int4");
  expect_in(refusal("[1e30]", {E::int64, {}}), "is no int64");
  // Words of a text are numbers with a sign.
  for (const auto& [text, type] :
       {std::pair("300", E::uint8), std::pair("128", E::int8), std::pair("-129", E::int8),
        std::pair("1,16", E::uint4), std::pair("3000000000", E::int32), std::pair("-1", E::uint64),
        std::pair("1e19", E::int64), std::pair("1e20", E::uint64)})
    expect_in(refusal(text, {type, {}}), " is no " + std::string(name_of(type)));
  expect_in(refusal("[2]", {E::boolean, {}}), "2 is no bool");
  expect_in(refusal("[1", {}), "not sound JSON");
  expect_in(refusal("1,x", {E::float32, {}}), "is no float");
  expect_in(refusal("1,,3", {E::float32, {}}), "no value before a comma; before that there are 1");
  expect_in(refusal(", 1", {E::float32, {}}), "no value before a comma");
  expect_in(refusal("1,2\n3,,4", {E::float32, {}}), "before that there are 3");
  expect_in(refusal("1,2", {E::complex64, {}}), "[real, imaginary]");
  expect_in(refusal(std::string(100000, '[').c_str()), "nested more than");
  expect_in(refusal((std::string(100, '[') + "1" + std::string(100, ']')).c_str()),
            "nested more than");
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  expect_in(refusal((objects + "1" + std::string(100000, '}')).c_str()), "nested more than");
  expect_in(refusal("{\"a[[\\\"[{\": 1}"), "no place");
}

TEST(JsonTensor, SixBitElementsGoOverTheEndsOfBytes) {
  const Tensor tensor = parsed("[0.125, 7.5, -7.5, 1.0, -0.25]", {E::float6e2m3, {}});
  EXPECT_EQ(tensor.byte_size(), 4u);
  EXPECT_EQ(json_from_tensor(tensor).dump(), "[0.125,7.5,-7.5,1.0,-0.25]");
}

TEST(LowPrecision, EveryCodeRoundTrips) {
  const std::pair<E, int> types[] = {
      {E::float16, 16},   {E::bfloat16, 16},      {E::float8e4m3fn, 8}, {E::float8e4m3fnuz, 8},
      {E::float8e5m2, 8}, {E::float8e5m2fnuz, 8}, {E::float8e8m0, 8},   {E::float4e2m1, 4},
      {E::float6e2m3, 6}, {E::float6e3m2, 6}};
  for (const auto& [type, bits] : types) {
    for (uint32_t code = 0; code < 1u << bits; ++code) {
      const double value = decode_low(type, code);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(decode_low(type, encode_low(type, value))));
      } else {
        EXPECT_EQ(encode_low(type, value), code) << name_of(type);
      }
    }
  }
}

TEST(LowPrecision, RoundsToNearestEven) {
  EXPECT_EQ(encode_low(E::float16, 1.0), 0x3c00u);
  EXPECT_EQ(encode_low(E::float16, 1 + 0x1p-11), 0x3c00u);
  EXPECT_EQ(encode_low(E::float16, 1 + 0x3p-11), 0x3c02u);
  EXPECT_EQ(encode_low(E::float16, 65519.0), 0x7bffu);
  EXPECT_EQ(encode_low(E::float16, 65520.0), 0x7c00u);
  EXPECT_EQ(encode_low(E::float16, -1e300), 0xfc00u);
  EXPECT_EQ(encode_low(E::float16, 0x1p-25), 0u);
  EXPECT_EQ(encode_low(E::float16, 0x1.8p-25), 1u);
  EXPECT_EQ(encode_low(E::bfloat16, 3.14159), 0x4049u);
  EXPECT_EQ(encode_low(E::float8e4m3fn, 448.0), 0x7eu);
  EXPECT_EQ(encode_low(E::float8e4m3fn, 1e9), 0x7eu);
  EXPECT_EQ(encode_low(E::float8e4m3fnuz, -0.0), 0u);
  EXPECT_EQ(encode_low(E::float4e2m1, 5.0), 6u);
  EXPECT_EQ(encode_low(E::float4e2m1, -100.0), 15u);
  EXPECT_EQ(encode_low(E::float6e2m3, 100.0), 31u);
  EXPECT_EQ(encode_low(E::float6e3m2, -0.0625), 33u);
}

}  // namespace
}  // namespace sardonyx::formats
