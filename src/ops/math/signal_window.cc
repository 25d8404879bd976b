// HannWindow, HammingWindow, BlackmanWindow and MelWeightMatrix.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/convert/cast.h"
#include "kernels/elementwise/unary.h"
#include "ops/operator.h"
#include "ops/shared/converted_arguments.h"
#include "ops/shared/element_counts.h"

namespace sardonyx::ops {
namespace signal_window_unit {
namespace {

ElementType output_type(const NodeView& node) {
  const auto type = static_cast<ElementType>(node.attr_int("output_datatype", 1));
  if (!is_known(type) || !kernels::supports_cast(ElementType::float64, type)) {
    node.fail("output_datatype {} is not a number type", node.attr_int("output_datatype", 1));
  }
  return type;
}

int64_t read_integer(const RunContext& run, int i) {
  return run.in_type(i) == ElementType::int64 ? *run.in<int64_t>(i) : *run.in<int32_t>(i);
}

// One integer as a size; unknown until the run where it is not known.
Dim size_of(InferContext& ctx, int i, std::string_view what) {
  if (const auto count = ctx.type(i).element_count())
    ctx.require_equal(*count, Dim(1), fmt::format("{} must be one number", what));
  const Dims* elements = ctx.elements(i);
  if (!elements || elements->size() != 1) return ctx.unknown();
  if (const auto number = elements->front().value(); number && *number < 0)
    ctx.fail("{} must not be negative; got {}", what, *number);
  return elements->front();
}

void infer_window(InferContext& ctx) { ctx.set(0, output_type(ctx), {size_of(ctx, 0, "size")}); }

using Formula = double (*)(double cosine);  // of 2 pi i / N

double hann(double cosine) { return 0.5 - 0.5 * cosine; }
double hamming(double cosine) { return 25.0 / 46.0 - 21.0 / 46.0 * cosine; }
double blackman(double cosine) {
  return 0.42 - 0.5 * cosine + 0.08 * (2 * cosine * cosine - 1);  // the cosine of twice the angle
}

struct Values {
  int64_t scratch = 0;  // the output in double
};

void bind_values(BindContext& bind, Values& s) {
  ScratchPlanner layout;
  s.scratch = layout.take(bind.out_size(0) * 8);
  bind.need_scratch(layout.bytes());
}

template <Formula formula>
std::unique_ptr<Step> prepare_window(PrepareContext& ctx) {
  const bool periodic = ctx.attr_int("periodic", 1) != 0;
  auto step =
      make_step<Values>("signal_window", bind_values, [periodic](RunContext& run, const Values& s) {
        auto* values = reinterpret_cast<double*>(scratch_at(run, s.scratch));
        const int64_t n = run.out_size(0);
        const auto period = static_cast<double>(periodic ? n : n - 1);
        for (int64_t i = 0; i < n; ++i)
          values[i] = 2 * std::numbers::pi * static_cast<double>(i) / period;
        kernels::unary(kernels::UnaryOp::cos, ElementType::float64, values, values, n, {},
                       run.pool());
        for (int64_t i = 0; i < n; ++i) values[i] = period > 0 ? formula(values[i]) : 1.0;
        kernels::cast(ElementType::float64, run.out_type(0), values, run.out_data(0), n, {},
                      run.pool());
      });
  step->traits().unread_inputs = {0};
  return step;
}

void infer_mel(InferContext& ctx) {
  const ElementType type = output_type(ctx);
  for (int i = 2; i < 5; ++i) require_one(ctx, i);
  const Dim bins = size_of(ctx, 0, "num_mel_bins"), length = size_of(ctx, 1, "dft_length");
  ctx.set(0, type, {floor_div(length, Dim(2)) + 1, bins});
}

double read_float(const RunContext& run, int i) {
  if (run.in_type(i) == ElementType::float64) return *run.in<double>(i);
  float value;
  kernels::to_floats(run.in_type(i), run.data(i), &value, 1);
  return static_cast<double>(value);
}

// The spectrum bin of mel band `band`, where `bands` bands share [low, high] evenly.
int64_t bin_of(int64_t band, double low, double step, double length, double rate) {
  const double hertz = 700 * (std::pow(10.0, (low + static_cast<double>(band) * step) / 2595) - 1);
  return static_cast<int64_t>(std::clamp(std::floor((length + 1) * hertz / rate), -1e15, 1e15));
}

void fill_mel(RunContext& run, double* matrix) {
  const int64_t rows = run.out_shape(0)[0], bands = run.out_shape(0)[1];
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const auto length = static_cast<double>(read_integer(run, 1)),
             rate = static_cast<double>(read_integer(run, 2));
  const double low = mel(read_float(run, 3)),
               step = (mel(read_float(run, 4)) - low) / static_cast<double>(bands + 2);
  if (!(rate > 0) || !std::isfinite(low) || !std::isfinite(step))
    throw Error(ErrorCode::run_failed, "sample_rate and the edges must be positive frequencies");
  for (int64_t band = 0; band < bands; ++band) {
    const int64_t left = bin_of(band, low, step, length, rate),
                  centre = bin_of(band + 1, low, step, length, rate),
                  right = bin_of(band + 2, low, step, length, rate);
    if (left < 0 || centre < left || right < centre || centre >= rows || right > rows) {
      throw Error(ErrorCode::run_failed,
                  fmt::format("band {} needs spectrum bins {} to {}; there are {}", band, left,
                              right, rows));
    }
    if (left == centre) matrix[centre * bands + band] = 1;
    for (int64_t i = left; left < centre && i <= centre; ++i)
      matrix[i * bands + band] = static_cast<double>(i - left) / static_cast<double>(centre - left);
    for (int64_t i = centre; i < right; ++i)
      matrix[i * bands + band] =
          static_cast<double>(right - i) / static_cast<double>(right - centre);
  }
}

std::unique_ptr<Step> prepare_mel(PrepareContext&) {
  return make_step<Values>("mel_weight_matrix", bind_values, [](RunContext& run, const Values& s) {
    auto* values = reinterpret_cast<double*>(scratch_at(run, s.scratch));
    std::fill_n(values, run.out_size(0), 0.0);
    fill_mel(run, values);
    kernels::cast(ElementType::float64, run.out_type(0), values, run.out_data(0), run.out_size(0),
                  {}, run.pool());
  });
}

constexpr Operator operators[] = {
    {.name = "BlackmanWindow", .infer = infer_window, .prepare = prepare_window<blackman>},
    {.name = "HammingWindow", .infer = infer_window, .prepare = prepare_window<hamming>},
    {.name = "HannWindow", .infer = infer_window, .prepare = prepare_window<hann>},
    {.name = "MelWeightMatrix", .infer = infer_mel, .prepare = prepare_mel},
};

}  // namespace
}  // namespace signal_window_unit

std::span<const Operator> signal_window_operators() { return signal_window_unit::operators; }

}  // namespace sardonyx::ops
