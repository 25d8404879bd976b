#include "passes/fusion/group_normalizations.h"

#include <optional>
#include <vector>

#include "ir/tensor.h"
#include "ops/upgrade_context.h"
#include "passes/attributes.h"

namespace sardonyx::passes {
namespace {

class GroupNormalization {
 public:
  GroupNormalization(GraphIndex& index, size_t root) : index_(index), root_(root) {}

  void replace() {
    const ir::Node& norm = index_.node(root_);
    if (!is_op(&norm, "InstanceNormalization")) return;
    const ir::Node* split = index_.producer(norm.inputs[0]);
    const size_t join = index_.only_user(norm.outputs[0]);
    if (!is_op(split, "Reshape") || join == index_.size() || !is_op(&index_.node(join), "Reshape"))
      return;
    const std::string x = split->inputs[0];
    const ir::Dims *shape = index_.shape_of(x), *grouped = index_.shape_of(norm.inputs[0]);
    if (!index_.is_float32(x) || shape == nullptr || grouped == nullptr || shape->size() < 3 ||
        grouped->size() < 3 || (*shape)[0] != (*grouped)[0] ||
        !index_.same_shape(index_.node(join).outputs[0], x))
      return;
    const auto channels = (*shape)[1].value(), groups = (*grouped)[1].value();
    if (!channels || !groups || *groups <= 0 || *channels % *groups != 0) return;
    auto scale = floats(norm.inputs[1], *groups), bias = floats(norm.inputs[2], *groups);
    if (!scale || !bias) return;
    scale_ = repeated(*scale, *channels), bias_ = repeated(*bias, *channels);
    size_t last = join;
    // A factor, a term, or both.
    if (const auto factor = channel_step(last, "Mul", *channels)) {
      for (size_t c = 0; c < scale_.size(); ++c) {
        scale_[c] *= factor->values[c];
        bias_[c] *= factor->values[c];
      }
      last = factor->node;
    }
    if (const auto term = channel_step(last, "Add", *channels)) {
      for (size_t c = 0; c < bias_.size(); ++c) bias_[c] += term->values[c];
      last = term->node;
    }
    ir::Node fused;
    fused.op_type = "GroupNormalization";
    fused.name = norm.name;
    fused.attributes = {ops::int_attribute("num_groups", *groups),
                        ops::float_attribute("epsilon", attr_float(norm, "epsilon", 1e-5f))};
    fused.inputs = {x, index_.add_initializer(Tensor::of<float>(scale_, {*channels}), "scale"),
                    index_.add_initializer(Tensor::of<float>(bias_, {*channels}), "bias")};
    fused.outputs = {index_.node(last).outputs[0]};
    index_.replace(last, std::move(fused));
  }

 private:
  // A constant of so many float32.
  std::optional<std::vector<float>> floats(const std::string& value, int64_t count) const {
    const Tensor* tensor = index_.constant(value);
    if (tensor == nullptr || tensor->element_type() != ElementType::float32 ||
        tensor->size() != count)
      return std::nullopt;
    const Tensor held = ir::aligned(*tensor);
    const auto elements = held.elements<float>();
    return std::vector<float>(elements.begin(), elements.end());
  }

  static std::vector<float> repeated(const std::vector<float>& groups, int64_t channels) {
    std::vector<float> each(static_cast<size_t>(channels));
    const size_t width = each.size() / groups.size();
    for (size_t c = 0; c < each.size(); ++c) each[c] = groups[c / width];
    return each;
  }

  // The node of this kind that alone uses what `before` makes, and its other operand: a constant
  // with one value for each channel.
  struct ChannelStep {
    size_t node;
    std::vector<float> values;
  };
  std::optional<ChannelStep> channel_step(size_t before, std::string_view op,
                                          int64_t channels) const {
    const std::string& value = index_.node(before).outputs[0];
    const size_t user = index_.only_user(value);
    if (user == index_.size() || !is_op(&index_.node(user), op)) return std::nullopt;
    const std::string* operand = other_input(index_.node(user), value);
    const Tensor* tensor = operand ? index_.constant(*operand) : nullptr;
    if (tensor == nullptr || !index_.same_shape(index_.node(user).outputs[0], value))
      return std::nullopt;
    // Behind missing axes in front it is [1, channels, 1, ...].
    const auto rank = static_cast<int64_t>(index_.shape_of(value)->size());
    const int64_t axis = tensor->rank() - (rank - 1);
    if (axis < 0 || axis > 1 || tensor->shape()[static_cast<size_t>(axis)] != channels)
      return std::nullopt;
    auto values = floats(*operand, channels);
    return values ? std::optional(ChannelStep{user, std::move(*values)}) : std::nullopt;
  }

  GraphIndex& index_;
  size_t root_;  // the node that normalises
  std::vector<float> scale_, bias_;
};

}  // namespace

void fuse_group_normalizations(GraphIndex& index) {
  for (size_t i = 0; i < index.size(); ++i) {
    if (!index.is_dead(i)) GroupNormalization(index, i).replace();
  }
}

}  // namespace sardonyx::passes
