#include "ops/internal/elementwise.h"

#include <charconv>

#include "ops/internal/node.h"

namespace sardonyx::ops::internal {

using kernels::BinaryOp;
using kernels::ElementwiseOperand;
using kernels::ElementwiseProgram;
using kernels::ElementwiseStep;
using kernels::UnaryOp;

template <>
struct EnumNames<UnaryOp> {
  static constexpr std::pair<std::string_view, UnaryOp> list[] = {
      {"abs", UnaryOp::abs},
      {"neg", UnaryOp::neg},
      {"exp", UnaryOp::exp},
      {"log", UnaryOp::log},
      {"sqrt", UnaryOp::sqrt},
      {"reciprocal", UnaryOp::reciprocal},
      {"floor", UnaryOp::floor},
      {"ceil", UnaryOp::ceil},
      {"round", UnaryOp::round},
      {"sign", UnaryOp::sign},
      {"relu", UnaryOp::relu},
      {"leaky_relu", UnaryOp::leaky_relu},
      {"elu", UnaryOp::elu},
      {"celu", UnaryOp::celu},
      {"selu", UnaryOp::selu},
      {"gelu", UnaryOp::gelu},
      {"gelu_tanh", UnaryOp::gelu_tanh},
      {"sigmoid", UnaryOp::sigmoid},
      {"tanh", UnaryOp::tanh},
      {"hard_sigmoid", UnaryOp::hard_sigmoid},
      {"hard_swish", UnaryOp::hard_swish},
      {"mish", UnaryOp::mish},
      {"softplus", UnaryOp::softplus},
      {"softsign", UnaryOp::softsign},
      {"thresholded_relu", UnaryOp::thresholded_relu},
      {"shrink", UnaryOp::shrink},
      {"swish", UnaryOp::swish},
      {"erf", UnaryOp::erf},
      {"sin", UnaryOp::sin},
      {"cos", UnaryOp::cos},
      {"tan", UnaryOp::tan},
      {"asin", UnaryOp::asin},
      {"acos", UnaryOp::acos},
      {"atan", UnaryOp::atan},
      {"sinh", UnaryOp::sinh},
      {"cosh", UnaryOp::cosh},
      {"asinh", UnaryOp::asinh},
      {"acosh", UnaryOp::acosh},
      {"atanh", UnaryOp::atanh},
      {"clamp", UnaryOp::clamp},
      {"square", UnaryOp::square},
      {"is_nan", UnaryOp::is_nan},
      {"is_inf", UnaryOp::is_inf},
      {"logical_not", UnaryOp::logical_not},
      {"bitwise_not", UnaryOp::bitwise_not},
  };
  static_assert(std::size(list) == static_cast<size_t>(UnaryOp::count_));
};

template <>
struct EnumNames<BinaryOp> {
  static constexpr std::pair<std::string_view, BinaryOp> list[] = {
      {"add", BinaryOp::add},
      {"sub", BinaryOp::sub},
      {"mul", BinaryOp::mul},
      {"div", BinaryOp::div},
      {"pow", BinaryOp::pow},
      {"min", BinaryOp::min},
      {"max", BinaryOp::max},
      {"mod", BinaryOp::mod},
      {"fmod", BinaryOp::fmod},
      {"prelu", BinaryOp::prelu},
      {"gate", BinaryOp::gate},
      {"bit_and", BinaryOp::bit_and},
      {"bit_or", BinaryOp::bit_or},
      {"bit_xor", BinaryOp::bit_xor},
      {"shift_left", BinaryOp::shift_left},
      {"shift_right", BinaryOp::shift_right},
      {"logical_and", BinaryOp::logical_and},
      {"logical_or", BinaryOp::logical_or},
      {"logical_xor", BinaryOp::logical_xor},
      {"equal", BinaryOp::equal},
      {"less", BinaryOp::less},
      {"greater", BinaryOp::greater},
      {"less_equal", BinaryOp::less_equal},
      {"greater_equal", BinaryOp::greater_equal},
  };
  static_assert(std::size(list) == static_cast<size_t>(BinaryOp::count_));
};

namespace {

constexpr std::string_view from_bytes = "from_", to_bytes = "to_";

bool number_from(std::string_view text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0;
}

}  // namespace

std::string to_text(const ElementwiseOperator& op) {
  switch (op.kind) {
    case ElementwiseStep::Kind::unary: return to_text(op.unary);
    case ElementwiseStep::Kind::binary: return to_text(op.binary);
    case ElementwiseStep::Kind::from_bytes: return std::string(from_bytes) + to_text(op.bytes);
    case ElementwiseStep::Kind::to_bytes: return std::string(to_bytes) + to_text(op.bytes);
  }
  return {};
}

bool from_text(std::string_view text, ElementwiseOperator& op) {
  op = {};
  if (from_text(text, op.unary)) return true;
  if (from_text(text, op.binary)) {
    op.kind = ElementwiseStep::Kind::binary;
    return true;
  }
  const bool reads = text.starts_with(from_bytes);
  if (!reads && !text.starts_with(to_bytes)) return false;
  op.kind = reads ? ElementwiseStep::Kind::from_bytes : ElementwiseStep::Kind::to_bytes;
  return from_text(text.substr((reads ? from_bytes : to_bytes).size()), op.bytes);
}

std::string to_text(const ElementwisePlace& place) {
  switch (place.kind) {
    case ElementwiseOperand::Kind::input: return "x" + std::to_string(place.index);
    case ElementwiseOperand::Kind::tile: return "t" + std::to_string(place.index);
    case ElementwiseOperand::Kind::output: return "y";
  }
  return {};
}

bool from_text(std::string_view text, ElementwisePlace& place) {
  using Kind = ElementwiseOperand::Kind;
  place = {};
  if (text == "y") {
    place.kind = Kind::output;
    return true;
  }
  if (!text.starts_with('x') && !text.starts_with('t')) return false;
  place.kind = text.starts_with('x') ? Kind::input : Kind::tile;
  return number_from(text.substr(1), place.index);
}

FusedElementwise FusedElementwise::of(const ElementwiseProgram& program) {
  FusedElementwise fused;
  fused.extents = program.extents;
  for (const ElementwiseStep& step : program.steps) {
    Step made;
    made.op.kind = step.kind;
    made.a = {step.a}, made.to = {step.to};
    switch (step.kind) {
      case ElementwiseStep::Kind::unary:
        made.op.unary = step.unary;
        made.alpha = static_cast<float>(step.params.alpha);
        made.beta = static_cast<float>(step.params.beta);
        break;
      case ElementwiseStep::Kind::binary:
        made.op.binary = step.binary;
        made.b = {step.b};
        break;
      default:
        made.op.bytes = step.bytes.type;
        made.scale = step.bytes.scale, made.zero = step.bytes.zero;
        break;
    }
    fused.steps.push_back(made);
  }
  return fused;
}

ElementwiseProgram FusedElementwise::program() const {
  ElementwiseProgram program;
  program.extents = extents;
  for (const Step& step : steps) {
    ElementwiseStep made;
    made.kind = step.op.kind;
    made.unary = step.op.unary, made.binary = step.op.binary;
    made.params = {step.alpha, step.beta};
    made.bytes = {step.op.bytes, step.scale, step.zero};
    made.a = step.a, made.b = step.b, made.to = step.to;
    program.steps.push_back(made);
  }
  return program;
}

ElementwiseProgram elementwise_program(const NodeView& node) {
  ElementwiseProgram program = from_node<FusedElementwise>(node.node()).program();
  if (static_cast<int>(program.extents.size()) != node.input_count() ||
      !kernels::is_sound(program) || !kernels::bind_fused_elementwise(program))
    node.fail(ErrorCode::internal, "is no program that can run");
  return program;
}

}  // namespace sardonyx::ops::internal
