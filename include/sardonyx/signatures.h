// The signatures of all operators that Sardonyx knows, in all their versions, as data.
//
//   for (const auto& signature : sardonyx::operator_versions("", "Softmax"))
//     std::cout << "Softmax-" << signature.since << '\n';
//
// "" and "ai.onnx" are one domain everywhere here. Texts are valid as long as the program runs. All
// functions may be called from any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sardonyx/graph.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

class CustomOperators;

// A formal input or output (IR.md, "Operators").
struct FormalParameter {
  enum class Option : uint8_t { single, optional, variadic };
  enum class Differentiability : uint8_t { not_said, differentiable, not_differentiable };

  std::string_view name = {};
  std::string_view type = {};           // a constraint's name, "T", or a type: "tensor(int64)"
  std::vector<std::string> types = {};  // all that are allowed: "tensor(float)", …
  Option option = Option::single;
  bool homogeneous = true;  // variadic: all values have one type
  int32_t min_arity = 1;    // variadic: least number of values
  Differentiability differentiable = Differentiability::not_said;
};

struct AttributeSignature {
  std::string_view name = {};
  AttributeType type = AttributeType::undefined;
  bool is_required = false;
  bool has_default = false;  // then the field of the type holds it
  float default_float = 0;
  int64_t default_int = 0;
  std::string_view default_string = {};
  std::vector<float> default_floats = {};
  std::vector<int64_t> default_ints = {};
  std::vector<std::string_view> default_strings = {};
};

struct TypeConstraint {
  std::string_view name = {};           // "T"
  std::vector<std::string> types = {};  // "tensor(float)", …
};

// One version of one operator.
struct OperatorSignature {
  enum class FunctionKind : uint8_t {
    none,
    fixed,       // one body for all nodes
    contextual,  // the body depends on attributes, types and present inputs
  };
  static constexpr int32_t unlimited = std::numeric_limits<int32_t>::max();

  std::string_view domain = {};  // "" for ai.onnx
  std::string_view name = {};
  int32_t since = 0;  // first version of the domain with this definition
  int32_t until = 0;  // last version that had it, where it was removed; 0: not removed
  bool is_deprecated = false;
  bool is_experimental = false;
  bool is_nondeterministic = false;  // draws random numbers, or holds graphs that may
  bool is_extra = false;             // in no current release of the standard
  FunctionKind function = FunctionKind::none;
  std::vector<FormalParameter> inputs = {}, outputs = {};
  int32_t min_inputs = 0, max_inputs = 0;  // max: `unlimited` after a variadic
  int32_t min_outputs = 0, max_outputs = 0;
  std::vector<AttributeSignature> attributes = {};  // by name
  std::vector<TypeConstraint> constraints = {};
};

// A domain that there are signatures of, and the newest version of its operators.
struct OperatorDomain {
  std::string_view domain = {};
  int32_t newest = 0;  // 0: a domain whose sets have no versions in the standard
};
std::vector<OperatorDomain> operator_domains();

// The names of a domain's operators, each once, in alphabetical order; none for unknown domains.
std::vector<std::string_view> operator_names(std::string_view domain);
// All versions of an operator, oldest first; none for an unknown one.
std::vector<OperatorSignature> operator_versions(std::string_view domain, std::string_view name);
// The same of an operator that a program has added (sardonyx/custom.h); texts are valid as long as
// `operators`.
std::vector<OperatorSignature> operator_versions(const CustomOperators& operators,
                                                 std::string_view domain, std::string_view name);
// The definition that a node binds to where version `opset` of its domain is imported: the newest
// with since <= opset. Nothing before the first version, and after the removal of a removed one.
std::optional<OperatorSignature> find_signature(std::string_view domain, std::string_view name,
                                                int64_t opset);

// A release of the standard and what it carried; 0 where it did not have the domain yet.
struct StandardRelease {
  std::string_view name = {};  // "1.17.0"
  int32_t ir_version = 0;
  int32_t onnx_opset = 0;
  int32_t ml_opset = 0;
  int32_t training_opset = 0;
};
std::vector<StandardRelease> standard_releases();  // oldest first

}  // namespace sardonyx

#pragma GCC visibility pop
