// Gradients of Loop and Scan: a graph that computes an iteration again, and then what flows back
// through it.
#include "autodiff/iterations.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "autodiff/bodies.h"
#include "autodiff/history.h"
#include "autodiff/kept_values.h"
#include "base/fail.h"
#include "ir/instantiate.h"
#include "ops/upgrade_context.h"

namespace sardonyx::autodiff {

using ops::graph_attribute;
using ops::int_attribute;
using ops::ints_attribute;

namespace {

// What one slice along an axis of a value is known to be.
infer::ValueFacts slice_of(const infer::ValueFacts* whole, int64_t axis) {
  if (whole == nullptr) return {};
  infer::ValueFacts slice;
  slice.type = whole->type;
  if (slice.type.shape && !slice.type.shape->empty()) {
    auto& dims = *slice.type.shape;
    const auto rank = static_cast<int64_t>(dims.size());
    const int64_t at = axis < 0 ? axis + rank : axis;
    if (at >= 0 && at < rank) dims.erase(dims.begin() + at);
  }
  return slice;
}

// Of a state that changes its shape: what is the same from the beginning to the end.
infer::ValueFacts between(const infer::ValueFacts* first, const infer::ValueFacts* last) {
  if (first == nullptr || last == nullptr || !first->type.shape) return {};
  infer::ValueFacts any = infer::ValueFacts::of(first->type);
  const auto& before = *first->type.shape;
  const bool same_rank = last->type.shape && last->type.shape->size() == before.size();
  for (size_t d = 0; same_rank && d < before.size(); ++d) {
    const ir::Dim& after = (*last->type.shape)[d];
    if (after == before[d]) continue;
    // A number would be that of one iteration.
    if (after.is_constant() && before[d].is_constant()) {
      any.type.shape.reset();
      return any;
    }
    (*any.type.shape)[d] = after.is_constant() ? before[d] : after;
  }
  if (!same_rank) any.type.shape.reset();
  return any;
}

// What flows back into a value.
infer::ValueFacts flow_of(const infer::ValueFacts* known) {
  return known == nullptr ? infer::ValueFacts{} : infer::ValueFacts::of(flow_type(known->type));
}

// Of a sequence or what flows back into an optional, whose items may be of other shapes in each
// iteration.
infer::ValueFacts of_any_items(const infer::ValueFacts* known) {
  infer::ValueFacts any = flow_of(known);
  if (!any.type.nested) return any;
  ir::ValueType item = *any.type.nested;
  item.shape.reset();
  any.type.nested = std::make_shared<const ir::ValueType>(std::move(item));
  return any;
}

// Of an optional state: what is the same from the beginning to the end.
infer::ValueFacts between_optionals(const infer::ValueFacts& first, const infer::ValueFacts* last) {
  ir::ValueType held = *first.type.nested;
  if (held.nested)
    held = of_any_items(&first).type;
  else if (last == nullptr || !last->type.nested || last->type.nested->shape != held.shape)
    held.shape.reset();
  return infer::ValueFacts::of(ir::ValueType::optional_of(std::move(held)));
}

}  // namespace

// A Scan from the last iteration to the first. It carries the gradients of the states and sums
// those of what the body captures; in each iteration the body is computed again from what entered
// it. With states that change their shape it is a Loop, whose body reads what it needs by the
// number of the iteration.
class GradientWalk::Reverse {
 public:
  Reverse(GradientWalk& walk, const ir::Node& node, const std::vector<std::string>& of_outputs)
      : walk_(walk),
        e_(walk.emitter_),
        node_(node),
        of_outputs_(of_outputs),
        it_(walk.iteration_of(node)),
        history_(walk.history_of(node)),
        captured_(walk.active_captures(node)),
        by_sequences_(history_.by_sequences() || captures_sequence()) {}

  void make() {
    choose();
    reverse_.op_type = by_sequences_ ? "Loop" : "Scan";
    if (by_sequences_) count_back();
    enter_flows();
    enter_history();
    ir::Graph body = make_body();
    hand_out();
    finish(std::move(body));
  }

 private:
  const infer::ValueFacts* known(const std::string& value) const {
    return walk_.services_.known(value);
  }
  // Whose gradient is summed from iteration to iteration, in a state that a Scan can't have.
  bool captures_sequence() const {
    const auto found = std::ranges::find_if(captured_, [&](const std::string& name) {
      return e_.flow_kind(name) == ir::TypeProto::Kind::sequence;
    });
    if (found == captured_.end()) return false;
    if (!it_.loop)
      ops::NodeView(node_, schema::newest("", node_.op_type))
          .fail(ErrorCode::unsupported,
                "has no gradient: its body reads the sequence '{}'; a Loop may do that", *found);
    return true;
  }
  std::string fresh(std::string_view hint) const { return walk_.services_.fresh_name(hint); }
  const std::string& initial(size_t state) const { return node_.inputs[it_.first_state + state]; }
  std::string of_output(size_t i) const {
    return i < of_outputs_.size() ? of_outputs_[i] : std::string();
  }

