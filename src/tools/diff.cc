#include "tools/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <type_traits>

#include "base/fail.h"
#include "ir/tensor.h"
#include "sardonyx/compare.h"
#include "sardonyx/error.h"
#include "wire/fields.h"
#include "wire/text_print.h"

namespace sardonyx {
namespace {

constexpr size_t longest_text = 160;

std::string cut(std::string text) {
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  if (text.size() > longest_text) text = text.substr(0, longest_text - 3) + "...";
  return text;
}

// ---- what a message is called, and what it is matched by

std::string key_of(const ir::StringEntry& m) { return m.key; }
std::string key_of(const ir::TensorProto& m) { return m.name; }
std::string key_of(const ir::SparseTensorProto& m) { return m.values.name; }
std::string key_of(const ir::ValueInfo& m) { return m.name; }
std::string key_of(const ir::Attribute& m) { return m.name; }
std::string key_of(const ir::TensorAnnotation& m) { return m.tensor_name; }
std::string key_of(const ir::OperatorSetId& m) { return m.domain.empty() ? "ai.onnx" : m.domain; }
std::string key_of(const ir::DeviceConfiguration& m) { return m.name; }
std::string key_of(const ir::NodeDeviceConfiguration& m) { return m.configuration_id; }
std::string key_of(const ir::ShardingSpec& m) { return m.tensor_name; }
std::string key_of(const ir::Function& m) {
  return fmt::format("{}{}{}{}{}", m.domain, m.domain.empty() ? "" : ".", m.name,
                     m.overload.empty() ? "" : ":", m.overload);
}
std::string key_of(const ir::Node& m) {
  for (const std::string& output : m.outputs) {
    if (!output.empty()) return output;
  }
  return m.name;
}

template <class T>
concept Keyed = requires(const T& message) {
  key_of(message);
};

std::string text_of(const ir::TypeProto& type) { return wire::print(type); }
std::string text_of(const ir::Node& node) {
  return wire::print(node, {.max_elements = 8, .annotations = false});
}
std::string text_of(const ir::Attribute& attribute) {
  return wire::print(attribute, {.max_elements = 8, .annotations = false});
}
std::string text_of(const ir::TensorProto& tensor) {
  return wire::print(tensor, {.max_elements = 8, .annotations = false});
}
std::string text_of(const ir::StringEntry& entry) { return entry.value; }
std::string text_of(const std::string& text) { return text; }
template <class T>
std::string text_of(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return std::string(ir::name_of(value));
  } else if constexpr (std::is_arithmetic_v<T>) {
    return fmt::format("{}", value);
  } else if constexpr (requires { value.type; }) {
    return value.type ? wire::print(*value.type) : "";
  } else {
    return "";
  }
}
template <class T>
std::string text_of(const std::vector<T>& list) {
  std::string text = "[";
  for (const T& item : list) {
    if (text.size() > longest_text) break;
    text += (text.size() > 1 ? ", " : "") + text_of(item);
  }
  return text + "]";
}

// Where a thing is, in words: "input", "node 'y'".
std::string_view singular(std::string_view field) {
  if (field == "opset_import") return "import";
  if (field == "metadata_props") return "metadata";
  if (field == "functions") return "function";
  return field;
}

// ---- walking two messages at once

// The members of a message, in the order of its field table.
class Collector {
 public:
  template <class T>
  void field(uint32_t, const char*, const T& member) {
    members_.push_back(&member);
  }
  template <class T>
  void packed(uint32_t, const char*, const T& member) {
    members_.push_back(&member);
  }
  void fixed(uint32_t, const char*, const Bytes& bytes, size_t) { members_.push_back(&bytes); }
  void raw(uint32_t, const char*, bool, const Bytes& bytes) { members_.push_back(&bytes); }
  template <class T>
  void flagged(uint32_t, const char*, bool, const T& member) {
    members_.push_back(&member);
  }
  template <class A, class B>
  void either(uint32_t, const char*, const A& a, uint32_t, const char*, const B& b) {
    members_.push_back(&a);
    members_.push_back(&b);
  }
  void unknown(const ir::UnknownFields& kept) { members_.push_back(&kept); }

  template <class T>
  const T& take() {
    return *static_cast<const T*>(members_[next_++]);
  }

 private:
  std::vector<const void*> members_;
  size_t next_ = 0;
};

class Differ {
 public:
  explicit Differ(const DiffOptions& options) : options_(options) {}

