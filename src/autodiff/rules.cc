#include "autodiff/rules.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/fail.h"
#include "ir/internal_domain.h"
#include "ops/infer_context.h"
#include "ops/internal/checks.h"
#include "ops/internal/gradients.h"
#include "ops/node_view.h"
#include "ops/upgrade_context.h"
#include "schema/schema.h"

namespace sardonyx::autodiff {

using ops::int_attribute;
using ops::ints_attribute;

std::string GradientEmitter::emit(std::string_view op, std::vector<std::string> inputs,
                                  std::vector<ir::Attribute> attributes, std::string_view domain) {
  std::string name = services_.fresh_name(op);
  emit_to({name}, op, std::move(inputs), std::move(attributes), domain);
  return name;
}

void GradientEmitter::emit_to(std::vector<std::string> outputs, std::string_view op,
                              std::vector<std::string> inputs,
                              std::vector<ir::Attribute> attributes, std::string_view domain) {
  ir::Node node;
  node.op_type = op;
  node.domain = domain;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  node.attributes = std::move(attributes);
  static const std::vector<ir::OperatorSetId> imports = [] {
    return std::vector<ir::OperatorSetId>{{"", schema::latest_opset(""), {}},
                                          {std::string(ir::internal_domain), 1, {}},
                                          {"com.microsoft", 1, {}}};
  }();
  emit(std::move(node), imports);
}

void GradientEmitter::emit(ir::Node node, const std::vector<ir::OperatorSetId>& imports) {
  node.origin = origin_;
  services_.lower(std::move(node), imports, made_);
}

std::string GradientEmitter::ints(std::vector<int64_t> values) {
  const auto count = static_cast<int64_t>(values.size());
  return emit("Constant", {},
              {ops::tensor_attribute("value", Tensor::of<int64_t>(values, {count}))});
}

std::string GradientEmitter::scalar_like(float value, const std::string& like) {
  const std::string plain =
      emit("Constant", {}, {ops::tensor_attribute("value", Tensor::scalar<float>(value))});
  return emit("CastLike", {plain, like});
}

ir::TypeProto::Kind GradientEmitter::flow_kind(std::string_view value) const {
  const infer::ValueFacts* known = services_.known(value);
  return known == nullptr ? ir::TypeProto::Kind::none : flow_type(known->type).kind;
}

std::string GradientEmitter::sum(const std::vector<std::string>& values) {
  return flow_kind(values[0]) == ir::TypeProto::Kind::sequence ? sum_of_sequences(*this, values)
                                                               : emit("Sum", values);
}

std::string GradientEmitter::filled_like(float value, const std::string& like) {
  const infer::ValueFacts* known = services_.known(like);
  if (known != nullptr && known->type.kind == ir::TypeProto::Kind::optional) {
    const ir::ValueType flow = flow_type(known->type);
    if (!flow.nested || flow.nested->element == ElementType::undefined)
      fail(ErrorCode::unsupported,
           "the optional value '{}' has no gradient: of what it holds no type is known", like);
    const std::string list = services_.fresh_name("items");
    for (ir::Node& node :
         listed_optional(like, known->type, list, services_.fresh_name("present"), services_))
      emit(std::move(node), newest_imports());
    return zeros_like_sequence(*this, list);
  }
  if (flow_kind(like) == ir::TypeProto::Kind::sequence) return zeros_like_sequence(*this, like);
  return emit("Expand", {scalar_like(value, like), emit("Shape", {like})});
}

std::string GradientEmitter::sum_like(const std::string& value, const std::string& like) {
  return emit(ops::internal::SumLike::name, {value, like}, {}, ir::internal_domain);
}

bool GradientEmitter::is_quantized(std::string_view value) const {
  const infer::ValueFacts* known = services_.known(value);
  if (known == nullptr || !known->type.is_tensor()) return false;
  const ElementType element = known->type.element;
  return element != ElementType::undefined && (!is_floating(element) || bit_width(element) < 16);
}

std::optional<int64_t> GradientEmitter::rank(std::string_view value) const {
  const infer::ValueFacts* known = services_.known(value);
  if (known == nullptr || !known->type.shape) return std::nullopt;
  return static_cast<int64_t>(known->type.shape->size());
}

int64_t GradientEmitter::required_rank(const GradientCall& call, size_t input) const {
  const auto known = rank(call.node.inputs[input]);
  if (!known)
    view_of(call).fail(ErrorCode::unsupported, "has no gradient where the rank of input {} is open",
                       input);
  return *known;
}

std::optional<Shape> GradientEmitter::shape(std::string_view value) const {
  const infer::ValueFacts* known = services_.known(value);
  return known == nullptr ? std::nullopt : known->type.concrete_shape();
}

std::optional<Shape> GradientEmitter::sizes(std::string_view value) const {
  const infer::ValueFacts* known = services_.known(value);
  if (known == nullptr || !known->type.shape) return std::nullopt;
  Shape sizes;
  for (const ir::Dim& dim : *known->type.shape) sizes.push_back(dim.value().value_or(-1));
  return sizes;
}

std::optional<Shape> GradientEmitter::image(std::string_view value) const {
  auto found = sizes(value);
  if (!found || found->size() < 3 ||
      std::any_of(found->begin() + 2, found->end(), [](int64_t size) { return size < 0; }))
    return std::nullopt;
  return found;
}

namespace {

void sum_rule(const GradientCall& call, GradientEmitter& e) {
  std::string each = flow(call);
  if (call.node.op_type == "Mean") {
    const auto count = static_cast<float>(call.node.inputs.size());
    each = e.emit("Div", {each, e.scalar_like(count, each)});
  }
  for (size_t i = 0; i < call.of_inputs.size(); ++i) {
    if (call.wanted[i]) call.of_inputs[i] = e.sum_like(each, call.node.inputs[i]);
  }
}

// Shared among the inputs that reach the largest (smallest) value.
void extreme_rule(const GradientCall& call, GradientEmitter& e) {
  const auto& inputs = call.node.inputs;
  std::vector<std::string> marks;
  for (const std::string& input : inputs) {
    const std::string reached = e.emit("Equal", {input, call.node.outputs[0]});
    marks.push_back(e.emit("CastLike", {reached, input}));
  }
  const std::string ties = e.emit("Sum", marks);
  const std::string share = e.emit("Div", {flow(call), ties});
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (call.wanted[i]) call.of_inputs[i] = e.sum_like(e.emit("Mul", {share, marks[i]}), inputs[i]);
  }
}

// Whether an exponent may be 0: a constant of other numbers is none.
bool may_be_zero(const GradientEmitter& e, const std::string& value) {
  const infer::ValueFacts* known = e.services().known(value);
  ops::MadeConstants made;
  const Tensor* constant = known == nullptr ? nullptr : made.of(*known);
  if (constant == nullptr) return true;
  const auto has_zero = [&]<class T>(T zero) {
    return std::ranges::find(constant->elements<T>(), zero) != constant->elements<T>().end();
  };
  switch (constant->element_type()) {
    case ElementType::float32: return has_zero(0.0f);
    case ElementType::float64: return has_zero(0.0);
    case ElementType::int32: return has_zero(int32_t{0});
    case ElementType::int64: return has_zero(int64_t{0});
    default: return true;
  }
}

// y x^(y-1) and x^y ln(x); for the exponent nothing where x is not positive.
void pow_rule(const GradientCall& call, GradientEmitter& e) {
  const std::string &x = call.node.inputs[0], &y = call.node.inputs[1];
  const std::string one = e.scalar_like(1, x), zero = e.scalar_like(0, x);
  if (call.wanted[0]) {
    const std::string exponent = e.emit("CastLike", {y, x});
    std::string base = x;
    // x^0 is 1 at 0, too, where x^-1 is infinite.
    if (may_be_zero(e, y)) {
      const std::string both =
          e.emit("And", {e.emit("Equal", {x, zero}), e.emit("Equal", {exponent, zero})});
      base = e.emit("Where", {both, one, x});
    }
    const std::string power = e.emit("Pow", {base, e.emit("Sub", {exponent, one})});
    const std::string slope = e.emit("Mul", {exponent, power});
    call.of_inputs[0] = e.sum_like(e.emit("Mul", {flow(call), slope}), x);
  }
  if (call.wanted[1]) {
    const std::string positive = e.emit("Greater", {x, zero});
    const std::string log = e.emit("Log", {e.emit("Where", {positive, x, one})});
    const std::string slope = e.emit("Mul", {call.node.outputs[0], log});
    const std::string kept = e.emit("Where", {positive, e.emit("Mul", {flow(call), slope}), zero});
    call.of_inputs[1] = e.sum_like(e.emit("CastLike", {kept, y}), y);
  }
}

void concat_rule(const GradientCall& call, GradientEmitter& e) {
  const int64_t axis = view_of(call).attr_int("axis");
  const std::string at = e.ints({axis});
  std::vector<std::string> sizes, parts;
  for (size_t i = 0; i < call.node.inputs.size(); ++i) {
    sizes.push_back(e.emit("Gather", {e.emit("Shape", {call.node.inputs[i]}), at}));
    parts.push_back(e.services().fresh_name("part"));
    if (call.wanted[i]) call.of_inputs[i] = parts.back();
  }
  const std::string all = e.emit("Concat", sizes, {int_attribute("axis", 0)});
  e.emit_to(parts, "Split", {flow(call), all}, {int_attribute("axis", axis)});
}

void split_rule(const GradientCall& call, GradientEmitter& e) {
  const std::string some = *std::ranges::find_if(
      call.of_outputs, [](const std::string& given) { return !given.empty(); });
  std::vector<std::string> parts;
  for (size_t i = 0; i < call.node.outputs.size(); ++i) {
    if (!call.of_outputs[i].empty()) {
      parts.push_back(call.of_outputs[i]);
    } else {  // of the type of the others, which is not that of quantised values
      const std::string zero = e.scalar_like(0, some);
      parts.push_back(e.emit("Expand", {zero, e.emit("Shape", {call.node.outputs[i]})}));
    }
  }
  call.of_inputs[0] =
      e.emit("Concat", parts, {int_attribute("axis", view_of(call).attr_int("axis", 0))});
}

// What flows back into quantised values stays what it is: their type would cut it off.
void cast_rule(const GradientCall& call, GradientEmitter& e) {
  const std::string& x = call.node.inputs[0];
  call.of_inputs[0] =
      e.is_quantized(x) ? e.emit("Identity", {flow(call)}) : e.emit("CastLike", {flow(call), x});
}

void transpose_rule(const GradientCall& call, GradientEmitter& e) {
  const auto order = view_of(call).attr_ints("perm");
  if (!order) {
    call.of_inputs[0] = e.emit("Transpose", {flow(call)});
    return;
  }
  std::vector<int64_t> back(order->size(), -1);
  const auto rank = static_cast<int64_t>(order->size());
  for (size_t i = 0; i < order->size(); ++i) {
    const int64_t to = (*order)[i];
    if (to < -rank || to >= rank) view_of(call).fail("perm must be in [{}, {}]", -rank, rank - 1);
    back[static_cast<size_t>(to < 0 ? to + rank : to)] = static_cast<int64_t>(i);
  }
  call.of_inputs[0] = e.emit("Transpose", {flow(call)}, {ints_attribute("perm", back)});
}

// The last two dimensions exchanged.
std::string transposed(GradientEmitter& e, const std::string& value, int64_t rank) {
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return e.emit("Transpose", {value}, {ints_attribute("perm", order)});
}

void matmul_rule(const GradientCall& call, GradientEmitter& e) {
  const std::string &a = call.node.inputs[0], &b = call.node.inputs[1];
  const int64_t a_rank = e.required_rank(call, 0), b_rank = e.required_rank(call, 1);
  // Vectors become matrices of one row or column, and the gradient with them.
  std::string left = a, right = b, out = flow(call);
  if (b_rank == 1) {
    right = e.emit("Unsqueeze", {b, e.ints({1})});
    out = e.emit("Unsqueeze", {out, e.ints({-1})});
  }
  if (a_rank == 1) {
    left = e.emit("Unsqueeze", {a, e.ints({0})});
    out = e.emit("Unsqueeze", {out, e.ints({-2})});
  }
  const auto home = [&](const std::string& product, const std::string& as, const std::string& to) {
    const std::string summed = e.sum_like(product, as);
    if (as == to) return summed;
    return e.emit("Reshape", {summed, e.emit("Shape", {to})}, {int_attribute("allowzero", 1)});
  };
  if (call.wanted[0]) {
    const std::string b_transposed = transposed(e, right, std::max<int64_t>(b_rank, 2));
    call.of_inputs[0] = home(e.emit("MatMul", {out, b_transposed}), left, a);
  }
  if (call.wanted[1] && a_rank > 2 && b_rank == 2) {
    // All matrices on the left are multiplied with this one: their rows are those of one matrix, so
    // that one product sums over them all, and none is made for each.
    const auto rows = [&](const std::string& value) {
      return e.emit("Flatten", {value}, {int_attribute("axis", -1)});
    };
    call.of_inputs[1] = e.emit("Gemm", {rows(a), rows(out)}, {int_attribute("transA", 1)});
  } else if (call.wanted[1]) {
    const std::string a_transposed = transposed(e, left, std::max<int64_t>(a_rank, 2));
    call.of_inputs[1] = home(e.emit("MatMul", {a_transposed, out}), right, b);
  }
}

void gemm_rule(const GradientCall& call, GradientEmitter& e) {
  const ops::NodeView view = view_of(call);
  const bool ta = view.attr_int("transA") != 0, tb = view.attr_int("transB") != 0;
  const float alpha = view.attr_float("alpha"), beta = view.attr_float("beta");
  const auto product = [&](const std::string& a, bool turn_a, const std::string& b, bool turn_b) {
    return e.emit("Gemm", {a, b},
                  {int_attribute("transA", turn_a), int_attribute("transB", turn_b),
                   ops::float_attribute("alpha", alpha)});
  };
  const std::string &a = call.node.inputs[0], &b = call.node.inputs[1], &dy = flow(call);
  if (call.wanted[0])
    call.of_inputs[0] = ta ? product(b, tb, dy, true) : product(dy, false, b, !tb);
  if (call.wanted[1])
    call.of_inputs[1] = tb ? product(dy, true, a, ta) : product(a, !ta, dy, false);
  if (call.wanted.size() > 2 && call.wanted[2]) {
    const std::string scaled = beta == 1 ? dy : e.emit("Mul", {dy, e.scalar_like(beta, dy)});
    call.of_inputs[2] = e.sum_like(scaled, call.node.inputs[2]);
  }
}

// What was kept, by the same mask; without training everything was.
void dropout_rule(const GradientCall& call, GradientEmitter& e) {
  const auto& node = call.node;
  const bool has_mode = node.inputs.size() > 2 && !node.inputs[2].empty();
  if (!has_mode) {
    call.of_inputs[0] = e.emit("Identity", {flow(call)});
    return;
  }
  const std::string& dy = flow(call);
  const std::string mask = e.emit("CastLike", {node.outputs[1], dy});
  const bool has_ratio = node.inputs.size() > 1 && !node.inputs[1].empty();
  const std::string ratio =
      has_ratio ? e.emit("CastLike", {node.inputs[1], dy}) : e.scalar_like(0.5f, dy);
  const std::string one = e.scalar_like(1, dy), zero = e.scalar_like(0, dy);
  const std::string share = e.emit("Where", {node.inputs[2], ratio, zero});
  // A ratio of one keeps nothing.
  const std::string rest = e.emit("Sub", {one, share});
  const std::string divisor = e.emit("Where", {e.emit("Greater", {rest, zero}), rest, one});
  const std::string kept = e.emit("Div", {mask, divisor});
  call.of_inputs[0] = e.emit("Mul", {dy, kept});
}

}  // namespace