  void choose() {
    for (size_t i = 0; i < it_.states; ++i) {
      const std::string last = i < node_.outputs.size() ? node_.outputs[i] : "";
      if (walk_.is_float(initial(i)) && (last.empty() || walk_.is_float(last)))
        carried_.push_back(i);
      else if (!of_output(i).empty())
        refuse_state(i);
    }
    for (size_t m = 0; !it_.loop && m < it_.input_axes.size(); ++m) {
      const std::string& input = node_.inputs[it_.states + m];
      if (walk_.active_.contains(input) && walk_.is_float(input)) asked_.push_back(m);
    }
    for (size_t k = 0; k < it_.output_axes.size(); ++k)
      if (!of_output(it_.states + k).empty()) flowing_.push_back(k);
  }

  [[noreturn]] void refuse_state(size_t i) const {
    ops::NodeView(node_, schema::newest("", node_.op_type))
        .fail(ErrorCode::unsupported,
              "has no gradient: its state '{}' is quantised; dequantise it in each iteration",
              initial(i));
  }

  // --- What enters the body ---

  std::string enter(const std::string& from, std::string_view hint, infer::ValueFacts known) {
    reverse_.inputs.push_back(from);
    entering_.emplace_back(fresh(hint), std::move(known));
    body_inputs_.push_back(entering_.back().first);
    return entering_.back().first;
  }
  std::string read(std::string_view op, Names inputs, std::string_view hint,
                   infer::ValueFacts known) {
    ir::Node& node = reads_.emplace_back();
    node.op_type = op, node.inputs = std::move(inputs);
    node.outputs = {fresh(hint)};
    entering_.emplace_back(node.outputs[0], std::move(known));
    return node.outputs[0];
  }
  // A sequence that entered an iteration, from the items of all.
  std::string read_items(size_t state) {
    const std::string& counts = history_.counts[state];
    const bool is_prefix = history_.forms[state] == History::Form::prefix;
    std::string start;
    if (!is_prefix) {
      const std::string zero =
          e_.emit("Constant", {}, {ops::tensor_attribute("value", Tensor::scalar<int64_t>(0))});
      const std::string starts = e_.emit("CumSum", {counts, zero}, {int_attribute("exclusive", 1)});
      start = read("Gather", {starts, transposed_}, "start", {});
    }
    const std::string count = read("Gather", {counts, transposed_}, "count", {});
    const infer::ValueFacts* items = known(initial(state));
    reads_.push_back(no_items(item_type(items), fresh("none")));
    const std::string none = reads_.back().outputs[0];
    reads_.push_back(
        appended(none, history_.states[state], start, count, fresh("entered"), walk_.services_));
    entering_.emplace_back(reads_.back().outputs[0], of_any_items(items));
    return reads_.back().outputs[0];
  }
  // An optional value that entered one.
  std::string read_optional(size_t state) {
    const infer::ValueFacts& facts = *known(initial(state));
    const std::string list = read_items(state);
    const std::string present =
        read("Gather", {history_.present[state], transposed_}, "present", {});
    const std::string value = fresh("entered");
    for (ir::Node& node : optional_of_list(list, present, facts.type, value, walk_.services_))
      reads_.push_back(std::move(node));
    entering_.emplace_back(value, between_optionals(facts, known(history_.finals[state])));
    return value;
  }
  std::string enter_slices(const std::string& from, int64_t axis, bool backwards) {
    if (by_sequences_)
      return read("Gather", {from, transposed_}, "slice", slice_of(known(from), axis));
    axes_.push_back(axis), directions_.push_back(backwards ? 1 : 0);
    return enter(from, "slice", slice_of(known(from), axis));
  }

  // As many iterations as there were, their numbers from the last one down.
  void count_back() {
    const std::string length = e_.emit("Squeeze", {e_.emit("Shape", {history_.number})});
    const std::string one =
        e_.emit("Constant", {}, {ops::tensor_attribute("value", Tensor::scalar<int64_t>(1))});
    const std::string last = e_.emit("Sub", {length, one});
    const std::string number = enter(length, "i", {});
    go_ = enter("", "go", {});
    transposed_ = read("Sub", {last, number}, "transposed", {});
  }

