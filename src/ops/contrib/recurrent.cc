// com.microsoft: DynamicQuantizeLSTM.
#include "kernels/recurrent/quantized_lstm.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/recurrent_shape.h"

namespace sardonyx::ops {
namespace contrib_recurrent_unit {
namespace {

using kernels::ByteWeights;
using kernels::RecurrentShape;

enum Input {
  x,
  w,
  r,
  b,
  lengths,
  initial_h,
  initial_c,
  peephole,
  w_scale,
  w_zero,
  r_scale,
  r_zero
};

// [directions], or [directions, gates * hidden] where each column has its own.
void require_parameters(InferContext& ctx, int i, int weights, const Dim& directions) {
  if (!ctx.shape(i)) return;
  const Dims& shape = *ctx.shape(i);
  if (shape.size() != 1 && shape.size() != 2)
    ctx.fail("{} must have one dimension, or two where each column has its own; its shape is {}",
             ctx.input_name(i), ir::to_string(shape));
  ctx.require_equal(shape[0], directions,
                    fmt::format("{} must have one entry for each direction", ctx.input_name(i)));
  if (shape.size() == 2 && ctx.shape(weights) && ctx.shape(weights)->size() == 3)
    ctx.require_equal(shape[1], (*ctx.shape(weights))[2],
                      fmt::format("{} must have one entry for each column of {}", ctx.input_name(i),
                                  ctx.input_name(weights)));
}

void infer(InferContext& ctx) {
  infer_recurrent(ctx, true);
  const Dim directions = read_recurrent_shape(ctx).directions;
  for (const int i : {w_scale, w_zero}) require_parameters(ctx, i, w, directions);
  for (const int i : {r_scale, r_zero}) require_parameters(ctx, i, r, directions);
}

using Packed = std::shared_ptr<const Pack<Tensor>>;

// Weights that never change are packed once; others in each run.
Packed pack_constant(PrepareContext& ctx, int i) {
  const Tensor* tensor = ctx.constant(i);
  if (tensor == nullptr || tensor->rank() != 3 || tensor->size() == 0) return nullptr;
  const Shape& shape = tensor->shape();
  const int64_t bytes = kernels::byte_weights_bytes(shape[0], shape[1], shape[2]);
  const PackFormat format{.family = PackFamily::byte_recurrent,
                          .from = tensor->element_type(),
                          .to = ElementType::uint8,
                          .shape = shape};
  return ctx.packed<Tensor>(
      i, format, {{ElementType::uint8, bytes}}, [weights = *tensor, bytes](ThreadPool& pool) {
        Tensor made(ElementType::uint8, Shape{bytes});
        const Shape& from = weights.shape();
        kernels::pack_byte_weights(weights.element_type(), weights.data(), from[0], from[1],
                                   from[2], made.mutable_data(), pool);
        return made;
      });
}

struct State {
  RecurrentShape shape;
  int64_t packed_w = -1, packed_r = -1;
  int64_t scratch = 0;
};

void require_weights(const BindContext& bind, int i, const RecurrentShape& s, int64_t rows) {
  const auto found = bind.in_shape(i);
  if (found.size() == 3 && found[0] == s.directions && found[1] == rows &&
      found[2] == s.gate_columns())
    return;
  throw Error(ErrorCode::run_failed,
              fmt::format("weights of shape {} where {} are needed for X of shape {}",
                          to_string(found), to_string(Shape{s.directions, rows, s.gate_columns()}),
                          to_string(bind.in_shape(x))));
}

void bind_layer(BindContext& bind, State& s, const RecurrentShape& settings, bool w_packed,
                bool r_packed) {
  const auto input = bind.in_shape(x), recurrent = bind.in_shape(r);
  s.shape = settings;
  s.shape.steps = input[0], s.shape.batch = input[1], s.shape.input = input[2];
  s.shape.hidden = recurrent[1];
  s.shape.clips_cell = false;  // as in ONNX Runtime
  require_weights(bind, w, s.shape, s.shape.input);
  require_weights(bind, r, s.shape, s.shape.hidden);
  const int64_t columns = s.shape.gate_columns();
  ScratchPlanner layout;
  const auto packed = [&](bool is_packed, int64_t rows) {
    return is_packed ? -1
                     : layout.take(kernels::byte_weights_bytes(settings.directions, rows, columns));
  };
  s.packed_w = packed(w_packed, s.shape.input);
  s.packed_r = packed(r_packed, s.shape.hidden);
  s.scratch = layout.take(kernels::quantized_lstm_scratch_bytes(s.shape, bind.threads()));
  bind.need_scratch(layout.bytes());
}

const float* floats(const RunContext& run, int i) {
  return run.has_input(i) ? run.in<float>(i) : nullptr;
}

// Where `packed` is null, the weights of input i are packed to this place of the scratch.
ByteWeights weights_of(RunContext& run, const Packed& packed, int i, int scale, int zero,
                       const RecurrentShape& s, int64_t rows, int64_t place) {
  ByteWeights made;
  made.type = run.in_type(zero);
  made.scale = run.in<float>(scale), made.zero = run.data(zero);
  made.scales_each = run.in_shape(scale).size() == 2;
  made.zeros_each = run.in_shape(zero).size() == 2;
  if (packed) {
    made.packed = packed->get(run.pool()).data();
    return made;
  }
  made.packed = scratch_at(run, place);
  kernels::pack_byte_weights(made.type, run.data(i), s.directions, rows, s.gate_columns(),
                             scratch_at(run, place), run.pool());
  return made;
}

void run_layer(RunContext& run, const State& s, const Packed& packed_w, const Packed& packed_r) {
  const ByteWeights input =
      weights_of(run, packed_w, w, w_scale, w_zero, s.shape, s.shape.input, s.packed_w);
  const ByteWeights state =
      weights_of(run, packed_r, r, r_scale, r_zero, s.shape, s.shape.hidden, s.packed_r);
  const auto made = [&](int i) { return run.has_output(i) ? run.out<float>(i) : nullptr; };
  kernels::RecurrentData<float> data;
  data.x = floats(run, x), data.bias = floats(run, b);
  data.lengths = sequence_lengths(run, lengths, s.shape);
  data.h0 = floats(run, initial_h), data.c0 = floats(run, initial_c);
  data.peephole = floats(run, peephole);
  data.y = made(0), data.y_h = made(1), data.y_c = made(2);
  kernels::run_quantized_lstm(s.shape, data, input, state, scratch_at(run, s.scratch), run.pool());
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const RecurrentShape settings = read_recurrent_shape(ctx);
  const Packed pw = pack_constant(ctx, w), pr = pack_constant(ctx, r);
  auto step = make_step<State>(
      "recurrent.int8",
      [settings, has_w = pw != nullptr, has_r = pr != nullptr](BindContext& bind, State& s) {
        bind_layer(bind, s, settings, has_w, has_r);
      },
      [pw, pr](RunContext& run, const State& s) { run_layer(run, s, pw, pr); });
  if (pw) step->traits().unread_inputs.push_back(w);
  if (pr) step->traits().unread_inputs.push_back(r);
  return step;
}

constexpr Operator operators[] = {
    {.name = "DynamicQuantizeLSTM", .domain = "com.microsoft", .infer = infer, .prepare = prepare},
};

}  // namespace
}  // namespace contrib_recurrent_unit

std::span<const Operator> contrib_recurrent_operators() {
  return contrib_recurrent_unit::operators;
}

}  // namespace sardonyx::ops