namespace {

const std::map<std::string_view, GradientRule>& all_rules() {
  static const std::map<std::string_view, GradientRule> rules{
      {"Attention", attention_gradient},
      {"AveragePool", average_pool_gradient},
      {"Cast", cast_rule},
      {"CastLike", cast_rule},
      {"CenterCropPad", center_crop_pad_gradient},
      {"Col2Im", col2im_gradient},
      {"Compress", compress_gradient},
      {"Concat", concat_rule},
      {"ConcatFromSequence", concat_from_sequence_gradient},
      {"Conv", conv_gradient},
      {"ConvTranspose", conv_transpose_gradient},
      {"DequantizeLinear", dequantize_gradient},
      {"Det", det_gradient},
      {"Dropout", dropout_rule},
      {"Einsum", einsum_gradient},
      {"Gather", gather_gradient},
      {"Gemm", gemm_rule},
      {"LRN", lrn_gradient},
      {"LpPool", lp_pool_gradient},
      {"MatMul", matmul_rule},
      {"Max", extreme_rule},
      {"Mean", sum_rule},
      {"NegativeLogLikelihoodLoss", loss_gradient},
      {"SoftmaxCrossEntropyLoss", loss_gradient},
      {"Min", extreme_rule},
      {"Optional", optional_gradient},
      {"OptionalGetElement", optional_get_element_gradient},
      {"Pow", pow_rule},
      {"QuantizeLinear", quantize_gradient},
      {"Resize", resize_gradient},
      {"SequenceAt", sequence_at_gradient},
      {"SequenceConstruct", sequence_construct_gradient},
      {"SequenceErase", sequence_erase_gradient},
      {"SequenceInsert", sequence_insert_gradient},
      {"Split", split_rule},
      {"SplitToSequence", split_to_sequence_gradient},
      {"Sum", sum_rule},
      {"Transpose", transpose_rule},
  };
  return rules;
}

}  // namespace

