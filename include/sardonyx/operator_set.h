// Operator set documents: which operators a domain has in a version, with bodies of those that are
// functions (IR.md, "Operator Sets"; docs/format.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sardonyx/check.h"
#include "sardonyx/graph.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

// An operator that a document defines.
struct DocumentedOperator {
  std::string name = {};
  int64_t since = 0;  // the version of the set that it came with
  bool is_experimental = false;
  std::optional<FunctionView> body = std::nullopt;  // of a function; lives as long as the document
};

// Cheap to copy, read only. May be used from any thread.
class OperatorSet {
 public:
  // Reads a document: binary, or JSON or text format by the file's name. Throws Error (unreadable),
  // (invalid_model); the textual syntax has no documents: (unsupported).
  explicit OperatorSet(const std::string& path);
  OperatorSet(const OperatorSet&) = default;  // moving is copying
  OperatorSet& operator=(const OperatorSet&) = default;
  // The operators of a domain of the standard ("" and "ai.onnx" are one) as of a version (0: the
  // newest), with the bodies of those that are functions. Throws Error (bad_input) for an unknown
  // domain or version.
  static OperatorSet of_standard(std::string_view domain, int64_t version = 0);

  std::string_view domain() const;  // "" for ai.onnx
  int64_t version() const;
  std::optional<int64_t> ir_version() const;
  std::string_view doc_string() const;
  // Those without a body, then those with one, in the order of the document.
  std::vector<DocumentedOperator> operators() const;

  // The rules for documents and for the bodies in them. Operators without a body can't be checked
  // further: documents hold no signatures.
  CheckReport check() const;

  // Writes it in the form of the name's ending: binary (.onnx, .opset), .json, .textproto. The file
  // appears when it is whole. Throws Error (bad_input) for other endings, (unreadable).
  void save(const std::string& path) const;

 private:
  OperatorSet() = default;
  struct [[gnu::visibility("hidden")]] Implementation;
  std::shared_ptr<const Implementation> implementation_;
};

}  // namespace sardonyx

#pragma GCC visibility pop