  template <class M>
  void messages(const std::string& place, const M& a, const M& b) {
    if constexpr (std::is_same_v<M, ir::TypeProto>) {
      texts(place, text_of(a), text_of(b));
    } else if constexpr (std::is_same_v<M, ir::TensorProto>) {
      tensors(place, a, b);
    } else {
      Collector members;
      wire::fields(members, b);
      Visitor<M> visitor{*this, members, place};
      wire::fields(visitor, a);
    }
  }

  DiffResult take() { return std::move(result_); }

 private:
  using Kind = ModelDifference::Kind;

  template <class M>
  struct Visitor {
    Differ& differ;
    Collector& other;
    const std::string& place;

    template <class T>
    void field(uint32_t, const char* name, const T& a) {
      const T& b = other.take<T>();
      if (differ.options_.annotations || !is_annotation<M>(name)) differ.values(place, name, a, b);
    }
    template <class T>
    void packed(uint32_t number, const char* name, const T& a) {
      field(number, name, a);
    }
    template <class T>
    void flagged(uint32_t number, const char* name, bool, const T& a) {
      field(number, name, a);
    }
    template <class A, class B>
    void either(uint32_t first, const char* first_name, const A& a, uint32_t second,
                const char* second_name, const B& b) {
      field(first, first_name, a);
      field(second, second_name, b);
    }
    void unknown(const ir::UnknownFields& a) {
      const auto& b = other.take<ir::UnknownFields>();
      if (a.bytes != b.bytes)
        differ.add(Kind::changed, differ.inside(place, "unknown fields"),
                   fmt::format("{} bytes", a.bytes.size()),
                   fmt::format("{} bytes", b.bytes.size()));
    }
  };

  template <class T>
  static bool same(const T& a, const T& b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (a != a && b != b) return true;
    }
    return a == b;
  }

  static std::string inside(const std::string& place, std::string_view what) {
    return fmt::format("{}{}{}", place, place.empty() ? "" : ", ", what);
  }

  void add(Kind kind, std::string place, std::string first, std::string second) {
    if (result_.differences.size() >= options_.most) {
      ++result_.left_out;
      return;
    }
    result_.differences.push_back(
        {kind, std::move(place), cut(std::move(first)), cut(std::move(second))});
  }

  void texts(const std::string& place, const std::string& a, const std::string& b) {
    if (a != b) add(Kind::changed, place, a, b);
  }

  template <class M>
  static bool is_annotation(std::string_view field) {
    return field == "doc_string" || field == "metadata_props" || field == "producer_name" ||
           field == "producer_version" || (std::is_same_v<M, ir::Node> && field == "name");
  }

