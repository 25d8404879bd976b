// Every internal operator as a node and back. The list is ops/internal/all.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "ops/internal/all.h"
#include "ops/internal/node.h"
#include "ops/operator.h"
#include "sardonyx/error.h"

namespace sardonyx::ops::internal {
namespace {

// Gives fields random values, of which some are what they are by default.
class Randomly {
 public:
  explicit Randomly(std::mt19937& random) : random_(random) {}

  template <class T>
  void operator()(std::string_view, T& field) {
    if (below(4) != 0) set(field);
  }
  template <class T>
  void required(std::string_view, T& field) {
    set(field);
  }
  template <class T>
  void list(std::string_view, std::vector<T>& items) {
    items.resize(below(5));
    for (T& item : items) T::fields(*this, item);
  }

 private:
  size_t below(size_t n) { return random_() % n; }

  void set(bool& field) { field = below(2) != 0; }
  template <std::integral T>
  void set(T& field) {
    field = static_cast<T>(below(1000)) - T{500};
  }
  void set(float& field) { field = static_cast<float>(below(1000)) / 8 - 60; }
  void set(std::string& field) { field = "text" + std::to_string(below(100)); }
  void set(ElementType& field) { field = below(2) != 0 ? ElementType::uint8 : ElementType::int8; }
  void set(ElementwiseOperator& field) {
    using Kind = kernels::ElementwiseStep::Kind;
    field = {.kind = static_cast<Kind>(below(4))};
    if (field.kind == Kind::unary) field.unary = number<kernels::UnaryOp>();
    if (field.kind == Kind::binary) field.binary = number<kernels::BinaryOp>();
    if (field.kind == Kind::from_bytes || field.kind == Kind::to_bytes) set(field.bytes);
  }
  template <class E>
  E number() {
    return static_cast<E>(below(static_cast<size_t>(E::count_)));
  }
  void set(ElementwisePlace& field) {
    using Kind = kernels::ElementwiseOperand::Kind;
    field.kind = static_cast<Kind>(below(3));
    field.index = field.kind == Kind::output ? 0 : static_cast<int>(below(20));
  }
  template <NamedEnum E>
  void set(E& field) {
    field = EnumNames<E>::list[below(std::size(EnumNames<E>::list))].second;
  }
  template <class T>
  void set(std::optional<T>& field) {
    set(field.emplace());
  }
  template <class T>
  void set(std::vector<T>& field) {
    field.assign(below(5), T{});
    for (T& value : field) set(value);
  }
  template <class T, size_t n>
  void set(std::array<T, n>& field) {
    for (T& value : field) set(value);
  }

  std::mt19937& random_;
};

template <class Op>
Op random_operator(std::mt19937& random) {
  Op op;
  Randomly visit(random);
  Op::fields(visit, op);
  return op;
}

template <class Op>
ir::Node node_of(const Op& op) {
  return to_node(op, "made", {}, {"y"});
}

template <class Work>
std::string internal_error_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::internal);
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

template <class Op>
class InternalOperators : public testing::Test {};

template <class List>
struct TypesOf;
template <class... Ops>
struct TypesOf<OperatorList<Ops...>> {
  using Types = testing::Types<Ops...>;
};
struct NameOf {
  template <class Op>
  static std::string GetName(int) {
    return std::string(Op::name);
  }
};
TYPED_TEST_SUITE(InternalOperators, TypesOf<AllOperators>::Types, NameOf);

TYPED_TEST(InternalOperators, AreTheSameAfterBeingANode) {
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    const auto op = random_operator<TypeParam>(random);
    const ir::Node node = node_of(op);
    EXPECT_TRUE(is<TypeParam>(node));
    EXPECT_EQ(from_node<TypeParam>(node), op);
  }
}

TYPED_TEST(InternalOperators, AreReadInAnyOrder) {
  std::mt19937 random(8);
  for (int i = 0; i < 50; ++i) {
    const auto op = random_operator<TypeParam>(random);
    ir::Node node = node_of(op);
    std::shuffle(node.attributes.begin(), node.attributes.end(), random);
    EXPECT_EQ(from_node<TypeParam>(node), op);
  }
}

TYPED_TEST(InternalOperators, ByDefaultHaveNoAttributesButTheRequired) {
  FieldNames names;
  const TypeParam usual{};
  TypeParam::fields(names, usual);
  std::set<std::string_view> required, made, all;
  for (const auto& name : names.names()) {
    EXPECT_TRUE(all.insert(name.text).second) << name.text << " is listed twice";
    if (name.is_required) required.insert(name.text);
  }
  const ir::Node node = node_of(usual);
  for (const ir::Attribute& attribute : node.attributes) made.insert(attribute.name);
  EXPECT_EQ(made, required);
}

