// Tensors of strings.
#include <algorithm>

#include "ort_api/handles.h"

namespace sardonyx::ort_api {

namespace {

std::span<std::string> strings_in(OrtValue* value) {
  return tensor_of(value, "value").mutable_elements<std::string>();
}
std::span<const std::string> strings_in(const OrtValue* value) {
  if (required(value, "value").value.kind() == Value::Kind::sparse_tensor)
    return sparse_values(value).elements<std::string>();
  return tensor_of(value, "value").elements<std::string>();
}

void require_place(size_t index, size_t count) {
  if (index >= count)
    refuse(ORT_INVALID_ARGUMENT, "the tensor has {} strings, and number {} was asked for", count,
           index);
}

OrtStatus* FillStringTensor(OrtValue* value, const char* const* texts, size_t count) {
  return guarded([&] {
    const auto strings = strings_in(value);
    items(texts, count, "s");
    if (count != strings.size())
      refuse(ORT_INVALID_ARGUMENT, "{} strings were given for a tensor of {}", count,
             strings.size());
    for (size_t i = 0; i < count; ++i) strings[i] = text_of(texts[i], "s");
  });
}

OrtStatus* FillStringTensorElement(OrtValue* value, const char* text, size_t index) {
  return guarded([&] {
    const auto strings = strings_in(value);
    require_place(index, strings.size());
    strings[index] = text_of(text, "s");
  });
}

// Room for `length` bytes in one string, which the caller writes.
OrtStatus* GetResizedStringTensorElementBuffer(OrtValue* value, size_t index, size_t length,
                                               char** buffer) {
  return guarded([&] {
    const auto strings = strings_in(value);
    require_place(index, strings.size());
    strings[index].resize(length);
    required(buffer, "buffer") = strings[index].data();
  });
}

size_t bytes_of(std::span<const std::string> strings) {
  size_t bytes = 0;
  for (const std::string& one : strings) bytes += one.size();
  return bytes;
}

OrtStatus* GetStringTensorDataLength(const OrtValue* value, size_t* length) {
  return guarded([&] { required(length, "len") = bytes_of(strings_in(value)); });
}

// All strings one after the other, without zeros between them, and where each begins.
OrtStatus* GetStringTensorContent(const OrtValue* value, void* to, size_t bytes, size_t* offsets,
                                  size_t count) {
  return guarded([&] {
    const auto strings = strings_in(value);
    items(offsets, count, "offsets");
    if (count != strings.size())
      refuse(ORT_FAIL, "there is room for {} offsets, and there are {} strings", count,
             strings.size());
    if (bytes < bytes_of(strings))
      refuse(ORT_FAIL, "the strings have {} bytes, and there is room for {}", bytes_of(strings),
             bytes);
    char* next = static_cast<char*>(to);
    size_t offset = 0;
    for (size_t i = 0; i < count; ++i) {
      offsets[i] = offset;
      if (strings[i].empty()) continue;
      std::copy(strings[i].begin(), strings[i].end(), &required(next, "s") + offset);
      offset += strings[i].size();
    }
  });
}

OrtStatus* GetStringTensorElementLength(const OrtValue* value, size_t index, size_t* out) {
  return guarded([&] {
    const auto strings = strings_in(value);
    require_place(index, strings.size());
    required(out, "out") = strings[index].size();
  });
}

// Without a zero behind it.
OrtStatus* GetStringTensorElement(const OrtValue* value, size_t bytes, size_t index, void* to) {
  return guarded([&] {
    const auto strings = strings_in(value);
    require_place(index, strings.size());
    if (bytes < strings[index].size())
      refuse(ORT_FAIL, "the string has {} bytes, and there is room for {}", strings[index].size(),
             bytes);
    if (strings[index].empty()) return;
    std::copy(strings[index].begin(), strings[index].end(), &required(static_cast<char*>(to), "s"));
  });
}

}  // namespace

void add_strings(OrtApi& table) {
  table.FillStringTensor = FillStringTensor;
  table.FillStringTensorElement = FillStringTensorElement;
  table.GetResizedStringTensorElementBuffer = GetResizedStringTensorElementBuffer;
  table.GetStringTensorDataLength = GetStringTensorDataLength;
  table.GetStringTensorContent = GetStringTensorContent;
  table.GetStringTensorElementLength = GetStringTensorElementLength;
  table.GetStringTensorElement = GetStringTensorElement;
}

}  // namespace sardonyx::ort_api
