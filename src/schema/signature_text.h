// Signatures from text at run time: of operators that come from outside (docs/custom_operators.md).
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "schema/schema.h"

namespace sardonyx::schema {

// The versions of one operator, oldest first, with everything their views point to.
class OwnedSignatures {
 public:
  OwnedSignatures() = default;
  OwnedSignatures(const OwnedSignatures&) = delete;
  OwnedSignatures& operator=(const OwnedSignatures&) = delete;
  virtual ~OwnedSignatures() = default;

  std::span<const Signature> versions() const { return versions_; }

 protected:
  std::span<const Signature> versions_;
};

// Reads a signature file of the grammar of docs/spec_format.md, whose values are all tensors and
// which has no body: `seq(…)` and its like, `body`, `builder` and `differentiable` are refused.
// Throws Error (bad_input) with the line.
std::shared_ptr<const OwnedSignatures> parse_signatures(std::string_view domain,
                                                        std::string_view text);

// Signatures beside those of spec/. "" and "ai.onnx" never have any.
class MoreSignatures {
 public:
  // Oldest first; empty where the operator is not among them.
  virtual std::span<const Signature> versions(std::string_view domain,
                                              std::string_view name) const = 0;
  // Of all operators of a domain; empty where it has none.
  virtual std::vector<std::string_view> names(std::string_view domain) const = 0;

 protected:
  ~MoreSignatures() = default;
};

// The newest of these versions with since <= opset, unless it was removed by then; null: none.
const Signature* bound_version(std::span<const Signature> versions, int64_t opset);
// As `find`, in spec/ first and then in `more`, which may be null.
const Signature* find(std::string_view domain, std::string_view name, int64_t opset,
                      const MoreSignatures* more);

}  // namespace sardonyx::schema
