#include "passes/fusion/elementwise.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "infer/infer.h"
#include "ir/node_values.h"
#include "ops/internal/elementwise.h"
#include "ops/internal/node.h"
#include "ops/shared/elementwise.h"

namespace sardonyx::passes {
namespace {

using kernels::ElementwiseExtent;
using kernels::ElementwiseOperand;
using kernels::ElementwiseProgram;
using kernels::ElementwiseStep;
using Kind = ElementwiseOperand::Kind;

constexpr size_t max_steps = 64;

// Grows a fusion from its last node back.
class FusedElementwise {
 public:
  FusedElementwise(GraphIndex& index, size_t last) : index_(index), last_(last) {}

  bool form() {
    const auto step = step_of(last_);
    if (!step || continues(last_)) return false;
    ElementwiseOperand result;
    if (!add(last_, *step, result)) return false;
    const ElementwiseStep& only = program_.steps.front();
    const bool is_gate = only.kind == ElementwiseStep::Kind::binary &&
                         only.binary == kernels::BinaryOp::gate;  // which is two nodes already
    if (program_.steps.size() < 2 && !is_gate) return false;
    program_.steps.back().to = {Kind::output, 0};
    if (!kernels::bind_fused_elementwise(program_)) return false;
    replace();
    return true;
  }

 private:
  // The arithmetic of node i, where it can be part of a fusion.
  std::optional<ElementwiseStep> step_of(size_t i) const {
    const ir::Node& node = index_.node(i);
    if (!node.domain.empty() || node.outputs.size() != 1 || node.inputs.empty() ||
        index_.constant(node.outputs[0]) != nullptr)
      return std::nullopt;
    if (node.op_type == "QuantizeLinear") return i == last_ ? to_bytes(node) : std::nullopt;
    if (!index_.is_float32(node.outputs[0])) return std::nullopt;
    if (node.op_type == "DequantizeLinear") return from_bytes(node);
    if (node.op_type == "Clip") return clip_step(node);
    if (node.op_type == "Where") return gate_step(node);
    if (node.inputs.size() > 2) return std::nullopt;
    bool any_whole = false;
    for (const std::string& input : node.inputs) {
      const auto extent = extent_of(input, node.outputs[0]);
      if (!extent) return std::nullopt;
      any_whole = any_whole || *extent == ElementwiseExtent::whole;
    }
    if (!any_whole) return std::nullopt;
    const infer::Binding binding = infer::bind_node(node);
    return ops::elementwise_step(ops::NodeView(node, binding.signature));
  }

  std::optional<ElementwiseStep> clip_step(const ir::Node& node) const {
    constexpr double all = std::numeric_limits<double>::infinity();
    ElementwiseStep step;
    step.unary = kernels::UnaryOp::clamp;
    step.params = {-all, all};
    for (size_t k = 1; k < node.inputs.size(); ++k) {
      if (node.inputs[k].empty()) continue;
      const auto bound = index_.scalar(node.inputs[k]);
      if (!bound) return std::nullopt;
      (k == 1 ? step.params.alpha : step.params.beta) = *bound;
    }
    return extent_of(node.inputs[0], node.outputs[0]) == ElementwiseExtent::whole
               ? std::optional(step)
               : std::nullopt;
  }

  // Where (Greater (a, 0), b, 0).
  std::optional<ElementwiseStep> gate_step(const ir::Node& node) const {
    if (node.inputs.size() != 3) return std::nullopt;
    const ir::Node* greater = index_.producer(node.inputs[0]);
    if (!is_op(greater, "Greater") || greater->inputs.size() != 2 ||
        index_.scalar(greater->inputs[1]) != 0.0 || index_.scalar(node.inputs[2]) != 0.0 ||
        extent_of(greater->inputs[0], node.outputs[0]) != ElementwiseExtent::whole ||
        extent_of(node.inputs[1], node.outputs[0]) != ElementwiseExtent::whole)
      return std::nullopt;
    ElementwiseStep step;
    step.kind = ElementwiseStep::Kind::binary;
    step.binary = kernels::BinaryOp::gate;
    return step;
  }

  std::optional<ElementwiseStep> from_bytes(const ir::Node& node) const {
    return byte_step(node, ElementwiseStep::Kind::from_bytes, node.inputs[0]);
  }
  std::optional<ElementwiseStep> to_bytes(const ir::Node& node) const {
    if (!index_.is_float32(node.inputs[0])) return std::nullopt;
    return byte_step(node, ElementwiseStep::Kind::to_bytes, node.outputs[0]);
  }
  // QuantizeLinear or DequantizeLinear by one constant scale and zero point.
  std::optional<ElementwiseStep> byte_step(const ir::Node& node, ElementwiseStep::Kind kind,
                                           const std::string& bytes) const {
    static constexpr std::string_view meant[] = {"axis", "saturate", "output_dtype"};
    for (const ir::Attribute& a : node.attributes) {
      if (std::ranges::find(meant, a.name) == std::end(meant) && a.i.value_or(0) != 0)
        return std::nullopt;
    }
    if (node.inputs.size() < 2 || !index_.is_float32(node.inputs[1]) || is_single(bytes) ||
        !index_.same_shape(node.inputs[0], node.outputs[0]))
      return std::nullopt;
    const auto scale = index_.scalar(node.inputs[1]);
    const ElementType type = index_.known(bytes)->type.element;
    if (!scale || (type != ElementType::uint8 && type != ElementType::int8)) return std::nullopt;
    ElementwiseStep step;
    step.kind = kind;
    step.bytes = {type, static_cast<float>(*scale), 0};
    if (!ir::has_input(node, 2)) return step;
    const auto zero = index_.byte(node.inputs[2]);
    if (!zero || index_.known(node.inputs[2])->type.element != type) return std::nullopt;
    step.bytes.zero = *zero;
    return step;
  }

