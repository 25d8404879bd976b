#include "rewrite/fuse.h"

#include <cmath>
#include <optional>

#include "ir/tensor.h"
#include "ops/families/conv_transpose.h"
#include "ops/node_view.h"
#include "ops/upgrade_context.h"
#include "rewrite/attention.h"
#include "rewrite/attributes.h"
#include "rewrite/graph_index.h"
#include "rewrite/group_normalizations.h"
#include "rewrite/last_conv.h"
#include "rewrite/normalizations.h"
#include "rewrite/regions.h"
#include "rewrite/running_statistics.h"

namespace sardonyx::rewrite {
namespace {

// Of the standard, or the same with weights of another float type (rewrite/widen.h).
bool is_product(const ir::Node& node, std::string_view op) {
  return node.op_type == op && (node.domain.empty() || node.domain == "sardonyx") &&
         node.inputs.size() <= 3 && node.find("activation") == nullptr;
}

bool near(std::optional<double> value, double wanted) {
  return value && std::abs(*value - wanted) <= 1e-3 * std::abs(wanted);
}

// The operators whose fused form takes images, and a factor for each output channel.
bool is_conv(const ir::Node& node) {
  return is_product(node, "Conv") || is_product(node, "ConvTranspose");
}

class Fuser {
 public:
  Fuser(ir::Graph& graph, const infer::Scope& scope) : index_(graph, scope) {}

  void run() {
    each([&](size_t i) { return float_exponent(i); });
    each([&](size_t i) { return fold_batch_normalization(i) || normalize_rows(i); });
    fuse_layer_normalizations(index_);
    fuse_rms_normalizations(index_);
    fuse_group_normalizations(index_);
    each([&](size_t i) { return gelu(i) || silu(i); });
    fuse_attention(index_);
    each([&](size_t i) { return epilogue(i); });
    form_regions(index_);
    index_.compact();
  }

 private:
  template <class Rewrite>
  void each(Rewrite rewrite) {
    for (size_t i = 0; i < index_.size(); ++i) {
      if (!index_.is_dead(i)) rewrite(i);
    }
  }

  // A constant exponent of integers becomes floats, as the rewrites and kernels of one type want
  // it.
  bool float_exponent(size_t i) {
    const ir::Node& pow = index_.node(i);
    if (!is_op(&pow, "Pow") || !index_.is_float32(pow.inputs[0])) return false;
    const Tensor* given = index_.constant(pow.inputs[1]);
    if (given == nullptr || given->size() != 1 ||
        (given->element_type() != ElementType::int64 &&
         given->element_type() != ElementType::int32))
      return false;
    const Tensor held = ir::aligned(*given);
    const int64_t whole = held.element_type() == ElementType::int64 ? held.elements<int64_t>()[0]
                                                                    : held.elements<int32_t>()[0];
    constexpr int64_t exact = 1 << 24;
    if (whole < -exact || whole > exact) return false;
    ir::Node node = pow;
    node.inputs[1] = index_.add_initializer(
        Tensor::of<float>({static_cast<float>(whole)}, held.shape()), "exponent");
    index_.change(i, std::move(node));
    return true;
  }

  // The constant weights of a convolution that has a fused form; null: it has none.
  const Tensor* conv_weights(const ir::Node& conv) const {
    const Tensor* w = index_.constant(conv.inputs[1]);
    const bool any = conv.op_type != "ConvTranspose" ||
                     ops::refuses_phases(ops::NodeView(conv, nullptr), w).empty();
    return any ? w : nullptr;
  }
  // Their axis of output channels.
  static size_t output_axis(const ir::Node& conv) { return conv.op_type == "Conv" ? 0 : 1; }

  bool is_transposed(const ir::Node& node) const {
    return node.op_type == "ConvTranspose" &&
           (node.domain == "sardonyx" || (node.domain.empty() && conv_weights(node) != nullptr));
  }