bool adds_flow_of(const ir::Node& node, size_t output) {
  return node.domain.empty() && node.op_type == "LayerNormalization" && output > 0;
}

// The mean and the reciprocal deviation of each row of LayerNormalization.
void add_flows(const GradientCall& call, GradientEmitter& e) {
  if (!adds_flow_of(call.node, 1) || !call.wanted[0]) return;
  const auto of_output = [&](size_t i) {
    return i < call.of_outputs.size() ? call.of_outputs[i] : std::string();
  };
  if (of_output(1).empty() && of_output(2).empty()) return;
  const std::string& x = call.node.inputs[0];
  const int64_t axis = view_of(call).attr_int("axis", -1);
  const std::string inner = e.emit("Shape", {x}, {int_attribute("start", axis)});
  const std::string count = e.emit("CastLike", {e.emit("ReduceProd", {inner, e.ints({0})}), x});
  std::vector<std::string> parts{call.of_inputs[0]};
  const auto share = [&](const std::string& flow) {
    return e.emit("Div", {e.emit("CastLike", {flow, x}), count});
  };
  if (!of_output(1).empty())
    parts.push_back(e.emit("Expand", {share(of_output(1)), e.emit("Shape", {x})}));
  if (!of_output(2).empty()) {
    const std::string mean = e.emit("CastLike", {call.node.outputs[1], x});
    const std::string deviation = e.emit("CastLike", {call.node.outputs[2], x});
    const std::string cube = e.emit("Pow", {deviation, e.scalar_like(3, x)});
    const std::string slope = e.emit("Neg", {e.emit("Mul", {share(of_output(2)), cube})});
    parts.push_back(e.emit("Mul", {slope, e.emit("Sub", {x, mean})}));
  }
  call.of_inputs[0] = e.emit("Sum", parts);
}

GradientRule gradient_rule(std::string_view domain, std::string_view op) {
  if (domain == "com.microsoft" && op == "MatMulNBits") return matmul_nbits_gradient;
  if (domain == ir::internal_domain && op == ops::internal::ConvWeightGradient::name)
    return conv_weight_gradient_gradient;
  if (domain == ir::internal_domain && op == ops::internal::LSTMRecurrence::name)
    return recurrence_gradient;
  const auto found = all_rules().find(op);
  return domain.empty() && found != all_rules().end() ? found->second : nullptr;
}

std::vector<std::string_view> gradient_rule_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, rule] : all_rules()) names.push_back(name);
  return names;
}

}  // namespace sardonyx::autodiff