  // How a float32 value goes with one of the shape of `output`.
  std::optional<ElementwiseExtent> extent_of(const std::string& value,
                                             const std::string& output) const {
    const infer::ValueFacts* known = index_.known(value);
    if (known == nullptr || !known->type.shape || !index_.is_float32(value)) return std::nullopt;
    if (is_single(value)) return ElementwiseExtent::single;
    if (index_.same_shape(value, output)) return ElementwiseExtent::whole;
    constexpr int64_t shortest_row = 64;  // a call for each row must pay
    const infer::ValueFacts* made = index_.known(output);
    if (made == nullptr || !made->type.shape) return std::nullopt;
    const auto& dims = *known->type.shape;
    const auto& full = *made->type.shape;
    const auto length = dims.empty() ? std::nullopt : dims.back().value();
    const bool row =
        length && *length >= shortest_row && dims.size() <= full.size() &&
        dims.back() == full.back() &&
        std::all_of(dims.begin(), dims.end() - 1, [](const ir::Dim& dim) { return dim == 1; });
    return row ? std::optional(ElementwiseExtent::row) : std::nullopt;
  }

  // Other inputs are constants that the step itself holds.
  static size_t operand_count(const ElementwiseStep& step) {
    return step.kind == ElementwiseStep::Kind::binary ? 2 : 1;
  }
  const std::string& operand_name(const ir::Node& node, size_t k) const {
    if (node.op_type != "Where") return node.inputs[k];
    return k == 0 ? index_.producer(node.inputs[0])->inputs[0] : node.inputs[1];
  }

  bool is_single(const std::string& value) const {
    const infer::ValueFacts* known = index_.known(value);
    return known && known->type.element_count() && *known->type.element_count() == 1;
  }

  // Whether the one user of node i would take it into its own fusion.
  bool continues(size_t i) const {
    if (index_.node(i).op_type == "QuantizeLinear") return false;
    const std::string& value = index_.node(i).outputs[0];
    const size_t user = index_.only_user(value);
    return user != index_.size() && FusedElementwise(index_, user).step_of(user).has_value() &&
           extent_of(value, index_.node(user).outputs[0]) == ElementwiseExtent::whole;
  }

  // Emits node i after what it needs; `result` says where its value is then.
  bool add(size_t i, ElementwiseStep step, ElementwiseOperand& result) {
    ++started_;
    const ir::Node& node = index_.node(i);
    ElementwiseOperand operands[2];
    for (size_t k = 0; k < operand_count(step); ++k) {
      if (!operand(operand_name(node, k), node.outputs[0], operands[k])) return false;
    }
    step.a = operands[0];
    step.b = operands[1];
    for (size_t k = 0; k < operand_count(step); ++k) {
      if (operands[k].kind == Kind::tile) free_[static_cast<size_t>(operands[k].index)] = true;
    }
    const auto tile = std::ranges::find(free_, true);
    if (tile == std::end(free_)) return false;
    *tile = false;
    result = step.to = {Kind::tile, static_cast<int>(tile - std::begin(free_))};
    program_.steps.push_back(step);
    return true;
  }

  bool operand(const std::string& value, const std::string& output, ElementwiseOperand& to) {
    const size_t maker = index_.producer_index(value);
    const bool room = started_ < max_steps && inputs_.size() + 2 < ElementwiseProgram::max_inputs;
    // A row that is computed is so once, not for each row of the fusion.
    if (room && maker != index_.size() && extent_of(value, output) == ElementwiseExtent::whole &&
        belongs_here(maker)) {
      if (const auto step = step_of(maker)) return add(maker, *step, to);
    }
    const auto found = std::ranges::find(inputs_, value);
    to = {Kind::input, static_cast<int>(found - inputs_.begin())};
    if (found != inputs_.end()) return true;
    inputs_.push_back(value);
    program_.extents.push_back(extent_of(value, output).value_or(ElementwiseExtent::whole));
    return inputs_.size() <= ElementwiseProgram::max_inputs;
  }

  // Whether what an operand's maker does is done here: nobody else reads it, or it turns bytes into
  // floats, which each reader does by itself: there is less to read.
  bool belongs_here(size_t maker) const {
    const ir::Node& node = index_.node(maker);
    return is_op(&node, "DequantizeLinear") || index_.only_user(node.outputs[0]) != index_.size();
  }

  void replace() {
    const ir::Node& last = index_.node(last_);
    ir::Node fused;
    ops::internal::write(ops::internal::FusedElementwise::of(program_), fused);
    fused.name = last.name;
    fused.inputs = inputs_;
    fused.outputs = last.outputs;
    index_.replace(last_, std::move(fused));
  }

  GraphIndex& index_;
  size_t last_;
  ElementwiseProgram program_;
  std::vector<std::string> inputs_;
  size_t started_ = 0;
  bool free_[ElementwiseProgram::max_tiles] = {true, true, true, true, true, true};
};

}  // namespace

void fuse_elementwise(GraphIndex& index) {
  for (size_t i = index.size(); i-- > 0;) {
    if (!index.is_dead(i)) FusedElementwise(index, i).form();
  }
}

}  // namespace sardonyx::passes
