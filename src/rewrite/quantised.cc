#include "rewrite/quantised.h"

#include <cmath>
#include <optional>

#include "ir/tensor.h"
#include "ops/upgrade_context.h"
#include "rewrite/graph_index.h"

namespace sardonyx::rewrite {
namespace {

bool is_op(const ir::Node* node, std::string_view op) {
  return node != nullptr && node->domain.empty() && node->op_type == op;
}

bool is_byte(ElementType type) { return type == ElementType::int8 || type == ElementType::uint8; }

// A node that quantizes or dequantizes bytes with constant parameters.
struct Link {
  std::string value, scale, zero;             // zero: empty where there is none
  ElementType type = ElementType::undefined;  // of the bytes
  int64_t scales = 0;                         // how many: one, or one for each slice along axis
  int64_t axis = 1;
};

class Fuser {
 public:
  Fuser(ir::Graph& graph, const infer::Scope& scope) : index_(graph, scope) {}

  bool run() {
    bool any = false;
    for (size_t i = 0; i < index_.size(); ++i) {
      if (index_.is_dead(i)) continue;
      any |= is_op(&index_.node(i), "DequantizeLinear");
      if (is_op(&index_.node(i), "Conv")) conv(i);
      if (is_op(&index_.node(i), "MatMul")) matmul(i);
    }
    index_.compact();
    return any;
  }

 private:
  ElementType element(const std::string& name) const {
    const infer::Known* known = name.empty() ? nullptr : index_.known(name);
    return known && known->type.is_tensor() ? known->type.element : ElementType::undefined;
  }

  // `small` is the value that holds bytes.
  std::optional<Link> link(const ir::Node& node, const std::string& small) const {
    Link found;
    for (const ir::Attribute& attribute : node.attributes) {
      if (attribute.name == "axis" && attribute.i) {
        found.axis = *attribute.i;
      } else if (attribute.i && *attribute.i != 0 && attribute.name != "saturate") {
        return std::nullopt;  // blocks, another precision or type
      }
    }
    const Tensor* scale = index_.constant(node.inputs[1]);
    if (scale == nullptr || scale->element_type() != ElementType::float32) return std::nullopt;
    found.value = node.inputs[0], found.scale = node.inputs[1], found.type = element(small);
    found.scales = scale->size();
    if (node.inputs.size() > 2 && !node.inputs[2].empty()) {
      if (index_.constant(node.inputs[2]) == nullptr) return std::nullopt;
      found.zero = node.inputs[2];
    }
    return found;
  }

  // What a value is dequantized from, where it is from bytes.
  std::optional<Link> source(const std::string& value) const {
    const ir::Node* node = index_.producer(value);
    if (!is_op(node, "DequantizeLinear") || !is_byte(element(node->inputs[0]))) return std::nullopt;
    return link(*node, node->inputs[0]);
  }

  std::string zero_of(const Link& link) {
    if (!link.zero.empty()) return link.zero;
    Tensor zero(link.type, {});
    *static_cast<uint8_t*>(zero.mutable_data()) = 0;
    return index_.add_initializer(zero, "zero");
  }

  Tensor floats(const std::string& name) const { return ir::aligned(*index_.constant(name)); }

  // The bias as int32 in the steps of x's scale times the weight's.
  std::optional<std::string> whole_bias(const std::string& name, const Link& x, const Link& w) {
    const ir::Node* node = index_.producer(name);
    Tensor values;
    if (is_op(node, "DequantizeLinear")) {
      const Tensor *small = index_.constant(node->inputs[0]),
                   *scale = index_.constant(node->inputs[1]);
      if (!small || !scale || small->element_type() != ElementType::int32 ||
          scale->element_type() != ElementType::float32 || node->inputs.size() > 2)
        return std::nullopt;
      const Tensor held = ir::aligned(*small), steps = ir::aligned(*scale);
      if (steps.size() != 1 && steps.size() != held.size()) return std::nullopt;
      values = Tensor(ElementType::float32, held.shape());
      for (size_t i = 0; i < static_cast<size_t>(held.size()); ++i) {
        values.mutable_elements<float>()[i] = static_cast<float>(held.elements<int32_t>()[i]) *
                                              steps.elements<float>()[steps.size() == 1 ? 0 : i];
      }
    } else {
      const Tensor* found = index_.constant(name);
      if (!found || found->element_type() != ElementType::float32) return std::nullopt;
      values = ir::aligned(*found);
    }
    const Tensor x_scale = floats(x.scale), w_scale = floats(w.scale);
    Tensor whole(ElementType::int32, {values.size()});
    for (size_t i = 0; i < static_cast<size_t>(values.size()); ++i) {
      const double step = static_cast<double>(x_scale.elements<float>()[0]) *
                          static_cast<double>(w_scale.elements<float>()[w.scales == 1 ? 0 : i]);
      const double steps = std::nearbyint(values.elements<float>()[i] / step);
      if (!(std::abs(steps) < 1e9)) return std::nullopt;
      whole.mutable_elements<int32_t>()[i] = static_cast<int32_t>(steps);
    }
    return index_.add_initializer(whole, "bias");
  }

