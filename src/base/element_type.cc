#include "sardonyx/element_type.h"

#include <array>
#include <cctype>

#include "base/fail.h"

namespace sardonyx {
namespace {

struct Facts {
  std::string_view name;       // as the textual syntax writes it
  std::string_view enum_name;  // as TensorProto.DataType calls it, in lower case
  int bits;
  enum Kind { other, signed_integer, unsigned_integer, floating } kind;
};

constexpr std::array<Facts, element_type_count> facts = {{
    {"undefined", "undefined", 0, Facts::other},
    {"float", "float", 32, Facts::floating},
    {"uint8", "uint8", 8, Facts::unsigned_integer},
    {"int8", "int8", 8, Facts::signed_integer},
    {"uint16", "uint16", 16, Facts::unsigned_integer},
    {"int16", "int16", 16, Facts::signed_integer},
    {"int32", "int32", 32, Facts::signed_integer},
    {"int64", "int64", 64, Facts::signed_integer},
    {"string", "string", 0, Facts::other},
    {"bool", "bool", 8, Facts::other},
    {"float16", "float16", 16, Facts::floating},
    {"double", "double", 64, Facts::floating},
    {"uint32", "uint32", 32, Facts::unsigned_integer},
    {"uint64", "uint64", 64, Facts::unsigned_integer},
    {"complex64", "complex64", 64, Facts::other},
    {"complex128", "complex128", 128, Facts::other},
    {"bfloat16", "bfloat16", 16, Facts::floating},
    {"float8e4m3fn", "float8e4m3fn", 8, Facts::floating},
    {"float8e4m3fnuz", "float8e4m3fnuz", 8, Facts::floating},
    {"float8e5m2", "float8e5m2", 8, Facts::floating},
    {"float8e5m2fnuz", "float8e5m2fnuz", 8, Facts::floating},
    {"uint4", "uint4", 4, Facts::unsigned_integer},
    {"int4", "int4", 4, Facts::signed_integer},
    {"float4e2m1", "float4e2m1", 4, Facts::floating},
    {"float8e8m0", "float8e8m0", 8, Facts::floating},
    {"uint2", "uint2", 2, Facts::unsigned_integer},
    {"int2", "int2", 2, Facts::signed_integer},
    {"float6e2m3", "float6e2m3", 6, Facts::floating},
    {"float6e3m2", "float6e3m2", 6, Facts::floating},
}};

const Facts& facts_of(ElementType type) {
  return facts[is_known(type) ? static_cast<size_t>(type) : 0];
}

}  // namespace

int bit_width(ElementType type) { return facts_of(type).bits; }

int64_t byte_size(ElementType type, int64_t count) {
  int64_t bits = 0;
  if (count < 0 || __builtin_mul_overflow(count, int64_t{bit_width(type)}, &bits) ||
      bits > INT64_MAX - 7) {
    fail(ErrorCode::bad_input, "{} elements of {} are more than memory can address", count,
         name_of(type));
  }
  return (bits + 7) / 8;
}

std::string_view name_of(ElementType type) { return facts_of(type).name; }

std::optional<ElementType> element_type_named(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (size_t i = 1; i < facts.size(); ++i) {
    if (lower == facts[i].name || lower == facts[i].enum_name) return static_cast<ElementType>(i);
  }
  return std::nullopt;
}

bool is_floating(ElementType type) { return facts_of(type).kind == Facts::floating; }

bool is_integer(ElementType type) {
  const auto kind = facts_of(type).kind;
  return kind == Facts::signed_integer || kind == Facts::unsigned_integer;
}

bool is_signed_integer(ElementType type) { return facts_of(type).kind == Facts::signed_integer; }

}  // namespace sardonyx
