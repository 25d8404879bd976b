// Which operators are differentiated as other operators.
#include "autodiff/bodies.h"

#include <map>

#include "ir/internal_domain.h"
#include "ops/internal/gradients.h"

namespace sardonyx::autodiff {
namespace {

const std::map<std::string_view, GradientBody>& all_bodies() {
  static const std::map<std::string_view, GradientBody> bodies{
      {"CausalConvWithState", causal_conv_body},
      {"DeformConv", deform_conv_body},
      {"GRU", recurrent_body},
      {"GridSample", grid_sample_body},
      {"LSTM", recurrent_body},
      {"LinearAttention", linear_attention_body},
      {"MaxRoiPool", max_roi_pool_body},
      {"RNN", recurrent_body},
      {"RoiAlign", roi_align_body},
  };
  return bodies;
}

}  // namespace

GradientBody gradient_body(std::string_view domain, std::string_view op) {
  if (domain == "ai.onnx.preview" && op == "FlexAttention") return flex_attention_body;
  if (domain == "com.microsoft" && op == "GroupQueryAttention") return group_query_attention_body;
  if (domain == ir::internal_domain && op == ops::internal::LSTMRecurrenceGradient::name)
    return recurrence_gradient_body;
  if (!domain.empty()) return nullptr;
  const auto found = all_bodies().find(op);
  return found == all_bodies().end() ? nullptr : found->second;
}

std::vector<std::string_view> gradient_body_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, body] : all_bodies()) names.push_back(name);
  return names;
}

}  // namespace sardonyx::autodiff
