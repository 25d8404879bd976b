#include "passes/fusion/epilogues.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>
#include <variant>

#include "ir/node_values.h"
#include "ir/tensor.h"
#include "ops/internal/node.h"
#include "ops/internal/quantized.h"
#include "passes/attributes.h"
#include "passes/fusion/products.h"

namespace sardonyx::passes {
namespace {

using kernels::Activation;
using ops::internal::Conv;
using ops::internal::ConvTranspose;
using ops::internal::FusedActivation;
using ops::internal::Gemm;
using ops::internal::MatMul;
using ops::internal::QuantizedConv;

template <class Op>
constexpr bool is_conv = std::is_same_v<Op, Conv> || std::is_same_v<Op, ConvTranspose>;

class Epilogues {
 public:
  explicit Epilogues(GraphIndex& index) : index_(index) {}

  // What follows a product and can be done before its results are stored.
  void epilogue(size_t i) {
    if (ops::internal::is<QuantizedConv>(index_.node(i))) return clamp(i);
    auto product = ops::internal::product_of(index_.node(i));
    if (!product || !index_.is_float32(index_.node(i).outputs[0])) return;
    std::visit(
        [&](auto& op) {
          if (may_have_epilogue(index_.node(i), op)) extend(i, op);
        },
        *product);
  }

 private:
  void clamp(size_t i) {
    ir::Node fused = index_.node(i);
    auto conv = ops::internal::from_node<QuantizedConv>(fused);
    const size_t user = index_.only_user(fused.outputs[0]);
    if (user == index_.size() || !conv.activation.is_none()) return;
    const auto activation = activation_of(index_.node(user), fused.outputs[0]);
    if (!activation || !QuantizedConv::takes_activation(activation->function)) return;
    conv.activation = *activation;
    ops::internal::write(conv, fused);
    fused.outputs = {index_.node(user).outputs[0]};
    index_.replace(user, std::move(fused));
  }

  bool may_have_epilogue(const ir::Node&, const Conv&) const { return true; }
  bool may_have_epilogue(const ir::Node& node, const ConvTranspose& conv) const {
    return ir::is_internal(node) || conv_weights(index_, node, conv) != nullptr;
  }
  // Both ranks tell that what is made has columns of B.
  bool may_have_epilogue(const ir::Node& node, const MatMul& product) const {
    const ir::Dims *a = index_.shape_of(node.inputs[MatMul::a]),
                   *b = index_.shape_of(node.inputs[MatMul::b]);
    return is_plain(node, product) && product.alpha == 1 && a != nullptr && a->size() >= 2 &&
           b != nullptr && b->size() >= 2;
  }
  bool may_have_epilogue(const ir::Node& node, const Gemm& product) const {
    return is_plain(node, product);
  }

  template <class Op>
  void extend(size_t i, Op& op) {
    ir::Node fused = index_.node(i);
    size_t last = i;
    while (const auto next = follow(fused, op)) {
      fused.outputs = {index_.node(*next).outputs[0]};
      last = *next;
    }
    if (last == i) return;
    ops::internal::write(op, fused);
    // The fused node stands where the last one stood: all its inputs are made by then.
    index_.replace(last, std::move(fused));
  }

  // Takes in what alone reads the product, where it can be done there; returns which node it was.
  template <class Op>
  std::optional<size_t> follow(ir::Node& fused, Op& op) {
    const std::string value = fused.outputs[0];
    const size_t user = index_.only_user(value);
    if (user == index_.size()) return std::nullopt;
    const ir::Node& next = index_.node(user);
    const bool adds = is_op(&next, "Add") || (is_op(&next, "Sum") && next.inputs.size() == 2);
    bool taken = false;
    if (adds) {
      const std::string* term = other_input(next, value);
      taken = term != nullptr && index_.same_shape(next.outputs[0], value) &&
              (take_bias(fused, op, *term) || take_residual(fused, op, *term));
    } else if (take_factor(fused, op, next, value)) {
      taken = true;
    } else if (op.activation.is_none()) {
      const auto activation = activation_of(next, value);
      if (activation) op.activation = *activation;
      taken = activation.has_value();
    }
    return taken ? std::optional(user) : std::nullopt;
  }

