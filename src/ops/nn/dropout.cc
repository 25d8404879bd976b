// Dropout.
#include <algorithm>
#include <cstring>
#include <random>

#include "kernels/convert/cast.h"
#include "ops/operator.h"
#include "ops/shared/element_counts.h"
#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace dropout_unit {
namespace {

void infer(InferContext& ctx) {
  require_one(ctx, 1);
  require_one(ctx, 2);
  ctx.set(0, ctx.type(0));
  ValueType mask = ctx.type(0);
  mask.element = ElementType::boolean;
  ctx.set(1, std::move(mask));
  for (int i = 1; i < 3; ++i) {
    if (const auto count = ctx.type(i).element_count())
      ctx.require_equal(*count, Dim(1), "ratio and training_mode must be one value each");
  }
}

std::unique_ptr<Step> inference(PrepareContext& ctx) {
  if (!ctx.has_output(1)) return make_view_step("dropout.none");
  const ElementType type = ctx.in_element(0);
  auto step = make_step("dropout.keep_all", [type](RunContext& run) {
    if (run.has_output(0)) copy_plain(type, run.data(0), run.out_data(0), run.in_size(0));
    std::fill_n(run.out<bool>(1), run.out_size(1), true);
  });
  step->traits().in_place = {{0, 0}};
  return step;
}

double read_ratio(const RunContext& run) {
  float ratio = 0.5f;
  if (run.has_input(1)) {
    if (run.in_type(1) == ElementType::float64) {
      ratio = static_cast<float>(*run.in<double>(1));
    } else {
      kernels::to_floats(run.in_type(1), run.data(1), &ratio, 1);
    }
  }
  if (!(ratio >= 0 && ratio < 1))
    throw Error(ErrorCode::run_failed, fmt::format("ratio must be in [0, 1); got {}", ratio));
  return static_cast<double>(ratio);
}

// Uniform in [0, 1) with 53 random bits, two draws each.
double draw(std::mt19937& random) {
  const uint32_t high = static_cast<uint32_t>(random()) >> 5,
                 low = static_cast<uint32_t>(random()) >> 6;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

// In tiles: elements as float32 (float64 as itself), scaled or dropped, and back.
void drop(RunContext& run, double ratio, uint32_t seed) {
  constexpr int64_t tile = 256;
  std::mt19937 random(seed);
  const ElementType type = run.in_type(0);
  const int64_t width = byte_size(type, 1), n = run.in_size(0);
  bool* mask = run.has_output(1) ? run.out<bool>(1) : nullptr;
  const double scale = 1.0 / (1.0 - ratio);
  for (int64_t at = 0; at < n; at += tile) {
    const int64_t count = std::min(tile, n - at);
    const auto* x = static_cast<const std::byte*>(run.data(0)) + at * width;
    auto* y = static_cast<std::byte*>(run.out_data(0)) + at * width;
    float values[tile];
    if (type != ElementType::float64) kernels::to_floats(type, x, values, count);
    for (int64_t i = 0; i < count; ++i) {
      const bool keep = draw(random) >= ratio;
      if (mask) mask[at + i] = keep;
      if (type == ElementType::float64) {
        double value;
        std::memcpy(&value, x + i * width, 8);
        value = keep ? value * scale : 0;
        std::memcpy(y + i * width, &value, 8);
      } else {
        values[i] = keep ? values[i] * static_cast<float>(scale) : 0;
      }
    }
    if (type != ElementType::float64) kernels::to_float16(type, values, y, count);
  }
}

void keep(RunContext& run) {
  copy_plain(run.in_type(0), run.data(0), run.out_data(0), run.in_size(0));
  if (run.has_output(1)) std::fill_n(run.out<bool>(1), run.out_size(1), true);
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  bool never = !ctx.has_input(2);
  if (const Tensor* mode = ctx.constant(2))
    never = mode->size() == 1 && !*static_cast<const bool*>(mode->data());
  if (never) return inference(ctx);
  if (!ctx.has_output(0))
    ctx.fail(ErrorCode::unsupported, "a training Dropout whose output is not used");
  // With a seed every run draws the same mask; without one, each run of this step another.
  const bool seeded = ctx.has_attribute("seed");
  const uint64_t number = seeded ? static_cast<uint64_t>(ctx.attr_int("seed"))
                                 : RandomStreams::step_number(ctx.node().outputs[0]);
  auto step = make_step("dropout.training", [number, seeded](RunContext& run) {
    if (!*run.in<bool>(2)) return keep(run);
    const double ratio = read_ratio(run);
    if (ratio == 0) return keep(run);
    auto seed = static_cast<uint32_t>(number);
    if (!seeded) {
      const auto [key, turn] = run.environment().random().next(number);
      seed = static_cast<uint32_t>((key ^ (key >> 32)) + turn * 0x9e3779b9u);
    }
    drop(run, ratio, seed);
  });
  step->traits().in_place = {{0, 0}};
  return step;
}

// Up to version 6 is_test (default 0: training) decides; versions 7 and 10 leave it to the runtime,
// which infers. Ratio is an attribute up to version 10, the mask has the data's type up to 7.
void upgrade(UpgradeContext& ctx) {
  if (ctx.since() >= 12) return;
  const float ratio = ctx.old().attr_float("ratio", 0.5f);
  bool training = false;
  if (ctx.since() < 7) {
    training = ctx.old().attr_int("is_test", 0) == 0;
    if (ctx.assume_inference() && !ctx.old().has_attribute("is_test")) training = false;
  }
  for (const char* name : {"consumed_inputs", "is_test", "ratio"}) ctx.remove_attribute(name);
  ctx.set_input(1, ctx.constant(Tensor::scalar<float>(ratio), "ratio"));
  if (training) ctx.set_input(2, ctx.constant(Tensor::scalar<bool>(true), "training_mode"));
  if (ctx.since() >= 10 || !ctx.has_output(1)) return;
  std::string mask;
  const std::string boolean = ctx.detach_output(1, &mask);
  ctx.after("CastLike", {boolean, ctx.node().inputs[0]}, mask);
}

constexpr Operator operators[] = {
    {.name = "Dropout", .infer = infer, .prepare = prepare, .upgrade = upgrade, .same_since = 12}};

}  // namespace
}  // namespace dropout_unit

std::span<const Operator> dropout_operators() { return dropout_unit::operators; }

}  // namespace sardonyx::ops
