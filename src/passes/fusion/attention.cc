#include "passes/fusion/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/node_values.h"
#include "ops/internal/attention.h"
#include "ops/internal/node.h"

namespace sardonyx::passes {
namespace {

using ops::internal::Attention;

bool has_perm(const ir::Node* node, std::vector<int64_t> perm) {
  if (!is_op(node, "Transpose")) return false;
  const ir::Attribute* given = node->find("perm");
  return given != nullptr && std::ranges::equal(given->ints, perm);
}

// The nodes of one attention, from its Softmax. Bit n of `sides` says which input of the nth sum
// before it is the scores; the other is added.
class Match {
 public:
  Match(GraphIndex& index, size_t softmax, unsigned sides)
      : index_(index), softmax_(softmax), sides_(sides) {}

  bool replace() {
    if (!softmax() || !scores() || !values()) return false;
    if (widened_) widen();
    without_repetition();
    Attention op;
    op.scale = static_cast<float>(scale_);
    op.masked = masked_;
    if (rank_ == 3) op.q_num_heads = op.kv_num_heads = 1;
    ir::Node fused;
    fused.name = index_.node(softmax_).name;
    for (const size_t i : {Attention::q, Attention::k, Attention::v}) {
      const size_t turn = index_.producer_index(operands_[i]);
      if (i == Attention::k && keys_swapped_) {
        op.transposed[i] = true;
      } else if (turn != index_.size() && has_perm(&index_.node(turn), length_first())) {
        operands_[i] = index_.node(turn).inputs[0];
        op.transposed[i] = true;
        parts_.push_back(turn);
      }
      fused.inputs.push_back(operands_[i]);
    }
    if (left_out_) allow();
    if (added_first_) add_first();
    for (const Mask& mask : masks_) {
      ir::set_input(fused, op.inner.empty() ? Attention::mask : Attention::second_mask, mask.value);
      op.inner.push_back(mask.inner);
    }
    size_t last = product_;
    const size_t user = index_.only_user(index_.node(product_).outputs[0]);
    if (user != index_.size() && has_perm(&index_.node(user), length_first())) {
      op.transposed.back() = true;
      last = user;
    }
    fused.outputs = {index_.node(last).outputs[0]};
    ops::internal::write(op, fused);
    index_.replace(last, std::move(fused), parts_);
    return true;
  }

 private:
  // What the scores are masked with. Where `inner` is not 1, it has the shape that scores have
  // whose batches are counted in rows of so many: one dimension more.
  struct Mask {
    std::string value;
    int64_t inner = 1;
  };

  // Batch (and heads) x length x size, from length first.
  std::vector<int64_t> length_first() const {
    return rank_ == 4 ? std::vector<int64_t>{0, 2, 1, 3} : std::vector<int64_t>{1, 0, 2};
  }

  bool softmax() {
    const ir::Node& node = index_.node(softmax_);
    if (!is_op(&node, "Softmax") || !index_.is_float32(node.outputs[0])) return false;
    const auto* dims = index_.shape_of(node.outputs[0]);
    if (dims == nullptr || dims->size() < 3 || dims->size() > 4) return false;
    rank_ = dims->size();
    const ir::Attribute* axis = node.find("axis");
    return axis == nullptr || !axis->i || *axis->i == -1 ||
           *axis->i == static_cast<int64_t>(rank_) - 1;
  }

