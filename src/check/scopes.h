// What is known of values by name in the graphs a pass is in: an inner graph sees the outer ones'.
#pragma once

#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sardonyx::check {

template <class T>
class Scopes {
 public:
  void enter() { frames_.emplace_back(); }
  void leave() { frames_.pop_back(); }
  // Of the innermost graph; the first entry of a name stays.
  void add(std::string_view name, T value) {
    if (!name.empty()) frames_.back().emplace(name, std::move(value));
  }
  // The same, but the last entry of a name stays.
  void set(std::string_view name, T value) {
    if (!name.empty()) frames_.back().insert_or_assign(name, std::move(value));
  }
  // Null where nothing is known.
  const T* find(std::string_view name) const {
    for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
      const auto found = frame->find(name);
      if (found != frame->end()) return &found->second;
    }
    return nullptr;
  }

 private:
  std::vector<std::unordered_map<std::string_view, T>> frames_;
};

}  // namespace sardonyx::check
