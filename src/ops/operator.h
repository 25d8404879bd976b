// An operator: what the library knows of it beyond its signature. And the table of all of them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "ops/infer_context.h"
#include "ops/prepare_context.h"
#include "ops/upgrade_context.h"

namespace sardonyx::ops {

// The newest version's meaning. Older versions reach it through `upgrade`; without one, a node of
// an older version means the same and only changes its version.
struct Operator {
  std::string_view name;
  std::string_view domain = "";  // "" is ai.onnx; "sardonyx" are internal forms, never written out
  void (*infer)(InferContext&) = nullptr;
  // Null where the operator runs through its function body.
  std::unique_ptr<Step> (*prepare)(PrepareContext&) = nullptr;
  void (*upgrade)(UpgradeContext&) = nullptr;
  // From this version on `upgrade` changes nothing, so that it need not be asked.
  int32_t same_since = INT32_MAX;
  // The attributes that `infer` reads, of operators without `upgrade` that have long ones beside
  // them; nullopt: any.
  std::optional<std::span<const std::string_view>> infer_reads = std::nullopt;
};

// The operator of this name and domain ("" and "ai.onnx" are one); null where there is none.
const Operator* find_operator(std::string_view domain, std::string_view name);
std::span<const Operator* const> all_operators();

}  // namespace sardonyx::ops