  // What the Softmax is of, back to the operands.
  bool scores() {
    std::string value = index_.node(softmax_).inputs[0];
    int uses = 1;  // of `value`
    if (!takes_sum_of_parts(value))
      for (unsigned n = 0; n < 2 && takes_sum(value, (sides_ >> n) & 1); ++n) continue;
    if (masks_.size() < 2) takes_where(value, uses);
    std::ranges::reverse(masks_);
    const ir::Node* node = index_.producer(value);
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

  // The node that masks scores, where its output is nothing but the scores: `value`, or of another
  // shape, in which a Reshape puts it back.
  const ir::Node* masking(const std::string& value, std::string_view op, bool& reshaped) const {
    const ir::Node* node = index_.uses(value) == 1 ? index_.producer(value) : nullptr;
    reshaped = is_op(node, "Reshape");
    if (reshaped)
      node = index_.uses(node->inputs[0]) == 1 ? index_.producer(node->inputs[0]) : nullptr;
    return is_op(node, op) ? node : nullptr;
  }

  // Scores before the Reshape that counts their batches in rows, where there is one. 0 where it
  // does something else; otherwise how many batches are in a row.
  int64_t without_rows(std::string& scores, const std::string& result, bool reshaped) const {
    if (!reshaped) return 1;
    const ir::Node* node = index_.producer(scores);
    if (!is_op(node, "Reshape") || index_.uses(scores) != 1) return 0;
    const auto *rows = index_.shape_of(scores), *all = index_.shape_of(node->inputs[0]),
               *back = index_.shape_of(result);
    if (rows == nullptr || all == nullptr || back == nullptr || rows->size() != rank_ + 1 ||
        all->size() != rank_ || *all != *back ||
        !std::equal(rows->begin() + 2, rows->end(), all->begin() + 1, all->end()))
      return 0;
    const std::optional<int64_t> inner = (*rows)[1].value();
    if (!inner || *inner < 2) return 0;
    const bool counts = (*rows)[0] == floor_div((*all)[0], *inner);
    if (!counts && (*rows)[0] * *inner != (*all)[0]) return 0;
    scores = node->inputs[0];
    return *inner;
  }

  bool takes_sum(std::string& value, size_t side) {
    bool reshaped = false;
    const ir::Node* sum = masking(value, "Add", reshaped);
    if (sum == nullptr) return false;
    const std::string& added = sum->inputs[1 - side];
    if (!index_.is_float32(added) || !is_mask(added, sum->inputs[side])) return false;
    std::string scores = sum->inputs[side];
    const int64_t inner = without_rows(scores, value, reshaped);
    if (inner == 0) return false;
    masks_.push_back({added, inner});
    value = scores;
    return true;
  }

  // A sum of two terms, each for a part of the dimensions that a Reshape makes of the scores: a
  // position's row and column. Together they have an element for each score, and are added first.
  bool takes_sum_of_parts(std::string& value) {
    bool reshaped = false;
    const ir::Node* second = masking(value, "Add", reshaped);
    if (second == nullptr || !reshaped) return false;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const std::string& sum = second->inputs[side];
      const ir::Node* first = index_.uses(sum) == 1 ? index_.producer(sum) : nullptr;
      if (!is_op(first, "Add")) continue;
      for (const size_t inner : {size_t{0}, size_t{1}}) {
        const std::string& parts = first->inputs[inner];
        const ir::Node* apart = index_.uses(parts) == 1 ? index_.producer(parts) : nullptr;
        if (!is_op(apart, "Reshape")) continue;
        const std::array terms = {first->inputs[1 - inner], second->inputs[1 - side]};
        const std::string scores = apart->inputs[0];
        const auto *all = index_.shape_of(scores), *back = index_.shape_of(value);
        if (all == nullptr || back == nullptr || *all != *back || !fill(terms, parts)) continue;
        added_first_ = {index_.producer_index(second->outputs[0]), terms};
        parts_.push_back(index_.producer_index(sum));
        parts_.push_back(index_.producer_index(parts));
        masks_.push_back({value, 1});
        value = scores;
        return true;
      }
    }
    return false;
  }

  // Whether the sum of both has the shape of `whole`.
  bool fill(const std::array<std::string, 2>& terms, const std::string& whole) const {
    const auto *a = index_.shape_of(terms[0]), *b = index_.shape_of(terms[1]),
               *all = index_.shape_of(whole);
    if (a == nullptr || b == nullptr || all == nullptr || !index_.is_float32(terms[0]) ||
        !index_.is_float32(terms[1]) || a->size() != all->size() || b->size() != all->size())
      return false;
    for (size_t i = 0; i < all->size(); ++i) {
      const ir::Dim& dim = (*all)[i];
      const bool both = ((*a)[i] == dim || (*a)[i] == 1) && ((*b)[i] == dim || (*b)[i] == 1);
      if (!both || ((*a)[i] != dim && (*b)[i] != dim)) return false;
    }
    return true;
  }

