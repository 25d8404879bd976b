// com.microsoft: GatherBlockQuantized.
#include <algorithm>

#include "base/checked.h"
#include "kernels/convert/cast.h"
#include "kernels/convert/packed.h"
#include "ops/operator.h"
#include "ops/shared/axis.h"
#include "ops/shared/converted_arguments.h"

namespace sardonyx::ops {
namespace contrib_gather_quantized_unit {
namespace {

struct Settings {
  int64_t bits = 4, block = 128, gather_axis = 0, quantize_axis = 1;
  ElementType type = ElementType::uint4;  // of the data
};

bool is_float_code(ElementType type) {
  return type == ElementType::float8e4m3fn || type == ElementType::float8e4m3fnuz ||
         type == ElementType::float8e5m2 || type == ElementType::float8e5m2fnuz ||
         type == ElementType::float4e2m1;
}

Settings read_settings(const NodeView& node, ElementType type) {
  Settings s;
  s.type = type;
  s.bits = node.attr_int("bits", 4), s.block = node.attr_int("block_size", 128);
  s.gather_axis = node.attr_int("gather_axis", 0);
  s.quantize_axis = node.attr_int("quantize_axis", 1);
  const bool whole = s.block == 0 && is_float_code(type);
  if (!whole && (s.block < 16 || (s.block & (s.block - 1)) != 0))
    node.fail("block_size must be a power of two from 16 on{}; got {}",
              is_float_code(type) ? ", or 0 for one block" : "", s.block);
  if (type == ElementType::uint8 && s.bits != 2 && s.bits != 4 && s.bits != 8)
    node.fail("bits must be 2, 4 or 8; got {}", s.bits);
  return s;
}

// Elements in one stored value: bytes may hold several, side by side along the last dimension.
int64_t per_value(const Settings& s) { return s.type == ElementType::uint8 ? 8 / s.bits : 1; }

void infer(InferContext& ctx) {
  const Settings s = read_settings(ctx, ctx.element(0));
  if (ctx.has_input(3) && is_float_code(s.type))
    ctx.fail("data of {} has no zero points", name_of(s.type));
  if (!ctx.shape(0) || !ctx.shape(1)) return ctx.set(0, ValueType::tensor(ctx.element(2)));
  Dims data = *ctx.shape(0);
  const auto rank = static_cast<int64_t>(data.size());
  if (rank == 0) ctx.fail("{} must have a dimension or more", ctx.input_name(0));
  data.back() = data.back() * Dim(per_value(s));
  const int64_t gather = ctx.normalized_axis(s.gather_axis, rank, "gather_axis"),
                quantize = ctx.normalized_axis(s.quantize_axis, rank, "quantize_axis");
  if (s.type == ElementType::uint8 && gather != 0)
    ctx.fail("gather_axis must be 0 for data of bytes; got {}", s.gather_axis);
  if (per_value(s) > 1 && gather == rank - 1)
    ctx.fail("gather_axis must not be the dimension along which bytes hold several elements");
  if (const auto& scales = ctx.shape(2)) {
    if (static_cast<int64_t>(scales->size()) != rank)
      ctx.fail("scales must have the rank of data, {}; its shape is {}", rank,
               ir::to_string(*scales));
    for (int64_t i = 0; i < rank; ++i) {
      const auto at = static_cast<size_t>(i);
      const Dim wanted = i != quantize  ? data[at]
                         : s.block == 0 ? Dim(1)
                                        : ceil_div(data[at], Dim(s.block));
      // Binding checks a size that only a run knows to be 1.
      const bool may_repeat = is_float_code(s.type) && i != quantize &&
                              ((*scales)[at] == 1 || !(*scales)[at].is_constant());
      if (!may_repeat)
        ctx.require_equal((*scales)[at], wanted,
                          "scales must have the shape of data, blocks counted along quantize_axis");
    }
  }
  Dims y(data.begin(), data.begin() + gather);
  y.insert(y.end(), ctx.shape(1)->begin(), ctx.shape(1)->end());
  y.insert(y.end(), data.begin() + gather + 1, data.end());
  ctx.set(0, ctx.element(2), std::move(y));
}

constexpr size_t max_rank = 16;

struct State {
  size_t rank = 0;
  int64_t size[max_rank] = {};          // of the data, in elements
  int64_t scale_stride[max_rank] = {};  // 0 where a scale repeats
  int64_t gather = 0, quantize = 0, block = 1;
  int64_t outer = 1, inner = 1, last = 1;  // around gather_axis; the data's last dimension
  int64_t zero_last = 1, zero_bytes = 1;   // of a row of packed zero points, and its bytes
  ConvertedArguments wide;
};

[[noreturn]] void misfit(std::string_view what, std::span<const int64_t> shape) {
  throw Error(ErrorCode::run_failed,
              fmt::format("{} of shape {} do not fit the data", what, to_string(shape)));
}

void bind(BindContext& bind, State& s, const Settings& settings) {
  const auto data = bind.in_shape(0), scales = bind.in_shape(2);
  s.rank = data.size();
  if (s.rank == 0 || s.rank > max_rank || scales.size() != s.rank) misfit("scales", scales);
  for (size_t i = 0; i < s.rank; ++i) s.size[i] = data[i];
  s.size[s.rank - 1] *= per_value(settings);
  s.last = s.size[s.rank - 1];
  s.gather = from_front(settings.gather_axis, s.rank);
  s.quantize = from_front(settings.quantize_axis, s.rank);
  const auto along = static_cast<size_t>(s.quantize);
  s.block = settings.block > 0 ? settings.block : std::max<int64_t>(1, s.size[along]);
  int64_t stride = 1;
  for (size_t i = s.rank; i-- > 0;) {
    const int64_t wanted =
        i == along ? s.size[i] / s.block + (s.size[i] % s.block != 0 ? 1 : 0) : s.size[i];
    const bool repeats = scales[i] == 1 && i != along && is_float_code(settings.type);
    if (scales[i] != wanted && !repeats) misfit("scales", scales);
    s.scale_stride[i] = repeats ? 0 : stride;
    stride *= scales[i];
  }
  const int64_t each = per_value(settings);
  s.zero_last = scales[s.rank - 1], s.zero_bytes = (s.zero_last + each - 1) / each;
  if (bind.has_input(3)) {
    const int64_t rows = s.zero_last > 0 ? bind.in_size(2) / s.zero_last : 0;
    if (bind.in_size(3) != rows * s.zero_bytes) misfit("zero points", bind.in_shape(3));
  }
  const AxisSplit split = split_at(std::span(s.size, s.rank), s.gather);
  s.outer = split.outer, s.inner = split.inner;
  ScratchPlanner layout;
  s.wide.plan_in(bind, 2, ElementType::float32, layout);
  s.wide.plan_out(bind, 0, ElementType::float32, layout);
  bind.need_scratch(layout.bytes());
}

// One element of integers or codes.
float element_at(const Settings& s, const void* data, int64_t i) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  if (s.type == ElementType::uint8) {
    const int64_t each = 8 / s.bits;
    return static_cast<float>(bytes[i / each] >> (i % each * s.bits) & ((1 << s.bits) - 1));
  }
  uint8_t code;
  if (kernels::is_packed(s.type))
    kernels::unpack(s.type, data, i, &code, 1);
  else
    code = bytes[i];
  if (s.type == ElementType::uint4) return code;
  if (s.type == ElementType::int4) return static_cast<int8_t>(code);
  float value;
  kernels::to_floats(s.type, &code, &value, 1);
  return value;
}

int64_t index_at(const RunContext& run, int64_t i) {
  return run.in_type(1) == ElementType::int32 ? run.in<int32_t>(1)[i] : run.in<int64_t>(1)[i];
}

// Elements [from, from + count) of the data, which lie side by side along the last dimensions.
class Dequantizer {
 public:
  Dequantizer(const RunContext& run, const State& s, const Settings& settings, const float* scales)
      : s_(s),
        settings_(settings),
        data_(run.data(0)),
        scales_(scales),
        zeros_(run.has_input(3) ? run.data(3) : nullptr),
        plain_zero_(settings.type == ElementType::uint8
                        ? static_cast<float>(1 << (settings.bits - 1))
                        : 0.0f) {}

