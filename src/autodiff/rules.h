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
  std::optional<int64_t> rank(std::string_view value) const;
  int64_t required_rank(const GradientCall& call, size_t input) const;  // fails where it is open
  std::optional<Shape> shape(std::string_view value) const;             // where all of it is known

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

// gradient_windows.cc, gradient_losses.cc
void conv_gradient(const GradientCall& call, GradientEmitter& e);
void conv_transpose_gradient(const GradientCall& call, GradientEmitter& e);
void average_pool_gradient(const GradientCall& call, GradientEmitter& e);
void lp_pool_gradient(const GradientCall& call, GradientEmitter& e);
void loss_gradient(const GradientCall& call, GradientEmitter& e);

// gradient_linear.cc, gradient_attention.cc
void resize_gradient(const GradientCall& call, GradientEmitter& e);
void grid_sample_gradient(const GradientCall& call, GradientEmitter& e);
void roi_align_gradient(const GradientCall& call, GradientEmitter& e);
void col2im_gradient(const GradientCall& call, GradientEmitter& e);
void center_crop_pad_gradient(const GradientCall& call, GradientEmitter& e);
void dequantize_gradient(const GradientCall& call, GradientEmitter& e);
void compress_gradient(const GradientCall& call, GradientEmitter& e);
void det_gradient(const GradientCall& call, GradientEmitter& e);
void lrn_gradient(const GradientCall& call, GradientEmitter& e);
void einsum_gradient(const GradientCall& call, GradientEmitter& e);
void attention_gradient(const GradientCall& call, GradientEmitter& e);

using GradientRule = void (*)(const GradientCall& call, GradientEmitter& emitter);

// Null where the operator has none here.
GradientRule gradient_rule(std::string_view domain, std::string_view op);
std::vector<std::string_view> gradient_rule_names();

}  // namespace sardonyx::autodiff
