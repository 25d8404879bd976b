#include "lower/resolved_operator.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/fail.h"
#include "ir/origin.h"
#include "schema/signature_text.h"

namespace sardonyx::lower {
namespace {

std::string_view readable(const std::string& domain) {
  return domain.empty() ? "ai.onnx" : std::string_view(domain);
}

[[noreturn]] void fail_unknown(const ir::Node& node, int64_t opset) {
  const auto versions = schema::versions(node.domain, node.op_type);
  if (!versions.empty() && versions.front().since > opset) {
    fail_at(ir::place_of(node), ErrorCode::invalid_model,
            "operator {} exists from opset {} on; the model imports opset {} of its domain",
            node.op_type, versions.front().since, opset);
  }
  if (!versions.empty()) {
    fail_at(ir::place_of(node), ErrorCode::unsupported,
            "operator {} is not in opset {}, which the model imports", node.op_type, opset);
  }
  const std::string_view close = schema::closest_name(node.domain, node.op_type);
  fail_at(ir::place_of(node), ErrorCode::unsupported, "no operator or function has this name{}",
          close.empty() ? std::string() : fmt::format("; did you mean {}?", close));
}

}  // namespace

OperatorResolver::OperatorResolver(const LowerOptions& options) : options_(options) {
  constexpr size_t max_use = 12;  // kinds of nodes
  at_.reserve(max_use);
  meanings_.reserve(max_use);
}

ResolvedOperator OperatorResolver::of(const ir::Node& node,
                                      const std::vector<ir::OperatorSetId>& imports) {
  const int64_t version = imports_.version_for(node, imports);
  const uint32_t* at = at_.find(node.op_type);
  if (at != nullptr && meanings_[*at].version == version &&
      meanings_[*at].newest->domain == node.domain)
    return meanings_[*at];
  const ResolvedOperator resolved = find(node, version);
  // Kept by a name that outlives the node. Operators of one name in several domains are rare.
  if (resolved.newest == nullptr || resolved.newest->domain != node.domain) return resolved;
  if (at != nullptr) return meanings_[*at] = resolved;
  at_.emplace(resolved.newest->name, static_cast<uint32_t>(meanings_.size()));
  meanings_.push_back(resolved);
  return resolved;
}

ResolvedOperator OperatorResolver::find(const ir::Node& node, int64_t version) const {
  const auto versions = schema::versions(node.domain, node.op_type);
  ResolvedOperator resolved{};
  resolved.version = version;
  resolved.bound = schema::bound_version(versions, version);
  if (versions.empty()) return resolved;
  resolved.newest = &versions.back();
  resolved.op = ops::find_operator(node.domain, node.op_type);
  if (node.domain == "ai.onnx") return resolved;
  const int32_t latest = schema::latest_opset(node.domain);
  const bool in_version = resolved.bound != nullptr && (latest == 0 || version <= latest);
  if (in_version && !must_upgrade(resolved.bound, *resolved.newest, resolved.op) &&
      !wants_body(resolved.op))
    resolved.as_is = resolved.op;
  return resolved;
}

bool must_upgrade(const schema::Signature* bound, const schema::Signature& newest,
                  const ops::Operator* op) {
  if (bound == nullptr || op == nullptr || op->upgrade == nullptr) return false;
  const bool older = bound->since < std::min(newest.since, op->same_since) || newest.deprecated ||
                     newest.until > 0;
  return older || (bound->extra && op->prepare == nullptr &&
                   bound->function == schema::FunctionKind::contextual);
}

bool is_known(const ir::Node& node, const ResolvedOperator& resolved) {
  const std::string_view domain = ir::canonical_domain(node.domain);
  if (resolved.version <= 0 || !schema::is_standard_domain(domain)) return resolved.version > 0;
  return resolved.bound != nullptr && resolved.version <= schema::latest_opset(domain);
}

void require_known(const ir::Node& node, const ResolvedOperator& resolved) {
  const int32_t newest = schema::latest_opset(node.domain);
  if (newest > 0 && resolved.version > newest) {
    fail_at(
        ir::place_of(node), ErrorCode::unsupported,
        "the model imports opset {} of {}; the newest that this version of Sardonyx knows is {}",
        resolved.version, readable(node.domain), newest);
  }
  if (resolved.version <= 0) {
    fail_at(ir::place_of(node), ErrorCode::invalid_model,
            "the node's domain '{}' is not imported; add it to opset_import with the version the "
            "node was written for",
            readable(node.domain));
  }
  if (resolved.bound == nullptr && schema::is_standard_domain(node.domain))
    fail_unknown(node, resolved.version);
}

}  // namespace sardonyx::lower
