#include "session/declared_outputs.h"

#include <fmt/format.h>

#include <map>
#include <string_view>
#include <unordered_map>

#include "ir/dimension.h"
#include "ir/value_type.h"

namespace sardonyx {
namespace {

constexpr int64_t ambiguous = -1;  // inputs give the name different sizes

struct Bound {
  int64_t size;
  std::string by;  // "dimension 0 of input 'x'"
};
using Sizes = std::map<std::string, Bound, std::less<>>;

void bind(const ir::ValueInfo& input, const Value& given, Sizes& sizes) {
  if (!given.is_tensor() || !input.type || !input.type->shape) return;
  const auto& dims = input.type->shape->dims;
  const Shape& shape = given.tensor().shape();
  for (size_t d = 0; d < dims.size() && d < shape.size(); ++d) {
    const std::string_view name = ir::declared_name(dims[d]);
    if (name.empty()) continue;
    const auto [found, is_new] = sizes.try_emplace(
        std::string(name),
        Bound{shape[d], fmt::format("dimension {} of input '{}'", d, input.name)});
    if (!is_new && found->second.size != shape[d]) found->second.size = ambiguous;
  }
}

// Why the shape is not the declared one; empty where it is.
std::string difference(const ir::TensorShape& declared, const Shape& shape, const Sizes& sizes) {
  if (declared.dims.size() != shape.size())
    return fmt::format("rank {} instead of {}", shape.size(), declared.dims.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto number = ir::declared_number(declared.dims[d]);
    if (number && *number != shape[d])
      return fmt::format("dimension {} is {}, and declared as {}", d, shape[d], *number);
    const auto found = sizes.find(ir::declared_name(declared.dims[d]));
    if (found == sizes.end() || found->second.size == shape[d] || found->second.size == ambiguous)
      continue;
    return fmt::format("dimension {} is {}, and declared as '{}', which is {} by {}", d, shape[d],
                       found->first, found->second.size, found->second.by);
  }
  return {};
}

Warning warning_of(const char* rule, const ir::ValueInfo& output, std::string message) {
  return {rule, fmt::format("output '{}'", output.name), std::move(message),
          "what the run makes stands; correct or remove the declaration"};
}

std::optional<Warning> judge(const ir::ValueInfo& output, const Value& made, const Sizes& sizes) {
  const ir::TypeProto& declared = *output.type;
  const ir::ValueType type = ir::type_of(made);
  const auto differs = [&] {
    return type.kind != declared.kind ||
           (type.is_tensor() && declared.elem_type != 0 && type.element != declared.element_type());
  };
  if (differs()) {
    return warning_of(
        "SH-17", output,
        fmt::format("is {}, and declared as {}", type.to_string(), ir::declared_text(declared)));
  }
  if (!made.is_tensor() || !declared.shape) return std::nullopt;
  const std::string why = difference(*declared.shape, made.tensor().shape(), sizes);
  if (why.empty()) return std::nullopt;
  return warning_of(
      "G-20", output,
      fmt::format("has shape {}, and is declared as {}: {}", to_string(made.tensor().shape()),
                  ir::declared_text(declared), why));
}

}  // namespace

DeclaredOutputs::DeclaredOutputs(std::vector<ir::ValueInfo> inputs,
                                 std::vector<ir::ValueInfo> outputs, Warn warn)
    : warn_(std::move(warn)) {
  if (!warn_) return;
  inputs_ = std::move(inputs);
  outputs_ = std::move(outputs);
  told_ = std::make_unique<std::atomic<bool>[]>(outputs_.size());
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const auto& type = outputs_[i].type;
    told_[i] = !type || type->kind == ir::TypeProto::Kind::none;
    if (!told_[i]) ++open_;
  }
}

void DeclaredOutputs::check(std::span<const std::string> names, std::span<const Value> given,
                            std::span<const Value> made) const {
  has_checked_.store(true, std::memory_order_relaxed);
  Sizes sizes;
  std::unordered_map<std::string_view, const Value*> values;
  for (size_t i = 0; i < names.size() && i < given.size(); ++i) values.emplace(names[i], &given[i]);
  for (const ir::ValueInfo& input : inputs_) {
    if (const auto value = values.find(input.name); value != values.end())
      bind(input, *value->second, sizes);
  }
  for (size_t i = 0; i < outputs_.size() && i < made.size(); ++i) {
    if (told_[i] || made[i].kind() == Value::Kind::none) continue;
    const auto warning = judge(outputs_[i], made[i], sizes);
    if (!warning || told_[i].exchange(true)) continue;
    --open_;
    warn_(*warning);
  }
}

}  // namespace sardonyx
