// How internal operators are declared: a struct for each, which lists its attributes once.
//
//   struct ScaleShift {
//     static constexpr std::string_view name = "ScaleShift";
//     static constexpr std::array inputs = {"X"sv, "factors"sv, "terms"sv};  // "B?" may be absent
//     static constexpr std::array outputs = {"Y"sv};
//     enum Input { x, factors, terms };                                     // their positions
//
//     FusedActivation activation;                                           // attributes
//
//     template <class Visit, class... Self>
//     static void fields(Visit&& visit, Self&... self) {
//       FusedActivation::fields(visit, self.activation...);
//     }
//     bool operator==(const ScaleShift&) const = default;
//   };
//
// `fields` calls visit(name, field of each self) for each attribute that may be left out, when it
// is as the struct has it by default; visit.required(name, …) for one that may not; and
// visit.list(name, …) for a list of structs with fields of their own, each of which becomes an
// attribute that has a value for every item. Reading, writing and comparing come from that list
// (ops/internal/node.h).
//
// A field is a bool, a number, a string, an ElementType, an enumeration or another type that has a
// text, a list of these, or an std::optional, which is absent where it is empty.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/internal_domain.h"
#include "ir/model.h"
#include "sardonyx/element_type.h"

namespace sardonyx::ops::internal {

// Of all internal operators.
inline constexpr std::string_view domain = ir::internal_domain;

// --- Types that have a text ----------------------------------------------------------------------

// What the values of an enumeration are called: specialised with a list
// `static constexpr std::pair<std::string_view, E> list[]` by who declares fields of that type.
template <class E>
struct EnumNames;

template <class E>
concept NamedEnum = std::is_enum_v<E> && requires {
  EnumNames<E>::list;
};

template <NamedEnum E>
std::string to_text(E value) {
  for (const auto& [name, known] : EnumNames<E>::list) {
    if (known == value) return std::string(name);
  }
  return {};
}
// False where the text stands for nothing.
template <NamedEnum E>
bool from_text(std::string_view text, E& value) {
  for (const auto& [name, known] : EnumNames<E>::list) {
    if (name != text) continue;
    value = known;
    return true;
  }
  return false;
}

std::string to_text(ElementType type);
bool from_text(std::string_view text, ElementType& type);

template <class T>
concept HasText = !std::same_as<T, std::string> && requires(const T& value, T& to) {
  { to_text(value) } -> std::convertible_to<std::string>;
  { from_text(std::string_view(), to) } -> std::same_as<bool>;
};

// Whether two values of a field are written as the same attribute: of floats, the same bits.
template <class T>
bool same(const T& a, const T& b) {
  if constexpr (std::same_as<T, float>) {
    return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
  } else {
    return a == b;
  }
}

// --- Reading -------------------------------------------------------------------------------------

// Takes fields from the attributes of a node. Throws Error (internal) with the node's place where
// an attribute is missing, is of another kind, or says what its field cannot be.
class FieldReader {
 public:
  explicit FieldReader(const ir::Node& node) : node_(node) {}

  template <class T>
  void operator()(std::string_view name, T& field) {
    if (const ir::Attribute* attribute = take(name)) read(*attribute, field);
  }
  template <class T>
  void required(std::string_view name, T& field) {
    const ir::Attribute* attribute = take(name);
    if (attribute == nullptr) refuse_missing(name);
    read(*attribute, field);
  }
  template <class T>
  void list(std::string_view name, std::vector<T>& items) {
    const ir::Attribute* attribute = take(name);
    if (attribute == nullptr) return;
    items.assign(count_of(*attribute), T{});
    Columns columns(*this, items.size());
    for (T& item : items) {
      columns.begin();
      T::fields(columns, item);
    }
  }

  // Whether every attribute of the node has been taken.
  bool took_all() const { return taken_ == node_.attributes.size(); }

 private:
  // Attributes that have a value for each item of a list.
  class Columns {
   public:
    Columns(FieldReader& reader, size_t items) : reader_(reader), items_(items) {}
    // Another item.
    void begin() { ++item_, column_ = 0; }
    template <class T>
    void operator()(std::string_view name, T& field) {
      if (const ir::Attribute* attribute = column(name)) {
        reader_.read_item(*attribute, item_ - 1, items_, field);
      }
    }
    template <class T>
    void required(std::string_view name, T& field) {
      const ir::Attribute* attribute = column(name);
      if (attribute == nullptr) reader_.refuse_missing(name);
      reader_.read_item(*attribute, item_ - 1, items_, field);
    }

