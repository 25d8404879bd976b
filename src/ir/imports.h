// The versions that many nodes ask for of one list of imports.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/model.h"

namespace sardonyx::ir {

// imported_version of lists that stay as they are, however long. Not thread-safe.
class ImportIndex {
 public:
  int64_t version(const std::vector<OperatorSetId>& imports, std::string_view domain) {
    constexpr size_t few = 16;
    if (imports.size() <= few) return imported_version(imports, domain);
    const auto [at, is_new] = tables_.try_emplace(imports.data());
    auto& table = at->second;
    if (is_new) {
      for (const OperatorSetId& import : imports) {
        int64_t& version = table[canonical_domain(import.domain)];
        version = std::max(version, import.version);
      }
    }
    const auto found = table.find(canonical_domain(domain));
    return found == table.end() ? 0 : found->second;
  }
  int64_t version_for(const Node& node, const std::vector<OperatorSetId>& imports) {
    return node.opset != 0 ? node.opset : version(imports, node.domain);
  }

 private:
  std::unordered_map<const OperatorSetId*, std::unordered_map<std::string_view, int64_t>> tables_;
};

}  // namespace sardonyx::ir
