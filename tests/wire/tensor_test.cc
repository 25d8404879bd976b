#include "wire/tensor.h"

#include <gtest/gtest.h>

#include "builder.h"
#include "wire/data_messages.h"
#include "wire/read.h"
#include "wire/write.h"

namespace sardonyx::wire {
namespace {

using namespace wire_test;

ir::TensorProto proto_of(ElementType type, std::vector<int64_t> dims) {
  ir::TensorProto proto;
  proto.name = std::string("t");
  proto.data_type = static_cast<int32_t>(type);
  proto.dims = std::move(dims);
  return proto;
}
std::string refusal(const ir::TensorProto& proto) {
  return error_of([&] { to_tensor(proto); }).what();
}
void expect_in(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

std::string bytes_in(const Tensor& t) {
  return {static_cast<const char*>(t.data()), t.byte_size()};
}

TEST(TensorProto, Int32DataHoldsTheSmallTypes) {
  struct Case {
    ElementType type;
    std::vector<int32_t> entries;
    int64_t count;
    std::string bytes;
  };
  using E = ElementType;
  const std::vector<Case> cases = {
      {E::int32, {-1, 7}, 2, plain(int32_t{-1}) + plain(int32_t{7})},
      {E::int16, {-2, 3}, 2, plain(int16_t{-2}) + plain(int16_t{3})},
      {E::uint16, {65535, 3}, 2, plain(uint16_t{65535}) + plain(uint16_t{3})},
      {E::int8, {-3, 4}, 2, "\xfd\x04"},
      {E::uint8, {253, 4}, 2, "\xfd\x04"},
      {E::boolean, {1, 0, 5}, 3, std::string("\1\0\1", 3)},
      {E::float16, {0x3c00, 0xc000}, 2, std::string("\0\x3c\0\xc0", 4)},
      {E::bfloat16, {0x3f80}, 1, std::string("\x80\x3f", 2)},
      {E::float8e4m3fn, {0x38, 0xb8}, 2, "\x38\xb8"},
      {E::float8e4m3fnuz, {0x38}, 1, "\x38"},
      {E::float8e5m2, {0x3c}, 1, "\x3c"},
      {E::float8e5m2fnuz, {0x3c}, 1, "\x3c"},
      {E::float8e8m0, {0x7f}, 1, "\x7f"},
      {E::int4, {0x21, 0x0f}, 3, "\x21\x0f"},
      {E::uint4, {0x21, 0x43}, 4, "\x21\x43"},
      {E::float4e2m1, {0x21}, 2, "\x21"},
      {E::int2, {0xe4, 0x01}, 5, "\xe4\x01"},
      {E::uint2, {0xe4}, 4, "\xe4"},
      {E::float6e2m3, {1, 2, 3, 4, 0x45}, 5, "\x81\x30\x10\x05"},
      {E::float6e3m2, {0x3f, 0x20}, 2, "\x3f\x08"},
  };
  for (const Case& c : cases) {
    ir::TensorProto proto = proto_of(c.type, {c.count});
    proto.int32_data = c.entries;
    const Tensor tensor = to_tensor(proto);
    EXPECT_EQ(tensor.element_type(), c.type);
    EXPECT_EQ(bytes_in(tensor), c.bytes) << name_of(c.type);
    EXPECT_EQ(bytes_in(to_tensor(to_proto(tensor))), c.bytes);
    proto.int32_data.push_back(0);
    expect_in(refusal(proto), "entries in int32_data");
  }
}

TEST(TensorProto, OtherTypedFields) {
  ir::TensorProto f = proto_of(ElementType::float32, {2});
  f.float_data = bytes_of(plain(1.5f) + plain(2.5f));
  EXPECT_EQ(to_tensor(f).elements<float>()[1], 2.5f);
  ir::TensorProto c = proto_of(ElementType::complex64, {1});
  c.float_data = f.float_data;
  EXPECT_EQ(bytes_in(to_tensor(c)), plain(1.5f) + plain(2.5f));
  ir::TensorProto d = proto_of(ElementType::complex128, {1, 1});
  d.double_data = bytes_of(plain(1.5) + plain(2.5));
  EXPECT_EQ(bytes_in(to_tensor(d)), plain(1.5) + plain(2.5));
  ir::TensorProto i = proto_of(ElementType::int64, {1});
  i.int64_data = {-5};
  EXPECT_EQ(to_tensor(i).elements<int64_t>()[0], -5);
  ir::TensorProto u = proto_of(ElementType::uint32, {1});
  u.uint64_data = {4000000000u};
  EXPECT_EQ(to_tensor(u).elements<uint32_t>()[0], 4000000000u);
  u.data_type = static_cast<int32_t>(ElementType::uint64);
  EXPECT_EQ(to_tensor(u).elements<uint64_t>()[0], 4000000000u);
  ir::TensorProto s = proto_of(ElementType::string, {2});
  s.string_data = {"a", std::string("b\0", 2)};
  EXPECT_EQ(to_tensor(s).elements<std::string>()[1], std::string("b\0", 2));
  EXPECT_EQ(to_proto(to_tensor(s)).string_data, s.string_data);
}

TEST(TensorProto, RawDataIsAViewAndBooleansAreNormal) {
  ir::TensorProto f = proto_of(ElementType::float32, {2});
  const Bytes block = bytes_of(std::string(1, 'x') + plain(1.5f) + plain(2.5f) + plain(3.5f));
  f.has_raw_data = true;
  f.raw_data = Bytes::copy_of(block.slice(1, 8).span());
  EXPECT_EQ(to_tensor(f).data(), f.raw_data.data());
  f.raw_data = block.slice(1, 8);  // small and unaligned: a copy
  EXPECT_EQ(to_tensor(f).elements<float>()[1], 2.5f);
  ir::TensorProto b = proto_of(ElementType::boolean, {3});
  b.has_raw_data = true;
  b.raw_data = bytes_of(std::string("\0\1\xff", 3));
  EXPECT_EQ(bytes_in(to_tensor(b)), std::string("\0\1\1", 3));
}

TEST(TensorProto, EmptyAndScalarShapes) {
  EXPECT_EQ(to_tensor(proto_of(ElementType::float32, {0, 4})).size(), 0);
  EXPECT_EQ(to_tensor(proto_of(ElementType::string, {0})).size(), 0);
  ir::TensorProto scalar = proto_of(ElementType::int64, {});
  scalar.int64_data = {3};
  EXPECT_EQ(to_tensor(scalar).rank(), 0);
}

TEST(TensorProto, WhatDoesNotFitIsRefused) {
  ir::TensorProto f = proto_of(ElementType::float32, {3});
  f.has_raw_data = true;
  f.raw_data = bytes_of(plain(1.5f));
  expect_in(refusal(f), "tensor 't': shape [3] of float takes 12 bytes of raw_data; it has 4");
  f.dims = {1};
  f.int32_data = {1};
  expect_in(refusal(f), "both in raw_data");
  f.raw_data = {};
  f.has_raw_data = false;
  expect_in(refusal(f), "is stored in float_data, but it has 1 entries in int32_data");
  f.int32_data.clear();
  f.dims = {-1, 3};
  expect_in(refusal(f), "negative");
  f.dims = {int64_t{1} << 32, int64_t{1} << 32};  // onnx#7580
  expect_in(refusal(f), "overflows");
  f.dims = {int64_t{1} << 62};
  expect_in(refusal(f), "float_data; it has 0");
  ir::TensorProto raw = proto_of(ElementType::complex128, {int64_t{1} << 60});
  raw.has_raw_data = true;
  raw.raw_data = bytes_of("x");
  expect_in(refusal(raw), "more than memory can address");
  expect_in(refusal(proto_of(static_cast<ElementType>(99), {1})), "99 is no element type");
  expect_in(refusal(proto_of(ElementType::undefined, {1})), "0 is no element type");
  ir::TensorProto strings = proto_of(ElementType::string, {1});
  strings.raw_data = bytes_of("x");
  expect_in(refusal(strings), "cannot be stored in raw_data");
  strings.string_data = {"a"};
  expect_in(refusal(strings), "raw_data");
  ir::TensorProto segment = proto_of(ElementType::float32, {1});
  segment.segment = ir::Segment{0, 1, {}};
  EXPECT_EQ(error_of([&] { to_tensor(segment); }).code(), ErrorCode::unsupported);
  ir::TensorProto where = proto_of(ElementType::float32, {0});
  where.data_location = 2;
  expect_in(refusal(where), "data_location 2");
}

ir::TypeProto type(ir::TypeProto::Kind kind) {
  ir::TypeProto type;
  type.kind = kind;
  return type;
}
Value load(const char* name, ir::TypeProto::Kind kind) {
  return read_value(read_file(fixture(name)), type(kind));
}
float first(const Value& value) { return value.tensor().elements<float>()[0]; }

TEST(Values, AsTheOnnxPackageStoresThem) {
  using Kind = ir::TypeProto::Kind;
  const Value sequence = load("sequence.pb", Kind::sequence);
  ASSERT_EQ(sequence.sequence().items.size(), 2u);
  EXPECT_EQ(first(sequence.sequence().items[1]), 2.5f);
  EXPECT_EQ(
      load("sequence_of_sequences.pb", Kind::sequence).sequence().items[1].sequence().items.size(),
      2u);
  const Value map = load("map.pb", Kind::map);
  EXPECT_EQ(map.map().keys.elements<int64_t>()[1], -3);
  EXPECT_EQ(first(map.map().values[0]), 1.5f);
  EXPECT_EQ(load("map_of_strings.pb", Kind::map).map().keys.elements<std::string>()[1], "y");
  EXPECT_EQ(first(*load("optional.pb", Kind::optional).optional().held), 2.5f);
  EXPECT_EQ(load("optional_empty.pb", Kind::optional).optional().held, nullptr);
  EXPECT_EQ(load("optional_sequence.pb", Kind::optional).optional().held->sequence().items.size(),
            2u);
  const Value sparse = load("sparse.pb", Kind::sparse_tensor);
  EXPECT_EQ(sparse.sparse_tensor().shape, (Shape{3, 2}));
  EXPECT_EQ(sparse.sparse_tensor().indices.elements<int64_t>()[2], 2);
}

// A TensorProto is an OptionalProto that holds nothing, but for fields that an OptionalProto has
// not.
TEST(Values, ABareElementIsAnOptionalThatHoldsIt) {
  ir::TypeProto optional = type(ir::TypeProto::Kind::optional);
  optional.nested = std::make_shared<ir::TypeProto>(type(ir::TypeProto::Kind::tensor));
  const std::string bytes = write_value(Tensor::of<float>({2.5f}, {1}), "x");
  EXPECT_EQ(first(*read_value(bytes_of(bytes), optional).optional().held), 2.5f);
}

TEST(Values, RoundTrip) {
  using Kind = ir::TypeProto::Kind;
  const std::pair<const char*, Kind> files[] = {{"sequence.pb", Kind::sequence},
                                                {"sequence_of_sequences.pb", Kind::sequence},
                                                {"map.pb", Kind::map},
                                                {"map_of_strings.pb", Kind::map},
                                                {"optional.pb", Kind::optional},
                                                {"optional_empty.pb", Kind::optional},
                                                {"optional_sequence.pb", Kind::optional},
                                                {"sparse.pb", Kind::sparse_tensor}};
  for (const auto& [name, kind] : files) {
    const Value value = load(name, kind);
    const std::string once = write_value(value, "n");
    EXPECT_EQ(type_of(value).kind, kind);
    EXPECT_EQ(write_value(read_value(bytes_of(once), type_of(value)), "n"), once) << name;
  }
}

TEST(Values, UnsoundOnesAreRefused) {
  using Kind = ir::TypeProto::Kind;
  const auto refused = [](const std::string& bytes, Kind kind) {
    return std::string(error_of([&] { read_value(bytes_of(bytes), type(kind)); }).what());
  };
  const std::string tensor = number(1, 1) + number(2, 1) + text(4, plain(1.0f));
  const std::string ints = number(1, 1) + number(2, 7) + number(7, 1);
  expect_in(refused(number(2, 2) + text(3, tensor), Kind::sequence), "elements of type 1");
  expect_in(refused(number(2, 9), Kind::sequence), "not in [0, 5]");
  expect_in(refused(number(2, 1) + text(3, tensor) + text(3, ints), Kind::sequence), "mixes");
  expect_in(refused(number(2, 7) + number(3, 1), Kind::map), "1 keys and 0 values");
  expect_in(refused(number(2, 7) + number(3, 1) + number(3, 1) +
                        text(5, number(2, 1) + text(3, tensor) + text(3, tensor)),
                    Kind::map),
            "twice");
  expect_in(refused(number(2, 1), Kind::map), "neither an integer");
  expect_in(
      refused(number(2, 3) + number(3, 300) + text(5, number(2, 1) + text(3, tensor)), Kind::map),
      "does not fit");
  expect_in(refused(number(2, 3) + text(3, tensor), Kind::optional), "holds type 1");
  const std::string values = text(1, number(1, 1) + number(2, 1) + text(4, plain(1.0f)));
  const auto sparse = [&](int64_t index) {
    return values + text(2, number(1, 1) + number(2, 7) + number(7, static_cast<uint64_t>(index))) +
           number(3, 4);
  };
  expect_in(refused(sparse(4), Kind::sparse_tensor), "must be in [0, 4)");
  expect_in(refused(sparse(-1), Kind::sparse_tensor), "must be in [0, 4)");
  EXPECT_EQ(
      read_value(bytes_of(sparse(3)), type(Kind::sparse_tensor)).sparse_tensor().values.size(), 1);
}

}  // namespace
}  // namespace sardonyx::wire
