// Rules of attributes by themselves; what an operator asks of them is in node_rules.cc.
#include "check/context.h"

namespace sardonyx::check {
namespace {

using ir::AttributeKind;

// The kinds of which the attribute holds a value.
std::vector<AttributeKind> held_kinds(const ir::Attribute& attribute) {
  std::vector<AttributeKind> kinds;
  const auto note = [&](bool held, AttributeKind kind) {
    if (held) kinds.push_back(kind);
  };
  note(attribute.f.has_value(), AttributeKind::float_);
  note(attribute.i.has_value(), AttributeKind::int_);
  note(attribute.s.has_value(), AttributeKind::string);
  note(attribute.t != nullptr, AttributeKind::tensor);
  note(attribute.g != nullptr, AttributeKind::graph);
  note(attribute.sparse_tensor != nullptr, AttributeKind::sparse_tensor);
  note(attribute.tp != nullptr, AttributeKind::type_proto);
  note(!attribute.floats.empty(), AttributeKind::floats);
  note(!attribute.ints.empty(), AttributeKind::ints);
  note(!attribute.strings.empty(), AttributeKind::strings);
  note(!attribute.tensors.empty(), AttributeKind::tensors);
  note(!attribute.graphs.empty(), AttributeKind::graphs);
  note(!attribute.sparse_tensors.empty(), AttributeKind::sparse_tensors);
  note(!attribute.type_protos.empty(), AttributeKind::type_protos);
  return kinds;
}

// Writers of proto3 leave scalar fields that are 0 or empty in, or out, as they like.
bool is_default_scalar(const ir::Attribute& attribute, AttributeKind kind) {
  switch (kind) {
    case AttributeKind::float_: return *attribute.f == 0;
    case AttributeKind::int_: return *attribute.i == 0;
    case AttributeKind::string: return attribute.s->empty();
    default: return false;
  }
}

bool is_message_kind(AttributeKind kind) {
  return kind == AttributeKind::tensor || kind == AttributeKind::graph ||
         kind == AttributeKind::sparse_tensor || kind == AttributeKind::type_proto;
}

void check_reference(Context& context, const Unit& unit, const Where& where,
                     const ir::Attribute& attribute, bool has_value) {
  Report& report = context.report;
  if (has_value) {
    report("A-12", where, "remove the value", "a reference to an attribute carries no value");
  }
  if (!unit.function) {
    report("A-13", where, "give it a value",
           "references occur in functions only; this refers to '{}'", attribute.ref_attr_name);
    return;
  }
  if (attribute.kind == AttributeKind::undefined) {
    report("A-06", where, "", "a reference says the type of the attribute");
  }
  for (const std::string& name : unit.function->attributes) {
    if (name == attribute.ref_attr_name) return;
  }
  std::vector<std::string_view> names(unit.function->attributes.begin(),
                                      unit.function->attributes.end());
  for (const ir::Attribute& declared : unit.function->attribute_protos) {
    names.push_back(declared.name);
    if (declared.name != attribute.ref_attr_name) continue;
    const AttributeKind kind = declared.effective_kind();
    if (attribute.kind != AttributeKind::undefined && kind != attribute.kind) {
      report("A-14", where, "", "'{}' of the function is {}; this attribute is {}", declared.name,
             name_of(kind), name_of(attribute.kind));
    }
    return;
  }
  report("A-14", where, did_you_mean(closest(attribute.ref_attr_name, names), "declare it"),
         "the function has no attribute '{}'", attribute.ref_attr_name);
}

void check_kind(Context& context, const Where& where, const ir::Attribute& attribute,
                const std::vector<AttributeKind>& held) {
  Report& report = context.report;
  const AttributeKind kind = attribute.kind;
  const auto number = static_cast<int32_t>(kind);
  if (number < 0 || number > static_cast<int32_t>(AttributeKind::type_protos)) {
    report("A-02", where, "", "the type of an attribute is 1 to 14; found {}", number);
    return;
  }
  if (kind == AttributeKind::undefined) {
    report("A-06", where, "", "an attribute says its type; it says none");
    return;
  }
  bool has_own = false;
  for (const AttributeKind other : held) has_own |= other == kind;
  for (const AttributeKind other : held) {
    if (other == kind) continue;
    if (!has_own && !is_default_scalar(attribute, other)) {
      report("A-02", where, "", "the type says {}, the value is {}", name_of(kind), name_of(other));
    } else if (has_own) {
      report("A-04", where, "", "an attribute has one value; found {} and {}", name_of(kind),
             name_of(other));
    }
    return;
  }
  if (is_message_kind(kind) && !has_own) {
    report("A-05", where, "", "the attribute says it is {}, but has none", name_of(kind));
  }
}

void check_values(Context& context, const Where& where, const ir::Attribute& attribute) {
  if (attribute.t) check_tensor(context, where, *attribute.t);
  if (attribute.sparse_tensor) check_sparse_tensor(context, where, *attribute.sparse_tensor);
  if (attribute.tp) check_type(context, where, *attribute.tp, false);
  const auto each = [&](const auto& list, const auto& check) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i]) check(context, where.in(fmt::format("element {}", i)), *list[i]);
    }
  };
  each(attribute.tensors, check_tensor);
  each(attribute.sparse_tensors, check_sparse_tensor);
  each(attribute.type_protos, [](Context& c, const Where& w, const ir::TypeProto& type) {
    check_type(c, w, type, false);
  });
  bool utf8 = !attribute.s || is_utf8(*attribute.s);
  for (const std::string& text : attribute.strings) utf8 = utf8 && is_utf8(text);
  if (!utf8) context.report("A-08", where, "", "strings are UTF-8; this is not");
}

}  // namespace

void check_attribute(Context& context, const Unit& unit, const Where& where,
                     const ir::Attribute& attribute) {
  Report& report = context.report;
  if (attribute.name.empty()) report("A-01", where, "", "an attribute has a name; it is empty");
  check_utf8(context, where, "attribute", attribute.name);
  const std::vector<AttributeKind> held = held_kinds(attribute);
  if (!attribute.ref_attr_name.empty()) {
    check_reference(context, unit, where, attribute, !held.empty());
  } else {
    check_kind(context, where, attribute, held);
  }
  const AttributeKind kind = attribute.effective_kind();
  const bool sparse = kind == AttributeKind::sparse_tensor || kind == AttributeKind::sparse_tensors;
  const bool type = kind == AttributeKind::type_proto || kind == AttributeKind::type_protos;
  const int needed = sparse ? 6 : type ? 8 : 1;
  if (context.ir_version < needed) {
    report("A-10", where, fmt::format("set ir_version to {} or more", needed),
           "attributes of type {} came with IR version {}; the model says {}", name_of(kind),
           needed, context.ir_version);
  }
  check_values(context, where, attribute);
}

}  // namespace sardonyx::check
