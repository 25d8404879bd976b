// Views of a model as C holds them: the bytes of the view, which owns nothing.
#pragma once

#include <cstring>
#include <type_traits>

#include "capi/handles.h"
#include "sardonyx/graph.h"

namespace sardonyx::capi {

// Views point into strings of the model, which end in 0.
inline const char* text(std::string_view view) { return view.data() == nullptr ? "" : view.data(); }

template <class Borrowed, class View>
Borrowed borrowed(const View& view) {
  static_assert(std::is_trivially_copyable_v<View> && sizeof(View) <= sizeof(Borrowed));
  Borrowed made{};
  std::memcpy(static_cast<void*>(&made), static_cast<const void*>(&view), sizeof(View));
  return made;
}

template <class View, class Borrowed>
View viewed(const Borrowed& given, const char* argument) {
  static_assert(std::is_trivially_copyable_v<View> && sizeof(View) <= sizeof(Borrowed));
  if (given.item == nullptr) refuse_null(argument);
  View view;
  std::memcpy(static_cast<void*>(&view), static_cast<const void*>(&given), sizeof(View));
  return view;
}

[[noreturn]] void refuse_index(size_t index, size_t count, const char* what);

// Item `index` of a list of views, or of names.
template <class List>
auto item_of(const List& list, size_t index, const char* what) {
  if (index >= list.size()) refuse_index(index, list.size(), what);
  return list[index];
}

inline void give_entry(const ViewList<EntryView>& entries, size_t index, const char* what,
                       const char** key, const char** value) {
  required(key, "key"), required(value, "value");
  const EntryView entry = item_of(entries, index, what);
  *key = text(entry.key());
  *value = text(entry.value());
}

inline void give_name(std::span<const std::string> names, size_t index, const char* what,
                      const char** name) {
  required(name, "name");
  if (index >= names.size()) refuse_index(index, names.size(), what);
  *name = names[index].c_str();
}

}  // namespace sardonyx::capi
