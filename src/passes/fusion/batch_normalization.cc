#include "passes/fusion/batch_normalization.h"

#include <cmath>

#include "ir/tensor.h"
#include "passes/attributes.h"
#include "passes/fusion/products.h"
#include "passes/running_statistics.h"

namespace sardonyx::passes {
namespace {

// The operators whose fused form takes images, and a factor for each output channel.
bool is_conv(const ir::Node& node) {
  return is_product(node, "Conv") || is_product(node, "ConvTranspose");
}

// The axis of the weights that counts output channels.
size_t output_axis(const ir::Node& conv) { return conv.op_type == "Conv" ? 0 : 1; }

class Normalizations {
 public:
  explicit Normalizations(GraphIndex& index) : index_(index) {}

  // BatchNormalization after a convolution becomes part of its weights and bias.
  bool fold_batch_normalization(size_t i) {
    ir::Node& norm = index_.node(i);
    if (!is_op(&norm, "BatchNormalization") || attr_int(norm, "training_mode", 0) != 0)
      return false;
    const size_t c = index_.producer_index(norm.inputs[0]);
    if (c == index_.size() || !is_conv(index_.node(c)) || index_.uses(norm.inputs[0]) != 1)
      return false;
    const ir::Node& conv = index_.node(c);
    const Tensor* w = conv_weights(index_, conv);
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

 private:
  GraphIndex& index_;
};

}  // namespace

void fold_batch_normalizations(GraphIndex& index) {
  Normalizations found(index);
  index.for_each([&](size_t i) { found.fold_batch_normalization(i) || found.normalize_rows(i); });
}

}  // namespace sardonyx::passes
