// What is known of the values visible at a place.
#include <algorithm>

#include "infer/infer.h"

namespace sardonyx::infer {

const Known* Scope::find_here(const HashedName& name) const {
  Value* const* found = values_.find(name);
  return found == nullptr ? nullptr : &(*found)->known;
}

const Known* Scope::find(const HashedName& name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer_) {
    if (const Known* known = scope->find_here(name)) return known;
  }
  return nullptr;
}

void Scope::reserve(size_t count) {
  values_.reserve(values_.size() + count);
  const size_t room = blocks_.empty() ? 0 : blocks_.back().capacity() - blocks_.back().size();
  if (room < count) blocks_.emplace_back().reserve(count);
}

Known& Scope::set(const HashedName& name, Known&& known) {
  constexpr size_t least = 4, most = 1024;
  if (Value* const* found = values_.find(name)) return (*found)->known = std::move(known);
  if (blocks_.empty() || blocks_.back().size() == blocks_.back().capacity())
    blocks_.emplace_back().reserve(std::clamp(values_.size(), least, most));
  const size_t size = name.text.size();
  auto* const text = static_cast<char*>(names_.allocate(size, 1));
  name.text.copy(text, size);
  Value& added = blocks_.back().emplace_back(std::string_view(text, size), std::move(known));
  values_.emplace({added.name, name.hash}, &added);
  return added.known;
}

}  // namespace sardonyx::infer
