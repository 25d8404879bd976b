// LoRA adapters: values for inputs that have defaults, by name. The file is one of FlatBuffers,
// with the identifier TORT and a table of {format version, adapter version, model version,
// parameters}; each parameter is a table of {name, dimensions, element type, bytes}.
#include <set>

#include "ort_api/handles.h"
#include "sardonyx/files.h"

namespace sardonyx::ort_api {

namespace {

constexpr std::string_view adapter_identifier = "TORT";
constexpr int32_t adapter_format_version = 1;

template <class... Args>
[[noreturn]] void refuse_adapter(fmt::format_string<Args...> format, Args&&... args) {
  refuse(ORT_FAIL, "this is no file of an adapter: {}",
         fmt::format(format, std::forward<Args>(args)...));
}

// Tables of the file. What leads out of it is refused.
class AdapterReader {
 public:
  explicit AdapterReader(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  T number(int64_t at) const {
    if (at < 0 || static_cast<uint64_t>(at) + sizeof(T) > bytes_.size())
      refuse_adapter("it has {} bytes, and byte {} leads to byte {}", bytes_.size(), last_, at);
    last_ = at;
    T found;
    std::memcpy(&found, bytes_.data() + at, sizeof(T));
    return found;
  }

  // Where the offset at `at` leads.
  int64_t follow(int64_t at) const { return at + number<uint32_t>(at); }

  // Where field `index` of a table lies; 0: it has its default.
  int64_t field(int64_t table, int index) const {
    const int64_t fields = table - number<int32_t>(table);
    if (4 + 2 * index >= number<uint16_t>(fields)) return 0;
    const uint16_t offset = number<uint16_t>(fields + 4 + 2 * index);
    return offset == 0 ? 0 : table + offset;
  }

  int32_t integer(int64_t table, int index) const {
    const int64_t at = field(table, index);
    return at == 0 ? 0 : number<int32_t>(at);
  }

  // Where a list begins, and its number of items of `item` bytes.
  std::pair<int64_t, uint32_t> list(int64_t table, int index, uint64_t item) const {
    const int64_t at = field(table, index);
    if (at == 0) return {0, 0};
    const int64_t begin = follow(at);
    const auto count = number<uint32_t>(begin);
    if (count * item > bytes_.size() - static_cast<uint64_t>(begin + 4))
      refuse_adapter("the list at byte {} has {} items, which go beyond the end", begin, count);
    return {begin + 4, count};
  }

  std::string_view bytes(int64_t table, int index, uint64_t item = 1) const {
    const auto [begin, count] = list(table, index, item);
    return bytes_.substr(static_cast<size_t>(begin), count * item);
  }

 private:
  std::string_view bytes_;
  mutable int64_t last_ = 0;  // that was read, for messages
};

// A number of the standard for an element type that a tensor of a file can have.
ElementType adapter_element_type(int32_t number, const std::string& name) {
  const auto type = static_cast<ElementType>(number);
  if (!is_known(type) || type == ElementType::string)
    refuse_adapter("parameter '{}' has elements of type {}, which none has", name, number);
  return type;
}

NamedValue parameter_of(const AdapterReader& file, int64_t table) {
  std::string name(file.bytes(table, 0));
  const std::string_view dims = file.bytes(table, 1, sizeof(int64_t));
  Shape shape(dims.size() / sizeof(int64_t));
  if (!dims.empty()) std::memcpy(shape.data(), dims.data(), dims.size());
  const ElementType type = adapter_element_type(file.integer(table, 2), name);
  const std::string_view data = file.bytes(table, 3);
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
  if (bytes.size() < 8 || bytes.substr(4, 4) != adapter_identifier)
    refuse_adapter("it does not have the identifier {} in bytes 4 to 7", adapter_identifier);
  const AdapterReader file(bytes);
  const int64_t root = file.follow(0);
  if (const int32_t version = file.integer(root, 0); version != adapter_format_version)
    refuse_adapter("its format has version {}; {} is known", version, adapter_format_version);
  const auto [begin, count] = file.list(root, 3, 4);
  auto adapter = std::make_unique<OrtLoraAdapter>();
  std::set<std::string_view> names;
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const int64_t table = file.follow(begin + 4 * static_cast<int64_t>(i));
    if (!names.insert(file.bytes(table, 0)).second)
      refuse_adapter("two parameters have the name '{}'", file.bytes(table, 0));
    // Lists that share bytes would make a small file large in memory.
    total += file.bytes(table, 0).size() + file.bytes(table, 1, 8).size();
    total += file.bytes(table, 3).size();
    if (total > bytes.size()) refuse_adapter("the bytes of parameter {} are another's too", i);
    adapter->parameters.push_back(parameter_of(file, table));
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
