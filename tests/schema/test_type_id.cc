#include "schema/type_id.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "ir/model.h"
#include "ir/value_type.h"

namespace sardonyx::schema {
namespace {

TEST(TypeId, ReadsAndWrites) {
  for (const char* text :
       {"tensor(float)", "tensor(float8e5m2fnuz)", "tensor(float6e2m3)", "sparse_tensor(double)",
        "seq(tensor(int64))", "optional(seq(tensor(bool)))", "map(int64, tensor(float))",
        "seq(map(string, tensor(double)))", "optional(map(int64, seq(tensor(string))))", "opaque",
        "seq(seq(seq(seq(seq(tensor(int2))))))"}) {
    const auto type = parse_type(text);
    ASSERT_TRUE(type) << text;
    EXPECT_EQ(to_string(*type), text);
  }
  EXPECT_EQ(to_string(*parse_type(" seq( map(int64,float) ) ")), "seq(map(int64, tensor(float)))");
  EXPECT_EQ(to_string(TypeId{}), "none");
}

TEST(TypeId, RefusesWhatItCannotHold) {
  for (const char* text :
       {"", "float", "tensor", "tensor()", "tensor(quux)", "tensor(float", "tensor(float))",
        "tensor(undefined)", "tensor(float) x", "seq()", "seq(float)", "map(int64)",
        "map(tensor(int64), float)", "map(int64, map(int64, float))", "list(tensor(float))",
        "seq(seq(seq(seq(seq(seq(tensor(int8)))))))"}) {
    EXPECT_FALSE(parse_type(text)) << text;
  }
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "seq(";
  EXPECT_FALSE(parse_type(deep));
}

TEST(TypeId, LayersFromOutsideIn) {
  const TypeId type = *parse_type("optional(seq(map(string, tensor(int8))))");
  EXPECT_EQ(type.kind(), TypeKind::optional);
  EXPECT_EQ(type.inner().kind(), TypeKind::sequence);
  EXPECT_EQ(type.inner().inner().key(), ElementType::string);
  EXPECT_EQ(type.inner().inner().inner(), TypeId::tensor(ElementType::int8));
  EXPECT_FALSE(type.inner().inner().inner().inner().valid());
}

ir::TypeProto tensor_proto(int32_t element) {
  ir::TypeProto type;
  type.kind = ir::TypeProto::Kind::tensor;
  type.elem_type = element;
  return type;
}

ir::TypeProto wrapped(ir::TypeProto::Kind kind, ir::TypeProto inner, int32_t key = 0) {
  ir::TypeProto type;
  type.kind = kind;
  type.elem_type = key;
  type.nested = std::make_shared<const ir::TypeProto>(std::move(inner));
  return type;
}

TEST(TypeId, FromTheTypesOfAModel) {
  using Kind = ir::TypeProto::Kind;
  EXPECT_EQ(to_string(type_id(wrapped(Kind::sequence, wrapped(Kind::map, tensor_proto(1), 7)))),
            "seq(map(int64, tensor(float)))");
  ir::TypeProto nothing;
  EXPECT_EQ(type_id(nothing), TypeId{});
  ir::TypeProto sequence_of_nothing;
  sequence_of_nothing.kind = Kind::sequence;
  EXPECT_EQ(type_id(sequence_of_nothing), TypeId{});
  ir::TypeProto deep = tensor_proto(1);
  for (int i = 0; i < 30; ++i) deep = wrapped(Kind::sequence, deep);
  EXPECT_EQ(type_id(deep), TypeId{});
  EXPECT_NE(type_id(tensor_proto(1 + 128)), type_id(tensor_proto(1)));
  EXPECT_NE(type_id(tensor_proto(-127)), type_id(tensor_proto(1)));
  const auto optional = ir::ValueType::optional_of(ir::ValueType::tensor(ElementType::bfloat16));
  EXPECT_EQ(to_string(type_id(optional)), "optional(tensor(bfloat16))");
}

}  // namespace
}  // namespace sardonyx::schema
