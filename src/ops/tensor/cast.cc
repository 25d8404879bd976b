// Cast, CastLike and BitCast: other element types.
#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>

#include "ir/tensor.h"
#include "kernels/convert/cast.h"
#include "ops/shared/fixed_point.h"
#include "ops/shared/moving.h"
#include "ops/shared/number_text.h"

namespace sardonyx::ops {
namespace cast_unit {
namespace {

// --- Text ---------------------------------------------------------------------------------------

// Numbers go to and from text through one of these four types.
ElementType text_medium(ElementType type) {
  if (type == ElementType::float64 || type == ElementType::uint64) return type;
  if (type == ElementType::boolean || is_floating(type)) return ElementType::float32;
  return ElementType::int64;
}

std::string float_text(ElementType type, float value) {
  switch (type) {
    case ElementType::float16: return text_of_narrow(value, 11);
    case ElementType::bfloat16: return text_of_narrow(value, 8);
    case ElementType::boolean: return value != 0 ? "True" : "False";
    default: return text_of(value);
  }
}

void to_text(ElementType type, const void* x, std::string* y, int64_t n, ThreadPool& pool) {
  const ElementType medium = text_medium(type);
  constexpr int64_t tile = 1024;  // a multiple of what packed types hold in a byte
  alignas(64) std::byte buffer[tile * sizeof(int64_t)];
  for (int64_t at = 0; at < n; at += tile) {
    const int64_t some = std::min(tile, n - at);
    const auto* from = static_cast<const std::byte*>(x) + byte_size(type, at);
    kernels::cast(type, medium, from, buffer, some, {}, pool);
    for (int64_t i = 0; i < some; ++i) {
      switch (medium) {
        case ElementType::float64:
          y[at + i] = text_of(reinterpret_cast<const double*>(buffer)[i]);
          break;
        case ElementType::float32:
          y[at + i] = float_text(type, reinterpret_cast<const float*>(buffer)[i]);
          break;
        case ElementType::uint64:
          y[at + i] = std::to_string(reinterpret_cast<const uint64_t*>(buffer)[i]);
          break;
        default: y[at + i] = std::to_string(reinterpret_cast<const int64_t*>(buffer)[i]);
      }
    }
  }
}

// Casts write booleans as words, so that others read them.
std::optional<bool> spelled_boolean(std::string_view text) {
  const auto is = [&](std::string_view word) {
    return std::ranges::equal(text, word, {},
                              [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  };
  if (is("true")) return true;
  if (is("false")) return false;
  return {};
}

template <class T>
T parsed(std::optional<T> value, const std::string& text, ElementType type) {
  if (value) return *value;
  if (const auto truth = spelled_boolean(text)) return static_cast<T>(*truth);
  throw Error(ErrorCode::run_failed, fmt::format("'{}' is not a number that can become {}",
                                                 text.substr(0, 60), name_of(type)));
}

void from_text(ElementType type, const std::string* x, void* y, int64_t n,
               const kernels::CastOptions& options, ThreadPool& pool) {
  const ElementType medium = text_medium(type);
  constexpr int64_t tile = 1024;
  alignas(64) std::byte buffer[tile * sizeof(int64_t)];
  for (int64_t at = 0; at < n; at += tile) {
    const int64_t some = std::min(tile, n - at);
    for (int64_t i = 0; i < some; ++i) {
      const std::string& text = x[at + i];
      switch (medium) {
        case ElementType::float64:
          reinterpret_cast<double*>(buffer)[i] = parsed(parse_double(text), text, type);
          break;
        case ElementType::float32:
          reinterpret_cast<float*>(buffer)[i] = parsed(parse_float(text), text, type);
          break;
        case ElementType::uint64:
          reinterpret_cast<uint64_t*>(buffer)[i] = parsed(parse_uint64(text), text, type);
          break;
        default: reinterpret_cast<int64_t*>(buffer)[i] = parsed(parse_int64(text), text, type);
      }
    }
    kernels::cast(medium, type, buffer, static_cast<std::byte*>(y) + byte_size(type, at), some,
                  options, pool);
  }
}

// --- Cast and CastLike --------------------------------------------------------------------------

ElementType target_of(const NodeView& node) {
  const int64_t to = node.attr_int("to");
  const auto type = static_cast<ElementType>(to);
  if (to <= 0 || to >= element_type_count)
    node.fail("attribute 'to' must be the number of an element type; got {}", to);
  return type;
}

kernels::CastOptions options_of(const NodeView& node) {
  kernels::CastOptions options;
  options.saturate = node.attr_int("saturate", 1) != 0;
  const std::string mode = node.attr_string("round_mode", "up");
  if (mode == "up")
    options.round_mode = kernels::RoundMode::up;
  else if (mode == "down")
    options.round_mode = kernels::RoundMode::down;
  else if (mode == "nearest")
    options.round_mode = kernels::RoundMode::nearest;
  else
    node.fail("round_mode must be up, down or nearest; got '{}'", mode);
  return options;
}

// A float, in units, cut off towards zero.
std::optional<Dim> cut_off(const Dim& units) {
  if (const auto exact = exact_div(units, float_unit)) return exact;
  if (units.lower().value_or(-1) >= 0) return floor_div(units, float_unit);
  if (units.upper().value_or(1) <= 0) return Dim(0) - floor_div(Dim(0) - units, float_unit);
  return std::nullopt;
}

void pass_known_floats(InferContext& ctx, ElementType to) {
  if (has_float_elements(to)) {
    if (const auto values = known_floats(ctx, 0)) return set_floats(ctx, *values);
    return pass_elements(ctx);
  }
  if (to != ElementType::int64 && to != ElementType::int32) return;
  Dims whole;
  if (const auto values = known_floats(ctx, 0)) {
    constexpr double most = INT32_MAX;
    for (const double value : *values) {
      if (!(value > -most && value < most)) return;
      whole.push_back(Dim(static_cast<int64_t>(value)));
    }
  } else if (const auto* elements = ctx.elements(0)) {
    for (const Dim& element : *elements) {
      auto number = cut_off(element);
      if (!number) number = ctx.unknown_element();
      if (!number) return;
      whole.push_back(std::move(*number));
    }
  } else {
    return;
  }
  ctx.set_elements(0, std::move(whole));
}

// Elements of integers and booleans stay known where the conversion is sure to keep their value.
void pass_known(InferContext& ctx, ElementType to) {
  if (has_float_elements(ctx.element(0))) return pass_known_floats(ctx, to);
  const auto* elements = ctx.elements(0);
  if (elements == nullptr) return;
  if (has_float_elements(to)) {
    constexpr int64_t most = int64_t{1} << 24;
    Dims units;
    for (const Dim& value : *elements) {
      if (value.is_constant() && (*value.value() > most || *value.value() < -most)) return;
      units.push_back(value * Dim(float_unit));
    }
    return ctx.set_elements(0, std::move(units));
  }
  Dims converted;
  converted.reserve(elements->size());
  for (const Dim& value : *elements) {
    if (to == ElementType::int64 ||
        (to == ElementType::int32 &&
         (!value.is_constant() || *value.value() == static_cast<int32_t>(*value.value())))) {
      converted.push_back(value);
    } else if (to == ElementType::boolean &&
               (value.is_constant() || (value.lower() && *value.lower() > 0))) {
      converted.push_back(Dim(value == 0 ? 0 : 1));
    } else if (to == ElementType::boolean && ctx.mode().fold_predicates) {
      converted.push_back(min(Dim(1), max(Dim(0), max(value, Dim(0) - value))));
    } else {
      return;
    }
  }
  ctx.set_elements(0, std::move(converted));
}

void infer_as(InferContext& ctx, ElementType to) {
  options_of(ctx);  // refuses what is none, also where nothing is left to convert
  ValueType type = ctx.type(0);
  type.kind = ir::TypeProto::Kind::tensor;
  type.element = to;
  ctx.set(0, std::move(type));
  pass_known(ctx, to);
}

void infer_cast(InferContext& ctx) { infer_as(ctx, target_of(ctx)); }
// What is of that type already stays the constant that it is, although the other input changes.
void infer_cast_like(InferContext& ctx) {
  infer_as(ctx, ctx.element(1));
  const Tensor* constant = ctx.constant(0);
  if (constant != nullptr && constant->element_type() == ctx.element(1))
    ctx.set_known(0, ctx.known(0));
}

std::unique_ptr<Step> make_cast(PrepareContext& ctx, ElementType from, ElementType to) {
  if (from == to) return make_view_step("cast.view");
  const kernels::CastOptions options = options_of(ctx);
  if (to == ElementType::string) {
    return make_step("cast.to_text", [from](RunContext& run) {
      to_text(from, run.data(0), run.out<std::string>(0), run.in_size(0), run.pool());
    });
  }
  if (from == ElementType::string) {
    return make_step("cast.from_text", [to, options](RunContext& run) {
      from_text(to, run.in<std::string>(0), run.out_data(0), run.in_size(0), options, run.pool());
    });
  }
  if (!kernels::supports_cast(from, to))
    ctx.fail(ErrorCode::unsupported, "no conversion from {} to {}", name_of(from), name_of(to));
  return make_step("cast", [from, to, options](RunContext& run) {
    kernels::cast(from, to, run.data(0), run.out_data(0), run.in_size(0), options, run.pool());
  });
}

std::unique_ptr<Step> prepare_cast(PrepareContext& ctx) {
  return make_cast(ctx, ctx.in_element(0), target_of(ctx));
}

std::unique_ptr<Step> prepare_cast_like(PrepareContext& ctx) {
  auto step = make_cast(ctx, ctx.in_element(0), ctx.in_element(1));
  step->traits().unread_inputs = {1};
  return step;
}

// Up to version 5 the target was the name of an element type.
void upgrade_cast(UpgradeContext& ctx) {
  if (ctx.since() >= 6) return;
  const std::string name = ctx.old().attr_string("to");
  const auto type = element_type_named(name);
  if (!type)
    ctx.fail(ErrorCode::invalid_model,
             "attribute 'to' must name an element type such as FLOAT or INT64; got '{}'", name);
  ctx.set_attribute("to", static_cast<int64_t>(*type));
}

// --- BitCast ------------------------------------------------------------------------------------

void infer_bit_cast(InferContext& ctx) {
  const ElementType from = ctx.element(0), to = target_of(ctx);
  if (from == ElementType::string || to == ElementType::string)
    ctx.fail("strings have no bit pattern");
  if (from != ElementType::undefined && bit_width(from) != bit_width(to)) {
    ctx.fail("the target type must have the input's width, {} bits; {} has {}", bit_width(from),
             name_of(to), bit_width(to));
  }
  ValueType type = ctx.type(0);
  type.kind = ir::TypeProto::Kind::tensor;
  type.element = to;
  ctx.set(0, std::move(type));
}

// A boolean holds 0 or 1 in memory everywhere: other patterns become 1.
std::unique_ptr<Step> prepare_bit_cast(PrepareContext& ctx) {
  if (target_of(ctx) != ElementType::boolean) return make_view_step("bit_cast.view");
  return make_step("bit_cast.to_bool", [](RunContext& run) {
    std::transform(run.in<uint8_t>(0), run.in<uint8_t>(0) + run.in_size(0), run.out<uint8_t>(0),
                   [](uint8_t bits) { return bits != 0 ? 1 : 0; });
  });
}

constexpr Operator operators[] = {
    {.name = "Cast",
     .infer = infer_cast,
     .prepare = prepare_cast,
     .upgrade = upgrade_cast,
     .same_since = 6},
    {.name = "CastLike", .infer = infer_cast_like, .prepare = prepare_cast_like},
    {.name = "BitCast", .infer = infer_bit_cast, .prepare = prepare_bit_cast},
};

}  // namespace
}  // namespace cast_unit

std::span<const Operator> cast_operators() { return cast_unit::operators; }

}  // namespace sardonyx::ops
