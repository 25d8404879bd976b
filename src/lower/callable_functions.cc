#include "lower/callable_functions.h"

#include "ir/walk.h"
#include "schema/schema.h"
#include "wire/text_parse.h"

namespace sardonyx::lower {

CallableFunctions::CallableFunctions(const ir::Model& model) {
  for (const ir::Function& function : model.functions)
    own_[{ir::canonical_domain(function.domain), function.name, function.overload}] = &function;
}

const ir::Function* CallableFunctions::own(const ir::Node& node) const {
  if (own_.empty()) return nullptr;
  const auto called = own_.find({ir::canonical_domain(node.domain), node.op_type, node.overload});
  return called == own_.end() ? nullptr : called->second;
}

namespace {

size_t bytes_of(const ir::TensorProto& tensor) {
  size_t bytes = tensor.raw_data.size() + tensor.float_data.size() + tensor.double_data.size() +
                 tensor.int32_data.size() * sizeof(int32_t) +
                 (tensor.int64_data.size() + tensor.uint64_data.size()) * sizeof(int64_t);
  for (const std::string& text : tensor.string_data) bytes += text.size();
  return bytes;
}

size_t bytes_of(const ir::Attribute& attribute, bool shares_tensors) {
  size_t bytes = attribute.s ? attribute.s->size() : 0;
  bytes += attribute.floats.size() * sizeof(float) + attribute.ints.size() * sizeof(int64_t);
  for (const std::string& text : attribute.strings) bytes += text.size();
  if (attribute.t && !shares_tensors) bytes += bytes_of(*attribute.t);
  for (const auto& tensor : attribute.tensors) bytes += bytes_of(*tensor);
  return bytes;
}

}  // namespace

size_t CallableFunctions::copied_bytes(const ir::Function& function) {
  const auto [at, is_new] = copied_.try_emplace(&function, 0);
  size_t& bytes = at->second;
  if (!is_new) return bytes;
  ir::walk(function, {.node = [&](const ir::WalkPlace&, const ir::Node& node, size_t) {
             for (const ir::Attribute& attribute : node.attributes)
               bytes += bytes_of(attribute, node.op_type == "Constant");
           }});
  return bytes;
}

const ir::Function* CallableFunctions::standard(const ir::Node& node) {
  const schema::FunctionText* text = schema::function_text(node.domain, node.op_type);
  if (text == nullptr) return nullptr;
  auto& parsed = standard_[{text->domain, text->name}];
  if (!parsed) parsed = std::make_unique<ir::Function>(wire::parse_function(text->text));
  return parsed.get();
}

}  // namespace sardonyx::lower
