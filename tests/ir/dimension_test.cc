// Which declared dimensions say something, and the names that open ones get.
#include "ir/dimension.h"

#include <gtest/gtest.h>

#include "ir/may_agree.h"
#include "ir/value_type.h"

namespace sardonyx::ir {
namespace {

Dimension number(int64_t value) {
  Dimension dim;
  dim.value = value;
  return dim;
}

Dimension named(std::string param) {
  Dimension dim;
  dim.param = std::move(param);
  return dim;
}

ValueInfo input(std::string name, std::vector<Dimension> dims) {
  ValueInfo info;
  info.name = std::move(name);
  info.type.emplace();
  info.type->kind = TypeProto::Kind::tensor;
  info.type->elem_type = static_cast<int32_t>(ElementType::float32);
  info.type->shape.emplace();
  info.type->shape->dims = std::move(dims);
  return info;
}

TEST(Dimension, WhatExportersWriteForOpenSizesIsAnonymous) {
  for (const char* param : {"", " ", "?", " ? ", "None", "-1", "-12", "unk__0", "unk__1234"}) {
    EXPECT_TRUE(is_anonymous(named(param))) << param;
    EXPECT_EQ(declared_name(named(param)), "") << param;
  }
  for (const int64_t value : {int64_t{0}, int64_t{-1}, INT64_MIN}) {
    EXPECT_TRUE(is_anonymous(number(value))) << value;
    EXPECT_EQ(declared_number(number(value)), std::nullopt) << value;
  }
  EXPECT_TRUE(is_anonymous(Dimension()));
}

TEST(Dimension, WhatLooksAlikeIsAName) {
  for (const char* param : {"N", "batch", "unk", "unk__", "unk__n", "unk_1", "none?", "Nones", "-n",
                            "-", "1", "n-1", "??"}) {
    EXPECT_FALSE(is_anonymous(named(param))) << param;
    EXPECT_EQ(declared_name(named(param)), param);
  }
  EXPECT_EQ(declared_number(number(7)), 7);
  Dimension both = named("n");
  both.value = 7;
  EXPECT_EQ(declared_number(both), 7);
  EXPECT_EQ(declared_name(both), "");
}

TEST(Dimension, ANumberThatACallerSetsMayBe0) {
  for (const int64_t set : {0, 7}) {
    ValueInfo x = input("x", {named("n"), number(-1), number(2)});
    set_number(x.type->shape->dims[0], set);
    set_number(x.type->shape->dims[1], set);
    EXPECT_EQ(declared_number(x.type->shape->dims[0]), set);
    EXPECT_EQ(declared_name(x.type->shape->dims[0]), "");
    EXPECT_FALSE(is_anonymous(x.type->shape->dims[1]));
    SymbolTable symbols;
    EXPECT_EQ(value_type(*x.type, symbols).concrete_shape(), (Shape{set, set, 2}));
  }
}

TEST(Dimension, OccurrencesOfAnAnonymousNameAreIndependent) {
  const ValueInfo x = input("x", {named("?"), named("?"), named("n"), named("n"), number(0)});
  SymbolTable symbols;
  const ValueType type = value_type(*x.type, symbols);
  EXPECT_NE((*type.shape)[0], (*type.shape)[1]);
  EXPECT_EQ((*type.shape)[2], (*type.shape)[3]);
  EXPECT_FALSE((*type.shape)[4].is_constant());
  EXPECT_EQ(declared_text(*x.type), "float[?,?,n,n,?]");
}

TEST(Dimension, OpenSizesOfInputsGetTheNamesOfTheirPlaces) {
  std::vector<ValueInfo> inputs = {input("x", {named("?"), number(3), named("batch"), number(-1)}),
                                   input("y", {named("x.0"), number(0), named("batch")})};
  name_open_sizes(inputs);
  EXPECT_EQ(declared_text(*inputs[0].type), "float[x.0_,3,batch,x.3]");
  EXPECT_EQ(declared_text(*inputs[1].type), "float[x.0,y.1,batch]");
  EXPECT_EQ(size_names(inputs), (std::vector<std::string>{"x.0_", "batch", "x.3", "x.0", "y.1"}));
  const auto again = inputs;
  name_open_sizes(inputs);
  EXPECT_EQ(size_names(inputs), size_names(again));
}

TEST(Dimension, AListWithoutElementsStaysOne) {
  std::vector<ValueInfo> inputs = {input("axes", {number(0)}), input("x", {number(0), number(2)}),
                                   input("y", {number(-1)})};
  name_open_sizes(inputs);
  EXPECT_EQ(declared_text(*inputs[0].type), "float[0]");
  EXPECT_EQ(declared_text(*inputs[1].type), "float[x.0,2]");
  EXPECT_EQ(declared_text(*inputs[2].type), "float[y.0]");
}

TEST(Dimension, AnAnonymousSizeAgreesWithEverything) {
  const ValueInfo open = input("x", {number(0), number(-1), named("?")});
  const ValueInfo numbers = input("x", {number(2), number(3), number(4)});
  const ValueInfo others = input("x", {number(2), number(3), number(5)});
  EXPECT_TRUE(may_agree(*open.type, *numbers.type));
  EXPECT_FALSE(may_agree(*numbers.type, *others.type));
}

}  // namespace
}  // namespace sardonyx::ir
