#include "sardonyx/operator_set.h"

#include "api/view_maker.h"
#include "session/operator_sets.h"
#include "session/reading.h"

namespace sardonyx {

struct OperatorSet::Implementation {
  ir::OperatorSet set;
  std::string folder;  // tensors of bodies have no external data
};

OperatorSet::OperatorSet(const std::string& path)
    : implementation_(std::make_shared<Implementation>(
          Implementation{read_operator_set_file(path), std::string()})) {}

OperatorSet OperatorSet::of_standard(std::string_view domain, int64_t version) {
  OperatorSet made;
  made.implementation_ = std::make_shared<Implementation>(
      Implementation{export_operator_set(ir::canonical_domain(domain), version), std::string()});
  return made;
}

std::string_view OperatorSet::domain() const { return implementation_->set.domain; }
int64_t OperatorSet::version() const { return implementation_->set.opset_version; }
std::optional<int64_t> OperatorSet::ir_version() const { return implementation_->set.ir_version; }
std::string_view OperatorSet::doc_string() const { return implementation_->set.doc_string; }

std::vector<DocumentedOperator> OperatorSet::operators() const {
  const ir::OperatorSet& set = implementation_->set;
  std::vector<DocumentedOperator> operators;
  for (const ir::OperatorDefinition& op : set.operators)
    operators.push_back({op.op_type, op.since_version, op.is_experimental(), std::nullopt});
  for (const ir::Function& function : set.functions)
    operators.push_back({function.name, function.since_version.value_or(set.opset_version),
                         function.status.value_or(1) == 0,
                         ViewMaker::view(function, &implementation_->folder)});
  return operators;
}

CheckReport OperatorSet::check() const { return {check::check(implementation_->set)}; }

void OperatorSet::save(const std::string& path) const {
  save_operator_set(implementation_->set, path);
}

}  // namespace sardonyx