  // Where(condition, scores, number), or the other way around. `uses`: how often the scores are
  // read.
  bool takes_where(std::string& value, int& uses) {
    bool reshaped = false;
    const ir::Node* where = masking(value, "Where", reshaped);
    if (where == nullptr) return false;
    for (const size_t side : {size_t{1}, size_t{2}}) {
      std::string scores = where->inputs[side], mask = where->inputs[0];
      const auto number = index_.scalar(where->inputs[3 - side]);
      if (!number || std::isnan(*number)) continue;
      const std::vector<size_t> expansion =
          reshaped ? std::vector<size_t>() : expansion_of(mask, scores);
      if (!expansion.empty()) mask = index_.node(expansion.front()).inputs[0];
      if (!is_mask(mask, scores)) continue;
      const int64_t inner = without_rows(scores, value, reshaped);
      if (inner == 0) continue;
      uses = expansion.empty() ? 1 : 2;
      masked_ = static_cast<float>(*number);
      if (side == 2) left_out_ = index_.producer_index(where->outputs[0]);
      parts_.insert(parts_.end(), expansion.begin(), expansion.end());
      parts_.push_back(index_.producer_index(scores));
      masks_.push_back({mask, inner});
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

  // Keys and values that are repeated for several heads are read as they are: each of their heads
  // serves as many queries' heads.
  void without_repetition() {
    if (rank_ != 4 || keys_swapped_) return;
    const std::string keys = unrepeated(operands_[1]), values = unrepeated(operands_[2]);
    if (keys.empty() || values.empty() ||
        (*index_.shape_of(keys))[1] != (*index_.shape_of(values))[1])
      return;
    operands_[1] = keys, operands_[2] = values;
  }

  // Of batch x heads x length x size, what Unsqueeze, Expand and Reshape make that from by
  // repeating each head; "" where they do not.
  std::string unrepeated(const std::string& heads) const {
    const ir::Node* joined = index_.producer(heads);
    const ir::Node* expand =
        is_op(joined, "Reshape") ? index_.producer(joined->inputs[0]) : nullptr;
    const ir::Node* apart = is_op(expand, "Expand") ? index_.producer(expand->inputs[0]) : nullptr;
    if (!is_op(apart, "Unsqueeze")) return {};
    const auto *few = index_.shape_of(apart->inputs[0]), *one = index_.shape_of(apart->outputs[0]),
               *many = index_.shape_of(expand->outputs[0]), *all = index_.shape_of(heads);
    if (few == nullptr || one == nullptr || many == nullptr || all == nullptr || few->size() != 4 ||
        many->size() != 5)
      return {};
    const ir::Dim &batch = (*few)[0], &groups = (*few)[1], &length = (*few)[2], &size = (*few)[3],
                  &times = (*many)[2];
    const bool repeats = *one == ir::Dims{batch, groups, 1, length, size} &&
                         *many == ir::Dims{batch, groups, times, length, size} &&
                         *all == ir::Dims{batch, groups * times, length, size};
    return repeats && groups.is_constant() && times.is_constant() ? apart->inputs[0] : "";
  }

  // The mask says what is left out: its opposite, where the Where stood.
  void allow() {
    ir::Node opposite;
    opposite.op_type = "Not";
    opposite.name = index_.node(*left_out_).name;
    opposite.inputs = {masks_[0].value};
    opposite.outputs = {index_.fresh_name(index_.node(*left_out_).outputs[0], "allowed")};
    masks_[0].value = opposite.outputs[0];
    index_.change(*left_out_, std::move(opposite));
  }

  // The second sum becomes that of the terms; the Reshape behind it gives it the shape of scores.
  void add_first() {
    ir::Node sum = index_.node(added_first_->second_sum);
    sum.inputs.assign(added_first_->terms.begin(), added_first_->terms.end());
    index_.change(added_first_->second_sum, std::move(sum));
  }

  // The Cast of transposed keys, where it stands, becomes one of the keys as they are.
  void widen() {
    ir::Node cast = index_.node(*widened_);
    cast.inputs = {operands_[1]};
    cast.outputs = {index_.fresh_name(cast.outputs[0], "keys")};
    operands_[1] = cast.outputs[0];
    index_.change(*widened_, std::move(cast));
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

  // Attention broadcasts masks and scores as Where and Add do it, whatever sizes a run finds. Only
  // what repeats the scores for sure stays apart: their product would be computed again and again.
  bool is_mask(const std::string& mask, const std::string& scores) const {
    const auto *dims = index_.shape_of(mask), *all = index_.shape_of(scores);
    if (dims == nullptr || all == nullptr || dims->empty() || dims->size() > all->size())
      return false;
    const auto begin = all->end() - static_cast<std::ptrdiff_t>(dims->size());
    return std::ranges::equal(*dims, std::span(begin, all->end()),
                              [](const ir::Dim& dim, const ir::Dim& own) {
                                return dim == 1 || dim == own || !(own == 1);
                              });
  }

  bool keys(std::string transposed) {
    const std::string multiplied = transposed;
    without_factor(transposed);
    const ir::Node* node = index_.producer(transposed);
    // Nothing else may need what the Cast makes, nor that with its factor.
    if (is_op(node, "Cast") && index_.uses(transposed) == 1 && index_.uses(multiplied) == 1) {
      widened_ = index_.producer_index(transposed);
      transposed = node->inputs[0];
      node = index_.producer(transposed);
    }
    if (node != nullptr) parts_.push_back(index_.producer_index(transposed));
    const bool heads = rank_ == 4;
    keys_swapped_ =
        has_perm(node, heads ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{1, 2, 0});
    if (!keys_swapped_ &&
        !has_perm(node, heads ? std::vector<int64_t>{0, 1, 3, 2} : std::vector<int64_t>{0, 2, 1}))
      return false;
    operands_[1] = node->inputs[0];
    if (!widened_) without_factor(operands_[1]);
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

  // As many dimensions each as the scores, and the same batch and heads: nothing is broadcast.
  bool sizes_fit() const {
    const auto* q = index_.shape_of(operands_[0]);
    const auto* k = index_.shape_of(operands_[1]);
    const auto* v = index_.shape_of(operands_[2]);
    if (q == nullptr || k == nullptr || v == nullptr || q->size() != rank_ || k->size() != rank_ ||
        v->size() != rank_)
      return false;
    if (rank_ == 3) {
      const ir::Dim &batch = (*k)[keys_swapped_ ? 1 : 0], &length = (*k)[keys_swapped_ ? 0 : 1];
      return length == (*v)[1] && (*q)[0] == batch && (*q)[0] == (*v)[0];
    }
    const ir::Dim &k_heads = (*k)[keys_swapped_ ? 2 : 1], &length = (*k)[keys_swapped_ ? 1 : 2];
    return length == (*v)[2] && (*q)[0] == (*k)[0] && (*q)[0] == (*v)[0] && (*q)[1] == k_heads &&
           (*q)[1] == (*v)[1] && (*q)[1].is_constant();
  }

  GraphIndex& index_;
  size_t softmax_;
  unsigned sides_;
  size_t rank_ = 0;
  size_t product_ = 0;  // of the weights and V
  std::string operands_[3];
  std::vector<Mask> masks_;      // from the first on; booleans are true where the scores count
  std::optional<float> masked_;  // the score where a boolean mask is false
  struct AddedFirst {
    size_t second_sum;
    std::array<std::string, 2> terms;
  };
  std::optional<AddedFirst> added_first_;  // what a mask is the sum of
  std::optional<size_t> left_out_;         // the Where whose mask is true where scores do not count
  std::optional<size_t> widened_;          // the Cast of keys that a Transpose has transposed
  std::vector<size_t> parts_;  // Transposes and factors of the operands, which others may read too
  double scale_ = 1;
  bool keys_swapped_ = false;  // K has its length first
};

}  // namespace

void fuse_attention(GraphIndex& index) {
  for (size_t i = 0; i < index.size(); ++i) {
    for (unsigned sides = 0; sides < 4 && !index.is_dead(i); ++sides) {
      if (Match(index, i, sides).replace()) break;
    }
  }
}

}  // namespace sardonyx::passes