  template <class T>
  void values(const std::string& place, std::string_view name, const T& a, const T& b) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string>) {
      if (!same(a, b)) add(Kind::changed, inside(place, singular(name)), text_of(a), text_of(b));
    } else {
      messages(inside(place, singular(name)), a, b);
    }
  }
  template <class T>
  void values(const std::string& place, std::string_view name, const std::optional<T>& a,
              const std::optional<T>& b) {
    present(place, name, a ? &*a : nullptr, b ? &*b : nullptr);
  }
  template <class T>
  void values(const std::string& place, std::string_view name, const std::shared_ptr<const T>& a,
              const std::shared_ptr<const T>& b) {
    present(place, name, a.get(), b.get());
  }
  template <class T>
  void present(const std::string& place, std::string_view name, const T* a, const T* b) {
    if (a && b) return values(place, name, *a, *b);
    if (a) add(Kind::only_in_first, inside(place, singular(name)), text_of(*a), "");
    if (b) add(Kind::only_in_second, inside(place, singular(name)), "", text_of(*b));
  }

  template <class T>
  void values(const std::string& place, std::string_view name, const std::vector<T>& a,
              const std::vector<T>& b) {
    if constexpr (Keyed<T>) {
      keyed(place, name, a, b);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      if (!std::ranges::equal(a, b, [](const T& x, const T& y) { return same(x, y); }))
        add(Kind::changed, inside(place, singular(name)), text_of(a), text_of(b));
    } else {
      for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
        const std::string item = fmt::format("{} {}", singular(name), i);
        if (i >= b.size()) {
          add(Kind::only_in_first, inside(place, item), "", "");
        } else if (i >= a.size()) {
          add(Kind::only_in_second, inside(place, item), "", "");
        } else {
          values(place, item, a[i], b[i]);
        }
      }
    }
  }

  // Of several things with one key the n-th of one list is matched with the n-th of the other.
  template <class T>
  static std::map<std::pair<std::string, size_t>, const T*> by_key(const std::vector<T>& list) {
    std::map<std::pair<std::string, size_t>, const T*> found;
    std::map<std::string, size_t> counts;
    for (const T& item : list) {
      std::string key = key_of(item);
      const size_t count = counts[key]++;
      found[{std::move(key), count}] = &item;
    }
    return found;
  }

  template <class T>
  static std::string place_of(std::string_view field, const T& item) {
    std::string text = fmt::format("{} '{}'", singular(field), key_of(item));
    if constexpr (std::is_same_v<T, ir::Node>) text += fmt::format(" ({})", item.op_type);
    return text;
  }

  template <class T>
  void keyed(const std::string& place, std::string_view name, const std::vector<T>& a,
             const std::vector<T>& b) {
    const auto others = by_key(b);
    const auto ours = by_key(a);
    std::map<std::string, size_t> counts;
    for (const T& item : a) {
      const std::string key = key_of(item);
      const auto found = others.find({key, counts[key]++});
      const std::string where = inside(place, place_of(name, item));
      if (found == others.end()) {
        add(Kind::only_in_first, where, text_of(item), "");
      } else {
        messages(where, item, *found->second);
      }
    }
    counts.clear();
    for (const T& item : b) {
      const std::string key = key_of(item);
      if (ours.contains({key, counts[key]++})) continue;
      add(Kind::only_in_second, inside(place, place_of(name, item)), "", text_of(item));
    }
    if constexpr (std::is_same_v<T, ir::ValueInfo>) {
      if (name != "value_info") order(place, name, a, b);
    }
  }

  template <class T>
  void order(const std::string& place, std::string_view name, const std::vector<T>& a,
             const std::vector<T>& b) {
    std::vector<std::string> first, second;
    for (const T& item : a) first.push_back(key_of(item));
    for (const T& item : b) second.push_back(key_of(item));
    auto sorted_first = first, sorted_second = second;
    std::sort(sorted_first.begin(), sorted_first.end());
    std::sort(sorted_second.begin(), sorted_second.end());
    if (sorted_first == sorted_second && first != second)
      add(Kind::changed, inside(place, fmt::format("order of {}s", name)), text_of(first),
          text_of(second));
  }

  void tensors(const std::string& place, const ir::TensorProto& a, const ir::TensorProto& b) {
    if (options_.annotations) {
      values(place, "doc_string", a.doc_string, b.doc_string);
      values(place, "metadata_props", a.metadata_props, b.metadata_props);
    }
    values(place, "name", a.name, b.name);
    const auto type = [](const ir::TensorProto& t) {
      return fmt::format("{}[{}]", name_of(t.element_type()), fmt::join(t.dims, ","));
    };
    if (a.data_type != b.data_type || a.dims != b.dims)
      return add(Kind::changed, place, type(a), type(b));
    if (!options_.weights) return;
    if (a.is_external() || b.is_external()) {
      values(place, "data_location", a.data_location, b.data_location);
      return values(place, "external_data", a.external_data, b.external_data);
    }
    elements(place, a, b);
  }

  void elements(const std::string& place, const ir::TensorProto& a, const ir::TensorProto& b) {
    if (a.has_raw_data && b.has_raw_data && a.raw_data.text() == b.raw_data.text()) return;
    try {
      const Difference found =
          compare(Value(ir::to_tensor(a)), Value(ir::to_tensor(b)),
                  {.relative = options_.relative, .absolute = options_.absolute});
      if (!found.agree) add(Kind::changed, place, text_of(a), found.reason);
    } catch (const Error& error) {
      // What is no sound tensor can still be the same message.
      if (wire::print(a) != wire::print(b)) add(Kind::changed, place, "", error.what());
    }
  }

  const DiffOptions& options_;
  DiffResult result_;
};

}  // namespace

DiffResult diff(const ir::Model& first, const ir::Model& second, const DiffOptions& options) {
  if (!(options.relative >= 0) || !(options.absolute >= 0))
    fail(ErrorCode::bad_input, "tolerances must not be negative; got {} relative and {} absolute",
         options.relative, options.absolute);
  Differ differ(options);
  differ.messages("", first, second);
  return differ.take();
}

}  // namespace sardonyx
