// Gradients of SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss.
#include "autodiff/rules.h"
#include "ops/upgrade_context.h"

namespace sardonyx::autodiff {
namespace {

struct Targets {
  std::string chosen;  // 1 at the class of each label
  std::string share;   // what each label's loss contributes, times what flows into the loss
};

// Labels that are ignored choose class 0 and contribute nothing.
Targets targets_of(const GradientCall& call, GradientEmitter& e, const std::string& dy) {
  const ops::NodeView view = view_of(call);
  const std::string &scores = call.node.inputs[0], &labels = call.node.inputs[1];
  const std::string one = e.scalar_like(1, dy), zero = e.scalar_like(0, dy);
  const std::string first = e.ints({0});
  std::string safe = labels, weights;
  if (view.has_input(2)) weights = call.node.inputs[2];
  std::string counted = weights.empty() ? e.filled_like(1, e.emit("CastLike", {labels, dy})) : "";
  if (view.has_attribute("ignore_index")) {
    const std::string index = e.emit("Squeeze", {e.ints({view.attr_int("ignore_index")})});
    const std::string ignored = e.emit("Equal", {labels, e.emit("CastLike", {index, labels})});
    const std::string none = e.emit("CastLike", {e.emit("Squeeze", {e.ints({0})}), labels});
    safe = e.emit("Where", {ignored, none, labels});
    if (!weights.empty()) counted = e.emit("Gather", {weights, safe});
    counted = e.emit("Where", {ignored, zero, counted});
  } else if (!weights.empty()) {
    counted = e.emit("Gather", {weights, safe});
  }
  const std::string classes = e.emit("Gather", {e.emit("Shape", {scores}), e.ints({1})});
  const std::string values =
      e.emit("Concat", {e.emit("Unsqueeze", {zero, first}), e.emit("Unsqueeze", {one, first})},
             {ops::int_attribute("axis", 0)});
  Targets targets;
  targets.chosen = e.emit("OneHot", {safe, classes, values}, {ops::int_attribute("axis", 1)});
  std::string share = e.emit("Mul", {dy, counted});
  if (view.attr_string("reduction", "mean") == "mean") {
    const std::string total = e.emit("ReduceSum", {counted}, {ops::int_attribute("keepdims", 0)});
    share = e.emit("Div", {share, total});
  }
  targets.share = e.emit("Unsqueeze", {share, e.ints({1})});
  return targets;
}

}  // namespace

// softmax - target for each label; the log-probabilities that the node may give as well add theirs.
void loss_gradient(const GradientCall& call, GradientEmitter& e) {
  const std::string& scores = call.node.inputs[0];
  const bool softmax = call.node.op_type == "SoftmaxCrossEntropyLoss";
  const std::string by_loss = call.of_outputs[0];
  const std::string by_logs = call.of_outputs.size() > 1 ? call.of_outputs[1] : "";
  const std::string shares =
      softmax ? e.emit("Softmax", {scores}, {ops::int_attribute("axis", 1)}) : "";
  std::vector<std::string> parts;
  if (!by_loss.empty()) {
    const Targets targets = targets_of(call, e, by_loss);
    const std::string slope =
        softmax ? e.emit("Sub", {shares, targets.chosen}) : e.emit("Neg", {targets.chosen});
    parts.push_back(e.emit("Mul", {slope, targets.share}));
  }
  if (!by_logs.empty()) {
    const std::string total = e.emit("ReduceSum", {by_logs, e.ints({1})});
    parts.push_back(e.emit("Sub", {by_logs, e.emit("Mul", {shares, total})}));
  }
  call.of_inputs[0] = e.emit("Sum", parts);
}

}  // namespace sardonyx::autodiff