  // Whether bytes below the zero point do not exist, so that quantizing does what Relu does.
  bool cuts_at_zero(const Link& y) const {
    if (y.zero.empty()) return y.type == ElementType::uint8;
    const Tensor zero = ir::aligned(*index_.constant(y.zero));
    return y.type == ElementType::uint8 ? *static_cast<const uint8_t*>(zero.data()) == 0
                                        : *static_cast<const int8_t*>(zero.data()) == -128;
  }

  void conv(size_t i) {
    const ir::Node node = index_.node(i);
    const auto x = source(node.inputs[0]), w = source(node.inputs[1]);
    if (!x || !w || x->scales != 1 || index_.constant(w->value) == nullptr) return;
    const Tensor* weights = index_.constant(w->value);
    if (w->scales != 1 && (w->axis != 0 || weights->rank() < 3 || w->scales != weights->shape()[0]))
      return;
    size_t last = index_.only_user(node.outputs[0]);
    bool relu = false;
    if (last != index_.size() && is_op(&index_.node(last), "Relu")) {
      relu = true;
      last = index_.only_user(index_.node(last).outputs[0]);
    }
    if (last == index_.size() || !is_op(&index_.node(last), "QuantizeLinear")) return;
    const ir::Node quantize = index_.node(last);
    const auto y = link(quantize, quantize.outputs[0]);
    if (!y || !is_byte(y->type) || y->scales != 1 || (relu && !cuts_at_zero(*y))) return;
    ir::Node fused = node;
    fused.op_type = "QLinearConv";
    fused.origin = "quantized before and after";
    fused.inputs = {x->value, x->scale,    zero_of(*x), w->value,
                    w->scale, zero_of(*w), y->scale,    zero_of(*y)};
    if (node.inputs.size() > 2 && !node.inputs[2].empty()) {
      const auto bias = whole_bias(node.inputs[2], *x, *w);
      if (!bias) return;
      fused.inputs.push_back(*bias);
    }
    fused.outputs = quantize.outputs;
    if (relu) index_.kill(index_.producer_index(quantize.inputs[0]));
    index_.kill(i);
    index_.replace(last, std::move(fused));
  }

  void matmul(size_t i) {
    const ir::Node node = index_.node(i);
    const auto a = source(node.inputs[0]), b = source(node.inputs[1]);
    if (!a || !b || a->scales != 1) return;
    const infer::Known* right = index_.known(b->value);
    if (!right || !right->type.shape || right->type.shape->size() < 2) return;
    const auto rank = static_cast<int64_t>(right->type.shape->size());
    if (b->scales != 1 && (rank != 2 || (b->axis != 1 && b->axis != -1))) return;
    const Tensor a_scale = floats(a->scale), b_scale = floats(b->scale);
    Tensor scale(ElementType::float32, b->scales == 1 ? Shape{} : Shape{b->scales});
    for (size_t j = 0; j < static_cast<size_t>(b->scales); ++j)
      scale.mutable_elements<float>()[j] =
          a_scale.elements<float>()[0] * b_scale.elements<float>()[j];
    ir::Node fused = node;
    fused.domain = "sardonyx", fused.op_type = "MatMulInteger";
    fused.origin = "of quantized values";
    fused.inputs = {a->value, b->value, zero_of(*a), zero_of(*b),
                    index_.add_initializer(scale, "scale")};
    index_.replace(i, std::move(fused));
  }

  GraphIndex index_;
};

}  // namespace

bool fuse_quantised(ir::Graph& graph, const infer::Scope& scope) {
  return Fuser(graph, scope).run();
}

}  // namespace sardonyx::rewrite
