// Operator set documents: OperatorSetProto and its operators, as structs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/model.h"

namespace sardonyx::ir {

inline constexpr std::string_view operator_set_magic = "ONNXOPSET";

enum class OperatorStatus : int32_t { experimental = 0, stable = 1 };

struct OperatorDefinition {  // OperatorProto: a name and a version; the message holds no signature
  std::string op_type;
  int64_t since_version = 0;
  std::optional<int32_t> status;  // an OperatorStatus; experimental where the file does not say
  std::string doc_string;
  UnknownFields unknown;

  bool is_experimental() const { return status.value_or(0) == 0; }
};

struct OperatorSet {  // OperatorSetProto
  std::string magic;
  std::optional<int64_t> ir_version;
  std::string ir_version_prerelease;
  std::string domain;  // "" and "ai.onnx" are the same
  int64_t opset_version = 0;
  std::string doc_string;
  std::string ir_build_metadata;
  std::vector<OperatorDefinition> operators;
  std::vector<Function> functions;  // bodies; `since_version` is the operator's version
  UnknownFields unknown;
};

}  // namespace sardonyx::ir
