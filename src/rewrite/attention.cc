#include "rewrite/attention.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "ops/upgrade_context.h"

namespace sardonyx::rewrite {
namespace {

bool has_perm(const ir::Node* node, std::vector<int64_t> perm) {
  if (!is_op(node, "Transpose")) return false;
  const ir::Attribute* given = node->find("perm");
  return given != nullptr && std::ranges::equal(given->ints, perm);
}

// The nodes of one attention, from its Softmax.
class Match {
 public:
  Match(GraphIndex& index, size_t softmax) : index_(index), softmax_(softmax) {}

  bool replace() {
    if (!softmax() || !scores() || !values()) return false;
    ir::Node fused;
    fused.domain = "sardonyx";
    fused.op_type = "Attention";
    fused.name = index_.node(softmax_).name;
    std::vector<int64_t> transposed(4, 0);
    const std::vector<int64_t> swapped{0, 2, 1, 3};
    for (size_t i = 0; i < 3; ++i) {
      const size_t turn = index_.producer_index(operands_[i]);
      if (i == 1 && keys_swapped_) {
        transposed[i] = 1;
      } else if (turn != index_.size() && has_perm(&index_.node(turn), swapped)) {
        operands_[i] = index_.node(turn).inputs[0];
        transposed[i] = 1;
        parts_.push_back(turn);
      }
      fused.inputs.push_back(operands_[i]);
    }
    if (left_out_) allow();
    if (!mask_.empty()) fused.inputs.push_back(mask_);
    if (!added_.empty()) {
      fused.inputs.resize(mask_.empty() ? 3 : 7);
      fused.inputs.push_back(added_);
    }
    size_t last = product_;
    const size_t user = index_.only_user(index_.node(product_).outputs[0]);
    if (user != index_.size() && has_perm(&index_.node(user), swapped)) {
      transposed[3] = 1;
      last = user;
    }
    fused.outputs = {index_.node(last).outputs[0]};
    fused.attributes = {ops::float_attribute("scale", static_cast<float>(scale_)),
                        ops::ints_attribute("transposed", transposed)};
    if (masked_) fused.attributes.push_back(ops::float_attribute("masked", *masked_));
    index_.replace(last, std::move(fused), parts_);
    return true;
  }

 private:
  const ir::Dims* shape(const std::string& value) const {
    const infer::Known* known = index_.known(value);
    return known && known->type.shape ? &*known->type.shape : nullptr;
  }

  bool softmax() const {
    const ir::Node& node = index_.node(softmax_);
    if (!is_op(&node, "Softmax") || !index_.is_float32(node.outputs[0])) return false;
    const auto* dims = shape(node.outputs[0]);
    if (dims == nullptr || dims->size() != 4) return false;
    const ir::Attribute* axis = node.find("axis");
    return axis == nullptr || !axis->i || *axis->i == -1 || *axis->i == 3;
  }

  // What the Softmax is of, back to the operands.
  bool scores() {
    std::string value = index_.node(softmax_).inputs[0];
    if (index_.uses(value) != 1) return false;
    int uses = 1;  // of `value`
    const ir::Node* node = index_.producer(value);
    if (is_op(node, "Add")) {
      for (const size_t side : {size_t{0}, size_t{1}}) {
        const std::string &product = node->inputs[side], &added = node->inputs[1 - side];
        const ir::Node* before = index_.producer(product);
        const bool masked = is_op(before, "Where") && index_.uses(product) == 1;
        if ((!masked && !is_scaled_product(product, 1)) || !index_.is_float32(added) ||
            !is_mask(added, product, value))
          continue;
        added_ = node->inputs[1 - side];
        value = node->inputs[side];
        break;
      }
      if (added_.empty()) return false;
      node = index_.producer(value);
    }
    if (is_op(node, "Where")) {
      if (!takes_where(*node, value, uses)) return false;
    }
    node = index_.producer(value);
    if (is_op(node, "Mul") || is_op(node, "Div")) {
      if (index_.uses(value) != uses || !without_factor(value)) return false;
      node = index_.producer(value);
      uses = 1;
    }
    if (!is_op(node, "MatMul") || index_.uses(value) != uses) return false;
    operands_[0] = node->inputs[0];
    without_factor(operands_[0]);
    return keys(node->inputs[1]);
  }

  // Where(condition, scores, number), or the other way around. `uses`: how often the scores are
  // read.
  bool takes_where(const ir::Node& where, std::string& value, int& uses) {
    for (const size_t side : {size_t{1}, size_t{2}}) {
      const std::string &scores = where.inputs[side], &made = where.outputs[0];
      const auto number = index_.scalar(where.inputs[3 - side]);
      if (!number || std::isnan(*number)) continue;
      mask_ = where.inputs[0];
      const std::vector<size_t> expansion = expansion_of(mask_, scores);
      if (!expansion.empty()) mask_ = index_.node(expansion.front()).inputs[0];
      uses = expansion.empty() ? 1 : 2;
      if (!is_scaled_product(scores, uses) || !is_mask(mask_, scores, made)) continue;
      masked_ = static_cast<float>(*number);
      if (side == 2) left_out_ = index_.producer_index(made);
      parts_.insert(parts_.end(), expansion.begin(), expansion.end());
      parts_.push_back(index_.producer_index(scores));
      value = scores;
      return true;
    }
    return false;
  }

