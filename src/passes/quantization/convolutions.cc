#include "passes/quantization/convolutions.h"

#include <algorithm>
#include <cmath>

#include "ir/tensor.h"
#include "kernels/conv/conv_int8.h"
#include "ops/internal/node.h"
#include "ops/internal/quantized.h"
#include "ops/node_view.h"
#include "ops/shared/conv_params.h"
#include "passes/attributes.h"

namespace sardonyx::passes {
namespace {

using ops::internal::QuantizedConv;

class Convolutions {
 public:
  explicit Convolutions(QuantizedGraph& graph) : graph_(graph), index_(graph.index) {}

  bool rewrite(size_t i) {
    const auto to = graph_.quantized(index_.node(i));
    if (!to) return false;
    std::vector<size_t> covered;
    const size_t at = graph_.sole_producer(graph_.before_relu(*to, covered));
    if (at == index_.size() || !is_op(&index_.node(at), "Conv")) return false;
    const ir::Node& conv = index_.node(at);
    const auto x = graph_.dequantized_by_one(conv.inputs[0]);
    const auto w = graph_.dequantized(conv.inputs[1]);
    if (!x || !w) return false;
    const Tensor* weights = index_.constant(w->value);
    if (weights == nullptr || weights->rank() < 3) return false;
    const int64_t channels = weights->shape()[0];
    if (channels == 0 || !graph_.sums_fit(weights->size() / channels, w->value, w->zero))
      return false;
    if (!graph_.is_one(w->scale) && (w->axis != 0 || graph_.count(w->scale) != channels))
      return false;
    const auto bias = integer_bias(input(conv, 2), *x, *w, *to, channels);
    if (!bias) return false;
    ir::Node node;
    node.op_type = "QLinearConv";
    node.attributes = conv.attributes;
    node.inputs = {x->value, x->scale,        graph_.zero_of(*x), w->value,
                   w->scale, weight_zero(*w), to->scale,          graph_.zero_of(*to)};
    if (!bias->empty()) node.inputs.push_back(*bias);
    node.outputs = index_.node(i).outputs;
    covered.push_back(at);
    graph_.replace(i, std::move(node), covered, {conv.inputs[0], conv.inputs[1], input(conv, 2)});
    return true;
  }

  bool scale_sums(size_t i) {
    const ir::Node& sums = index_.node(i);
    if (!is_op(&sums, "ConvInteger") ||
        !(input(sums, 2).empty() || graph_.is_one(sums.inputs[2])) || !takes_weights(sums))
      return false;
    const size_t cast = index_.only_user(sums.outputs[0]);
    if (cast == index_.size() || !is_op(&index_.node(cast), "Cast")) return false;
    const std::string& floats = index_.node(cast).outputs[0];
    const size_t mul = index_.only_user(floats);
    if (!index_.is_float32(floats) || mul == index_.size() || !is_op(&index_.node(mul), "Mul"))
      return false;
    const ir::Node& scaled = index_.node(mul);
    const std::string* scale = other_input(scaled, floats);
    if (scale == nullptr || !index_.same_shape(scaled.outputs[0], floats)) return false;
    const auto scales = split_scale(*scale, floats);
    if (!scales) return false;

    std::vector<size_t> covered{cast};
    size_t last = mul;
    std::string bias;
    const size_t add = index_.only_user(scaled.outputs[0]);
    if (add != index_.size() && is_op(&index_.node(add), "Add")) {
      const ir::Node& added = index_.node(add);
      const std::string* term = other_input(added, scaled.outputs[0]);
      const Tensor* vector = term ? index_.vector_along(1, *term, floats) : nullptr;
      if (vector != nullptr && index_.same_shape(added.outputs[0], floats)) {
        bias = by_channel(*vector, "bias");
        covered.push_back(mul);
        last = add;
      }
    }
    const ops::NodeView view(sums, nullptr);
    QuantizedConv conv;
    conv.window = ops::read_window(view, ops::WindowKind::convolution);
    conv.group = ops::read_group(view);
    ir::Node node = ops::internal::to_node(conv, {},
                                           {{QuantizedConv::x, sums.inputs[0]},
                                            {QuantizedConv::x_scale, scales->one},
                                            {QuantizedConv::x_zero, input(sums, 2)},
                                            {QuantizedConv::w, sums.inputs[1]},
                                            {QuantizedConv::w_scale, scales->each},
                                            {QuantizedConv::w_zero, input(sums, 3)},
                                            {QuantizedConv::bias, bias}},
                                           index_.node(last).outputs);
    covered.push_back(i);  // which gives the name
    const bool is_split = scales->one != *scale;
    graph_.replace(last, std::move(node), covered, {is_split ? *scale : std::string()});
    return true;
  }

 private:
  // Whether a ConvInteger's weights are constant, and packed as bytes.
  bool takes_weights(const ir::Node& sums) const {
    const Tensor* w = index_.constant(sums.inputs[1]);
    if (w == nullptr || w->rank() < 3 || w->rank() > kernels::ConvParams::max_rank + 2 ||
        w->size() == 0)
      return false;
    const std::string zero = input(sums, 3);
    const int64_t channels = w->shape()[0], group = attr_int(sums, "group", 1);
    if (!zero.empty() && (index_.constant(zero) == nullptr ||
                          !(graph_.is_one(zero) || graph_.count(zero) == channels)))
      return false;
    const int64_t taps = w->size() / channels / w->shape()[1];
    return group > 0 && channels % group == 0 &&
           (w->shape()[1] > 1 || taps <= kernels::conv_int8_max_taps);
  }

