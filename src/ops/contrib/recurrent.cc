// com.microsoft: DynamicQuantizeLSTM.
#include "ops/contrib/body.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace {

// Weights [directions, K, N] of bytes as the standard's LSTM wants them: floats [directions, N, K].
// Scale and zero point are of each direction, or of each of its columns: [directions, N].
std::string standard_weights(Body& body, size_t weights, size_t scale, size_t zero) {
  const std::string bytes = body.transpose(body.input(weights), {0, 2, 1});
  const auto dequantized = [&](const std::string& rows, const std::string& scales,
                               const std::string& zeros) {
    return body.op("DequantizeLinear", {rows, scales, zeros}, {int_attribute("axis", 0)});
  };
  const int64_t rank = body.rank(scale);
  if (rank == 1) return dequantized(bytes, body.input(scale), body.input(zero));
  if (rank != 2)
    body.context().fail(ErrorCode::invalid_model,
                        "{} must have one dimension, or two where each column has its own scale; "
                        "it has {}",
                        body.node().input_name(static_cast<int>(scale)), rank);
  const std::string rows = body.op("Flatten", {bytes}, {int_attribute("axis", 2)});
  const std::string values = dequantized(rows, body.reshape(body.input(scale), {-1}),
                                         body.reshape(body.input(zero), {-1}));
  return body.op("Reshape", {values, body.op("Shape", {bytes})});
}

void lstm(UpgradeContext& ctx) {
  Body body(ctx);
  Attributes attributes;
  for (const char* name : {"activation_alpha", "activation_beta", "activations", "clip",
                           "direction", "hidden_size", "input_forget"}) {
    const ir::Attribute* found = ctx.old().node().find(name);
    if (found != nullptr) attributes.push_back(*found);
  }
  Names inputs{body.input(0), standard_weights(body, 1, 8, 9), standard_weights(body, 2, 10, 11)};
  for (size_t i = 3; i < 8; ++i) inputs.push_back(body.input(i));
  while (inputs.back().empty()) inputs.pop_back();
  Names outputs;
  for (size_t i = 0; i < 3; ++i)
    outputs.push_back(body.wants(i) ? ctx.node().outputs[i] : std::string());
  body.node_for("LSTM", std::move(inputs), std::move(outputs), std::move(attributes));
}

constexpr Operator operators[] = {
    {.name = "DynamicQuantizeLSTM", .domain = "com.microsoft", .upgrade = lstm},
};

}  // namespace

std::span<const Operator> contrib_recurrent_operators() { return operators; }

}  // namespace sardonyx::ops
