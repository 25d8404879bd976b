#include "rewrite/lower/callable_functions.h"

#include "schema/schema.h"
#include "wire/text_parse.h"

namespace sardonyx::rewrite {

CallableFunctions::CallableFunctions(const ir::Model& model) {
  for (const ir::Function& function : model.functions)
    own_[{ir::canonical_domain(function.domain), function.name, function.overload}] = &function;
}

const ir::Function* CallableFunctions::own(const ir::Node& node) const {
  if (own_.empty()) return nullptr;
  const auto called = own_.find({ir::canonical_domain(node.domain), node.op_type, node.overload});
  return called == own_.end() ? nullptr : called->second;
}

const ir::Function* CallableFunctions::standard(const ir::Node& node) {
  const schema::FunctionText* text = schema::function_text(node.domain, node.op_type);
  if (text == nullptr) return nullptr;
  auto& parsed = standard_[{text->domain, text->name}];
  if (!parsed) parsed = std::make_unique<ir::Function>(wire::parse_function(text->text));
  return parsed.get();
}

}  // namespace sardonyx::rewrite
