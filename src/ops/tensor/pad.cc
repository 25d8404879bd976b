// Pad: elements added around a tensor, or taken away.
#include <algorithm>
#include <array>

#include "kernels/move/pad.h"
#include "ops/shared/element_counts.h"
#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace pad_unit {
namespace {

kernels::PadMode mode_of(const NodeView& node) {
  const std::string mode = node.attr_string("mode");
  if (mode == "constant") return kernels::PadMode::constant;
  if (mode == "reflect") return kernels::PadMode::reflect;
  if (mode == "edge") return kernels::PadMode::edge;
  if (mode == "wrap") return kernels::PadMode::wrap;
  node.fail("mode must be constant, reflect, edge or wrap; got '{}'", mode);
}

// The axes that pads speak of, non-negative; all where input 3 is absent.
std::vector<int64_t> padded_axes(const NodeView& node,
                                 const std::optional<std::vector<int64_t>>& given, int64_t rank) {
  std::vector<int64_t> axes;
  if (given) {
    std::vector<bool> used(static_cast<size_t>(rank), false);
    for (const int64_t axis : *given) {
      axes.push_back(node.normalized_axis(axis, rank));
      if (used[static_cast<size_t>(axes.back())])
        node.fail("axes must name each axis once; axis {} occurs twice", axes.back());
      used[static_cast<size_t>(axes.back())] = true;
    }
  } else {
    for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
  }
  return axes;
}

void infer(InferContext& ctx) {
  const ElementType type = ctx.element(0);
  const auto& in = ctx.shape(0);
  mode_of(ctx);
  want_rank(ctx, 1, 1);
  if (!in) {
    // Without axes all are padded, before and after.
    const auto count = ctx.has_input(3) ? std::nullopt : length_of(ctx, 1);
    set_rank(ctx, type, count ? std::optional(*count / 2) : std::nullopt);
    return;
  }
  const auto rank = static_cast<int64_t>(in->size());
  const auto pads = values_of(ctx, 1);
  const auto given = numbers_of(ctx, 3);
  if (!pads) {
    const auto padded = ctx.has_input(3) ? length_of(ctx, 3) : rank;
    if (padded) require_elements(ctx, 1, 2 * static_cast<size_t>(*padded));
  }
  if (!pads || (ctx.has_input(3) && !given)) {
    set_rank(ctx, type, rank);
    return;
  }
  const auto axes = padded_axes(ctx, given, rank);
  if (pads->size() != 2 * axes.size()) {
    ctx.fail("pads must have {} elements, a begin and an end for each of {} axes; it has {}",
             2 * axes.size(), axes.size(), pads->size());
  }
  Dims out = *in;
  for (size_t i = 0; i < axes.size(); ++i) {
    Dim& size = out[static_cast<size_t>(axes[i])];
    size = size + (*pads)[i] + (*pads)[i + axes.size()];
    if (!size.is_constant() || *size.value() < 0)
      ctx.require_at_least(size, 0, fmt::format("dimension {} after padding", axes[i]));
  }
  ctx.set(0, type, std::move(out));
}

struct Counts {
  std::array<int64_t, max_step_rank> before{}, after{};
};

// One count per dimension. Pads of a scalar, which change no shape, come here unchecked.
Counts counts_of(std::span<const int64_t> pads, const std::optional<std::vector<int64_t>>& axes,
                 int64_t rank) {
  Counts counts;
  const int64_t named = axes ? static_cast<int64_t>(axes->size()) : rank;
  if (static_cast<int64_t>(pads.size()) != 2 * named) {
    throw Error(ErrorCode::run_failed,
                fmt::format("pads must have {} elements; it has {}", 2 * named, pads.size()));
  }
  for (int64_t i = 0; i < named; ++i) {
    int64_t axis = axes ? (*axes)[static_cast<size_t>(i)] : i;
    if (axis < -rank || axis >= rank) {
      throw Error(ErrorCode::run_failed,
                  fmt::format("axes[{}] is {}; the input has rank {}", i, axis, rank));
    }
    axis += axis < 0 ? rank : 0;
    counts.before[static_cast<size_t>(axis)] = pads[static_cast<size_t>(i)];
    counts.after[static_cast<size_t>(axis)] = pads[static_cast<size_t>(i + named)];
  }
  return counts;
}

void check_rank(std::span<const int64_t> shape) {
  if (static_cast<int64_t>(shape.size()) > max_step_rank) {
    throw Error(ErrorCode::unsupported, fmt::format("Pad takes up to {} dimensions; found {}",
                                                    max_step_rank, shape.size()));
  }
}

void run_pad(RunContext& run, kernels::PadMode mode, const Counts& counts) {
  const ElementType type = run.in_type(0);
  const auto shape = run.in_shape(0);
  const void* value = run.has_input(2) && run.in_size(2) > 0 ? run.data(2) : nullptr;
  uint8_t unpacked = 0;
  if (value != nullptr && kernels::is_packed(type)) {
    kernels::unpack(type, value, 0, &unpacked, 1);
    value = &unpacked;
  }
  const std::span before(counts.before.data(), shape.size()),
      after(counts.after.data(), shape.size());
  with_cells(type, run.data(0), run.in_size(0), run.out_data(0), run.out_size(0), run.scratch(),
             [&](const void* x, void* y) {
               kernels::pad(moving_cell(type), mode, shape, before, after, value, x, y, run.pool());
             });
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const kernels::PadMode mode = mode_of(ctx);
  const ElementType type = ctx.in_element(0);
  moving_cell(type);
  const auto pads = constant_numbers(ctx, 1), axes = constant_numbers(ctx, 3);
  if (!pads || (ctx.has_input(3) && !axes)) {
    struct Nothing {};
    return make_step<Nothing>(
        "pad.by_values",
        [type](BindContext& bind, Nothing&) {
          check_rank(bind.in_shape(0));
          bind.need_scratch(unpacked_bytes(type, bind.in_size(0), bind.out_size(0)));
        },
        [mode](RunContext& run, const Nothing&) {
          std::optional<std::vector<int64_t>> named;
          for (int64_t i = 0; run.has_input(3) && i < run.in_size(3); ++i) {
            if (!named) named.emplace();
            named->push_back(integer_at(run, 3, i));
          }
          if (run.has_input(3) && !named) named.emplace();
          const auto rank = static_cast<int64_t>(run.in_shape(0).size());
          run_pad(
              run, mode,
              counts_of({run.in<int64_t>(1), static_cast<size_t>(run.in_size(1))}, named, rank));
        });
  }
  if (std::all_of(pads->begin(), pads->end(), [](int64_t count) { return count == 0; })) {
    auto step = make_view_step("pad.view");
    step->traits().unread_inputs = {1, 2, 3};
    return step;
  }
  auto step = make_step<Counts>(
      "pad",
      [pads = *pads, axes, type](BindContext& bind, Counts& counts) {
        check_rank(bind.in_shape(0));
        const auto rank = static_cast<int64_t>(bind.in_shape(0).size());
        counts = counts_of(pads, axes, rank);
        bind.need_scratch(unpacked_bytes(type, bind.in_size(0), bind.out_size(0)));
      },
      [mode](RunContext& run, const Counts& counts) { run_pad(run, mode, counts); });
  step->traits().unread_inputs = {1, 3};
  return step;
}

// Version 1 called the counts paddings; up to version 2 they and the value were attributes.
void upgrade(UpgradeContext& ctx) {
  if (ctx.since() >= 11) return;
  const char* name = ctx.since() == 1 ? "paddings" : "pads";
  const auto pads = ctx.old().attr_ints(name);
  if (!pads)
    ctx.fail(ErrorCode::invalid_model, "attribute '{}' is required and absent; add it to the node",
             name);
  const float value = ctx.old().attr_float("value", 0.0f);
  ctx.set_input(1, ctx.constant_ints(*pads, "pads"));
  if (value != 0 && ctx.old().attr_string("mode", "constant") == "constant") {
    ctx.set_input(2, ctx.scalar_like(value, 0, "value"));
  }
  ctx.remove_attribute(name);
  ctx.remove_attribute("value");
}

constexpr Operator operators[] = {
    {.name = "Pad", .infer = infer, .prepare = prepare, .upgrade = upgrade, .same_since = 11}};

}  // namespace
}  // namespace pad_unit

std::span<const Operator> pad_operators() { return pad_unit::operators; }

}  // namespace sardonyx::ops