  void enter_flows() {
    for (const size_t i : carried_) {
      const std::string given = of_output(i);
      const auto enter_flow = [&](const std::string& ends_as, infer::ValueFacts facts) {
        state_flows_.push_back(
            enter(given.empty() ? e_.filled_like(0, ends_as) : given, "d_state", std::move(facts)));
      };
      const std::string& last = history_.finals[i];
      switch (history_.forms[i]) {
        case History::Form::stack: enter_flow(initial(i), like(known(initial(i)))); break;
        case History::Form::sequence:
          enter_flow(last, between(known(initial(i)), known(last)));
          break;
        case History::Form::items:
        case History::Form::prefix:
        case History::Form::optional: enter_flow(last, of_any_items(known(initial(i)))); break;
      }
    }
    for (const std::string& name : captured_)
      sums_.push_back(enter(e_.filled_like(0, name), "sum", flow_of(known(name))));
  }

  void enter_history() {
    for (size_t i = 0; i < it_.states; ++i) {
      switch (history_.forms[i]) {
        case History::Form::stack:
          states_.push_back(enter_slices(history_.states[i], 0, true));
          break;
        case History::Form::sequence:
          states_.push_back(read("SequenceAt", {history_.states[i], transposed_}, "entered",
                                 between(known(initial(i)), known(history_.finals[i]))));
          break;
        case History::Form::items:
        case History::Form::prefix: states_.push_back(read_items(i)); break;
        case History::Form::optional: states_.push_back(read_optional(i)); break;
      }
    }
    if (it_.loop) number_ = enter_slices(history_.number, 0, true);
    for (const std::string& stack : history_.draws) drawn_.push_back(enter_slices(stack, 0, true));
    for (size_t m = 0; !it_.loop && m < it_.input_axes.size(); ++m)
      slices_.push_back(enter_slices(node_.inputs[it_.states + m], it_.input_axes[m],
                                     it_.input_directions[m] == 0));
    for (const size_t k : flowing_)
      flows_.push_back(enter_slices(of_output(it_.states + k), it_.output_axes[k],
                                    it_.output_directions[k] == 0));
  }

  // --- The body ---

  ir::Graph make_body() {
    ir::Graph body;
    body.name = "back";
    walk_.services_.within(entering_, [&](const GradientServices& inside) {
      GradientWalk walk(inside, walk_.texts_, walk_.origin_);
      Names results = run_again(walk);
      for (std::string& result : results) result = walk.actual(result);
      for (size_t i = 0; i < it_.states; ++i) {
        if (std::ranges::find(carried_, i) == carried_.end() &&
            walk.is_active(results.at(it_.body_outputs + i)))
          refuse_state(i);
      }
      const auto flow = [&](size_t result, const std::string& gradient) {
        const std::string& value = results.at(result);
        if (walk.is_active(value)) walk.flow_into(value, gradient);
      };
      for (size_t i = 0; i < carried_.size(); ++i)
        flow(it_.body_outputs + carried_[i], state_flows_[i]);
      for (size_t k = 0; k < flowing_.size(); ++k)
        flow(it_.body_outputs + it_.states + flowing_[k], flows_[k]);
      const size_t repeated = walk.emitter().nodes().size();
      walk.backward();
      const Names outputs = gradients(walk);
      body.outputs = named(outputs);
      body.nodes = read_kept(walk.emitter().take(), repeated, outputs, results, inside);
    });
    body.inputs = named(body_inputs_);
    body.nodes.insert(body.nodes.begin(), reads_.begin(), reads_.end());
    return body;
  }

  // What costly nodes made comes from the loop itself, which hands it out as further outputs.
  std::vector<ir::Node> read_kept(std::vector<ir::Node> nodes, size_t repeated,
                                  const Names& outputs, const Names& results,
                                  const GradientServices& inside) {
    if (inside.recompute_iterations) return nodes;
    ir::Node* loop = walk_.placed(first_output(node_));
    if (loop == nullptr || loop->op_type != node_.op_type || !loop->domain.empty()) return nodes;
    const auto middle = nodes.begin() + static_cast<std::ptrdiff_t>(repeated);
    const std::vector<ir::Node> iteration(nodes.begin(), middle);
    RepeatedIteration again{std::move(nodes), repeated, {}, outputs, captured_by(node_)};
    for (const auto& [name, facts] : entering_) again.entering.push_back(name);
    for (size_t i = 0; i < it_.states; ++i)
      if (history_.forms[i] == History::Form::stack) again.same_shape.push_back(states_[i]);
    for (const Names* more : {&slices_, &flows_})
      again.same_shape.insert(again.same_shape.end(), more->begin(), more->end());
    const Names kept = keep_values(again, inside);
    if (kept.empty()) return std::move(again.nodes);
    const Names stacks = hand_out_more(*loop, iteration, results, kept);
    for (size_t i = 0; i < kept.size(); ++i) {
      walk_.services_.assume(stacks[i], stack_of(inside.known(kept[i])));
      enter_kept(stacks[i], kept[i]);
    }
    return std::move(again.nodes);
  }

