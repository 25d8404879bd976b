#include "passes/fusion/batch_normalization.h"

#include <cmath>

#include "ir/node_values.h"
#include "ir/tensor.h"
#include "ops/internal/images.h"
#include "ops/internal/node.h"
#include "ops/internal/quantized.h"
#include "passes/attributes.h"
#include "passes/fusion/products.h"
#include "passes/running_statistics.h"

namespace sardonyx::passes {
namespace {

using ops::internal::Conv;
using ops::internal::ConvTranspose;
using ops::internal::QuantizedConv;
using ops::internal::ScaleShift;

class Normalizations {
 public:
  explicit Normalizations(GraphIndex& index) : index_(index) {}

  // BatchNormalization after a convolution becomes part of its weights and bias.
  bool fold_batch_normalization(size_t i) {
    const ir::Node& norm = index_.node(i);
    if (!is_op(&norm, "BatchNormalization") || attr_int(norm, "training_mode", 0) != 0)
      return false;
    const size_t c = index_.producer_index(norm.inputs[0]);
    if (c == index_.size() || index_.uses(norm.inputs[0]) != 1) return false;
    if (ops::internal::is<QuantizedConv>(index_.node(c))) return fold_into_scales(c, i);
    const auto product = ops::internal::product_of(index_.node(c));
    if (!product || !is_plain(index_.node(c), *product)) return false;
    if (const auto* conv = std::get_if<Conv>(&*product)) return fold_into(*conv, c, i);
    if (const auto* conv = std::get_if<ConvTranspose>(&*product)) return fold_into(*conv, c, i);
    return false;
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
    const std::string factors = index_.add_initializer(channels->factors, "factors"),
                      terms = index_.add_initializer(channels->terms, "terms");
    index_.replace(i, ops::internal::to_node(ScaleShift{}, norm.name,
                                             {{ScaleShift::x, norm.inputs[0]},
                                              {ScaleShift::factors, factors},
                                              {ScaleShift::terms, terms}},
                                             {norm.outputs[0]}));
    return true;
  }

 private:
  // The factors become part of the weights' scales.
  bool fold_into_scales(size_t c, size_t i) {
    const ir::Node &conv = index_.node(c), &norm = index_.node(i);
    const bool has_bias = ir::has_input(conv, QuantizedConv::bias);
    const Tensor *scales = index_.constant(conv.inputs[QuantizedConv::w_scale]),
                 *bias = has_bias ? index_.constant(conv.inputs[QuantizedConv::bias]) : nullptr;
    const auto channels =
        running_statistics(norm, [&](const std::string& name) { return index_.constant(name); });
    if (!channels || scales == nullptr || (has_bias && bias == nullptr) ||
        !ops::internal::from_node<QuantizedConv>(conv).activation.is_none())
      return false;
    const int64_t count = channels->factors.size();
    const Tensor* weights = index_.constant(conv.inputs[QuantizedConv::w]);
    if (weights == nullptr || weights->shape()[0] != count) return false;
    if ((scales->size() != 1 && scales->size() != count) || (bias && bias->size() != count))
      return false;
    const Tensor held = ir::aligned(*scales), added = bias ? ir::aligned(*bias) : Tensor();
    Tensor made(ElementType::float32, {count}), terms(ElementType::float32, {count});
    const auto factors = channels->factors.elements<float>();
    for (size_t m = 0; m < factors.size(); ++m) {
      made.mutable_elements<float>()[m] =
          held.elements<float>()[scales->size() == 1 ? 0 : m] * factors[m];
      const float term = channels->terms.elements<float>()[m];
      terms.mutable_elements<float>()[m] =
          bias ? std::fma(added.elements<float>()[m], factors[m], term) : term;
    }
    ir::Node folded = conv;
    ir::set_input(folded, QuantizedConv::w_scale, index_.add_initializer(made, "scales"));
    ir::set_input(folded, QuantizedConv::bias, index_.add_initializer(terms, "bias"));
    folded.outputs = {norm.outputs[0]};
    index_.replace(i, std::move(folded));
    return true;
  }

  template <class Op>
  bool fold_into(const Op& conv, size_t c, size_t i) {
    const ir::Node &node = index_.node(c), &norm = index_.node(i);
    const Tensor* w = conv_weights(index_, node, conv);
    const bool has_bias = ir::has_input(node, Op::bias);
    const Tensor* b = has_bias ? index_.constant(node.inputs[Op::bias]) : nullptr;
    std::vector<Tensor> parameters;
    for (size_t k = 1; k <= 4; ++k) {
      const Tensor* p = index_.constant(norm.inputs[k]);
      if (p == nullptr || p->element_type() != ElementType::float32) return false;
      parameters.push_back(ir::aligned(*p));
    }
    if (w == nullptr || (has_bias && b == nullptr) || w->rank() < 3) return false;
    const int64_t channels = w->shape()[Op::output_axis];
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
    ir::Node fused = node;
    ops::internal::write(conv, fused);
    ir::set_input(fused, Op::bias, index_.add_initializer(bias, "bias"));
    ir::set_input(fused, Op::factors, index_.add_initializer(factors, "factors"));
    fused.outputs = {norm.outputs[0]};
    index_.replace(i, std::move(fused));
    return true;
  }

  GraphIndex& index_;
};

}  // namespace

void fold_batch_normalizations(GraphIndex& index) {
  Normalizations found(index);
  index.for_each([&](size_t i) { found.fold_batch_normalization(i) || found.normalize_rows(i); });
}

}  // namespace sardonyx::passes
