// Reshape and Flatten: the same elements under another shape.
#include <algorithm>
#include <numeric>

#include "ops/shared/element_counts.h"
#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace reshape_unit {
namespace {

// Divides the numbers among both lists by their common factor.
void reduce_numbers(Dims& in, Dims& out) {
  for (Dim& a : in) {
    for (Dim& b : out) {
      if (!a.is_constant() || !b.is_constant() || *a.value() <= 0 || *b.value() <= 0) continue;
      const int64_t common = std::gcd(*a.value(), *b.value());
      a = Dim(*a.value() / common), b = Dim(*b.value() / common);
    }
  }
}

// Divides the input's sizes by the output's known ones, size by size before product by product:
// sums like past + seq cancel only as a whole.
Dim inferred_size(InferContext& ctx, Dims in, const Dims& known) {
  Dims left;
  for (const Dim& dim : known) {
    const auto same = std::find(in.begin(), in.end(), dim);
    if (same != in.end()) {
      in.erase(same);
    } else if (!(dim == 1)) {
      left.push_back(dim);
    }
  }
  reduce_numbers(in, left);
  // What is left mixes factors: [b*h, s] as [b, h, -1]; divide the product by one after the other.
  Dim rest = product(in);
  Dims indivisible;
  for (const Dim& dim : left) {
    const auto quotient = exact_div(rest, dim);
    if (quotient) {
      rest = *quotient;
    } else {
      indivisible.push_back(dim);
    }
  }
  if (indivisible.empty()) return rest;
  const Dim divisor = product(indivisible);
  if (divisor == 0) {
    if (rest == 0) return Dim(0);
    ctx.fail("cannot infer a size of -1 beside a size of 0: the input has {} elements",
             rest.to_string());
  }
  if (const auto quotient = exact_div(rest, divisor)) return *quotient;
  // Beside a size of 0 only an input without elements fits.
  const Dim size = floor_div(rest, max(divisor, 1));
  ctx.require_equal(size * divisor, rest,
                    "the input's elements must fill the asked shape without rest");
  return size;
}

// The same where all sizes are numbers, as they mostly are; nullopt where they are not, or do not
// divide.
std::optional<Dim> inferred_number(const Dims& in, const Dims& out, size_t open) {
  int64_t elements = 1, asked = 1;
  const auto multiply = [](int64_t& product, const Dim& dim) {
    return dim.is_constant() && !__builtin_mul_overflow(product, *dim.value(), &product);
  };
  for (const Dim& dim : in) {
    if (!multiply(elements, dim)) return std::nullopt;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (i != open && !multiply(asked, out[i])) return std::nullopt;
  }
  return asked > 0 && elements % asked == 0 ? std::optional(Dim(elements / asked)) : std::nullopt;
}

// An element that only the run decides: it may be -1 or 0, which are no sizes.
bool may_be_no_size(InferContext& ctx, const Dim& asked) {
  if (asked.is_constant() || asked.lower().value_or(-1) >= 0) return false;
  std::vector<int> ids;
  asked.collect_symbols(ids);
  return std::any_of(ids.begin(), ids.end(), [&](int id) { return !ctx.symbols()[id].is_size; });
}

// A size that may turn out to be 0, which copies dimension `i` of the input: that has to be 0, too.
void require_copied_zero(InferContext& ctx, const Dim& asked, size_t i, const Dims& in) {
  if (ctx.mode().symbolic_values || asked.is_constant() || asked.lower().value_or(-1) != 0) return;
  if (i >= in.size()) {
    ctx.require_at_least(asked, 1,
                         fmt::format("shape[{}], where a 0 copies a dimension of the input, which "
                                     "has rank {}; allowzero=1 takes the 0 as it is",
                                     i, in.size()));
  } else if (!(in[i] == asked)) {
    const Dim copied = (Dim(1) - min(asked, 1)) * in[i];
    if (copied.is_indefinite()) return;
    ctx.require_equal(copied, 0,
                      fmt::format("shape[{}], where a 0 copies dimension {} of the input, {}; "
                                  "allowzero=1 takes the 0 as it is",
                                  i, i, in[i].to_string()));
  }
}

// The meaning of the shape input, where the data's rank is known.
Dims reshaped(InferContext& ctx, const Dims& asked, const Dims& in, bool allow_zero) {
  Dims out;
  out.reserve(asked.size());
  std::optional<size_t> open;
  const bool zero = allow_zero && std::find(asked.begin(), asked.end(), Dim(0)) != asked.end();
  const auto undecided = std::count_if(asked.begin(), asked.end(), [&](const Dim& size) {
    return size == -1 || may_be_no_size(ctx, size);
  });
  for (size_t i = 0; i < asked.size(); ++i) {
    Dim size = asked[i];
    if (may_be_no_size(ctx, size)) {
      // Beside a 0 that means itself none may be -1. Else the only one is what the others leave,
      // whatever it is.
      if (zero) {
        size = max(size, 0);
      } else if (undecided == 1) {
        open = i;
      } else {
        size = ctx.unknown();
      }
    } else if (size == -1) {
      if (open)
        ctx.fail("shape may hold one -1; found them at {} and {} of {}", *open, i,
                 ir::to_string(asked));
      open = i;
    } else if (size == 0 && !allow_zero) {
      if (i >= in.size())
        ctx.fail("shape[{}] is 0, which copies that dimension, but the input has rank {}", i,
                 in.size());
      size = in[i];
    } else if (size.is_constant() && *size.value() < 0) {
      ctx.fail("shape[{}] must be -1, 0 or a size; got {}", i, size.to_string());
    } else if (!allow_zero && undecided == 0) {
      require_copied_zero(ctx, size, i, in);
    }
    out.push_back(size);
  }
  if (open) {
    if (zero)
      ctx.fail("shape {} holds both 0 and -1, which allowzero=1 forbids", ir::to_string(asked));
    if (const auto number = inferred_number(in, out, *open)) {
      out[*open] = *number;
      return out;
    }
    Dims known = out;
    known.erase(known.begin() + static_cast<std::ptrdiff_t>(*open));
    out[*open] = inferred_size(ctx, in, known);
  } else if (undecided == 0) {
    ctx.require_equal(product(in), product(out),
                      "the asked shape must hold as many elements as the input");
  }
  return out;
}

void infer_reshape(InferContext& ctx) {
  want_rank(ctx, 1, 1);
  const ElementType type = ctx.element(0);
  const bool allow_zero = ctx.attr_int("allowzero", 0) != 0;
  const auto asked = values_of(ctx, 1);
  if (!asked) {
    const auto length = length_of(ctx, 1);
    set_rank(ctx, type, length);
    const auto count = ctx.type(0).element_count();
    if (length && *length == 0 && count)
      ctx.require_equal(*count, Dim(1), "the input of a Reshape to a scalar must hold one element");
  } else if (const auto& in = ctx.shape(0)) {
    ctx.set(0, type, reshaped(ctx, *asked, *in, allow_zero));
  } else {
    Dims out;
    for (const Dim& size : *asked)
      out.push_back(size == -1 || (size == 0 && !allow_zero) || may_be_no_size(ctx, size)
                        ? ctx.unknown()
                        : size);
    ctx.set(0, type, std::move(out));
  }
  pass_elements(ctx);
}

std::unique_ptr<Step> prepare_reshape(PrepareContext&) {
  auto step = make_view_step("reshape.view");
  step->traits().unread_inputs = {1};
  return step;
}

// Version 1 held the shape in an attribute.
void upgrade_reshape(UpgradeContext& ctx) {
  if (ctx.since() >= 5) return;
  const auto shape = ctx.old().attr_ints("shape");
  if (!shape)
    ctx.fail(ErrorCode::invalid_model,
             "attribute 'shape' is absent; version 1 of Reshape has no other way to say the shape");
  ctx.set_input(1, ctx.constant_ints(*shape, "shape"));
  ctx.remove_attribute("shape");
  ctx.remove_attribute("consumed_inputs");
}

void infer_flatten(InferContext& ctx) {
  const auto& in = ctx.shape(0);
  if (!in) {
    ctx.set(0, ctx.element(0), ctx.unknown_shape(2));
    return;
  }
  const auto rank = static_cast<int64_t>(in->size());
  int64_t axis = ctx.attr_int("axis");
  if (axis < -rank || axis > rank) ctx.fail("axis must be in [{}, {}]; got {}", -rank, rank, axis);
  if (axis < 0) axis += rank;
  const std::span<const Dim> dims(*in);
  ctx.set(0, ctx.element(0),
          {product(dims.first(static_cast<size_t>(axis))),
           product(dims.subspan(static_cast<size_t>(axis)))});
  pass_elements(ctx);
}

void upgrade_flatten(UpgradeContext& ctx) {
  if (const int64_t axis = ctx.old().attr_int("axis"); ctx.since() < 11 && axis < 0)
    object(ctx.old(), "axis must not be negative before opset 11; got {}", axis);
}

std::unique_ptr<Step> prepare_flatten(PrepareContext&) { return make_view_step("flatten.view"); }

constexpr Operator operators[] = {
    {.name = "Reshape",
     .infer = infer_reshape,
     .prepare = prepare_reshape,
     .upgrade = upgrade_reshape,
     .same_since = 5},
    {.name = "Flatten",
     .infer = infer_flatten,
     .prepare = prepare_flatten,
     .upgrade = upgrade_flatten,
     .same_since = 11},
};

}  // namespace
}  // namespace reshape_unit

std::span<const Operator> reshape_operators() { return reshape_unit::operators; }

}  // namespace sardonyx::ops
