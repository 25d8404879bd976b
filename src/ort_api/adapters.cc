// LoRA adapters: values for inputs that have defaults, by name. The file is one of FlatBuffers,
// with the identifier TORT and a table of {format version, adapter version, model version,
// parameters}; each parameter is a table of {name, dimensions, element type, bytes}.
#include <set>

#include "ort_api/handles.h"
#include "sardonyx/files.h"
#include "wire/flat_buffer.h"

namespace sardonyx::ort_api {

namespace {

constexpr std::string_view adapter_identifier = "TORT";
constexpr int32_t adapter_format_version = 1;

template <class... Args>
[[noreturn]] void refuse_adapter(fmt::format_string<Args...> format, Args&&... args) {
  refuse(ORT_FAIL, "this is no file of an adapter: {}",
         fmt::format(format, std::forward<Args>(args)...));
}

// Fields of its tables.
enum AdapterField { adapter_version = 0, adapter_parameters = 3 };
enum ParameterField { parameter_name, parameter_dims, parameter_type, parameter_data };

// A number of the standard for an element type that a tensor of a file can have.
ElementType adapter_element_type(int32_t number, const std::string& name) {
  const auto type = static_cast<ElementType>(number);
  if (!is_known(type) || type == ElementType::string)
    refuse_adapter("parameter '{}' has elements of type {}, which none has", name, number);
  return type;
}

NamedValue parameter_of(const wire::FlatBuffer::Table& table) {
  std::string name(table.bytes(parameter_name).text());
  Shape shape = table.numbers<int64_t>(parameter_dims);
  const ElementType type = adapter_element_type(table.number<int32_t>(parameter_type), name);
  const Bytes data = table.bytes(parameter_data);
  int64_t count = 1;
  bool sound = true;
  for (const int64_t size : shape)
    sound = sound && size >= 0 && !__builtin_mul_overflow(count, size, &count);
  if (!sound || count > INT64_MAX / 128 ||
      byte_size(type, count) != static_cast<int64_t>(data.size()))
    refuse_adapter("parameter '{}' is {}{}, for which {} bytes are the wrong number", name,
                   name_of(type), to_string(shape), data.size());
  Tensor tensor(type, std::move(shape));
  if (!data.empty()) std::memcpy(tensor.mutable_data(), data.data(), data.size());
  return {std::move(name), std::move(tensor)};
}

OrtLoraAdapter* new_adapter(std::string_view bytes) {
  const auto* const first = reinterpret_cast<const std::byte*>(bytes.data());
  wire::FlatBuffer file(Bytes(nullptr, first, bytes.size()), [] { return "the file"; });
  auto adapter = std::make_unique<OrtLoraAdapter>();
  try {
    const auto root = file.root(adapter_identifier);
    if (const auto version = root.number<int32_t>(adapter_version);
        version != adapter_format_version)
      refuse_adapter("its format has version {}; {} is known", version, adapter_format_version);
    std::set<std::string> names;
    for (const auto& table : root.tables(adapter_parameters)) {
      adapter->parameters.push_back(parameter_of(table));
      if (!names.insert(adapter->parameters.back().first).second)
        refuse_adapter("two parameters have the name '{}'", adapter->parameters.back().first);
    }
  } catch (const Error& error) {
    refuse_adapter("{}", error.what());
  }
  return adapter.release();
}

// The allocator is for memory of devices, and values are on the processor alone.
OrtStatus* CreateLoraAdapter(const PathChar* path, OrtAllocator*, OrtLoraAdapter** out) {
  return guarded([&] {
    OrtLoraAdapter*& to = required(out, "out");
    const std::string name = path_of(path, "adapter_file_path");
    const std::string bytes = read_text(name);
    try {
      to = new_adapter(bytes);
    } catch (const Failure& failure) {
      refuse(failure.code, "{}: {}", name, failure.message);
    }
  });
}

OrtStatus* CreateLoraAdapterFromArray(const void* bytes, size_t count, OrtAllocator*,
                                      OrtLoraAdapter** out) {
  return guarded([&] {
    OrtLoraAdapter*& to = required(out, "out");
    to = new_adapter({items(static_cast<const char*>(bytes), count, "bytes"), count});
  });
}

void ReleaseLoraAdapter(OrtLoraAdapter* adapter) { delete adapter; }

}  // namespace

void add_adapters(OrtApi& table) {
  table.CreateLoraAdapter = CreateLoraAdapter;
  table.CreateLoraAdapterFromArray = CreateLoraAdapterFromArray;
  table.ReleaseLoraAdapter = ReleaseLoraAdapter;
}

}  // namespace sardonyx::ort_api