  std::string by_channel(const Tensor& vector, std::string_view hint) {
    return index_.add_initializer(ir::aligned(vector).reshaped({vector.size()}), hint);
  }

  // The scale of sums as one number times one for each output channel, or for all of them.
  struct Scales {
    std::string one, each;
  };
  std::optional<Scales> split_scale(const std::string& scale, const std::string& sums) {
    const auto is_number = [&](const std::string& value) {
      return index_.is_float32(value) && graph_.is_one(value);
    };
    const ir::Node* made = index_.producer(scale);
    if (is_op(made, "Mul")) {
      for (const size_t side : {size_t{0}, size_t{1}}) {
        const std::string &one = made->inputs[side], &each = made->inputs[1 - side];
        if (!is_number(one)) continue;
        if (is_number(each)) return Scales{one, each};
        if (const Tensor* vector = index_.vector_along(1, each, sums))
          return Scales{one, by_channel(*vector, "scales")};
      }
    }
    Tensor one(ElementType::float32, {});
    one.mutable_elements<float>()[0] = 1;
    if (is_number(scale)) return Scales{scale, index_.add_initializer(one, "one")};
    return std::nullopt;
  }

  // A bias in steps of x's scale times w's; nullopt where it cannot be had, or where such steps are
  // coarse beside those of the output.
  std::optional<std::string> integer_bias(const std::string& value, const Quantized& x,
                                          const Quantized& w, const Quantized& y,
                                          int64_t channels) {
    if (value.empty()) return std::string();
    const Tensor *x_scale = index_.constant(x.scale), *w_scale = index_.constant(w.scale);
    if (x_scale == nullptr || w_scale == nullptr) return std::nullopt;
    const Tensor xs = ir::aligned(*x_scale), ws = ir::aligned(*w_scale);
    const auto y_scale = index_.scalar(y.scale);
    const auto step = [&](int64_t m) {
      return static_cast<double>(xs.elements<float>()[0]) *
             ws.elements<float>()[static_cast<size_t>(ws.size() == 1 ? 0 : m)];
    };
    const ir::Node* made = index_.producer(value);
    std::vector<double> numbers;
    if (is_op(made, "DequantizeLinear") && graph_.element(made->inputs[0]) == ElementType::int32) {
      const Tensor *bytes = index_.constant(made->inputs[0]),
                   *scale = index_.constant(made->inputs[1]);
      if (bytes == nullptr || scale == nullptr || bytes->size() != channels ||
          scale->element_type() != ElementType::float32 ||
          (scale->size() != 1 && scale->size() != channels) || !graph_.is_zero(input(*made, 2)))
        return std::nullopt;
      const Tensor held = ir::aligned(*bytes), steps = ir::aligned(*scale);
      for (int64_t m = 0; m < channels; ++m)
        numbers.push_back(static_cast<double>(held.elements<int32_t>()[static_cast<size_t>(m)]) *
                          steps.elements<float>()[static_cast<size_t>(steps.size() == 1 ? 0 : m)]);
    } else if (const Tensor* floats = index_.constant(value);
               floats && floats->element_type() == ElementType::float32 &&
               floats->size() == channels) {
      const Tensor held = ir::aligned(*floats);
      for (const float number : held.elements<float>()) numbers.push_back(number);
    } else {
      return std::nullopt;
    }
    Tensor bias(ElementType::int32, {channels});
    const auto to = bias.mutable_elements<int32_t>();
    for (int64_t m = 0; m < channels; ++m) {
      const double whole = std::nearbyint(numbers[static_cast<size_t>(m)] / step(m));
      if (!(std::abs(whole) < 1 << 30)) return std::nullopt;
      constexpr double fine = 1.0 / 64;  // of a step of the output
      const double error = std::abs(numbers[static_cast<size_t>(m)] - whole * step(m));
      if (error > 0 && !(y_scale && error <= fine * std::abs(*y_scale))) return std::nullopt;
      to[static_cast<size_t>(m)] = static_cast<int32_t>(whole);
    }
    return index_.add_initializer(bias, "bias");
  }

  // A zero point for each scale.
  std::string weight_zero(const Quantized& w) {
    if (!w.zero.empty()) return w.zero;
    Tensor zero(w.type, graph_.is_one(w.scale) ? Shape{} : Shape{*graph_.count(w.scale)});
    std::fill_n(static_cast<uint8_t*>(zero.mutable_data()), zero.size(), uint8_t{0});
    return index_.add_initializer(zero, "zero");
  }

  QuantizedGraph& graph_;
  GraphIndex& index_;
};

}  // namespace

bool quantize_conv(QuantizedGraph& graph, size_t i) { return Convolutions(graph).rewrite(i); }

bool scale_conv_integer(QuantizedGraph& graph, size_t i) {
  return Convolutions(graph).scale_sums(i);
}

}  // namespace sardonyx::passes
