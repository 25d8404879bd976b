#include "wire/type_names.h"

#include <cctype>
#include <string>
#include <utility>

#include "sardonyx/element_type.h"

namespace sardonyx::wire {
namespace {

constexpr std::pair<std::string_view, std::string_view> aliases[] = {
    {"float32", "float"},     {"f32", "float"},
    {"single", "float"},      {"fp32", "float"},
    {"float64", "double"},    {"f64", "double"},
    {"fp64", "double"},       {"half", "float16"},
    {"f16", "float16"},       {"fp16", "float16"},
    {"bf16", "bfloat16"},     {"brainfloat", "bfloat16"},
    {"int", "int64"},         {"integer", "int64"},
    {"long", "int64"},        {"i64", "int64"},
    {"i32", "int32"},         {"i16", "int16"},
    {"short", "int16"},       {"i8", "int8"},
    {"char", "int8"},         {"u64", "uint64"},
    {"uint", "uint64"},       {"u32", "uint32"},
    {"u16", "uint16"},        {"u8", "uint8"},
    {"byte", "uint8"},        {"boolean", "bool"},
    {"bool_", "bool"},        {"i1", "bool"},
    {"str", "string"},        {"text", "string"},
    {"object", "string"},     {"c64", "complex64"},
    {"c128", "complex128"},   {"complex", "complex128"},
    {"i4", "int4"},           {"u4", "uint4"},
    {"fp8", "float8e4m3fn"},  {"f8e4m3fn", "float8e4m3fn"},
    {"f8e5m2", "float8e5m2"}, {"sequence", "seq"},
    {"list", "seq"},          {"dict", "map"},
};

}  // namespace

std::string_view type_meant_by(std::string_view name) {
  if (name.empty() || name.size() > 32) return {};
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const auto& [alias, meant] : aliases) {
    if (lower == alias) return meant;
  }
  const auto type = element_type_named(lower);  // in capitals, or by the name in messages
  return type && name_of(*type) != name ? name_of(*type) : std::string_view();
}

}  // namespace sardonyx::wire
