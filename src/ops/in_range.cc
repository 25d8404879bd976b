// InRange (internal, domain "sardonyx"): X, whose integers must all be at least `low` and at most
// the number of input 1. Bodies of functions put it where sizes and places come from values, which
// a file may choose freely; attribute `what` names them.
#include <algorithm>
#include <cstring>
#include <string>

#include "ops/operator.h"

namespace sardonyx::ops {
namespace {

// Numbers are handed on where they are sure to be in the range: nothing else would look again.
void infer(InferContext& ctx) {
  const auto x = ctx.integers(0), high = ctx.integers(1);
  if (!x || !high || high->size() != 1) return ctx.set(0, ctx.type(0));
  const int64_t low = ctx.attr_int("low", 0);
  for (const int64_t number : *x) {
    if (number < low || number > high->front())
      ctx.fail("{} must be in [{}, {}]; one is {}", ctx.attr_string("what", "numbers"), low,
               high->front(), number);
  }
  ctx.set_known(0, ctx.known(0));
}

template <class T>
void check(const RunContext& run, int64_t low, const std::string& what) {
  const int64_t high = run.in<int64_t>(1)[0];
  const T* x = run.in<T>(0);
  for (int64_t i = 0; i < run.in_size(0); ++i) {
    if (x[i] >= low && x[i] <= high) continue;
    throw Error(ErrorCode::run_failed,
                fmt::format("{} must be in [{}, {}]; number {} is {}", what, low, high, i, x[i]));
  }
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const ElementType type = ctx.in_element(0);
  if (type != ElementType::int32 && type != ElementType::int64)
    ctx.fail(ErrorCode::unsupported, "no range of {}", name_of(type));
  if (ctx.in_element(1) != ElementType::int64)
    ctx.fail("the largest number must be int64; it is {}", name_of(ctx.in_element(1)));
  struct State {};
  auto step = make_step<State>(
      "in_range",
      [](BindContext& bind, State&) {
        if (bind.in_size(1) != 1)
          throw Error(ErrorCode::run_failed, "the largest number must be one number");
      },
      [type, low = ctx.attr_int("low", 0), what = ctx.attr_string("what", "numbers")](
          RunContext& run, const State&) {
        if (type == ElementType::int32) {
          check<int32_t>(run, low, what);
        } else {
          check<int64_t>(run, low, what);
        }
        if (run.out_data(0) != run.data(0) && run.in_size(0) > 0)
          std::memcpy(run.out_data(0), run.data(0),
                      static_cast<size_t>(byte_size(type, run.in_size(0))));
      });
  step->traits().in_place = {{0, 0}};
  return step;
}

constexpr Operator operators[] = {
    {.name = "InRange", .domain = "sardonyx", .infer = infer, .prepare = prepare}};

}  // namespace

std::span<const Operator> in_range_operators() { return operators; }

}  // namespace sardonyx::ops
