// The tables that tools/spec_to_cc.py generates from spec/.
#pragma once

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

extern const std::span<const Signature> signatures;    // by domain, name, since
extern const std::span<const Release> releases;        // oldest first
extern const std::span<const DomainOpset> latests;     // by domain
extern const std::span<const FunctionText> functions;  // by domain, name
extern const std::span<const FunctionText> gradients;  // by domain, name
extern const std::span<const TypeSet> type_sets;       // in the order of spec/type_sets.txt

}  // namespace sardonyx::schema::tables