  // Expand of a mask to Shape(scores), which Where does by itself: these two nodes, where nothing
  // else reads them.
  std::vector<size_t> expansion_of(const std::string& mask, const std::string& scores) const {
    const ir::Node* expand = index_.producer(mask);
    if (!is_op(expand, "Expand") || index_.uses(mask) != 1) return {};
    const ir::Node* sizes = index_.producer(expand->inputs[1]);
    if (!is_op(sizes, "Shape") || sizes->inputs[0] != scores || !sizes->attributes.empty() ||
        index_.uses(expand->inputs[1]) != 1)
      return {};
    return {index_.producer_index(mask), index_.producer_index(expand->inputs[1])};
  }

  // The mask says what is left out: its opposite, where the Where stood.
  void allow() {
    ir::Node opposite;
    opposite.op_type = "Not";
    opposite.name = index_.node(*left_out_).name;
    opposite.inputs = {mask_};
    opposite.outputs = {index_.node(*left_out_).outputs[0] + "__allowed"};
    mask_ = opposite.outputs[0];
    index_.change(*left_out_, std::move(opposite));
  }

  // What is multiplied or divided by a number, instead of the product; the number goes into the
  // scale. False where it is no such product.
  bool without_factor(std::string& value) {
    const ir::Node* node = index_.producer(value);
    if (!is_op(node, "Mul") && !is_op(node, "Div")) return false;
    const bool divides = node->op_type == "Div";
    const size_t side = !divides && index_.scalar(node->inputs[0]) ? 1 : 0;
    const auto factor = index_.scalar(node->inputs[1 - side]);
    if (!factor || *factor == 0) return false;
    scale_ *= divides ? 1 / *factor : *factor;
    parts_.push_back(index_.producer_index(value));
    value = node->inputs[side];
    return true;
  }

  bool is_scaled_product(const std::string& value, int uses) const {
    const ir::Node* node = index_.producer(value);
    if (index_.uses(value) != uses) return false;
    if (is_op(node, "Mul") || is_op(node, "Div")) {
      const bool left = index_.scalar(node->inputs[1]).has_value();
      node = index_.producer(node->inputs[left ? 0 : 1]);
    }
    return is_op(node, "MatMul");
  }

  // Repeated over the dimensions of the scores where it is not as large. How many keys there are
  // the two may say in names that only a run finds to be equal.
  bool is_mask(const std::string& mask, const std::string& scores,
               const std::string& masked) const {
    const auto *dims = shape(mask), *from = shape(scores), *to = shape(masked);
    if (dims == nullptr || from == nullptr || to == nullptr || dims->empty() || dims->size() > 4 ||
        from->size() != 4 || to->size() != 4)
      return false;
    for (size_t back = 1; back <= dims->size(); ++back) {
      const ir::Dim &dim = (*dims)[dims->size() - back], &all = (*to)[4 - back];
      const bool joins = back == 1 && all == broadcast((*from)[3], dim);
      if (!(dim == 1) && !(dim == all) && !joins) return false;
    }
    return true;
  }

  bool keys(std::string turned) {
    without_factor(turned);
    const ir::Node* node = index_.producer(turned);
    if (node != nullptr) parts_.push_back(index_.producer_index(turned));
    keys_swapped_ = has_perm(node, {0, 2, 3, 1});
    if (!keys_swapped_ && !has_perm(node, {0, 1, 3, 2})) return false;
    operands_[1] = node->inputs[0];
    without_factor(operands_[1]);
    return true;
  }

  bool values() {
    const std::string& weights = index_.node(softmax_).outputs[0];
    product_ = index_.only_user(weights);
    if (product_ == index_.size() || !is_op(&index_.node(product_), "MatMul") ||
        index_.node(product_).inputs[0] != weights)
      return false;
    operands_[2] = index_.node(product_).inputs[1];
    return sizes_fit();
  }

  // Four dimensions each, and the same batch and heads: nothing is broadcast.
  bool sizes_fit() const {
    const auto* q = shape(operands_[0]);
    const auto* k = shape(operands_[1]);
    const auto* v = shape(operands_[2]);
    if (q == nullptr || k == nullptr || v == nullptr || q->size() != 4 || k->size() != 4 ||
        v->size() != 4)
      return false;
    const ir::Dim &k_heads = (*k)[keys_swapped_ ? 2 : 1], &length = (*k)[keys_swapped_ ? 1 : 2];
    return length == (*v)[2] && (*q)[0] == (*k)[0] && (*q)[0] == (*v)[0] && (*q)[1] == k_heads &&
           (*q)[1] == (*v)[1] && (*q)[1].is_constant();
  }

  GraphIndex& index_;
  size_t softmax_;
  size_t product_ = 0;  // of the weights and V
  std::string operands_[3];
  std::string mask_;                // true where the scores count
  std::string added_;               // to the scores, after the mask
  std::optional<float> masked_;     // the score where the mask is false
  std::optional<size_t> left_out_;  // the Where whose mask is true where scores do not count
  std::vector<size_t> parts_;  // Transposes and factors of the operands, which others may read too
  double scale_ = 1;
  bool keys_swapped_ = false;  // K is batch x length x heads x size
};

}  // namespace

void fuse_attention(GraphIndex& index) {
  for (size_t i = 0; i < index.size(); ++i) {
    if (!index.is_dead(i)) Match(index, i).replace();
  }
}

}  // namespace sardonyx::rewrite