TYPED_TEST(InternalOperators, NameAnAttributeThatIsMissing) {
  std::mt19937 random(9);
  FieldNames names;
  const TypeParam usual{};
  TypeParam::fields(names, usual);
  for (const auto& name : names.names()) {
    if (!name.is_required) continue;
    ir::Node node = node_of(random_operator<TypeParam>(random));
    std::erase_if(node.attributes, [&](const auto& a) { return a.name == name.text; });
    const std::string error = internal_error_of([&] { from_node<TypeParam>(node); });
    EXPECT_NE(error.find("lacks attribute '" + std::string(name.text) + "'"), error.npos) << error;
    EXPECT_NE(error.find("'made'"), error.npos) << error;
  }
}

TYPED_TEST(InternalOperators, NameAnAttributeThatTheyDoNotHave) {
  std::mt19937 random(10);
  ir::Node node = node_of(random_operator<TypeParam>(random));
  node.attributes.emplace_back();
  node.attributes.back().name = "unheard_of";
  node.attributes.back().kind = ir::AttributeKind::int_;
  const std::string error = internal_error_of([&] { from_node<TypeParam>(node); });
  EXPECT_NE(error.find("has no attribute 'unheard_of'"), error.npos) << error;
}

TYPED_TEST(InternalOperators, NameAnAttributeOfTheWrongKindOrGivenTwice) {
  std::mt19937 random(11);
  for (int i = 0; i < 20; ++i) {
    const ir::Node node = node_of(random_operator<TypeParam>(random));
    for (size_t k = 0; k < node.attributes.size(); ++k) {
      const std::string quoted = "'" + node.attributes[k].name + "'";
      ir::Node wrong = node;
      wrong.attributes[k].kind = ir::AttributeKind::graph;
      std::string error = internal_error_of([&] { from_node<TypeParam>(wrong); });
      EXPECT_NE(error.find(quoted), error.npos) << error;
      ir::Node twice = node;
      twice.attributes.push_back(node.attributes[k]);
      error = internal_error_of([&] { from_node<TypeParam>(twice); });
      EXPECT_NE(error.find("attribute " + quoted + " twice"), error.npos) << error;
    }
  }
}

TYPED_TEST(InternalOperators, AreNoOtherOperator) {
  ir::Node node = node_of(TypeParam{});
  node.op_type = "Other";
  const std::string error = internal_error_of([&] { from_node<TypeParam>(node); });
  EXPECT_NE(error.find(TypeParam::name), error.npos) << error;
}

TYPED_TEST(InternalOperators, HaveCodeThatInfersAndPrepares) {
  const Operator* op = find_operator(domain, TypeParam::name);
  ASSERT_NE(op, nullptr);
  EXPECT_NE(op->infer, nullptr);
  EXPECT_NE(op->prepare, nullptr);
}

TYPED_TEST(InternalOperators, TellWhichInputsAndOutputsTheyLack) {
  const bool any_number = TypeParam::inputs.back().ends_with("...");
  const size_t count = TypeParam::inputs.size();
  ir::Node node = node_of(TypeParam{});
  node.inputs.assign(count, "x"), node.outputs.assign(TypeParam::outputs.size(), "y");
  EXPECT_EQ(problem_of(node), std::nullopt);
  for (size_t i = 0; i < count; ++i) {
    ir::Node without = node;
    without.inputs[i].clear();
    EXPECT_EQ(problem_of(without).has_value(), !TypeParam::inputs[i].ends_with('?'));
  }
  ir::Node more = node;
  more.inputs.push_back("x");
  EXPECT_EQ(problem_of(more).has_value(), !any_number);
  more = node;
  more.outputs.push_back("y");
  EXPECT_TRUE(problem_of(more).has_value());
}

TEST(InternalNodes, AreAllListed) {
  std::set<std::string_view> listed, with_code;
  AllOperators::any([&]<class Op>(std::type_identity<Op>) {
    EXPECT_TRUE(listed.insert(Op::name).second) << Op::name;
    return false;
  });
  for (const Operator* op : all_operators()) {
    if (op->domain == domain) with_code.insert(op->name);
  }
  EXPECT_EQ(listed, with_code);
  ir::Node node = node_of(LookupTable{});
  node.op_type = "Unheard";
  EXPECT_EQ(problem_of(node), "is no internal operator");
}

TEST(InternalNodes, HaveTheirInputsAtTheirPositions) {
  const ir::Node node =
      to_node(LookupTable{}, "n", {{LookupTable::table, "t"}, {LookupTable::x, "x"}}, {"y"});
  EXPECT_EQ(node.inputs, (std::vector<std::string>{"x", "t"}));
  EXPECT_EQ(node.domain, domain);
  const ir::Node second = to_node(LookupTable{}, "n", {{LookupTable::table, "t"}}, {"y"});
  EXPECT_EQ(second.inputs, (std::vector<std::string>{"", "t"}));
  EXPECT_EQ(problem_of(second), "lacks input X");
  const ir::Node first =
      to_node(LookupTable{}, "n", {{LookupTable::x, "x"}, {LookupTable::table, ""}}, {"y"});
  EXPECT_EQ(first.inputs, (std::vector<std::string>{"x"}));
}

}  // namespace
}  // namespace sardonyx::ops::internal
