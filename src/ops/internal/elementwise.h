// Internal operators that work element by element.
#pragma once

#include "kernels/elementwise/fused_elementwise.h"
#include "ops/internal/fields.h"
#include "ops/internal/takes.h"
#include "ops/node_view.h"

namespace sardonyx::ops::internal {

using namespace std::string_view_literals;

// Bytes X, each of which chooses one of the 256 bytes of a constant table, counted as unsigned. Y
// is of the table's type.
struct LookupTable {
  static constexpr std::string_view name = "LookupTable";
  static constexpr std::array inputs = {"X"sv, "table"sv};
  static constexpr std::array takes = {Takes::bytes, Takes::bytes};
  static constexpr std::array outputs = {"Y"sv};
  enum Input { x, table };

  template <class Visit, class... Self>
  static void fields(Visit&&, Self&...) {}
  bool operator==(const LookupTable&) const = default;
};

template <>
struct EnumNames<kernels::ElementwiseExtent> {
  using enum kernels::ElementwiseExtent;
  static constexpr std::pair<std::string_view, kernels::ElementwiseExtent> list[] = {
      {"whole", whole}, {"single", single}, {"row", row}};
};

// What a step of a FusedElementwise does; as text "relu", "add", "from_uint8", "to_int8".
struct ElementwiseOperator {
  kernels::ElementwiseStep::Kind kind = kernels::ElementwiseStep::Kind::unary;
  kernels::UnaryOp unary = kernels::UnaryOp::abs;
  kernels::BinaryOp binary = kernels::BinaryOp::add;
  ElementType bytes = ElementType::uint8;

  bool operator==(const ElementwiseOperator&) const = default;
};
std::string to_text(const ElementwiseOperator& op);
bool from_text(std::string_view text, ElementwiseOperator& op);

// An input, a tile that holds what earlier steps made, or the output: "x0", "t1", "y".
struct ElementwisePlace : kernels::ElementwiseOperand {
  bool operator==(const ElementwisePlace&) const = default;
};
std::string to_text(const ElementwisePlace& place);
bool from_text(std::string_view text, ElementwisePlace& place);

// Several element-wise operators that go over memory once: inputs of float32 or bytes, output
// likewise.
struct FusedElementwise {
  static constexpr std::string_view name = "FusedElementwise";
  static constexpr std::array inputs = {"operands..."sv};
  static constexpr std::array takes = {Takes::float32_or_bytes};
  static constexpr std::array outputs = {"Y"sv};

  struct Step {
    ElementwiseOperator op;
    ElementwisePlace a, b, to;  // b only of binary operators
    float alpha = 0, beta = 0;  // parameters of unary operators
    float scale = 1;            // of bytes
    int32_t zero = 0;

    template <class Visit, class... Self>
    static void fields(Visit&& visit, Self&... self) {
      visit.required("operators", self.op...);
      visit("a", self.a...);
      visit("b", self.b...);
      visit("to", self.to...);
      visit("alpha", self.alpha...);
      visit("beta", self.beta...);
      visit("scale", self.scale...);
      visit("zero", self.zero...);
    }
    bool operator==(const Step&) const = default;
  };

  std::vector<Step> steps;
  std::vector<kernels::ElementwiseExtent> extents;  // of the inputs

  static FusedElementwise of(const kernels::ElementwiseProgram& program);
  // The program, its kernels not yet found.
  kernels::ElementwiseProgram program() const;

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    visit.list("steps", self.steps...);
    visit("extents", self.extents...);
  }
  bool operator==(const FusedElementwise&) const = default;
};

// The program of a FusedElementwise, its kernels found. Throws Error (internal) where it is none
// that can run.
kernels::ElementwiseProgram elementwise_program(const NodeView& node);

}  // namespace sardonyx::ops::internal