  void run(int64_t from, int64_t count, float* y) const {
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = from + i, at = 0;
      for (size_t d = s_.rank; d-- > 0;) {
        const int64_t position = rest % s_.size[d];
        rest /= s_.size[d];
        const bool blocked = static_cast<int64_t>(d) == s_.quantize;
        at += (blocked ? position / s_.block : position) * s_.scale_stride[d];
      }
      y[i] = (element_at(settings_, data_, from + i) - zero_at(at)) * scales_[at];
    }
  }

 private:
  // Zero points are packed like the data, each row of them beginning a byte.
  float zero_at(int64_t at) const {
    if (zeros_ == nullptr) return plain_zero_;
    if (settings_.type != ElementType::uint8) return element_at(settings_, zeros_, at);
    const int64_t each = 8 / settings_.bits;
    return element_at(settings_, zeros_,
                      at / s_.zero_last * s_.zero_bytes * each + at % s_.zero_last);
  }

  const State& s_;
  const Settings& settings_;
  const void* data_;
  const float* scales_;
  const void* zeros_;
  float plain_zero_;
};

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const Settings settings = read_settings(ctx, ctx.in_element(0));
  return make_step<State>(
      "gather_quantized",
      [settings](BindContext& context, State& s) { bind(context, s, settings); },
      [settings](RunContext& run, const State& s) {
        const Dequantizer rows(run, s, settings, s.wide.in<float>(run, 2));
        float* y = s.wide.out<float>(run, 0);
        const int64_t indices = run.in_size(1), length = s.size[s.gather];
        run.pool().parallel_for(
            s.outer * indices, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, s.inner)),
            [&](int64_t begin, int64_t end, int) {
              for (int64_t i = begin; i < end; ++i) {
                int64_t index = index_at(run, i % indices);
                if (index < 0) index += length;
                float* to = y + i * s.inner;
                if (index < 0 || index >= length) {
                  std::fill_n(to, s.inner, 0.0f);
                } else {
                  rows.run((i / indices * length + index) * s.inner, s.inner, to);
                }
              }
            });
        s.wide.finish<float>(run, 0);
      });
}

constexpr Operator operators[] = {{.name = "GatherBlockQuantized",
                                   .domain = "com.microsoft",
                                   .infer = infer,
                                   .prepare = prepare}};

}  // namespace
}  // namespace contrib_gather_quantized_unit

std::span<const Operator> contrib_gather_quantized_operators() {
  return contrib_gather_quantized_unit::operators;
}

}  // namespace sardonyx::ops
