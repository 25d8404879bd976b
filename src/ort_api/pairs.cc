// Lists of keys and values, which hold settings and what devices say of themselves. None of these
// functions returns a status: what they can't do they leave undone.
#include <new>

#include "ort_api/handles.h"

namespace sardonyx::ort_api {

namespace {

void CreateKeyValuePairs(OrtKeyValuePairs** out) {
  if (out != nullptr) *out = new (std::nothrow) OrtKeyValuePairs;
}

void RemoveKeyValuePair(OrtKeyValuePairs* pairs, const char* key) {
  if (pairs == nullptr || key == nullptr) return;
  const auto found = pairs->entries.find(std::string_view(key));
  if (found == pairs->entries.end()) return;
  pairs->entries.erase(found);
  pairs->refresh();
}

// As in ONNX Runtime an empty key adds nothing.
void AddKeyValuePair(OrtKeyValuePairs* pairs, const char* key, const char* value) {
  if (pairs == nullptr || key == nullptr || *key == 0 || value == nullptr) return;
  try {
    pairs->entries.insert_or_assign(std::string(key), value);
    pairs->refresh();
  } catch (const std::bad_alloc&) {
    RemoveKeyValuePair(pairs, key);
  }
}

const char* GetKeyValue(const OrtKeyValuePairs* pairs, const char* key) {
  if (pairs == nullptr || key == nullptr) return nullptr;
  const auto found = pairs->entries.find(std::string_view(key));
  return found == pairs->entries.end() ? nullptr : found->second.c_str();
}

void GetKeyValuePairs(const OrtKeyValuePairs* pairs, const char* const** keys,
                      const char* const** values, size_t* count) {
  const bool any = pairs != nullptr;
  if (keys != nullptr) *keys = any ? pairs->keys.data() : nullptr;
  if (values != nullptr) *values = any ? pairs->values.data() : nullptr;
  if (count != nullptr) *count = any ? pairs->keys.size() : 0;
}

void ReleaseKeyValuePairs(OrtKeyValuePairs* pairs) { delete pairs; }

}  // namespace

void OrtKeyValuePairs::refresh() {
  keys.clear(), values.clear();
  keys.reserve(entries.size()), values.reserve(entries.size());
  for (const auto& [key, value] : entries) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
}

void add_pairs(OrtApi& table) {
  table.CreateKeyValuePairs = CreateKeyValuePairs;
  table.AddKeyValuePair = AddKeyValuePair;
  table.GetKeyValue = GetKeyValue;
  table.GetKeyValuePairs = GetKeyValuePairs;
  table.RemoveKeyValuePair = RemoveKeyValuePair;
  table.ReleaseKeyValuePairs = ReleaseKeyValuePairs;
}

}  // namespace sardonyx::ort_api