   private:
    const ir::Attribute* column(std::string_view name) {
      if (item_ == 1) columns_.push_back(reader_.take(name));
      return columns_[column_++];
    }
    FieldReader& reader_;
    size_t items_, item_ = 0, column_ = 0;
    std::vector<const ir::Attribute*> columns_;
  };

  const ir::Attribute* take(std::string_view name);
  size_t count_of(const ir::Attribute& attribute) const;
  void require(const ir::Attribute& attribute, ir::AttributeKind kind) const;
  [[noreturn]] void refuse_missing(std::string_view name) const;
  [[noreturn]] void refuse_value(const ir::Attribute& attribute) const;
  int64_t integer(const ir::Attribute& attribute) const;
  std::string_view text(const ir::Attribute& attribute) const;
  // Place k of the list, which must have `count` values.
  int64_t integer_at(const ir::Attribute& attribute, size_t k, size_t count) const;
  float number_at(const ir::Attribute& attribute, size_t k, size_t count) const;
  std::string_view text_at(const ir::Attribute& attribute, size_t k, size_t count) const;

  template <std::integral T>
  void check_integer(const ir::Attribute& attribute, int64_t value, T& field) const {
    if (!std::in_range<T>(value)) refuse_value(attribute);
    field = static_cast<T>(value);
  }
  void check_integer(const ir::Attribute& attribute, int64_t value, bool& field) const {
    if (value != 0 && value != 1) refuse_value(attribute);
    field = value != 0;
  }

  template <std::integral T>
  void read(const ir::Attribute& attribute, T& field) const {
    check_integer(attribute, integer(attribute), field);
  }
  void read(const ir::Attribute& attribute, float& field) const;
  void read(const ir::Attribute& attribute, std::string& field) const;
  void read(const ir::Attribute& attribute, std::vector<int64_t>& field) const;
  void read(const ir::Attribute& attribute, std::vector<float>& field) const;
  template <HasText T>
  void read(const ir::Attribute& attribute, T& field) const {
    if (!from_text(text(attribute), field)) refuse_value(attribute);
  }
  template <HasText T>
  void read(const ir::Attribute& attribute, std::vector<T>& field) const {
    require(attribute, ir::AttributeKind::strings);
    field.assign(attribute.strings.size(), T{});
    for (size_t i = 0; i < field.size(); ++i) {
      if (!from_text(attribute.strings[i], field[i])) refuse_value(attribute);
    }
  }
  template <class T>
  void read(const ir::Attribute& attribute, std::optional<T>& field) const {
    read(attribute, field.emplace());
  }
  template <size_t n>
  void read(const ir::Attribute& attribute, std::array<bool, n>& field) const {
    for (size_t i = 0; i < n; ++i) check_integer(attribute, integer_at(attribute, i, n), field[i]);
  }

  template <std::integral T>
  void read_item(const ir::Attribute& attribute, size_t k, size_t count, T& field) const {
    check_integer(attribute, integer_at(attribute, k, count), field);
  }
  void read_item(const ir::Attribute& attribute, size_t k, size_t count, float& field) const {
    field = number_at(attribute, k, count);
  }
  template <HasText T>
  void read_item(const ir::Attribute& attribute, size_t k, size_t count, T& field) const {
    if (!from_text(text_at(attribute, k, count), field)) refuse_value(attribute);
  }
  template <size_t n>
  void read_item(const ir::Attribute& attribute, size_t k, size_t count,
                 std::array<int64_t, n>& field) const {
    for (size_t i = 0; i < n; ++i) field[i] = integer_at(attribute, k * n + i, count * n);
  }

  const ir::Node& node_;
  size_t taken_ = 0, next_ = 0;
};

// --- Writing -------------------------------------------------------------------------------------

// Makes attributes of fields, in the order of their list, leaving out those that are `usual`.
class FieldWriter {
 public:
  explicit FieldWriter(std::vector<ir::Attribute>& to) : to_(to) {}