  // BatchNormalization after a convolution becomes part of its weights and bias.
  bool fold_batch_normalization(size_t i) {
    ir::Node& norm = index_.node(i);
    if (!is_op(&norm, "BatchNormalization") || attr_int(norm, "training_mode", 0) != 0)
      return false;
    const size_t c = index_.producer_index(norm.inputs[0]);
    if (c == index_.size() || !is_conv(index_.node(c)) || index_.uses(norm.inputs[0]) != 1)
      return false;
    const ir::Node& conv = index_.node(c);
    const Tensor* w = conv_weights(conv);
    const bool has_bias = conv.inputs.size() > 2 && !conv.inputs[2].empty();
    const Tensor* b = has_bias ? index_.constant(conv.inputs[2]) : nullptr;
    std::vector<Tensor> parameters;
    for (size_t k = 1; k <= 4; ++k) {
      const Tensor* p = index_.constant(norm.inputs[k]);
      if (p == nullptr || p->element_type() != ElementType::float32) return false;
      parameters.push_back(ir::aligned(*p));
    }
    if (w == nullptr || (has_bias && b == nullptr) || w->rank() < 3) return false;
    const int64_t channels = w->shape()[output_axis(conv)];
    for (const Tensor& p : parameters) {
      if (p.size() != channels) return false;
    }
    if (b != nullptr && (b->size() != channels || b->element_type() != ElementType::float32))
      return false;

    // The weights stay where they are; the fused form multiplies them while it packs them.
    Tensor factors(ElementType::float32, {channels}), bias(ElementType::float32, {channels});
    const float epsilon = attr_float(norm, "epsilon", 1e-5f);
    const auto scale = parameters[0].elements<float>(), shift = parameters[1].elements<float>();
    const auto mean = parameters[2].elements<float>(), variance = parameters[3].elements<float>();
    const Tensor old_bias = b ? ir::aligned(*b) : Tensor();
    const auto to_factor = factors.mutable_elements<float>(),
               to_bias = bias.mutable_elements<float>();
    for (size_t m = 0; m < static_cast<size_t>(channels); ++m) {
      const double factor = scale[m] / std::sqrt(static_cast<double>(variance[m]) + epsilon);
      const double old = b ? old_bias.elements<float>()[m] : 0.0;
      to_factor[m] = static_cast<float>(factor);
      to_bias[m] = static_cast<float>((old - mean[m]) * factor + shift[m]);
    }
    ir::Node fused = conv;
    fused.domain = "sardonyx";
    fused.inputs = {conv.inputs[0], conv.inputs[1], index_.add_initializer(bias, "bias"), "",
                    index_.add_initializer(factors, "factors")};
    fused.outputs = {norm.outputs[0]};
    index_.replace(i, std::move(fused));
    return true;
  }

  // BatchNormalization of rows: its channels are innermost already.
  bool normalize_rows(size_t i) {
    const ir::Node& norm = index_.node(i);
    if (!is_op(&norm, "BatchNormalization") || !index_.is_float32(norm.outputs[0])) return false;
    const auto& shape = index_.known(norm.outputs[0])->type.shape;
    if (!shape || shape->size() != 2) return false;
    const auto channels =
        running_statistics(norm, [&](const std::string& name) { return index_.constant(name); });
    if (!channels || !((*shape)[1] == channels->factors.size())) return false;
    ir::Node fused;
    fused.op_type = "ScaleShift";
    fused.domain = "sardonyx";
    fused.name = norm.name;
    fused.inputs = {norm.inputs[0], index_.add_initializer(channels->factors, "factors"),
                    index_.add_initializer(channels->terms, "terms")};
    fused.outputs = {norm.outputs[0]};
    index_.replace(i, std::move(fused));
    return true;
  }

