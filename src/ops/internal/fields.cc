#include "ops/internal/fields.h"

#include <algorithm>

#include "base/fail.h"
#include "ir/origin.h"
#include "sardonyx/error.h"

namespace sardonyx::ops::internal {
namespace {

constexpr int64_t max_items = 1 << 12;  // of a list: more than any pass makes

}  // namespace

std::string to_text(ElementType type) { return std::string(name_of(type)); }

bool from_text(std::string_view text, ElementType& type) {
  const auto found = element_type_named(text);
  if (found) type = *found;
  return found.has_value();
}

const ir::Attribute* FieldReader::take(std::string_view name) {
  const auto& attributes = node_.attributes;
  // They mostly stand in the order of the fields.
  if (next_ < attributes.size() && attributes[next_].name == name) {
    ++taken_;
    return &attributes[next_++];
  }
  const auto found = std::ranges::find(attributes, name, &ir::Attribute::name);
  if (found == attributes.end()) return nullptr;
  ++taken_;
  next_ = static_cast<size_t>(found - attributes.begin()) + 1;
  return &*found;
}

void FieldReader::refuse_missing(std::string_view name) const {
  fail_at(ir::place_of(node_), ErrorCode::internal, "lacks attribute '{}'", name);
}

void FieldReader::refuse_value(const ir::Attribute& attribute) const {
  fail_at(ir::place_of(node_), ErrorCode::internal,
          "attribute '{}' has a value that it cannot have", attribute.name);
}

void FieldReader::require(const ir::Attribute& attribute, ir::AttributeKind kind) const {
  if (attribute.kind == kind) return;
  fail_at(ir::place_of(node_), ErrorCode::internal, "attribute '{}' must be of kind {}; it is {}",
          attribute.name, ir::name_of(kind), ir::name_of(attribute.kind));
}

size_t FieldReader::count_of(const ir::Attribute& attribute) const {
  const int64_t count = integer(attribute);
  if (count < 0 || count > max_items) refuse_value(attribute);
  return static_cast<size_t>(count);
}

int64_t FieldReader::integer(const ir::Attribute& attribute) const {
  require(attribute, ir::AttributeKind::int_);
  return attribute.i.value_or(0);
}

std::string_view FieldReader::text(const ir::Attribute& attribute) const {
  require(attribute, ir::AttributeKind::string);
  return attribute.s ? std::string_view(*attribute.s) : std::string_view();
}

int64_t FieldReader::integer_at(const ir::Attribute& attribute, size_t k, size_t count) const {
  require(attribute, ir::AttributeKind::ints);
  if (attribute.ints.size() != count) refuse_value(attribute);
  return attribute.ints[k];
}

float FieldReader::number_at(const ir::Attribute& attribute, size_t k, size_t count) const {
  require(attribute, ir::AttributeKind::floats);
  if (attribute.floats.size() != count) refuse_value(attribute);
  return attribute.floats[k];
}

std::string_view FieldReader::text_at(const ir::Attribute& attribute, size_t k,
                                      size_t count) const {
  require(attribute, ir::AttributeKind::strings);
  if (attribute.strings.size() != count) refuse_value(attribute);
  return attribute.strings[k];
}

void FieldReader::read(const ir::Attribute& attribute, float& field) const {
  require(attribute, ir::AttributeKind::float_);
  field = attribute.f.value_or(0);
}

void FieldReader::read(const ir::Attribute& attribute, std::string& field) const {
  field = text(attribute);
}

void FieldReader::read(const ir::Attribute& attribute, std::vector<int64_t>& field) const {
  require(attribute, ir::AttributeKind::ints);
  field = attribute.ints;
}

void FieldReader::read(const ir::Attribute& attribute, std::vector<float>& field) const {
  require(attribute, ir::AttributeKind::floats);
  field = attribute.floats;
}

ir::Attribute& FieldWriter::add(std::string_view name, ir::AttributeKind kind) {
  ir::Attribute& made = to_.emplace_back();
  made.name = name;
  made.kind = kind;
  return made;
}

void FieldWriter::put(std::string_view name, int64_t value) {
  add(name, ir::AttributeKind::int_).i = value;
}

void FieldWriter::put(std::string_view name, float value) {
  add(name, ir::AttributeKind::float_).f = value;
}

void FieldWriter::put(std::string_view name, std::string value) {
  add(name, ir::AttributeKind::string).s = std::move(value);
}

void FieldWriter::put(std::string_view name, const std::vector<int64_t>& values) {
  add(name, ir::AttributeKind::ints).ints = values;
}

void FieldWriter::put(std::string_view name, const std::vector<float>& values) {
  add(name, ir::AttributeKind::floats).floats = values;
}

void FieldWriter::Columns::move_to(std::vector<ir::Attribute>& to) {
  for (Column& column : columns_) {
    if (column.is_needed) to.push_back(std::move(column.attribute));
  }
}

bool FieldNames::has(std::string_view name) const {
  return std::ranges::find(names_, name, &Name::text) != names_.end();
}

void refuse_unknown(const ir::Node& node, const FieldNames& names) {
  std::vector<std::string_view> seen;
  for (const ir::Attribute& attribute : node.attributes) {
    if (!names.has(attribute.name))
      fail_at(ir::place_of(node), ErrorCode::internal, "has no attribute '{}'", attribute.name);
    if (std::ranges::find(seen, attribute.name) != seen.end())
      fail_at(ir::place_of(node), ErrorCode::internal, "has attribute '{}' twice", attribute.name);
    seen.push_back(attribute.name);
  }
  fail_at(ir::place_of(node), ErrorCode::internal, "has attributes that nothing reads");
}

}  // namespace sardonyx::ops::internal
