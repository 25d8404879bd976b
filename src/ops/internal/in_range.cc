// The internal InRange.
#include <algorithm>
#include <cstring>
#include <string>

#include "ops/internal/checked.h"
#include "ops/internal/checks.h"
#include "ops/internal/node.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace in_range_unit {
namespace {

using internal::InRange;

// Numbers are handed on where they are sure to be in the range: nothing else would look again.
void infer(InferContext& ctx) {
  const auto [low, what] = internal::from_node<InRange>(ctx.node());
  const auto x = ctx.integers(InRange::x), high = ctx.integers(InRange::high);
  if (!x || !high || high->size() != 1) return ctx.set(0, ctx.type(InRange::x));
  for (const int64_t number : *x) {
    if (number < low || number > high->front())
      ctx.fail("{} must be in [{}, {}]; one is {}", what, low, high->front(), number);
  }
  ctx.set_known(0, ctx.known(InRange::x));
}

template <class T>
void check(const RunContext& run, int64_t low, const std::string& what) {
  const int64_t high = run.in<int64_t>(InRange::high)[0];
  const T* x = run.in<T>(InRange::x);
  for (int64_t i = 0; i < run.in_size(InRange::x); ++i) {
    if (x[i] >= low && x[i] <= high) continue;
    throw Error(ErrorCode::run_failed,
                fmt::format("{} must be in [{}, {}]; number {} is {}", what, low, high, i, x[i]));
  }
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(InRange::x);
  if (type != ElementType::int32 && type != ElementType::int64)
    ctx.fail(ErrorCode::unsupported, "no range of {}", name_of(type));
  if (ctx.in_element(InRange::high) != ElementType::int64)
    ctx.fail("the largest number must be int64; it is {}", name_of(ctx.in_element(InRange::high)));
  struct State {};
  auto step = make_step<State>(
      "in_range",
      [](BindContext& bind, State&) {
        if (bind.in_size(InRange::high) != 1)
          throw Error(ErrorCode::run_failed, "the largest number must be one number");
      },
      [type, op = internal::from_node<InRange>(ctx.node())](RunContext& run, const State&) {
        if (type == ElementType::int32) {
          check<int32_t>(run, op.low, op.what);
        } else {
          check<int64_t>(run, op.low, op.what);
        }
        if (run.out_data(0) != run.data(InRange::x) && run.in_size(InRange::x) > 0)
          std::memcpy(run.out_data(0), run.data(InRange::x),
                      static_cast<size_t>(byte_size(type, run.in_size(InRange::x))));
      });
  step->traits().in_place = {{0, InRange::x}};
  return step;
}

constexpr Operator operators[] = {{.name = InRange::name,
                                   .domain = internal::domain,
                                   .infer = internal::infer_checked<InRange, infer>,
                                   .prepare = prepare}};

}  // namespace
}  // namespace in_range_unit

std::span<const Operator> in_range_operators() { return in_range_unit::operators; }

}  // namespace sardonyx::ops
