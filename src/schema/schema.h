// Look-up of operator signatures, of every version of every domain of the standard. The tables
// are made at build time from spec/ (docs/spec_format.md) and live in read-only memory: every
// pointer, span and string_view here is valid for the life of the program, nothing allocates, and
// everything may be called from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ir/model.h"
#include "schema/type_id.h"

namespace sardonyx::schema {

using ir::AttributeKind;

struct Attribute {
  std::string_view name;
  AttributeKind kind = AttributeKind::undefined;
  bool required = false;
  bool has_default = false;  // then the field of `kind` below holds it
  float default_float = 0;
  int64_t default_int = 0;
  std::string_view default_string;
  std::span<const int64_t> default_ints;
  std::span<const float> default_floats;
  std::span<const std::string_view> default_strings;
};

struct TypeConstraint {
  std::string_view name;          // "T"
  std::span<const TypeId> types;  // ascending
};

enum class FormalOption : uint8_t { single, optional, variadic };
enum class Differentiability : uint8_t { not_said, differentiable, not_differentiable };

// A formal input or output.
struct Formal {
  std::string_view name;
  std::string_view type;          // a constraint's name, or a concrete type: "tensor(int64)"
  std::span<const TypeId> types;  // what is allowed, ascending; one type where it is concrete
  int32_t constraint = -1;        // index in Signature::constraints; -1 where it is concrete
  FormalOption option = FormalOption::single;
  bool homogeneous = true;  // variadic: all values have one type
  int32_t min_arity = 1;    // variadic: least number of values
  Differentiability differentiable = Differentiability::not_said;
};

enum class FunctionKind : uint8_t {
  none,
  fixed,       // one body for all nodes
  contextual,  // the body depends on attributes, types and present inputs
};

inline constexpr int32_t unlimited = 0x7fffffff;

// One version of one operator.
struct Signature {
  std::string_view domain;  // "" for ai.onnx
  std::string_view name;
  int32_t since = 0;  // first opset version of the domain with this definition
  int32_t until = 0;  // last opset version that had it, where it was removed; 0: not removed
  bool deprecated = false;
  bool experimental = false;
  // As the standard's registry marks it: draws random numbers, or holds sub-graphs that may.
  bool nondeterministic = false;
  bool extra = false;  // from spec/extra: in no current release of the standard
  FunctionKind function = FunctionKind::none;
  std::span<const int32_t> function_opsets;  // opset versions that have a body of their own
  std::span<const Formal> inputs;
  std::span<const Formal> outputs;
  int32_t min_inputs = 0, max_inputs = 0;  // max: `unlimited` after a variadic
  int32_t min_outputs = 0, max_outputs = 0;
  std::span<const Attribute> attributes;  // ascending by name
  std::span<const TypeConstraint> constraints;

  const Attribute* attribute(std::string_view name) const;  // null where there is none
  // The formal of the input or output at a position: a trailing variadic covers all after it.
  // Null where the position is beyond the last.
  const Formal* input(size_t position) const;
  const Formal* output(size_t position) const;
  const TypeConstraint* constraint(std::string_view name) const;
};

bool allows(std::span<const TypeId> types, TypeId type);
inline bool allows(const TypeConstraint& constraint, TypeId type) {
  return allows(constraint.types, type);
}
inline bool allows(const Formal& formal, TypeId type) { return allows(formal.types, type); }

// "" and "ai.onnx" are one domain everywhere below; unknown names give null or nothing.

// The definition a node binds to under an imported opset version: the newest with
// since <= opset. Null before the first version, and after the removal of a removed operator.
const Signature* find(std::string_view domain, std::string_view name, int64_t opset);
const Signature* newest(std::string_view domain, std::string_view name);
// All versions of an operator, oldest first.
std::span<const Signature> versions(std::string_view domain, std::string_view name);
// Every signature, ordered by domain, name, version.
std::span<const Signature> all_signatures();
// The operator name of `domain` closest to a misspelt one, or "" where none is close.
std::string_view closest_name(std::string_view domain, std::string_view name);

// The newest opset version of a domain that spec/ describes; 0 for other domains.
int32_t latest_opset(std::string_view domain);
bool is_standard_domain(std::string_view domain);

// One release of ONNX and what it carried; 0 where it did not have the domain yet.
struct Release {
  std::string_view name;  // "1.17.0"
  int32_t ir_version;
  int32_t onnx_opset;
  int32_t ml_opset;
  int32_t training_opset;
};
std::span<const Release> releases();  // oldest first
// The first release with an opset version; null for one that no release has.
const Release* release_of_opset(std::string_view domain, int64_t opset);
// The least IR version with which a release carried this opset version; 0 where none did.
int32_t ir_version_for_opset(std::string_view domain, int64_t opset);

// A function body of spec/functions in ONNX's textual syntax: the newest version's.
struct FunctionText {
  std::string_view domain;
  std::string_view name;
  std::string_view text;
};
std::span<const FunctionText> function_texts();  // ordered by domain, name
const FunctionText* function_text(std::string_view domain, std::string_view name);

}  // namespace sardonyx::schema
