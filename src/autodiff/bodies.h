// Operators without a gradient of their own, said with operators that have one. Internal to the
// gradients.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "autodiff/rules.h"
#include "ops/upgrade_context.h"

namespace sardonyx::autodiff {

// Nodes of the newest versions that give the node's outputs, not yet lowered. They depend on what
// is known of its inputs; throws Error (unsupported) where that is too little.
using GradientBody = std::vector<ir::Node> (*)(const ir::Node& node, GradientEmitter& emitter);

using Names = std::vector<std::string>;

// Nodes of one graph, written one after the other.
class NodeWriter {
 public:
  explicit NodeWriter(const GradientServices& services) : services_(services) {}

  std::string add(std::string_view op, Names inputs, std::vector<ir::Attribute> attributes = {}) {
    return add_many(op, std::move(inputs), 1, std::move(attributes))[0];
  }
  Names add_many(std::string_view op, Names inputs, size_t outputs,
                 std::vector<ir::Attribute> attributes = {}) {
    Names names;
    for (size_t i = 0; i < outputs; ++i) names.push_back(services_.fresh_name(op));
    add_to(names, op, std::move(inputs), std::move(attributes));
    return names;
  }
  void add_to(Names outputs, std::string_view op, Names inputs,
              std::vector<ir::Attribute> attributes = {}) {
    ir::Node& node = nodes_.emplace_back();
    node.op_type = op;
    node.inputs = std::move(inputs), node.outputs = std::move(outputs);
    node.attributes = std::move(attributes);
  }
  std::string constant(const Tensor& tensor) {
    return add("Constant", {}, {ops::tensor_attribute("value", tensor)});
  }
  std::string ints(const std::vector<int64_t>& values) {
    return constant(Tensor::of<int64_t>(values, {static_cast<int64_t>(values.size())}));
  }
  std::string number(float value, const std::string& like) {
    return add("CastLike", {constant(Tensor::scalar<float>(value)), like});
  }
  std::string fresh(std::string_view hint) { return services_.fresh_name(hint); }
  void append(std::vector<ir::Node> nodes) {
    nodes_.insert(nodes_.end(), std::make_move_iterator(nodes.begin()),
                  std::make_move_iterator(nodes.end()));
  }
  std::vector<ir::Node> take() { return std::move(nodes_); }

 private:
  const GradientServices& services_;
  std::vector<ir::Node> nodes_;
};

// Null where the operator has none here.
GradientBody gradient_body(std::string_view domain, std::string_view op);
std::vector<std::string_view> gradient_body_names();

// recurrent.cc: RNN, GRU and LSTM, and what flows back through the recurrence of an LSTM.
std::vector<ir::Node> recurrent_body(const ir::Node& node, GradientEmitter& e);
std::vector<ir::Node> recurrence_gradient_body(const ir::Node& node, GradientEmitter& e);

// sequences.cc: a convolution over the past, and a Scan over tokens.
std::vector<ir::Node> causal_conv_body(const ir::Node& node, GradientEmitter& e);
std::vector<ir::Node> linear_attention_body(const ir::Node& node, GradientEmitter& e);

// attention_bodies.cc
std::vector<ir::Node> flex_attention_body(const ir::Node& node, GradientEmitter& e);
std::vector<ir::Node> group_query_attention_body(const ir::Node& node, GradientEmitter& e);

// sampling.cc, regions.cc: reads of elements at computed places.
std::vector<ir::Node> grid_sample_body(const ir::Node& node, GradientEmitter& e);
std::vector<ir::Node> deform_conv_body(const ir::Node& node, GradientEmitter& e);
std::vector<ir::Node> roi_align_body(const ir::Node& node, GradientEmitter& e);
std::vector<ir::Node> max_roi_pool_body(const ir::Node& node, GradientEmitter& e);

}  // namespace sardonyx::autodiff
