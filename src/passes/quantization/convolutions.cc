#include "passes/quantization/convolutions.h"

#include <algorithm>
#include <cmath>

#include "ir/tensor.h"

namespace sardonyx::passes {
namespace {

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
    if (!graph_.is_one(w->scale) && (w->axis != 0 || graph_.count(w->scale) != channels))
      return false;
    const auto bias = integer_bias(input(conv, 2), *x, *w, channels);
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

 private:
  // A bias in steps of x's scale times w's; nullopt where it cannot be had.
  std::optional<std::string> integer_bias(const std::string& value, const Quantized& x,
                                          const Quantized& w, int64_t channels) {
    if (value.empty()) return std::string();
    const Tensor *x_scale = index_.constant(x.scale), *w_scale = index_.constant(w.scale);
    if (x_scale == nullptr || w_scale == nullptr) return std::nullopt;
    const Tensor xs = ir::aligned(*x_scale), ws = ir::aligned(*w_scale);
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

}  // namespace sardonyx::passes
