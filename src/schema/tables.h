// The tables that tools/spec_to_cc.py generates from spec/.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "schema/schema.h"

namespace sardonyx::schema::tables {

struct DomainOpset {
  std::string_view domain;  // "" for ai.onnx
  int32_t opset;
};

struct TypeSet {
  std::string_view name;          // "float_ieee"
  std::span<const TypeId> types;  // tensors of its element types, ascending
};

// The signatures of one operator: the rows [first, first + count) of `signatures`.
struct OperatorRows {
  uint16_t first, count;
};

// FNV-1a over the name, the domain and what lies between; tools/spec_to_cc.py computes it, too.
constexpr uint32_t operator_hash(std::string_view domain, std::string_view name) {
  uint32_t hash = 2166136261u;
  const auto add = [&](char c) { hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u; };
  for (const char c : name) add(c);
  add('.');
  for (const char c : domain) add(c);
  return hash;
}

extern const std::span<const Signature> signatures;  // by domain, name, since
// Open addressing from operator_hash on, a power of two slots; count 0: an empty slot.
extern const std::span<const OperatorRows> operators;
extern const std::span<const Release> releases;        // oldest first
extern const std::span<const DomainOpset> latests;     // by domain
extern const std::span<const FunctionText> functions;  // by domain, name
extern const std::span<const FunctionText> gradients;  // by domain, name
extern const std::span<const TypeSet> type_sets;       // in the order of spec/type_sets.txt

}  // namespace sardonyx::schema::tables