  infer::ValueFacts stack_of(const infer::ValueFacts* value) const {
    infer::ValueFacts stack = like(value);
    std::optional<ir::Dim> count;
    const auto take = [&](const std::string& from, int64_t axis) {
      const infer::ValueFacts* facts = known(from);
      if (count || facts == nullptr || !facts->type.shape) return;
      const auto& dims = *facts->type.shape;
      const auto at =
          static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis);
      if (at < dims.size()) count = dims[at];
    };
    take(history_.number, 0);
    for (size_t m = 0; !it_.loop && m < it_.input_axes.size(); ++m)
      take(node_.inputs[it_.states + m], it_.input_axes[m]);
    if (count && stack.type.shape)
      stack.type.shape->insert(stack.type.shape->begin(), *count);
    else
      stack.type.shape.reset();
    return stack;
  }

  void enter_kept(const std::string& stack, const std::string& value) {
    if (by_sequences_) {
      ir::Node& node = reads_.emplace_back();
      node.op_type = "Gather", node.inputs = {stack, transposed_}, node.outputs = {value};
      return;
    }
    reverse_.inputs.push_back(stack), body_inputs_.push_back(value);
    axes_.push_back(0), directions_.push_back(1);
  }

  // Puts the iteration as it is computed again in place of what the loop did, and stacks `kept`
  // of it.
  Names hand_out_more(ir::Node& loop, const std::vector<ir::Node>& iteration, const Names& results,
                      const Names& kept) const {
    ir::Attribute& attribute = *std::ranges::find(loop.attributes, "body", &ir::Attribute::name);
    ir::Graph body = *attribute.g;
    const auto lists = static_cast<size_t>(std::ranges::count_if(history_.forms, [](auto form) {
      return form == History::Form::sequence || form == History::Form::items ||
             form == History::Form::optional;
    }));
    const auto output_of = [&](size_t result) -> std::string& {
      const bool behind = result >= it_.body_outputs + it_.states;
      return body.outputs.at(result + (behind ? lists : 0)).name;
    };
    // The iteration under names of its own, from the values that enter the loop's body.
    ir::Function function;
    ir::Node call;
    function.name = call.op_type = "iteration";
    const auto enter = [&](const std::string& formal, const std::string& actual) {
      function.inputs.push_back(formal), call.inputs.push_back(actual);
    };
    if (it_.loop) enter(number_, body.inputs.at(0).name);
    for (size_t i = 0; i < it_.states; ++i)
      enter(states_[i], body.inputs.at(it_.body_inputs + i).name);
    for (size_t m = 0; m < slices_.size(); ++m)
      enter(slices_[m], body.inputs.at(it_.body_inputs + it_.states + m).name);
    for (size_t d = 0; d < drawn_.size(); ++d) enter(drawn_[d], output_of(results.size() + d));
    std::unordered_set<std::string> own(function.inputs.begin(), function.inputs.end());
    for (const ir::Node& node : iteration) own.insert(node.outputs.begin(), node.outputs.end());
    for (const ir::Node& node : iteration) {
      for (const std::string& name : reads_of(node))
        if (own.insert(name).second) enter(name, name);  // captured
    }
    function.nodes = iteration;
    const auto give = [&](const std::string& value) {
      ir::Node& handed = function.nodes.emplace_back();
      handed.op_type = "Identity";
      handed.inputs = {value};
      handed.outputs = {fresh("handed")};
      function.outputs.push_back(handed.outputs[0]);
      return call.outputs.emplace_back(fresh("handed"));
    };
    for (size_t i = 0; i < results.size(); ++i) output_of(i) = give(results[i]);
    Names stacks;
    for (const std::string& value : kept) {
      body.outputs.emplace_back().name = give(value);
      stacks.push_back(loop.outputs.emplace_back(fresh("kept")));
    }
    for (ir::Node& node : ir::instantiate(function, call, walk_.services_.fresh_name)) {
      node.origin.clear();
      body.nodes.push_back(std::move(node));
    }
    std::unordered_set<std::string> wanted;
    for (const ir::ValueInfo& output : body.outputs) wanted.insert(output.name);
    body.nodes = pruned(std::move(body.nodes), std::move(wanted));
    const size_t stacked = body.outputs.size() - it_.body_outputs - it_.states - lists;
    for (ir::Attribute& list : loop.attributes) {
      if (list.name == "scan_output_axes" || list.name == "scan_output_directions")
        list.ints.resize(stacked, 0);
    }
    attribute.g = std::make_shared<const ir::Graph>(std::move(body));
    return stacks;
  }

