// Operators from outside (include/sardonyx/custom.h): their table, and how the stages meet them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ops/operator.h"
#include "sardonyx/custom.h"
#include "schema/signature_text.h"

namespace sardonyx::ops {

// One operator with all its versions. What is last goes first when it ends: code of the library
// runs until then.
struct CustomEntry {
  std::shared_ptr<const void> library;  // null for operators of the program itself
  std::shared_ptr<const schema::OwnedSignatures> signatures;
  std::shared_ptr<const CustomOperator> op;
};

// The operators that one model may call beside those of Sardonyx. Copies share the entries.
class CustomTable final : public schema::MoreSignatures {
 public:
  // Throws Error (bad_input) for names that Sardonyx has itself or that are here already.
  void add(std::string_view domain, std::string_view signature,
           std::shared_ptr<const CustomOperator> op, std::shared_ptr<const void> library);
  void add_all(const CustomTable& other);

  std::span<const schema::Signature> versions(std::string_view domain,
                                              std::string_view name) const override;
  std::vector<std::string_view> names(std::string_view domain) const override;
  bool empty() const { return entries_.empty(); }

  // What a node under this import is bound to; null where there is no such operator or version.
  std::shared_ptr<const ir::CustomBinding> bind(std::string_view domain, std::string_view name,
                                                int64_t opset) const;

 private:
  using Key = std::pair<std::string, std::string>;
  std::map<Key, std::shared_ptr<const CustomEntry>> entries_;
};

// Of a node that lowering has bound to an operator from outside: its signature, and the one
// operator that stands for all of them.
const schema::Signature* custom_signature(const ir::Node& node);
const Operator& custom_operator();
// Whether such a node can be prepared where ranks of its inputs are open.
bool prepares_without_ranks(const ir::Node& node);

}  // namespace sardonyx::ops
