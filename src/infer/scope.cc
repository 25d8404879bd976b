// What is known of the values visible at a place.
#include <algorithm>

#include "infer/infer.h"

namespace sardonyx::infer {

const ValueFacts* Scope::find_here(const HashedName& name) const {
  Value* const* found = values_.find(name);
  return found == nullptr ? nullptr : &(*found)->known;
}

const ValueFacts* Scope::find(const HashedName& name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer_) {
    if (const ValueFacts* known = scope->find_here(name)) return known;
  }
  return nullptr;
}

void Scope::reserve(size_t count) {
  constexpr size_t in_table = 32;
  const size_t room = blocks_.empty() ? 0 : blocks_.back().capacity() - blocks_.back().size();
  if (room < count) memory_.add(static_cast<int64_t>(count * (sizeof(Value) + in_table)));
  values_.reserve(values_.size() + count);
  if (room < count) blocks_.emplace_back().reserve(count);
}

namespace {

// Of a value in a scope: sizes and elements lie outside it, and expressions outside these.
int64_t memory_of(const ValueFacts& known) {
  constexpr size_t expression = 160, few = 4;
  const auto of_list = [](const ir::Dims& dims) {
    size_t bytes = dims.size() <= few ? 0 : dims.size() * sizeof(ir::Dim);
    for (const ir::Dim& dim : dims) {
      if (!dim.is_constant() && dim.as_symbol() == nullptr) bytes += expression;
    }
    return bytes;
  };
  size_t bytes = known.type.shape ? of_list(*known.type.shape) : 0;
  if (known.elements) bytes += sizeof(ir::Dims) + of_list(*known.elements);
  return static_cast<int64_t>(bytes);
}

}  // namespace

ValueFacts& Scope::set(const HashedName& name, ValueFacts&& known) {
  constexpr size_t least = 4, most = 1024;
  if (current_account()) memory_.add(memory_of(known) + static_cast<int64_t>(name.text.size()));
  if (Value* const* found = values_.find(name)) return (*found)->known = std::move(known);
  if (blocks_.empty() || blocks_.back().size() == blocks_.back().capacity())
    reserve(std::clamp(values_.size(), least, most));
  const size_t size = name.text.size();
  auto* const text = static_cast<char*>(names_.allocate(size, 1));
  name.text.copy(text, size);
  Value& added = blocks_.back().emplace_back(std::string_view(text, size), std::move(known));
  values_.emplace({added.name, name.hash}, &added);
  return added.known;
}

}  // namespace sardonyx::infer
