// TensorScatter: rows written into a cache at a position of each batch.
#include <algorithm>
#include <cstring>
#include <string>

#include "base/checked.h"
#include "ops/operator.h"
#include "ops/shared/axis.h"
#include "ops/shared/element_counts.h"
#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace tensor_scatter_unit {
namespace {

void infer(InferContext& ctx) {
  ctx.set(0, ctx.type(0));
  want_rank(ctx, 2, 1);
  const auto& cache = ctx.shape(0);
  const auto& update = ctx.shape(1);
  if (!cache) return;
  const int64_t axis = ctx.normalized_axis(ctx.attr_int("axis", -2), *ctx.rank(0));
  if (axis == 0) ctx.fail("axis must not be the batch dimension");
  if (update) {
    if (update->size() != cache->size())
      ctx.fail("update must have the rank of the cache, {}; its shape is {}", cache->size(),
               ir::to_string(*update));
    for (size_t i = 0; i < cache->size(); ++i) {
      if (static_cast<int64_t>(i) == axis)
        ctx.require_at_least((*cache)[i], (*update)[i], "update must not be longer than the cache");
      else
        ctx.require_equal((*cache)[i], (*update)[i],
                          "update must have the cache's dimensions but along axis");
    }
  }
  if (const auto count = ctx.type(2).element_count())
    ctx.require_equal(*count, (*cache)[0], "write_indices must have one number for each batch");
}

struct State {
  int64_t batches = 0, prefixes = 0;  // prefixes: of each batch, before axis
  int64_t cache = 0, update = 0;      // lengths along axis
  int64_t row = 0;                    // elements of one position
};

int64_t start_of(const RunContext& run, const State& s, int64_t batch, bool circular) {
  if (!run.has_input(2)) return 0;
  int64_t at = run.in<int64_t>(2)[batch];
  if (circular && s.cache > 0) {
    at %= s.cache;
    return at < 0 ? at + s.cache : at;
  }
  if (at < 0 || at > s.cache - s.update) {
    throw Error(ErrorCode::run_failed,
                fmt::format("write_indices must be in [0, {}]; got {}", s.cache - s.update, at));
  }
  return at;
}

// copy(from row of the update, to row of the output, rows) for every stretch.
template <class Copy>
void scatter(const RunContext& run, const State& s, bool circular, Copy&& copy) {
  for (int64_t b = 0; b < s.batches; ++b) {
    const int64_t start = start_of(run, s, b, circular);
    const int64_t straight = std::min(s.update, s.cache - start);
    for (int64_t p = b * s.prefixes; p < (b + 1) * s.prefixes; ++p) {
      copy(p * s.update, p * s.cache + start, straight);
      if (straight < s.update) copy(p * s.update + straight, p * s.cache, s.update - straight);
    }
  }
}

void bind(BindContext& context, State& s, int64_t axis) {
  const auto x = context.in_shape(0);
  const auto at = static_cast<size_t>(from_front(axis, x.size()));
  if (at == 0 || at >= x.size())
    throw Error(ErrorCode::run_failed, fmt::format("axis must be in [1, {}]", x.size()));
  s.batches = x[0], s.prefixes = count_of(x.subspan(1, at - 1));
  s.cache = x[at], s.update = context.in_shape(1)[at], s.row = count_of(x.subspan(at + 1));
}

// Rows of packed elements need not end at a byte: they are moved unpacked.
template <class Bind>
std::unique_ptr<Step> prepare_packed(ElementType type, bool circular, Bind bind_it) {
  return make_step<State>(
      "tensor_scatter.packed",
      [bind_it](BindContext& context, State& s) {
        bind_it(context, s);
        context.need_scratch(unpacked_stride(context.in_size(0)) +
                             unpacked_stride(context.in_size(1)));
      },
      [type, circular](RunContext& run, const State& s) {
        auto* cache = static_cast<uint8_t*>(run.scratch());
        uint8_t* update = cache + unpacked_stride(run.in_size(0));
        kernels::unpack(type, run.data(0), 0, cache, run.in_size(0));
        kernels::unpack(type, run.data(1), 0, update, run.in_size(1));
        scatter(run, s, circular, [&](int64_t from, int64_t to, int64_t rows) {
          std::copy_n(update + from * s.row, rows * s.row, cache + to * s.row);
        });
        kernels::pack(type, cache, run.out_data(0), 0, run.in_size(0));
      });
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const std::string mode = ctx.attr_string("mode", "linear");
  if (mode != "linear" && mode != "circular")
    ctx.fail("mode must be linear or circular; got '{}'", mode);
  const ElementType type = ctx.in_element(0);
  const bool circular = mode == "circular";
  const auto bind_it = [axis = ctx.attr_int("axis", -2)](BindContext& context, State& s) {
    bind(context, s, axis);
  };
  if (kernels::is_packed(type)) return prepare_packed(type, circular, bind_it);
  if (type == ElementType::string) {
    return make_step<State>(
        "tensor_scatter.strings", bind_it, [circular](RunContext& run, const State& s) {
          std::copy_n(run.in<std::string>(0), run.in_size(0), run.out<std::string>(0));
          scatter(run, s, circular, [&](int64_t from, int64_t to, int64_t rows) {
            std::copy_n(run.in<std::string>(1) + from * s.row, rows * s.row,
                        run.out<std::string>(0) + to * s.row);
          });
        });
  }
  auto step = make_step<State>(
      "tensor_scatter", bind_it, [circular, type](RunContext& run, const State& s) {
        auto* y = static_cast<std::byte*>(run.out_data(0));
        const auto* update = static_cast<const std::byte*>(run.data(1));
        const int64_t row = s.row * bit_width(type) / 8;
        if (y != run.data(0) && run.in_size(0) > 0)
          std::memcpy(y, run.data(0), static_cast<size_t>(byte_size(type, run.in_size(0))));
        scatter(run, s, circular, [&](int64_t from, int64_t to, int64_t rows) {
          if (rows * row > 0)
            std::memcpy(y + to * row, update + from * row, static_cast<size_t>(rows * row));
        });
      });
  step->traits().in_place = {{0, 0}};
  return step;
}

constexpr Operator operators[] = {{.name = "TensorScatter", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace tensor_scatter_unit

std::span<const Operator> tensor_scatter_operators() { return tensor_scatter_unit::operators; }

}  // namespace sardonyx::ops
