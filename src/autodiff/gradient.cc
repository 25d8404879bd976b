#include "autodiff/gradient.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "autodiff/walk.h"
#include "base/fail.h"
#include "ops/node_view.h"

namespace sardonyx::autodiff {
namespace {

using Kind = ir::TypeProto::Kind;

constexpr std::string_view training_domain = "ai.onnx.preview.training";
constexpr size_t max_gradients = 256;

bool is_gradient(const ir::Node& node) {
  return node.domain == training_domain && node.op_type == "Gradient";
}

const schema::Signature* signature_of(const ir::Node& node) {
  return schema::newest(node.domain, node.op_type);
}

// --- One Gradient node --------------------------------------------------------------------------

class Expansion {
 public:
  Expansion(const std::vector<ir::Node>& nodes, size_t index, const GradientServices& services,
            GradientTexts& texts)
      : nodes_(nodes),
        index_(index),
        gradient_(nodes[index]),
        view_(gradient_, signature_of(gradient_)),
        walk_(services, texts, origin()) {
    xs_ = view_.attr_strings("xs").value_or(std::vector<std::string>());
    zs_ = view_.attr_strings("zs").value_or(std::vector<std::string>());
    y_ = view_.attr_string("y");
    if (gradient_.inputs.size() != xs_.size() + zs_.size() || xs_.empty()) {
      view_.fail("there must be one input for each of the {} names in xs and zs; there are {}",
                 xs_.size() + zs_.size(), gradient_.inputs.size());
    }
  }

  // Finds what computes y. False where another Gradient is among it.
  bool find_path() {
    std::unordered_map<std::string_view, size_t> makers;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      for (const std::string& output : nodes_[i].outputs) {
        if (!output.empty()) makers[output] = i;
      }
    }
    std::unordered_set<std::string_view> seen;
    for (const auto* list : {&xs_, &zs_}) seen.insert(list->begin(), list->end());
    if (!seen.contains(y_) && !makers.contains(y_))
      view_.fail("no node makes the value '{}' that y names", y_);
    std::vector<std::string_view> waiting{y_};
    std::vector<char> taken(nodes_.size(), 0);
    std::deque<std::string> names;  // that graphs capture
    while (!waiting.empty()) {
      const std::string_view name = waiting.back();
      waiting.pop_back();
      const auto maker = makers.find(name);
      if (name.empty() || !seen.insert(name).second || maker == makers.end()) continue;
      const ir::Node& node = nodes_[maker->second];
      if (maker->second == index_) view_.fail("y depends on the gradient itself");
      if (is_gradient(node)) return false;
      taken[maker->second] = 1;
      waiting.insert(waiting.end(), node.inputs.begin(), node.inputs.end());
      if (!has_graphs(node)) continue;
      for (std::string& captured : captured_by(node))
        waiting.push_back(names.emplace_back(std::move(captured)));
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (taken[i]) path_.push_back(i);
    }
    return true;
  }

  std::vector<ir::Node> make() {
    for (size_t i = 0; i < gradient_.inputs.size(); ++i) substitute(i);
    for (const size_t i : path_) walk_.forward(nodes_[i], i > index_);
    const std::string y = walk_.actual(y_);
    if (walk_.emitter().flow_kind(y) == Kind::sequence)
      view_.fail("y names '{}', which is no tensor; name a sum of what it holds", y_);
    if (walk_.is_active(y)) walk_.flow_into(y, walk_.emitter().filled_like(1, y));
    walk_.backward();
    for (size_t i = 0; i < xs_.size(); ++i) {
      if (i < gradient_.outputs.size() && !gradient_.outputs[i].empty())
        finish(walk_.actual(xs_[i]), gradient_.outputs[i]);
    }
    return walk_.emitter().take();
  }

  std::vector<GradientWalk::Replaced> take_replaced() { return walk_.take_replaced(); }

 private:
  std::string origin() const {
    return fmt::format("for {}{}{}", ir::describe(gradient_), gradient_.origin.empty() ? "" : " ",
                       gradient_.origin);
  }

  // A value other than the one named gets a name of its own: its other uses do not count.
  void substitute(size_t i) {
    const std::string& name = i < xs_.size() ? xs_[i] : zs_[i - xs_.size()];
    const std::string& value = gradient_.inputs[i];
    if (value.empty()) view_.fail("input {} is absent; all inputs are needed", i);
    const std::string used = value == name ? name : walk_.emitter().emit("Identity", {value});
    if (used != name) walk_.rename(name, used);
    if (i < xs_.size()) walk_.activate(used);
  }

  void finish(const std::string& value, const std::string& output) {
    GradientEmitter& e = walk_.emitter();
    std::string gradient = walk_.gathered_or_zeros(value);
    const infer::ValueFacts* known = walk_.services().known(value);
    // Of an optional tensor, that of what it holds.
    if (known != nullptr && known->type.kind == Kind::optional && known->type.nested &&
        known->type.nested->is_tensor())
      gradient = item_of(e, gradient, 0);
    if (e.is_quantized(value))
      gradient = e.emit("CastLike", {gradient, value});  // the node gives what it derives for
    e.emit_to({output}, "Identity", {gradient});
  }

  const std::vector<ir::Node>& nodes_;
  size_t index_;
  const ir::Node& gradient_;
  ops::NodeView view_;
  GradientWalk walk_;
  std::vector<std::string> xs_, zs_;
  std::string y_;
  std::vector<size_t> path_;
};

// Puts what a Gradient node becomes where it stood, and other nodes where theirs stood.
void put_in_place(std::vector<ir::Node>& nodes, size_t at, std::vector<ir::Node> made,
                  std::vector<GradientWalk::Replaced> replaced) {
  std::unordered_map<size_t, std::vector<ir::Node>> by_index;
  by_index[at] = std::move(made);
  for (GradientWalk::Replaced& each : replaced)
    by_index[static_cast<size_t>(each.node - nodes.data())] = std::move(each.by);
  std::vector<ir::Node> all;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto found = by_index.find(i);
    if (found == by_index.end())
      all.push_back(std::move(nodes[i]));
    else
      all.insert(all.end(), std::make_move_iterator(found->second.begin()),
                 std::make_move_iterator(found->second.end()));
  }
  nodes = std::move(all);
}

}  // namespace

void expand_gradients(std::vector<ir::Node>& nodes, const GradientServices& services) {
  const auto count = static_cast<size_t>(std::count_if(nodes.begin(), nodes.end(), is_gradient));
  if (count == 0) return;
  if (count > max_gradients)
    fail(ErrorCode::unsupported, "a graph may hold up to {} Gradient nodes; it has {}",
         max_gradients, count);
  GradientTexts texts;
  for (size_t left = count; left > 0; --left) {
    bool expanded = false;
    for (size_t i = 0; i < nodes.size() && !expanded; ++i) {
      if (!is_gradient(nodes[i])) continue;
      Expansion expansion(nodes, i, services, texts);
      if (!expansion.find_path()) continue;
      std::vector<ir::Node> made = expansion.make();
      put_in_place(nodes, i, std::move(made), expansion.take_replaced());
      expanded = true;
    }
    if (!expanded)
      fail(ErrorCode::invalid_model, "Gradient nodes depend on each other in a circle");
  }
}

}  // namespace sardonyx::autodiff
