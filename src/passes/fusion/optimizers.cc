#include "passes/fusion/optimizers.h"

#include <algorithm>
#include <optional>

#include "ops/internal/node.h"
#include "ops/internal/optimizers.h"

namespace sardonyx::passes {
namespace {

using ops::internal::AdamW;

// A product of a constant number and another value.
struct Scaled {
  float factor;
  std::string value;
};

class AdamWStep {
 public:
  explicit AdamWStep(GraphIndex& index) : index_(index) {}

  // X - rate * (direction + decay * X)
  bool fuse(size_t last) {
    const ir::Node& sub = index_.node(last);
    if (!is_op(&sub, "Sub") || !is_float(sub.outputs[0])) return false;
    x_ = sub.inputs[0];
    const ir::Node* way = maker(sub.inputs[1], "Mul");
    if (way == nullptr) return false;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      if (!is_single(way->inputs[side])) continue;
      rate_ = way->inputs[side];
      if (find_whole(way->inputs[1 - side]) && find_averages() && all_alike(sub.outputs[0]))
        return replace(last);
    }
    return false;
  }

 private:
  bool is_float(const std::string& value) const {
    const infer::ValueFacts* known = index_.known(value);
    return known != nullptr && known->type.is_tensor() &&
           (known->type.element == ElementType::float32 ||
            known->type.element == ElementType::float64);
  }
  bool is_single(const std::string& value) const {
    const infer::ValueFacts* known = index_.known(value);
    return known != nullptr && known->type.element_count() && *known->type.element_count() == 1;
  }
  // The node of this operator that makes the value for one reader only.
  const ir::Node* maker(const std::string& value, std::string_view op) const {
    const ir::Node* node = index_.producer(value);
    return is_op(node, op) && index_.uses(value) == 1 ? node : nullptr;
  }
  // A constant number, where a float32 holds it: one of float64 may have more digits.
  std::optional<float> number(const std::string& value) const {
    const auto found = index_.scalar(value);
    const auto held = found ? std::optional(static_cast<float>(*found)) : std::nullopt;
    return held && *held == *found ? held : std::nullopt;
  }
  std::optional<Scaled> scaled(const std::string& value) const {
    const ir::Node* mul = maker(value, "Mul");
    if (mul == nullptr) return std::nullopt;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      if (const auto factor = number(mul->inputs[side]))
        return Scaled{*factor, mul->inputs[1 - side]};
    }
    return std::nullopt;
  }

  bool find_whole(const std::string& whole) {
    const ir::Node* add = maker(whole, "Add");
    if (add == nullptr) return false;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const auto pulled = scaled(add->inputs[side]);
      if (pulled && pulled->value == x_ && find_direction(add->inputs[1 - side])) {
        op_.decay = pulled->factor;
        return true;
      }
    }
    return false;
  }

  // (V_new / share) / (Sqrt(H_new) / spread + epsilon)
  bool find_direction(const std::string& value) {
    const ir::Node* div = maker(value, "Div");
    const ir::Node* below = div == nullptr ? nullptr : maker(div->inputs[1], "Add");
    if (below == nullptr) return false;
    new_v_ = divided(div->inputs[0], share_);
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const auto epsilon = number(below->inputs[side]);
      if (!epsilon) continue;
      const ir::Node* root = maker(divided(below->inputs[1 - side], spread_), "Sqrt");
      if (root == nullptr) continue;
      op_.epsilon = *epsilon;
      new_h_ = root->inputs[0];
      return true;
    }
    return false;
  }

  // The value itself where it is divided by nothing.
  std::string divided(const std::string& value, std::string& by) const {
    by.clear();
    const ir::Node* div = maker(value, "Div");
    if (div == nullptr || !is_single(div->inputs[1]) || is_single(div->inputs[0])) return value;
    by = div->inputs[1];
    return div->inputs[0];
  }

  bool find_averages() {
    const ir::Node *v = index_.producer(new_v_), *h = index_.producer(new_h_);
    if (!is_op(v, "Add") || !is_op(h, "Add")) return false;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const auto kept = scaled(v->inputs[side]), added = scaled(v->inputs[1 - side]);
      if (!kept || !added || !find_squares(*h, added->value)) continue;
      op_.alpha = kept->factor, op_.alpha_rest = added->factor;
      v_ = kept->value, g_ = added->value;
      return true;
    }
    return false;
  }

  // beta H + beta_rest G G
  bool find_squares(const ir::Node& sum, const std::string& g) {
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const auto kept = scaled(sum.inputs[side]), added = scaled(sum.inputs[1 - side]);
      if (!kept || !added) continue;
      const ir::Node* square = maker(added->value, "Mul");
      if (square == nullptr || square->inputs[0] != g || square->inputs[1] != g) continue;
      op_.beta = kept->factor, op_.beta_rest = added->factor;
      h_ = kept->value;
      return true;
    }
    return false;
  }

  // All of one shape, the result too: a single number of a higher rank would give it another one.
  bool all_alike(const std::string& result) const {
    const std::string* others[] = {&g_, &v_, &h_, &result};
    return std::ranges::all_of(
        others, [&](const std::string* value) { return index_.same_shape(x_, *value); });
  }

  // Who else reads an average stands behind the step, which makes it then.
  bool is_made_in_time(const std::string& average, size_t last) const {
    const auto users = index_.users(average);
    return std::ranges::count_if(users, [&](size_t user) { return user < last; }) == 1;
  }

  bool replace(size_t last) {
    if (!is_made_in_time(new_v_, last) || !is_made_in_time(new_h_, last)) return false;
    const ir::Node& sub = index_.node(last);
    ir::Node fused;
    ops::internal::write(op_, fused);
    fused.name = sub.name;
    fused.inputs = {rate_, x_, g_, v_, h_, share_, spread_};
    fused.outputs = {sub.outputs[0], new_v_, new_h_};
    const size_t averages[] = {index_.producer_index(new_v_), index_.producer_index(new_h_)};
    index_.replace(last, std::move(fused), averages);
    return true;
  }

  GraphIndex& index_;
  AdamW op_;
  std::string rate_, share_, spread_, x_, g_, v_, h_, new_v_, new_h_;
};

}  // namespace

void fuse_optimizers(GraphIndex& index) {
  index.for_each([&](size_t i) { AdamWStep(index).fuse(i); });
}

}  // namespace sardonyx::passes