  // The iteration, from what entered it.
  Names run_again(GradientWalk& walk) {
    for (const std::string& name : captured_) walk.activate(name);
    for (const size_t i : carried_) walk.activate(states_[i]);
    for (const size_t m : asked_) walk.activate(slices_[m]);
    Names inputs, results;
    if (it_.loop) {
      inputs = {number_,
                walk.emitter().emit("Constant", {},
                                    {ops::tensor_attribute("value", Tensor::scalar<bool>(true))})};
    }
    inputs.insert(inputs.end(), states_.begin(), states_.end());
    inputs.insert(inputs.end(), slices_.begin(), slices_.end());
    ir::Graph repeated = *it_.body;
    replay_draws(repeated, drawn_, walk.services());
    for (const ir::Node& inner : copy_of(repeated, inputs, walk.services(), results))
      walk.forward(inner, true);
    return results;
  }

  Names gradients(GradientWalk& walk) {
    GradientEmitter& e = walk.emitter();
    Names outputs;
    const auto give = [&](const std::string& value) {
      outputs.push_back(e.emit("Identity", {value}));
    };
    if (by_sequences_) give(go_);
    for (const size_t i : carried_) give(walk.gathered_or_zeros(states_[i]));
    for (size_t c = 0; c < captured_.size(); ++c) {
      const std::string more = walk.gathered(captured_[c]);
      if (more.empty())
        give(sums_[c]);
      else
        outputs.push_back(e.sum({sums_[c], more}));
    }
    for (const size_t m : asked_) give(walk.gathered_or_zeros(slices_[m]));
    return outputs;
  }

  // --- What comes out ---

  void hand_out() {
    const auto output = [&](const std::string& hint) {
      return reverse_.outputs.emplace_back(fresh(hint));
    };
    for (const size_t i : carried_) {
      const std::string gradient = output("d_state");
      if (walk_.active_.contains(initial(i))) walk_.flow_into(initial(i), gradient);
    }
    for (const std::string& name : captured_) walk_.flow_into(name, output("d_" + name));
    for (const size_t m : asked_) walk_.flow_into(node_.inputs[it_.states + m], output("d_slices"));
  }

  void finish(ir::Graph body) {
    reverse_.attributes = {graph_attribute("body", std::move(body))};
    const auto add = [&](ir::Attribute attribute) {
      reverse_.attributes.push_back(std::move(attribute));
    };
    if (!by_sequences_) {
      add(int_attribute("num_scan_inputs", static_cast<int64_t>(axes_.size())));
      add(ints_attribute("scan_input_axes", axes_));
      add(ints_attribute("scan_input_directions", directions_));
    }
    if (!asked_.empty()) {
      std::vector<int64_t> axes, directions;
      for (const size_t m : asked_) {
        axes.push_back(it_.input_axes[m]);
        directions.push_back(it_.input_directions[m] == 0 ? 1 : 0);
      }
      add(ints_attribute("scan_output_axes", axes));
      add(ints_attribute("scan_output_directions", directions));
    }
    e_.emit(std::move(reverse_), newest_imports());
  }

  GradientWalk& walk_;
  GradientEmitter& e_;
  const ir::Node& node_;
  const std::vector<std::string>& of_outputs_;
  const Iteration it_;
  const History history_;
  const Names captured_;
  const bool by_sequences_;
  std::vector<size_t> carried_;  // states with gradients
  std::vector<size_t> asked_;    // inputs of a Scan
  std::vector<size_t> flowing_;  // stacked outputs
  ir::Node reverse_;
  std::vector<int64_t> axes_, directions_;
  std::vector<std::pair<std::string, infer::ValueFacts>> entering_;  // and what is known of it
  Names body_inputs_;
  std::vector<ir::Node> reads_;
  std::string go_, transposed_, number_;
  Names state_flows_, sums_, states_, slices_, flows_, drawn_;
};

void GradientWalk::iterations_backward(const ir::Node& node,
                                       const std::vector<std::string>& of_outputs) {
  Reverse(*this, node, of_outputs).make();
}

}  // namespace sardonyx::autodiff
