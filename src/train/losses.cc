// Losses as nodes of the standard's operators.
#include <algorithm>

#include "base/fail.h"
#include "ir/dimension.h"
#include "ops/upgrade_context.h"
#include "train/draft.h"

namespace sardonyx::train {
namespace {

const ir::Node* maker_of(const ir::Graph& graph, const std::string& value) {
  for (const ir::Node& node : graph.nodes) {
    if (std::ranges::find(node.outputs, value) != node.outputs.end()) return &node;
  }
  return nullptr;
}

size_t rank_of(const ir::ValueInfo& info) {
  return info.type && info.type->shape ? info.type->shape->dims.size() : 0;
}

std::string mean(GraphBuilder& b, const std::string& value, const std::string& hint = {}) {
  return b.add("ReduceMean", {value}, {ops::int_attribute("keepdims", 0)}, hint);
}

int64_t class_axis(const Scores& about, const TrainableOptions& options) {
  int64_t axis = options.class_axis;
  if (about.rank == 1)
    fail(ErrorCode::bad_input,
         "softmax-cross-entropy needs an axis of classes beside that of the examples, and the "
         "output "
         "has one axis: another loss is for it, as bce-with-logits or mse");
  if (about.last_axis && about.rank > 0) {
    const int64_t last = static_cast<int64_t>(about.rank) - 1;
    if (axis != 1 && axis != -1 && axis != last)
      fail(ErrorCode::bad_input,
           "the model ends in a Softmax along axis {}, where the classes are; class_axis is {}",
           last, axis);
    return last;
  }
  if (axis < 0 && about.rank == 0)
    fail(ErrorCode::bad_input,
         "the rank of the output is unknown; count class_axis from the front");
  if (axis < 0) axis += static_cast<int64_t>(about.rank);
  if (axis < 1 || (about.rank > 0 && axis >= static_cast<int64_t>(about.rank)))
    fail(ErrorCode::bad_input, "class_axis must be in [1, {}); got {}", about.rank,
         options.class_axis);
  return axis;
}

// The standard's loss has classes along axis 1.
std::string classes_second(GraphBuilder& b, const std::string& scores, int64_t axis, size_t rank) {
  if (axis == 1) return scores;
  std::vector<int64_t> order{0, axis};
  for (int64_t d = 1; d < static_cast<int64_t>(rank); ++d) {
    if (d != axis) order.push_back(d);
  }
  return b.add("Transpose", {scores}, {ops::ints_attribute("perm", order)});
}

LossValues cross_entropy(GraphBuilder& b, const std::string& scores, const Scores& about,
                         const std::string& target, const TrainableOptions& options) {
  const std::string turned = classes_second(b, scores, class_axis(about, options), about.rank);
  std::vector<ir::Attribute> attributes{ops::string_attribute("reduction", "mean")};
  if (options.ignore_index)
    attributes.push_back(ops::int_attribute("ignore_index", *options.ignore_index));
  LossValues values;
  values.loss = b.add("SoftmaxCrossEntropyLoss", {turned, target}, attributes, "loss");
  const std::string best =
      b.add("ArgMax", {turned}, {ops::int_attribute("axis", 1), ops::int_attribute("keepdims", 0)});
  const std::string right = b.cast(b.add("Equal", {best, target}), b.element());
  if (!options.ignore_index) {
    values.accuracy = mean(b, right, "accuracy");
    return values;
  }
  const std::string ignored = b.add("Equal", {target, b.integer(*options.ignore_index)});
  const std::string counts = b.cast(b.add("Not", {ignored}), b.element());
  const auto sum = [&](const std::string& value) {
    return b.add("ReduceSum", {value}, {ops::int_attribute("keepdims", 0)});
  };
  values.accuracy = b.add("Div", {sum(b.add("Mul", {right, counts})), sum(counts)}, {}, "accuracy");
  return values;
}

// max(z, 0) - z t + log(1 + exp(-|z|)), which is softplus(z) - z t.
std::string bce_of_scores(GraphBuilder& b, const std::string& z, const std::string& target) {
  return b.add("Sub", {b.add("Softplus", {z}), b.add("Mul", {z, target})});
}

std::string bce_of_probabilities(GraphBuilder& b, const std::string& p, const std::string& target) {
  const std::string one = b.number(1), least = b.number(1e-7), most = b.number(1 - 1e-7);
  const std::string held = b.add("Clip", {p, least, most});
  const std::string yes = b.add("Mul", {target, b.add("Log", {held})});
  const std::string no =
      b.add("Mul", {b.add("Sub", {one, target}), b.add("Log", {b.add("Sub", {one, held})})});
  return b.add("Neg", {b.add("Add", {yes, no})});
}

LossValues binary(GraphBuilder& b, const std::string& scores, bool are_logits,
                  const std::string& target) {
  const std::string each =
      are_logits ? bce_of_scores(b, scores, target) : bce_of_probabilities(b, scores, target);
  const std::string limit = b.number(are_logits ? 0 : 0.5), half = b.number(0.5);
  const std::string said = b.add("Greater", {scores, limit}), is = b.add("Greater", {target, half});
  LossValues values;
  values.loss = mean(b, each, "loss");
  values.accuracy = mean(b, b.cast(b.add("Equal", {said, is}), b.element()), "accuracy");
  return values;
}

std::string huber(GraphBuilder& b, const std::string& error, double delta) {
  const std::string size = b.add("Abs", {error}), limit = b.number(delta);
  const std::string square = b.add("Mul", {b.add("Mul", {error, error}), b.number(0.5)});
  const std::string line = b.add("Mul", {b.add("Sub", {size, b.number(0.5 * delta)}), limit});
  return b.add("Where", {b.add("LessOrEqual", {size, limit}), square, line});
}

bool is_standard(const ir::Node* node, std::initializer_list<std::string_view> ops) {
  return node != nullptr && ir::canonical_domain(node->domain).empty() &&
         std::ranges::find(ops, node->op_type) != ops.end();
}

// Up to version 12 a Softmax made one row of its axis and those behind it: it is between a Flatten
// and a Reshape now. Where those behind have one element each, it goes along its axis alone: the
// value that it goes along; empty elsewhere.
std::string before_softmax_of_rows(const ir::Graph& graph, const ir::Node* reshape,
                                   const ir::ValueInfo& output, int64_t axis) {
  if (!is_standard(reshape, {"Reshape"}) || reshape->inputs.size() != 2) return {};
  const ir::Node *softmax = maker_of(graph, reshape->inputs[0]),
                 *shape = maker_of(graph, reshape->inputs[1]);
  if (!is_standard(softmax, {"Softmax", "LogSoftmax"}) || !is_standard(shape, {"Shape"})) return {};
  const ir::Attribute* along = softmax->find("axis");
  if (const int64_t axis_of_rows = along ? along->i.value_or(-1) : -1;
      axis_of_rows != -1 && axis_of_rows != 1)
    return {};
  const ir::Node* flatten = maker_of(graph, softmax->inputs[0]);
  if (!is_standard(flatten, {"Flatten"}) || !shape->attributes.empty() ||
      shape->inputs[0] != flatten->inputs[0])
    return {};
  const ir::Attribute* given = flatten->find("axis");
  if ((given ? given->i.value_or(1) : 1) != axis || rank_of(output) == 0) return {};
  const auto& dims = output.type->shape->dims;
  for (size_t d = static_cast<size_t>(axis) + 1; d < dims.size(); ++d) {
    if (ir::declared_number(dims[d]) != 1) return {};
  }
  return flatten->inputs[0];
}

}  // namespace

Scores scores_of(const ir::Graph& graph, const ir::ValueInfo& output,
                 const TrainableOptions& options) {
  Scores scores{output.name, false, false, rank_of(output)};
  const ir::Node* maker = maker_of(graph, output.name);
  if (maker == nullptr || !ir::canonical_domain(maker->domain).empty()) return scores;
  if (options.loss == Loss::softmax_cross_entropy && options.class_axis > 0) {
    std::string rows = before_softmax_of_rows(graph, maker, output, options.class_axis);
    if (!rows.empty()) scores.name = std::move(rows);
  }
  const bool is_softmax = maker->op_type == "Softmax" || maker->op_type == "LogSoftmax";
  if (options.loss == Loss::softmax_cross_entropy && is_softmax) {
    const ir::Attribute* axis = maker->find("axis");
    const int64_t along = axis ? axis->i.value_or(-1) : -1,
                  rank = static_cast<int64_t>(scores.rank);
    const auto from_the_start = [&](int64_t of) { return of < 0 && rank > 0 ? of + rank : of; };
    scores.last_axis = along == -1 || (rank > 0 && along == rank - 1);
    // One along other axes than that of the classes is not what the loss computes.
    if (scores.last_axis || from_the_start(along) == from_the_start(options.class_axis))
      scores.name = maker->inputs[0];
  } else if (maker->op_type == "Sigmoid" && options.loss == Loss::bce) {
    scores.name = maker->inputs[0];
    scores.before_sigmoid = true;
  }
  return scores;
}

const ir::Node* applied_twice(const ir::Graph& graph, const Scores& scores, Loss loss) {
  const bool softmax = loss == Loss::softmax_cross_entropy;
  if (!softmax && loss != Loss::bce_with_logits) return nullptr;
  const std::string_view wanted = softmax ? "Softmax" : "Sigmoid";
  constexpr int most = 16;  // nodes between
  const ir::Node* maker = maker_of(graph, scores.name);
  for (int i = 0; i < most; ++i) {
    if (is_standard(maker, {wanted})) return maker;
    if (!is_standard(maker, {"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose",
                             "Unsqueeze"}) ||
        maker->inputs.empty())
      return nullptr;
    maker = maker_of(graph, maker->inputs[0]);
  }
  return nullptr;
}

ir::ValueInfo target_of(const std::string& name, const ir::ValueInfo& output, const Scores& scores,
                        ElementType element, const TrainableOptions& options) {
  ir::ValueInfo target = value_info(name, element, {});
  ir::TensorShape& shape = *target.type->shape;
  if (options.loss != Loss::softmax_cross_entropy) {
    if (scores.rank > 0)
      shape = *output.type->shape;
    else
      target.type->shape.reset();
    return target;
  }
  target.type->elem_type = static_cast<int32_t>(ElementType::int64);
  if (scores.rank == 0) {
    target.type->shape.reset();
    return target;
  }
  const int64_t axis = class_axis(scores, options);
  for (size_t d = 0; d < scores.rank; ++d) {
    if (static_cast<int64_t>(d) != axis) shape.dims.push_back(output.type->shape->dims[d]);
  }
  return target;
}

LossValues add_loss(GraphBuilder& b, const std::string& scores, const Scores& about,
                    const std::string& target, const TrainableOptions& options) {
  const auto error = [&] { return b.add("Sub", {scores, target}); };
  switch (options.loss) {
    case Loss::softmax_cross_entropy: return cross_entropy(b, scores, about, target, options);
    case Loss::bce_with_logits: return binary(b, scores, true, target);
    case Loss::bce: return binary(b, scores, about.before_sigmoid, target);
    case Loss::l1: return {mean(b, b.add("Abs", {error()}), "loss"), {}};
    case Loss::huber: return {mean(b, huber(b, error(), options.huber_delta), "loss"), {}};
    case Loss::mse: break;
  }
  const std::string difference = error();
  return {mean(b, b.add("Mul", {difference, difference}), "loss"), {}};
}

}  // namespace sardonyx::train
