// Gradients that depend on the number of inputs, on ranks or on sizes. Internal to gradient.cc.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/gradient.h"
#include "ops/node_view.h"
#include "schema/schema.h"

namespace sardonyx::autodiff {

struct GradientCall;

// The newest version of every domain whose nodes may stand in a lowered graph.
const std::vector<ir::OperatorSetId>& newest_imports();

// Emits nodes of the newest opset version.
class GradientEmitter {
 public:
  GradientEmitter(const GradientServices& services, std::string origin)
      : services_(services), origin_(std::move(origin)) {}

  const GradientServices& services() const { return services_; }
  // Emits a node with one output and returns its name.
  std::string emit(std::string_view op, std::vector<std::string> inputs,
                   std::vector<ir::Attribute> attributes = {}, std::string_view domain = "");
  // The same with the output's name, or several.
  void emit_to(std::vector<std::string> outputs, std::string_view op,
               std::vector<std::string> inputs, std::vector<ir::Attribute> attributes = {},
               std::string_view domain = "");
  void emit(ir::Node node, const std::vector<ir::OperatorSetId>& imports);

  std::string ints(std::vector<int64_t> values);
  std::string scalar_like(float value, const std::string& like);
  std::string filled_like(float value, const std::string& like);
  std::string sum_like(const std::string& value, const std::string& like);
  // Of tensors, or of sequences item by item.
  std::string sum(const std::vector<std::string>& values);
  // What flows back into a value: a tensor or a sequence; none where its type is not known.
  ir::TypeProto::Kind flow_kind(std::string_view value) const;
  // Whether a tensor is of whole numbers or of floats of 8 bits or fewer, which stand for other
  // numbers: what flows back into it is not of its type.
  bool is_quantized(std::string_view value) const;
  std::optional<int64_t> rank(std::string_view value) const;
  int64_t required_rank(const GradientCall& call, size_t input) const;  // fails where it is open
  std::optional<Shape> shape(std::string_view value) const;             // where all of it is known
  // Open sizes are -1; nullopt where the rank is open.
  std::optional<Shape> sizes(std::string_view value) const;
  // Of an image [batch, channels, …] whose further sizes are known; an open one of the first two is
  // -1.
  std::optional<Shape> image(std::string_view value) const;

  std::vector<ir::Node>& nodes() { return made_; }
  std::vector<ir::Node> take() { return std::move(made_); }

 private:
  const GradientServices& services_;
  std::string origin_;
  std::vector<ir::Node> made_;
};

// A node and the gradients of its outputs ("" where there is none).
struct GradientCall {
  const ir::Node& node;
  std::span<const std::string> of_outputs;
  // Those of the inputs go here, where `wanted` says so.
  std::span<std::string> of_inputs;
  std::span<const char> wanted;
};

// The one gradient of a node with one output.
inline const std::string& flow(const GradientCall& call) { return call.of_outputs[0]; }
inline ops::NodeView view_of(const GradientCall& call) {
  return {call.node, schema::newest(call.node.domain, call.node.op_type)};
}

// windows.cc, losses.cc
void conv_gradient(const GradientCall& call, GradientEmitter& e);
void conv_transpose_gradient(const GradientCall& call, GradientEmitter& e);
void conv_weight_gradient_gradient(const GradientCall& call, GradientEmitter& e);
void average_pool_gradient(const GradientCall& call, GradientEmitter& e);
void lp_pool_gradient(const GradientCall& call, GradientEmitter& e);
void loss_gradient(const GradientCall& call, GradientEmitter& e);

// recurrent.cc
void recurrence_gradient(const GradientCall& call, GradientEmitter& e);

// quantization.cc
void quantize_gradient(const GradientCall& call, GradientEmitter& e);
void dequantize_gradient(const GradientCall& call, GradientEmitter& e);
void matmul_nbits_gradient(const GradientCall& call, GradientEmitter& e);

// linear.cc, attention.cc
void resize_gradient(const GradientCall& call, GradientEmitter& e);
void gather_gradient(const GradientCall& call, GradientEmitter& e);
void col2im_gradient(const GradientCall& call, GradientEmitter& e);
void center_crop_pad_gradient(const GradientCall& call, GradientEmitter& e);
void compress_gradient(const GradientCall& call, GradientEmitter& e);
void det_gradient(const GradientCall& call, GradientEmitter& e);
void lrn_gradient(const GradientCall& call, GradientEmitter& e);
void einsum_gradient(const GradientCall& call, GradientEmitter& e);
void attention_gradient(const GradientCall& call, GradientEmitter& e);

// collections.cc
std::string zeros_like_sequence(GradientEmitter& e, const std::string& sequence);
std::string sum_of_sequences(GradientEmitter& e, const std::vector<std::string>& sequences);
std::string item_of(GradientEmitter& e, const std::string& sequence, int64_t position);
void sequence_construct_gradient(const GradientCall& call, GradientEmitter& e);
void sequence_at_gradient(const GradientCall& call, GradientEmitter& e);
void sequence_insert_gradient(const GradientCall& call, GradientEmitter& e);
void sequence_erase_gradient(const GradientCall& call, GradientEmitter& e);
void concat_from_sequence_gradient(const GradientCall& call, GradientEmitter& e);
void split_to_sequence_gradient(const GradientCall& call, GradientEmitter& e);
void optional_gradient(const GradientCall& call, GradientEmitter& e);
void optional_get_element_gradient(const GradientCall& call, GradientEmitter& e);

// What flows back into a value of a type. Into an optional tensor that is a sequence of what it
// holds, which has no items where it is empty; into an optional sequence, a sequence.
ir::ValueType flow_type(const ir::ValueType& type);
// Nodes that give an optional value in that form, and whether it holds one.
std::vector<ir::Node> listed_optional(const std::string& value, const ir::ValueType& type,
                                      const std::string& list, const std::string& present,
                                      const GradientServices& services);
// And back.
std::vector<ir::Node> optional_of_list(const std::string& list, const std::string& present,
                                       const ir::ValueType& type, const std::string& value,
                                       const GradientServices& services);

using GradientRule = void (*)(const GradientCall& call, GradientEmitter& emitter);

// Outputs that are seldom asked for and that a text leaves out: whether there is something for one,
// and what it adds to the gradients of inputs.
bool adds_flow_of(const ir::Node& node, size_t output);
void add_flows(const GradientCall& call, GradientEmitter& emitter);

// Null where the operator has none here.
GradientRule gradient_rule(std::string_view domain, std::string_view op);
std::vector<std::string_view> gradient_rule_names();

}  // namespace sardonyx::autodiff
