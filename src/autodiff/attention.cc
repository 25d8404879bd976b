// The gradient of Attention, from the probabilities that it gives when asked for them.
#include "autodiff/rules.h"
#include "base/fail.h"
#include "ops/upgrade_context.h"

namespace sardonyx::autodiff {
namespace {

using ops::int_attribute;
using ops::ints_attribute;

// Values as [batch, heads of K, queries that share one, rows, columns].
class AttentionGradient {
 public:
  AttentionGradient(const GradientCall& call, GradientEmitter& e)
      : call_(call), e_(e), view_(view_of(call)), three_(e.required_rank(call, 0) == 3) {}

  void make() {
    const std::string shares = again(3, keys_, values_);
    heads_ = size(keys_, 1);
    values_ = as(values_, 2, 1);
    const std::string dy =
        of_outputs(0).empty() ? e_.filled_like(0, call_.node.outputs[0]) : of_outputs(0);
    const std::string slope = grouped(by_heads(dy, "q_num_heads"));
    const std::string p = grouped(shares);
    const std::string dp = with_scores(3, product(slope, wide(values_), false, true));
    const std::string total = e_.emit("ReduceSum", {e_.emit("Mul", {dp, p}), e_.ints({-1})});
    const std::string biased = with_scores(2, e_.emit("Mul", {p, e_.emit("Sub", {dp, total})}));
    mask(biased, shares);
    const std::string plain = with_scores(0, uncapped(with_scores(1, biased)));
    const std::string scores = e_.emit("Mul", {plain, scale()});
    if (call_.wanted[0]) {
      const std::string dq = product(scores, wide(keys_), false, false);
      give(0, ungrouped(dq, shares));
    }
    const std::string q = grouped(by_heads(call_.node.inputs[0], "q_num_heads"));
    cache(1, product(scores, q, true, false));
    cache(2, product(p, slope, true, false));
  }

 private:
  std::string of_outputs(size_t i) const {
    return i < call_.of_outputs.size() ? call_.of_outputs[i] : "";
  }
  bool wants(size_t i) const { return i < call_.wanted.size() && call_.wanted[i]; }

  // A value of the type of one input as that of another: values and masks have types of their own.
  std::string as(const std::string& value, size_t from, size_t to) {
    const auto type_of = [&](size_t i) {
      const infer::ValueFacts* known = e_.services().known(call_.node.inputs[i]);
      return known == nullptr ? ElementType::undefined : known->type.element;
    };
    const bool same = type_of(from) == type_of(to) && type_of(to) != ElementType::undefined;
    return same ? value : e_.emit("CastLike", {value, call_.node.inputs[to]});
  }

  // With what flows into the scores, where the node gives those of this stage.
  std::string with_scores(int64_t stage, const std::string& flow) {
    if (of_outputs(3).empty() || view_.attr_int("qk_matmul_output_mode", 0) != stage) return flow;
    return e_.emit("Add", {flow, grouped(of_outputs(3))});
  }

  // Attention once more, giving what mode asks for, and all keys and values.
  std::string again(int64_t mode, std::string& keys, std::string& values) {
    std::vector<ir::Attribute> attributes;
    for (const ir::Attribute& attribute : call_.node.attributes) {
      if (attribute.name != "qk_matmul_output_mode") attributes.push_back(attribute);
    }
    attributes.push_back(int_attribute("qk_matmul_output_mode", mode));
    const auto fresh = [&](std::string_view hint) { return e_.services().fresh_name(hint); };
    const std::string scores = fresh("scores");
    keys = fresh("keys"), values = fresh("values");
    e_.emit_to({fresh("y"), keys, values, scores}, "Attention", call_.node.inputs, attributes);
    return scores;
  }

