#include "train/artifact_forms.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "base/fail.h"
#include "ir/tensor.h"
#include "ir/walk.h"
#include "ops/upgrade_context.h"

namespace sardonyx::train {
namespace {

using Names = std::unordered_set<std::string>;

Names names_read(const ir::Graph& graph) {
  Names read;
  for (const ir::ValueInfo& output : graph.outputs) read.insert(output.name);
  const auto add = [&](const ir::WalkPlace&, const ir::Node& node, size_t) {
    read.insert(node.inputs.begin(), node.inputs.end());
  };
  ir::walk(graph, {.enter = {}, .leave = {}, .node = add});
  return read;
}

void drop_unread_outputs(ir::Node& node, const Names& read) {
  while (node.outputs.size() > 1 && !read.contains(node.outputs.back())) node.outputs.pop_back();
}

class Standardizing {
 public:
  explicit Standardizing(ir::Graph& forward) : graph_(forward), read_(names_read(forward)) {}

  std::vector<NodeUpdate> all() {
    for (ir::Node& node : graph_.nodes) one(node);
    return std::move(updates_);
  }

 private:
  void one(ir::Node& node) {
    if (node.domain == "com.microsoft") {
      from_microsoft(node);
    } else if (ir::canonical_domain(node.domain).empty()) {
      if (node.op_type == "BatchNormalization") return normalization(node);
      if (node.op_type == "Dropout") return dropout(node);
    }
    // The standard's inner values of a normalisation, or the places of maxima: for a derivative.
    if (node.domain.empty() && node.op_type != "Dropout" && node.op_type != "BatchNormalization")
      drop_unread_outputs(node, read_);
  }

  void from_microsoft(ir::Node& node) {
    const std::string_view op = node.op_type;
    if (op == "BatchNormInternal") {
      node.op_type = "BatchNormalization", node.domain.clear();
      normalization(node);
    } else if (op == "SoftmaxCrossEntropyLossInternal") {
      loss(node);
    } else if (op == "BitmaskDropout") {
      node.op_type = "Dropout", node.domain.clear();
      without_mask(node);
    } else if (op == "BitmaskBiasDropout") {
      node.op_type = "BiasDropout";
      without_mask(node);
    } else if (op == "LSTMTraining" || op == "GRUTraining") {
      node.op_type = op.substr(0, op.size() - std::string_view("Training").size());
      node.domain.clear();
      node.outputs.resize(std::min<size_t>(node.outputs.size(), op == "LSTMTraining" ? 3 : 2));
    } else if (op == "ConcatTraining" || op == "SplitTraining") {
      node.op_type = op == "ConcatTraining" ? "Concat" : "Split";
      node.domain.clear();
      if (node.op_type == "Concat") node.outputs.resize(1);
    }
  }

  // The mask is packed into bits: only a backward part reads it.
  void without_mask(ir::Node& node) {
    if (node.outputs.size() > 1) {
      refuse_read(node, 1);
      node.outputs.resize(1);
    }
    if (node.op_type == "Dropout") dropout(node);
  }

  // The derivative needs to know what was kept.
  void dropout(ir::Node& node) {
    if (node.outputs.size() < 2) node.outputs.resize(2);
    if (node.outputs[1].empty()) node.outputs[1] = node.outputs[0] + "_kept";
  }

  void normalization(ir::Node& node) {
    const ir::Attribute* mode = node.find("training_mode");
    const bool trains = mode != nullptr && mode->i.value_or(0) != 0;
    for (size_t i = trains ? 3 : 1; i < node.outputs.size(); ++i) refuse_read(node, i);
    if (!trains) {
      node.outputs.resize(1);
      return;
    }
    node.outputs.resize(3);
    for (size_t i = 1; i < 3; ++i) {
      if (node.outputs[i].empty()) node.outputs[i] = fmt::format("{}_{}", node.outputs[0], i);
      if (node.inputs.size() > 2 + i) updates_.push_back({node.inputs[2 + i], node.outputs[i]});
    }
  }

  // The class that does not count is an input there.
  void loss(ir::Node& node) {
    node.op_type = "SoftmaxCrossEntropyLoss", node.domain.clear();
    std::erase_if(node.attributes,
                  [](const ir::Attribute& one) { return one.name == "output_type"; });
    drop_unread_outputs(node, read_);
    if (node.inputs.size() < 4) return;
    const std::string ignored = node.inputs[3];
    node.inputs.resize(node.inputs[2].empty() ? 2 : 3);
    if (ignored.empty()) return;
    const auto tensor = std::ranges::find(graph_.initializers, ignored, &ir::TensorProto::name);
    if (tensor == graph_.initializers.end())
      fail_at(ir::describe(node), ErrorCode::unsupported,
              "the class that does not count is computed ('{}'); it must be an initializer",
              ignored);
    const Tensor value = ir::to_tensor(*tensor);
    if (value.element_type() != ElementType::int64 || value.size() != 1)
      fail_at(ir::describe(node), ErrorCode::invalid_model,
              "the class that does not count ('{}') must be one int64", ignored);
    node.attributes.push_back(ops::int_attribute("ignore_index", value.elements<int64_t>()[0]));
  }

  void refuse_read(const ir::Node& node, size_t output) const {
    if (output >= node.outputs.size() || !read_.contains(node.outputs[output])) return;
    fail_at(ir::describe(node), ErrorCode::unsupported,
            "its output {} ('{}') is read, which the standard's operator does not have", output,
            node.outputs[output]);
  }

  ir::Graph& graph_;
  const Names read_;
  std::vector<NodeUpdate> updates_;
};

}  // namespace

std::vector<NodeUpdate> standardize_forward(ir::Graph& forward) {
  return Standardizing(forward).all();
}

}  // namespace sardonyx::train