  // A constant number that the product is multiplied with or divided by.
  template <class Op>
  bool take_factor(const ir::Node& fused, Op& op, const ir::Node& next, const std::string& value) {
    if constexpr (std::is_same_v<Op, MatMul>) {
      const bool divides = is_op(&next, "Div");
      if ((!divides && !is_op(&next, "Mul")) || op.alpha != 1 || !op.activation.is_none() ||
          ir::has_input(fused, MatMul::bias) || ir::has_input(fused, MatMul::residual) ||
          (divides && next.inputs[0] != value) || !index_.same_shape(next.outputs[0], value))
        return false;
      const std::string* other = other_input(next, value);
      const auto factor = other != nullptr ? index_.scalar(*other) : std::nullopt;
      // Dividing by a power of two is multiplying.
      int exponent = 0;
      if (!factor || *factor == 0 || (divides && std::abs(std::frexp(*factor, &exponent)) != 0.5))
        return false;
      const auto alpha = static_cast<float>(divides ? 1 / *factor : *factor);
      if (!std::isfinite(alpha)) return false;
      op.alpha = alpha;
      return true;
    }
    return false;
  }

  bool take_bias(ir::Node&, const Gemm&, const std::string&) { return false; }
  template <class Op>
  bool take_bias(ir::Node& fused, const Op& op, const std::string& term) {
    if (!op.activation.is_none() || ir::has_input(fused, Op::bias)) return false;
    if constexpr (Op::takes_residual) {
      if (ir::has_input(fused, Op::residual)) return false;
    }
    const ir::Dims* shape = index_.shape_of(fused.outputs[0]);
    if (shape == nullptr || shape->empty()) return false;
    const Tensor* bias =
        index_.vector_along(is_conv<Op> ? 1 : shape->size() - 1, term, fused.outputs[0]);
    if (bias == nullptr) return false;
    ir::set_input(fused, Op::bias,
                  bias->rank() == 1 ? term
                                    : index_.add_initializer(
                                          ir::aligned(*bias).reshaped({bias->size()}), "bias"));
    return true;
  }

  template <class Op>
  bool take_residual(ir::Node& fused, Op& op, const std::string& term) {
    if constexpr (Op::takes_residual) {
      if (ir::has_input(fused, Op::residual) || !index_.same_shape(term, fused.outputs[0]) ||
          index_.constant(term) != nullptr)
        return false;
      ir::set_input(fused, Op::residual, term);
      op.residual_last = !op.activation.is_none();
      return true;
    }
    return false;
  }

  // What `next` does to `value`, where an epilogue can do it.
  std::optional<FusedActivation> activation_of(const ir::Node& next,
                                               const std::string& value) const {
    if (!next.domain.empty() || next.inputs[0] != value) return std::nullopt;
    const std::string& op = next.op_type;
    if (op == "Relu") return FusedActivation{Activation::relu};
    if (op == "Sigmoid") return FusedActivation{Activation::sigmoid};
    if (op == "Tanh") return FusedActivation{Activation::tanh};
    if (op == "HardSwish") return FusedActivation{Activation::hard_swish};
    if (op == "Swish" && attr_float(next, "alpha", 1) == 1)
      return FusedActivation{Activation::silu};
    if (op == "Gelu") {
      const ir::Attribute* approximate = next.find("approximate");
      const bool tanh = approximate != nullptr && approximate->s == "tanh";
      return FusedActivation{tanh ? Activation::gelu_tanh : Activation::gelu_erf};
    }
    if (op == "LeakyRelu")
      return FusedActivation{Activation::leaky_relu, attr_float(next, "alpha", 0.01f)};
    if (op == "HardSigmoid")
      return FusedActivation{Activation::hard_sigmoid, attr_float(next, "alpha", 0.2f),
                             attr_float(next, "beta", 0.5f)};
    if (op == "Clip" && next.inputs.size() == 3) {
      const auto low = index_.scalar(next.inputs[1]), high = index_.scalar(next.inputs[2]);
      if (!low || !high) return std::nullopt;
      return FusedActivation{Activation::clip, static_cast<float>(*low), static_cast<float>(*high)};
    }
    return std::nullopt;
  }

  GraphIndex& index_;
};

}  // namespace

void fuse_epilogues(GraphIndex& index) {
  Epilogues found(index);
  index.for_each([&](size_t i) { found.epilogue(i); });
}

}  // namespace sardonyx::passes