  template <class T>
  void operator()(std::string_view name, const T& field, const T& usual) {
    if (!same(field, usual)) put(name, field);
  }
  template <class T>
  void required(std::string_view name, const T& field, const T&) {
    put(name, field);
  }
  template <class T>
  void list(std::string_view name, const std::vector<T>& items, const std::vector<T>& usual) {
    if (items == usual) return;
    put(name, static_cast<int64_t>(items.size()));
    const T usual_item{};
    Columns columns;
    for (const T& item : items) {
      columns.begin();
      T::fields(columns, item, usual_item);
    }
    columns.move_to(to_);
  }

 private:
  class Columns {
   public:
    void begin() { column_ = 0; }
    template <class T>
    void operator()(std::string_view name, const T& field, const T& usual) {
      add(name, field, !same(field, usual));
    }
    template <class T>
    void required(std::string_view name, const T& field, const T&) {
      add(name, field, true);
    }
    // Those that are not usual throughout.
    void move_to(std::vector<ir::Attribute>& to);

   private:
    struct Column {
      ir::Attribute attribute;
      bool is_needed = false;
    };
    template <class T>
    void add(std::string_view name, const T& field, bool is_needed) {
      if (column_ == columns_.size()) {
        columns_.emplace_back();
        columns_.back().attribute.name = name;
      }
      Column& column = columns_[column_++];
      column.is_needed |= is_needed;
      append(column.attribute, field);
    }
    std::vector<Column> columns_;
    size_t column_ = 0;
  };

  template <std::integral T>
  static void append(ir::Attribute& to, T value) {
    to.kind = ir::AttributeKind::ints;
    to.ints.push_back(static_cast<int64_t>(value));
  }
  static void append(ir::Attribute& to, float value) {
    to.kind = ir::AttributeKind::floats;
    to.floats.push_back(value);
  }
  template <HasText T>
  static void append(ir::Attribute& to, const T& value) {
    to.kind = ir::AttributeKind::strings;
    to.strings.push_back(to_text(value));
  }
  template <size_t n>
  static void append(ir::Attribute& to, const std::array<int64_t, n>& values) {
    for (const int64_t value : values) append(to, value);
  }

  ir::Attribute& add(std::string_view name, ir::AttributeKind kind);
  void put(std::string_view name, int64_t value);
  void put(std::string_view name, float value);
  void put(std::string_view name, std::string value);
  void put(std::string_view name, const std::vector<int64_t>& values);
  void put(std::string_view name, const std::vector<float>& values);
  template <std::integral T>
  void put(std::string_view name, T value) {
    put(name, static_cast<int64_t>(value));
  }
  template <HasText T>
  void put(std::string_view name, const T& value) {
    put(name, to_text(value));
  }
  template <HasText T>
  void put(std::string_view name, const std::vector<T>& values) {
    ir::Attribute& made = add(name, ir::AttributeKind::strings);
    for (const T& value : values) made.strings.push_back(to_text(value));
  }
  template <class T>
  void put(std::string_view name, const std::optional<T>& value) {
    if (value) put(name, *value);
  }
  template <size_t n>
  void put(std::string_view name, const std::array<bool, n>& values) {
    ir::Attribute& made = add(name, ir::AttributeKind::ints);
    made.ints.assign(values.begin(), values.end());
  }

  std::vector<ir::Attribute>& to_;
};

// --- Names ---------------------------------------------------------------------------------------

// The names of an operator's attributes; those of its lists' fields too.
class FieldNames {
 public:
  template <class T>
  void operator()(std::string_view name, const T&) {
    names_.push_back({name, false});
  }
  template <class T>
  void required(std::string_view name, const T&) {
    names_.push_back({name, true});
  }
  template <class T>
  void list(std::string_view name, const std::vector<T>&) {
    names_.push_back({name, false});
    const size_t first = names_.size();
    const T item{};
    T::fields(*this, item);
    // An empty list has none of them.
    for (size_t i = first; i < names_.size(); ++i) names_[i].is_required = false;
  }

  struct Name {
    std::string_view text;
    bool is_required;
  };
  const std::vector<Name>& names() const { return names_; }
  bool has(std::string_view name) const;

 private:
  std::vector<Name> names_;
};

// Throws Error (internal): an attribute that no field takes, or that is there twice.
[[noreturn]] void refuse_unknown(const ir::Node& node, const FieldNames& names);

}  // namespace sardonyx::ops::internal
