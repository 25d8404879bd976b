#include "rewrite/gradient_rules.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/fail.h"
#include "ops/node_view.h"
#include "ops/upgrade_context.h"
#include "schema/schema.h"

namespace sardonyx::rewrite {

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
    return std::vector<ir::OperatorSetId>{{"", schema::latest_opset(""), {}}, {"sardonyx", 1, {}}};
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

std::string GradientEmitter::filled_like(float value, const std::string& like) {
  return emit("Expand", {scalar_like(value, like), emit("Shape", {like})});
}

std::string GradientEmitter::sum_like(const std::string& value, const std::string& like) {
  return emit("SumLike", {value, like}, {}, "sardonyx");
}

std::optional<int64_t> GradientEmitter::rank(std::string_view value) const {
  const infer::Known* known = services_.known(value);
  if (known == nullptr || !known->type.shape) return std::nullopt;
  return static_cast<int64_t>(known->type.shape->size());
}

std::optional<Shape> GradientEmitter::shape(std::string_view value) const {
  const infer::Known* known = services_.known(value);
  return known == nullptr ? std::nullopt : known->type.concrete_shape();
}

namespace {

// The one gradient of a node with one output.
const std::string& flow(const GradientCall& call) { return call.of_outputs[0]; }

ops::NodeView view_of(const GradientCall& call) {
  return {call.node, schema::newest(call.node.domain, call.node.op_type)};
}

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
  std::vector<std::string> parts;
  for (size_t i = 0; i < call.node.outputs.size(); ++i) {
    if (!call.of_outputs[i].empty()) {
      parts.push_back(call.of_outputs[i]);
    } else if (!call.node.outputs[i].empty()) {
      parts.push_back(e.filled_like(0, call.node.outputs[i]));
    } else {
      view_of(call).fail(ErrorCode::unsupported, "has no gradient where an output is not named");
    }
  }
  call.of_inputs[0] =
      e.emit("Concat", parts, {int_attribute("axis", view_of(call).attr_int("axis", 0))});
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

int64_t required_rank(const GradientCall& call, const GradientEmitter& e, size_t input) {
  const auto rank = e.rank(call.node.inputs[input]);
  if (!rank)
    view_of(call).fail(ErrorCode::unsupported, "has no gradient where the rank of input {} is open",
                       input);
  return *rank;
}

// The last two dimensions exchanged.
std::string turned(GradientEmitter& e, const std::string& value, int64_t rank) {
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return e.emit("Transpose", {value}, {ints_attribute("perm", order)});
}

void matmul_rule(const GradientCall& call, GradientEmitter& e) {
  const std::string &a = call.node.inputs[0], &b = call.node.inputs[1];
  const int64_t a_rank = required_rank(call, e, 0), b_rank = required_rank(call, e, 1);
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
    const std::string b_turned = turned(e, right, std::max<int64_t>(b_rank, 2));
    call.of_inputs[0] = home(e.emit("MatMul", {out, b_turned}), left, a);
  }
  if (call.wanted[1]) {
    const std::string a_turned = turned(e, left, std::max<int64_t>(a_rank, 2));
    call.of_inputs[1] = home(e.emit("MatMul", {a_turned, out}), right, b);
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
  if (node.outputs.size() < 2 || node.outputs[1].empty()) {
    view_of(call).fail(ErrorCode::unsupported,
                       "has no gradient where training_mode is given but the mask is not; name the "
                       "output 'mask'");
  }
  const std::string& dy = flow(call);
  const std::string mask = e.emit("CastLike", {node.outputs[1], dy});
  const bool has_ratio = node.inputs.size() > 1 && !node.inputs[1].empty();
  const std::string ratio =
      has_ratio ? e.emit("CastLike", {node.inputs[1], dy}) : e.scalar_like(0.5f, dy);
  const std::string one = e.scalar_like(1, dy), zero = e.scalar_like(0, dy);
  const std::string share = e.emit("Where", {node.inputs[2], ratio, zero});
  const std::string kept = e.emit("Div", {mask, e.emit("Sub", {one, share})});
  call.of_inputs[0] = e.emit("Mul", {dy, kept});
}

struct Window {
  std::vector<int64_t> kernel, strides, dilations, begins, ends;
  int64_t groups = 1;
};

Window window_of(const GradientCall& call, const Shape& x, const Shape& w) {
  const ops::NodeView view = view_of(call);
  const size_t rank = x.size() - 2;
  Window window;
  window.kernel.assign(w.begin() + 2, w.end());
  const auto list = [&](std::string_view name, int64_t fallback, size_t count) {
    auto values = view.attr_ints(name).value_or(std::vector<int64_t>());
    if (values.empty()) values.assign(count, fallback);
    if (values.size() != count) view.fail("{} must have {} entries", name, count);
    return values;
  };
  window.strides = list("strides", 1, rank), window.dilations = list("dilations", 1, rank);
  const auto pads = list("pads", 0, 2 * rank);
  window.groups = view.attr_int("group", 1);
  const std::string automatic = view.attr_string("auto_pad", "NOTSET");
  for (size_t d = 0; d < rank; ++d) {
    int64_t begin = pads[d], end = pads[rank + d];
    if (automatic != "NOTSET") {
      const int64_t span = (window.kernel[d] - 1) * window.dilations[d] + 1,
                    outputs = (x[d + 2] + window.strides[d] - 1) /
                              std::max<int64_t>(1, window.strides[d]);
      const int64_t total =
          std::max<int64_t>(0, (outputs - 1) * window.strides[d] + span - x[d + 2]);
      begin = automatic == "VALID" ? 0 : automatic == "SAME_LOWER" ? (total + 1) / 2 : total / 2;
      end = automatic == "VALID" ? 0 : total - begin;
    }
    window.begins.push_back(begin), window.ends.push_back(end);
  }
  return window;
}

// The convolution the other way; what the strides left over at the end gets no gradient.
std::string conv_input(const GradientCall& call, GradientEmitter& e, const Window& w,
                       const Shape& x, const Shape& y) {
  std::vector<int64_t> rest, pads = w.begins;
  for (size_t d = 0; d < w.kernel.size(); ++d) {
    const int64_t covered = (y[d + 2] - 1) * w.strides[d] + (w.kernel[d] - 1) * w.dilations[d] + 1;
    // The transposed convolution gives covered - begin - end + rest elements.
    const int64_t end = std::max<int64_t>(0, covered - w.begins[d] - x[d + 2]);
    pads.push_back(end);
    rest.push_back(x[d + 2] - (covered - w.begins[d] - end));
  }
  const auto simple = [&](size_t d) { return rest[d] < std::max(w.strides[d], w.dilations[d]); };
  bool all_simple = true;
  for (size_t d = 0; d < rest.size(); ++d) all_simple = all_simple && simple(d);
  std::vector<ir::Attribute> attributes{
      ints_attribute("strides", w.strides), ints_attribute("dilations", w.dilations),
      ints_attribute("pads", pads), ints_attribute("kernel_shape", w.kernel),
      int_attribute("group", w.groups)};
  if (all_simple) {
    attributes.push_back(ints_attribute("output_padding", rest));
    return e.emit("ConvTranspose", {flow(call), call.node.inputs[1]}, attributes);
  }
  const std::string inner = e.emit("ConvTranspose", {flow(call), call.node.inputs[1]}, attributes);
  std::vector<int64_t> wider(2 * x.size(), 0);
  std::copy(rest.begin(), rest.end(), wider.begin() + static_cast<std::ptrdiff_t>(x.size() + 2));
  return e.emit("Pad", {inner, e.ints(wider)});
}

// A convolution of the input with the gradient as its kernel: samples take the place of channels.
std::string conv_weights(const GradientCall& call, GradientEmitter& e, const Window& w,
                         const Shape& x) {
  const auto rank = static_cast<int64_t>(x.size());
  std::vector<int64_t> grouped{x[0], w.groups, x[1] / w.groups};
  grouped.insert(grouped.end(), x.begin() + 2, x.end());
  std::vector<int64_t> order{2, 1, 0}, swapped{1, 0};
  for (int64_t d = 3; d <= rank; ++d) order.push_back(d);
  for (int64_t d = 2; d < rank; ++d) swapped.push_back(d);
  std::vector<int64_t> flat{x[1] / w.groups, w.groups * x[0]};
  flat.insert(flat.end(), x.begin() + 2, x.end());
  const std::string parted = e.emit("Reshape", {call.node.inputs[0], e.ints(grouped)});
  const std::string turned_x = e.emit("Transpose", {parted}, {ints_attribute("perm", order)});
  const std::string samples = e.emit("Reshape", {turned_x, e.ints(flat)});
  const std::string kernel = e.emit("Transpose", {flow(call)}, {ints_attribute("perm", swapped)});
  std::vector<int64_t> pads = w.begins;
  pads.insert(pads.end(), w.ends.begin(), w.ends.end());
  const std::string sums =
      e.emit("Conv", {samples, kernel},
             {ints_attribute("strides", w.dilations), ints_attribute("dilations", w.strides),
              ints_attribute("pads", pads), int_attribute("group", w.groups)});
  const std::string turned_w = e.emit("Transpose", {sums}, {ints_attribute("perm", swapped)});
  std::vector<int64_t> starts(w.kernel.size(), 0), axes;
  for (int64_t d = 2; d < rank; ++d) axes.push_back(d);
  return e.emit("Slice", {turned_w, e.ints(starts), e.ints(w.kernel), e.ints(axes)});
}

void conv_rule(const GradientCall& call, GradientEmitter& e) {
  const auto x = e.shape(call.node.inputs[0]), w = e.shape(call.node.inputs[1]),
             y = e.shape(call.node.outputs[0]);
  if (call.wanted.size() > 2 && call.wanted[2]) {
    const int64_t rank = required_rank(call, e, 0);
    std::vector<int64_t> axes{0};
    for (int64_t d = 2; d < rank; ++d) axes.push_back(d);
    call.of_inputs[2] =
        e.emit("ReduceSum", {flow(call), e.ints(axes)}, {int_attribute("keepdims", 0)});
  }
  if (!call.wanted[0] && !call.wanted[1]) return;
  if (!x || !w || !y) {
    view_of(call).fail(ErrorCode::unsupported,
                       "has no gradient where sizes are open; give the graph's inputs their sizes");
  }
  const Window window = window_of(call, *x, *w);
  if (call.wanted[0]) call.of_inputs[0] = conv_input(call, e, window, *x, *y);
  if (call.wanted[1]) call.of_inputs[1] = conv_weights(call, e, window, *x);
}

}  // namespace

GradientRule gradient_rule(std::string_view domain, std::string_view op) {
  static const std::map<std::string_view, GradientRule> rules{
      {"Concat", concat_rule}, {"Conv", conv_rule},           {"Dropout", dropout_rule},
      {"Gemm", gemm_rule},     {"MatMul", matmul_rule},       {"Max", extreme_rule},
      {"Mean", sum_rule},      {"Min", extreme_rule},         {"Split", split_rule},
      {"Sum", sum_rule},       {"Transpose", transpose_rule},
  };
  const auto found = rules.find(op);
  return domain.empty() && found != rules.end() ? found->second : nullptr;
}

}  // namespace sardonyx::rewrite