  // x * 0.5 * (1 + erf(x / sqrt(2))), multiplied in any order.
  bool gelu(size_t i) {
    const ir::Node& erf = index_.node(i);
    if (!is_op(&erf, "Erf") || !index_.is_float32(erf.inputs[0])) return false;
    const ir::Node* scaled = index_.producer(erf.inputs[0]);
    if (scaled == nullptr) return false;
    std::string x;
    if (is_op(scaled, "Div") && near(index_.scalar(scaled->inputs[1]), std::sqrt(2.0))) {
      x = scaled->inputs[0];
    } else if (is_op(scaled, "Mul")) {
      if (near(index_.scalar(scaled->inputs[1]), std::sqrt(0.5))) x = scaled->inputs[0];
      if (near(index_.scalar(scaled->inputs[0]), std::sqrt(0.5))) x = scaled->inputs[1];
    }
    if (x.empty()) return false;
    const size_t add = index_.only_user(erf.outputs[0]);
    if (add == index_.size() || !is_op(&index_.node(add), "Add")) return false;
    const std::string* one = other_input(index_.node(add), erf.outputs[0]);
    if (one == nullptr || !near(index_.scalar(*one), 1.0)) return false;
    // Two multiplications remain: by x and by one half, which may be multiplied with each other
    // first.
    bool by_x = false, by_half = false;
    std::string value = index_.node(add).outputs[0];
    size_t last = add;
    while (!(by_x && by_half)) {
      const size_t mul = index_.only_user(value);
      if (mul == index_.size() || !is_op(&index_.node(mul), "Mul")) return false;
      const std::string* factor = other_input(index_.node(mul), value);
      if (factor == nullptr) return false;
      if (!by_x && *factor == x) {
        by_x = true;
      } else if (!by_half && near(index_.scalar(*factor), 0.5)) {
        by_half = true;
      } else if (!by_x && !by_half && is_half_of(index_.producer(*factor), x)) {
        by_x = by_half = true;
      } else {
        return false;
      }
      last = mul;
      value = index_.node(mul).outputs[0];
    }
    ir::Node fused;
    fused.op_type = "Gelu";
    fused.name = erf.name;
    fused.inputs = {x};
    fused.outputs = {value};
    index_.replace(last, std::move(fused));
    return true;
  }

  bool is_half_of(const ir::Node* node, const std::string& x) const {
    if (!is_op(node, "Mul")) return false;
    const std::string* factor = other_input(*node, x);
    return factor != nullptr && near(index_.scalar(*factor), 0.5);
  }

  // x * sigmoid(x)
  bool silu(size_t i) {
    const ir::Node& mul = index_.node(i);
    if (!is_op(&mul, "Mul") || !index_.is_float32(mul.outputs[0])) return false;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const ir::Node* sigmoid = index_.producer(mul.inputs[side]);
      if (!is_op(sigmoid, "Sigmoid") || sigmoid->inputs[0] != mul.inputs[1 - side]) continue;
      ir::Node fused;
      fused.op_type = "Swish";
      fused.name = mul.name;
      fused.inputs = {mul.inputs[1 - side]};
      fused.outputs = mul.outputs;
      index_.replace(i, std::move(fused));
      return true;
    }
    return false;
  }

  // What follows Conv, MatMul or Gemm and can be done before its results are stored.
  bool epilogue(size_t i) {
    const ir::Node& first = index_.node(i);
    const bool folded = first.domain == "sardonyx" && first.op_type == "Conv";
    const bool transposed = is_transposed(first);
    const bool conv = folded || is_op(&first, "Conv") || transposed,
               matmul = is_product(first, "MatMul"), gemm = is_product(first, "Gemm");
    if (!(conv || matmul || gemm) || !index_.is_float32(first.outputs[0])) return false;
    if (matmul) {
      const Tensor* b = index_.constant(first.inputs[1]);
      if (b == nullptr || b->rank() != 2) return false;
    }
    ir::Node fused = first;
    fused.domain = "sardonyx";
    size_t last = i;
    // The node may have been here before.
    bool activated = first.find("activation") != nullptr,
         residual = first.inputs.size() > 3 && !first.inputs[3].empty();
    while (!(activated && residual)) {
      const std::string value = fused.outputs[0];
      const size_t user = index_.only_user(value);
      if (user == index_.size()) break;
      const ir::Node& next = index_.node(user);
      bool taken = false;
      if (is_op(&next, "Add") || (is_op(&next, "Sum") && next.inputs.size() == 2)) {
        const std::string* term = other_input(next, value);
        if (term != nullptr && index_.same_shape(next.outputs[0], value)) {
          if (!activated && !residual && !gemm && take_bias(fused, *term, conv)) {
            taken = true;
          } else if (!gemm && !transposed && !residual && index_.same_shape(*term, value) &&
                     index_.constant(*term) == nullptr) {
            fused.inputs.resize(std::max<size_t>(fused.inputs.size(), 4));
            fused.inputs[3] = *term;
            if (activated) fused.attributes.push_back(ops::int_attribute("residual_last", 1));
            residual = taken = true;
          }
        }
      } else if (!activated && !(residual && fused.find("residual_last"))) {
        taken = activated = take_activation(fused, next, value, gemm);
      }
      if (!taken) break;
      fused.outputs = {next.outputs[0]};
      last = user;
    }
    if (last == i) return false;
    // The fused node stands where the last one stood: all its inputs are made by then.
    index_.replace(last, std::move(fused));
    return true;
  }

