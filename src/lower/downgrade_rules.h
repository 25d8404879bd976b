// What older versions of operators say in other words than the newest.
#pragma once

#include <string>
#include <string_view>

#include "ops/upgrade_context.h"

namespace sardonyx::lower {

// What a rule throws where the older version cannot say what the node means.
struct CannotSay {
  std::string reason;  // "its axes are no constant"
};

// What a rule sees of a node of the newest version, and how it changes it: since() and old() are
// those of the version to carry it down to; 0 where the older opset has no such operator.
class DowngradeContext : public ops::UpgradeContext {
 public:
  // `older`: null where there is none. All are borrowed.
  DowngradeContext(ir::Node& node, const schema::Signature* older, int64_t opset,
                   const Services& services);

  int64_t opset() const { return opset_; }  // to carry it down to

  ops::NodeView newest() const { return {node_, newest_}; }  // getters with the newest defaults
  // The elements of an input as far as they are known, as expressions; null where they are not.
  const ops::Dims* elements(size_t input) const;
  std::string fresh_name(std::string_view hint) const { return services_.fresh_name(hint); }

 private:
  const ir::Node& node_;
  const schema::Signature* newest_;
  int64_t opset_;
  const Services& services_;
};

// Makes the node one of the older version, as an upgrade does it the other way round. Helpers are
// of the newest version and are carried down in their turn; so is the node where the rule makes it
// one of another operator. Throws CannotSay.
using DowngradeRule = void (*)(DowngradeContext&);

// Null where there is none.
DowngradeRule downgrade_rule(std::string_view op_type);

// Whether one of the node's attributes has a value that versions before `opset` don't know: why, as
// CannotSay says it; empty where none has.
std::string unknown_value(const ir::Node& node, int64_t opset);

}  // namespace sardonyx::lower
