#include "ops/internal/checked.h"

#include <algorithm>

namespace sardonyx::ops::internal {
namespace {

bool is_byte(ElementType type) { return type == ElementType::uint8 || type == ElementType::int8; }

// The floats that kernels of float32 are given converted.
bool is_narrow_float(ElementType type) {
  return type == ElementType::float32 || type == ElementType::float16 ||
         type == ElementType::bfloat16;
}

bool is_like(ElementType type, ElementType first) {
  return type == first || (is_narrow_float(type) && is_narrow_float(first));
}

bool takes_type(Takes takes, ElementType type, ElementType first) {
  using enum ElementType;
  switch (takes) {
    case Takes::anything: return true;
    case Takes::first: return is_like(type, first);
    case Takes::first_or_truth: return is_like(type, first) || type == boolean;
    case Takes::floats:
      return type == ElementType::float32 || type == float64 || type == float16 || type == bfloat16;
    case Takes::float32: return type == ElementType::float32;
    case Takes::float32_or_64: return type == ElementType::float32 || type == float64;
    case Takes::bytes: return is_byte(type);
    case Takes::float32_or_bytes: return type == ElementType::float32 || is_byte(type);
    case Takes::int32: return type == ElementType::int32;
    case Takes::int64: return type == ElementType::int64;
    case Takes::int32_or_64: return type == ElementType::int32 || type == ElementType::int64;
  }
  return false;
}

}  // namespace

void require_inputs(const InferContext& ctx, std::span<const Takes> takes) {
  for (int i = 0; i < ctx.input_count(); ++i) {
    const ValueType& type = ctx.type(i);
    if (!type.is_known()) continue;
    if (!type.is_tensor())
      ctx.fail(ErrorCode::internal, "{} must be a tensor; it is {}", ctx.input_name(i),
               type.to_string());
    const Takes wanted = takes[std::min(static_cast<size_t>(i), takes.size() - 1)];
    const bool is_open =
        type.element == ElementType::undefined || ctx.element(0) == ElementType::undefined;
    if (!is_open && !takes_type(wanted, type.element, ctx.element(0)))
      ctx.fail(ErrorCode::internal, "{} must not be of {}", ctx.input_name(i),
               name_of(type.element));
  }
}

void require_same_element(const InferContext& ctx, int i, int as) {
  const ElementType given = ctx.element(i), wanted = ctx.element(as);
  if (given == wanted || given == ElementType::undefined || wanted == ElementType::undefined)
    return;
  ctx.fail(ErrorCode::internal, "{} must be of {} as {} is; it is of {}", ctx.input_name(i),
           name_of(wanted), ctx.input_name(as), name_of(given));
}

void require_shape(InferContext& ctx, int i, const Dims& wanted) {
  if (!ctx.has_input(i) || !ctx.shape(i)) return;
  const Dims& found = *ctx.shape(i);
  const std::string what = fmt::format("{} must have shape {}; found {}", ctx.input_name(i),
                                       ir::to_string(wanted), ir::to_string(found));
  if (found.size() != wanted.size()) ctx.fail("{}", what);
  for (size_t d = 0; d < found.size(); ++d) ctx.require_equal(found[d], wanted[d], what);
}

void require_count(InferContext& ctx, int i, const Dim& wanted) {
  if (!ctx.has_input(i)) return;
  if (const auto count = ctx.type(i).element_count())
    ctx.require_equal(
        *count, wanted,
        fmt::format("{} must have {} elements", ctx.input_name(i), wanted.to_string()));
}

void require_rank(const InferContext& ctx, int i, int64_t least) {
  if (const auto rank = ctx.rank(i); rank && *rank < least)
    ctx.fail("{} must have at least {} dimensions; it has {}", ctx.input_name(i), least, *rank);
}

}  // namespace sardonyx::ops::internal
