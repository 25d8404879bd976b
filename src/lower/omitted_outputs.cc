#include "lower/omitted_outputs.h"

#include <algorithm>

#include "ops/custom.h"
#include "schema/schema.h"

namespace sardonyx::lower {
namespace {

const schema::Signature* signature_of(const ir::Node& node) {
  return node.custom ? ops::custom_signature(node) : schema::newest(node.domain, node.op_type);
}

bool is_required(const schema::Signature& signature, size_t position) {
  const schema::Formal* formal = signature.output(position);
  return formal != nullptr && formal->option == schema::FormalOption::single;
}

// How many outputs at least a node has to list.
size_t min_outputs(const schema::Signature& signature) {
  return static_cast<size_t>(std::max(signature.min_outputs, 0));
}

}  // namespace

bool omits_outputs(const ir::Node& node) {
  const schema::Signature* signature = signature_of(node);
  if (signature == nullptr) return false;
  if (node.outputs.size() < min_outputs(*signature)) return true;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty() && is_required(*signature, i)) return true;
  }
  return false;
}

void name_outputs(ir::Node& node, const std::function<std::string(std::string_view)>& fresh_name) {
  const schema::Signature* signature = signature_of(node);
  if (signature == nullptr) return;
  if (node.outputs.size() < min_outputs(*signature)) node.outputs.resize(min_outputs(*signature));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty() && is_required(*signature, i))
      node.outputs[i] = fresh_name(signature->output(i)->name);
  }
}

}  // namespace sardonyx::lower
