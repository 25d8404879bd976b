// OneHot: indices as rows that are on at one place.
#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "kernels/convert/cast.h"
#include "kernels/move/arrange.h"
#include "ops/shared/element_counts.h"
#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace one_hot_unit {
namespace {

// The only element of a number tensor, floats cut off towards zero.
std::optional<int64_t> whole_number(const Tensor& tensor) {
  if (tensor.size() != 1) return std::nullopt;
  const auto from_float = [](double value) -> std::optional<int64_t> {
    if (!(std::fabs(value) < 9.2e18)) return std::nullopt;
    return static_cast<int64_t>(value);
  };
  switch (tensor.element_type()) {
    case ElementType::float32: return from_float(tensor.elements<float>()[0]);
    case ElementType::float64: return from_float(tensor.elements<double>()[0]);
    case ElementType::float16:
    case ElementType::bfloat16: {
      float value;
      kernels::to_floats(tensor.element_type(), tensor.data(), &value, 1);
      return from_float(value);
    }
    case ElementType::uint64: {
      const uint64_t value = tensor.elements<uint64_t>()[0];
      return value <= static_cast<uint64_t>(INT64_MAX) ? std::optional(static_cast<int64_t>(value))
                                                       : std::nullopt;
    }
    default: {
      const auto elements = ValueFacts::of(tensor).elements;
      return elements ? elements->front().value() : std::nullopt;
    }
  }
}

Dim depth_of(InferContext& ctx) {
  if (const auto* elements = ctx.elements(1);
      elements && elements->size() == 1 && !is_floating(ctx.element(1)))
    return elements->front();
  const Tensor* tensor = ctx.constant(1);
  if (tensor == nullptr) return ctx.unknown();
  const auto depth = whole_number(*tensor);
  if (!depth)
    ctx.fail("depth must be one whole number; found a tensor of shape {}",
             to_string(tensor->shape()));
  return *depth;
}

int64_t position_of(const NodeView& node, int64_t rank) {
  return node.normalized_axis(node.attr_int("axis"), rank + 1);
}

void infer(InferContext& ctx) {
  const ElementType type = ctx.element(2);
  if (const auto& values = ctx.shape(2); values && values->size() == 1)
    ctx.require_equal(values->front(), 2, "values must hold [off, on]");
  const Dim depth = depth_of(ctx);
  if (ctx.rank(1).value_or(0) > 1) want_rank(ctx, 1, 0);
  if (const auto count = ctx.type(1).element_count(); count && count->is_constant() && *count != 1)
    object(ctx, "depth must be one number; it holds {}", count->to_string());
  want_rank(ctx, 2, 1);
  ctx.require_at_least(depth, 0, "depth");
  const auto& in = ctx.shape(0);
  if (!in) {
    ctx.set(0, ValueType::tensor(type));
    return;
  }
  Dims out = *in;
  out.insert(out.begin() + position_of(ctx, static_cast<int64_t>(in->size())), depth);
  ctx.set(0, type, std::move(out));
}

struct State {
  int64_t outer, depth, inner;
};

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const int64_t axis = ctx.attr_int("axis");
  const ElementType index_type = ctx.in_element(0);
  const kernels::Cell cell = kernels::cell_of(ctx.in_element(2));
  auto step = make_step<State>(
      "one_hot",
      [axis](BindContext& bind, State& state) {
        const auto out = bind.out_shape(0);
        const auto at =
            static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(out.size()) : axis);
        state = {count_of(out.first(at)), out[at], count_of(out.subspan(at + 1))};
        if (bind.in_size(2) != 2)
          throw Error(ErrorCode::bad_input,
                      fmt::format("OneHot: values must hold [off, on]; it has {} elements",
                                  bind.in_size(2)));
      },
      [cell, index_type](RunContext& run, const State& s) {
        kernels::one_hot(cell, index_type, s.outer, s.depth, s.inner, run.data(0), run.data(2),
                         run.out_data(0), run.pool());
      });
  step->traits().unread_inputs = {1};
  return step;
}

bool never_negative(const UpgradeContext& ctx) {
  switch (ctx.element(0)) {
    case ElementType::uint8:
    case ElementType::uint16:
    case ElementType::uint32:
    case ElementType::uint64: return true;
    default: break;
  }
  const Tensor* indices = ctx.constant(0);
  const auto elements = indices ? ValueFacts::of(*indices).elements : nullptr;
  return elements && std::all_of(elements->begin(), elements->end(),
                                 [](const Dim& value) { return *value.value() >= 0; });
}

// Negative indices gave all off in version 9 and count from the end since: they are moved out of
// range, to `depth`.
void upgrade(UpgradeContext& ctx) {
  if (ctx.since() >= 11 || never_negative(ctx)) return;
  const auto int64 = int_attribute("to", static_cast<int64_t>(ElementType::int64));
  const std::string indices = ctx.before("Cast", {ctx.node().inputs.at(0)}, {int64});
  const std::string depth = ctx.before("Cast", {ctx.node().inputs.at(1)}, {int64});
  const std::string outside = ctx.before("Reshape", {depth, ctx.constant_ints({}, "scalar")});
  const std::string zero = ctx.constant(Tensor::scalar<int64_t>(0), "zero");
  const std::string negative = ctx.before("Less", {indices, zero});
  ctx.set_input(0, ctx.before("Where", {negative, outside, indices}));
}

constexpr Operator operators[] = {
    {.name = "OneHot", .infer = infer, .prepare = prepare, .upgrade = upgrade}};

}  // namespace
}  // namespace one_hot_unit

std::span<const Operator> one_hot_operators() { return one_hot_unit::operators; }

}  // namespace sardonyx::ops