  std::string size(const std::string& value, int64_t axis) {
    return e_.emit("Gather", {e_.emit("Shape", {value}), e_.ints({axis})},
                   {int_attribute("axis", 0)});
  }
  std::string joined(std::vector<std::string> parts) {
    return e_.emit("Concat", std::move(parts), {int_attribute("axis", 0)});
  }
  // [batch, heads, rows, columns] of a value that may have its heads in the columns.
  std::string by_heads(const std::string& value, std::string_view attribute) {
    if (!three_) return value;
    const std::string parted =
        e_.emit("Reshape", {value, e_.ints({0, 0, view_.attr_int(attribute), -1})});
    return e_.emit("Transpose", {parted}, {ints_attribute("perm", {0, 2, 1, 3})});
  }
  std::string grouped(const std::string& value) {
    const std::string shape = joined({size(value, 0), heads_, e_.ints({-1}),
                                      e_.emit("Shape", {value}, {int_attribute("start", 2)})});
    return e_.emit("Reshape", {value, shape});
  }
  // [batch, heads of Q, rows, columns]; `like` has that many heads.
  std::string ungrouped(const std::string& value, const std::string& like) {
    const std::string shape = joined(
        {size(value, 0), size(like, 1), e_.emit("Shape", {value}, {int_attribute("start", 3)})});
    return e_.emit("Reshape", {value, shape}, {int_attribute("allowzero", 1)});
  }
  std::string wide(const std::string& value) { return e_.emit("Unsqueeze", {value, e_.ints({2})}); }
  std::string product(const std::string& a, const std::string& b, bool turn_a, bool turn_b) {
    const auto transposed = [&](const std::string& value, bool turn) {
      return turn ? e_.emit("Transpose", {value}, {ints_attribute("perm", {0, 1, 2, 4, 3})})
                  : value;
    };
    return e_.emit("MatMul", {transposed(a, turn_a), transposed(b, turn_b)});
  }
  std::string scale() {
    const std::string& q = call_.node.inputs[0];
    if (view_.has_attribute("scale") && view_.attr_float("scale") != 0)
      return e_.scalar_like(view_.attr_float("scale"), q);
    const std::string width = e_.emit("Squeeze", {size(keys_, 3), e_.ints({0})});
    return e_.emit("Reciprocal", {e_.emit("Sqrt", {e_.emit("CastLike", {width, q})})});
  }
  // What the soft cap lets through: 1 - tanh².
  std::string uncapped(const std::string& flow) {
    const float cap = view_.attr_float("softcap", 0);
    if (!(cap > 0)) return flow;
    std::string keys, values;
    const std::string capped = grouped(again(1, keys, values));
    const std::string tanh = e_.emit("Div", {capped, e_.scalar_like(cap, capped)});
    const std::string rest =
        e_.emit("Sub", {e_.scalar_like(1, capped), e_.emit("Mul", {tanh, tanh})});
    return e_.emit("Mul", {flow, rest});
  }
  // A mask may have fewer columns than there are keys.
  void mask(const std::string& biased, const std::string& like) {
    if (!wants(3)) return;
    const std::string all = ungrouped(biased, like);
    const std::string& given = call_.node.inputs[3];
    const std::string columns = e_.emit("Shape", {given}, {int_attribute("start", -1)});
    const std::string cut = e_.emit("Slice", {all, e_.ints({0}), columns, e_.ints({3})});
    call_.of_inputs[3] = e_.sum_like(as(cut, 0, 3), given);
  }
  // Keys (1) or values (2), new and past ones.
  void cache(size_t i, const std::string& by_group) {
    std::string whole =
        e_.emit("ReduceSum", {by_group, e_.ints({2})}, {int_attribute("keepdims", 0)});
    if (i == 2) whole = as(whole, 1, 2);
    if (!of_outputs(i).empty()) whole = e_.emit("Add", {whole, of_outputs(i)});
    if (!view_.has_input(static_cast<int>(i) + 3)) {
      if (wants(i)) give(i, whole);
      return;
    }
    const std::string& past = call_.node.inputs[i + 3];
    const std::string length = size(past, 2);
    const std::string rest = e_.emit("Sub", {size(whole, 2), length});
    const std::vector<std::string> parts{e_.services().fresh_name("past"),
                                         e_.services().fresh_name("new")};
    e_.emit_to(parts, "Split", {whole, joined({length, rest})}, {int_attribute("axis", 2)});
    if (wants(i + 3)) call_.of_inputs[i + 3] = parts[0];
    if (wants(i)) give(i, parts[1]);
  }
  // The gradient [batch, heads, rows, columns] of an input in its own form.
  void give(size_t i, std::string value) {
    if (three_) {
      value = e_.emit("Transpose", {value}, {ints_attribute("perm", {0, 2, 1, 3})});
      value = e_.emit("Reshape", {value, e_.emit("Shape", {call_.node.inputs[i]})},
                      {int_attribute("allowzero", 1)});
    }
    call_.of_inputs[i] = value;
  }

  const GradientCall& call_;
  GradientEmitter& e_;
  ops::NodeView view_;
  bool three_;
  std::string keys_, values_, heads_;
};

}  // namespace

void attention_gradient(const GradientCall& call, GradientEmitter& e) {
  AttentionGradient(call, e).make();
}

}  // namespace sardonyx::autodiff