  bool take_bias(ir::Node& fused, const std::string& term, bool conv) {
    if (fused.inputs.size() > 2 && !fused.inputs[2].empty()) return false;
    const Tensor* bias = index_.constant(term);
    if (bias == nullptr || bias->element_type() != ElementType::float32) return false;
    const auto& shape = *index_.known(fused.outputs[0])->type.shape;
    const size_t along = conv ? 1 : shape.size() - 1;
    const int64_t rank = static_cast<int64_t>(shape.size());
    if (!(shape[along] == bias->size()) || bias->rank() > rank) return false;
    // Every dimension but the one along the channels must be 1.
    const int64_t at = bias->rank() - (rank - static_cast<int64_t>(along));
    if (at < 0 || bias->shape()[static_cast<size_t>(at)] != bias->size()) return false;
    fused.inputs.resize(std::max<size_t>(fused.inputs.size(), 3));
    fused.inputs[2] = bias->rank() == 1 ? term
                                        : index_.add_initializer(
                                              ir::aligned(*bias).reshaped({bias->size()}), "bias");
    return true;
  }

  bool take_activation(ir::Node& fused, const ir::Node& next, const std::string& value, bool gemm) {
    if (!next.domain.empty() || next.inputs[0] != value) return false;
    std::string word;
    std::optional<float> alpha, beta;
    const std::string& op = next.op_type;
    if (op == "Relu") word = "relu";
    if (op == "Sigmoid") word = "sigmoid";
    if (op == "Tanh") word = "tanh";
    if (op == "HardSwish") word = "hard_swish";
    if (op == "Swish" && attr_float(next, "alpha", 1) == 1) word = "silu";
    if (op == "Gelu") {
      const ir::Attribute* approximate = next.find("approximate");
      word = approximate && approximate->s == "tanh" ? "gelu_tanh" : "gelu_erf";
    }
    if (op == "LeakyRelu") {
      word = "leaky_relu";
      alpha = attr_float(next, "alpha", 0.01f);
    }
    if (op == "HardSigmoid") {
      word = "hard_sigmoid";
      alpha = attr_float(next, "alpha", 0.2f);
      beta = attr_float(next, "beta", 0.5f);
    }
    if (op == "Clip" && next.inputs.size() == 3) {
      const auto low = index_.scalar(next.inputs[1]), high = index_.scalar(next.inputs[2]);
      if (!low || !high) return false;
      word = "clip";
      alpha = static_cast<float>(*low);
      beta = static_cast<float>(*high);
    }
    if (word.empty()) return false;
    fused.attributes.push_back(ops::string_attribute("activation", word));
    if (alpha)
      fused.attributes.push_back(ops::float_attribute(gemm ? "activation_alpha" : "alpha", *alpha));
    if (beta)
      fused.attributes.push_back(ops::float_attribute(gemm ? "activation_beta" : "beta", *beta));
    return true;
  }

  GraphIndex index_;
};

}  // namespace

void fuse(ir::Graph& graph, const infer::Scope& scope) { Fuser(graph, scope).run(); }

}  // namespace sardonyx::rewrite
