// Rules of nodes: which operator one binds to, and whether it has what the operator asks for.
#include <algorithm>
#include <array>
#include <span>
#include <unordered_set>

#include "check/context.h"

namespace sardonyx::check {
namespace {

std::string_view shown_domain(std::string_view domain) {
  const std::string_view canonical = ir::canonical_domain(domain);
  return canonical.empty() ? "ai.onnx" : canonical;
}

// Before IR version 3 there are no imports: everything is of version 1.
int64_t version_of(const Context& context, const Unit& unit, const ir::Node& node) {
  const int64_t version = context.imports.version_for(node, unit.imports);
  if (version == 0 && context.ir_version < 3 && ir::canonical_domain(node.domain).empty()) return 1;
  return version;
}

void report_missing_import(Context& context, const Unit& unit, const Where& where,
                           const ir::Node& node, bool is_function) {
  const std::string_view domain = shown_domain(node.domain);
  if (!context.first_time(
          fmt::format("import {} {}", static_cast<const void*>(&unit.imports), domain))) {
    return;
  }
  Report& report = context.report;
  const std::string_view advice = "add it to opset_import";
  const bool runs_anyway = is_function || !schema::is_standard_domain(domain);
  if (is_function && !unit.function) {
    report("F-06", where, advice, "the domain '{}' of the function is not imported", domain);
  } else if (unit.function && runs_anyway) {
    report.at_most_warning("F-16", where, advice, "the function does not import the domain '{}'",
                           domain);
  } else if (unit.function) {
    report("F-16", where, advice, "the function does not import the domain '{}'", domain);
  } else if (ir::canonical_domain(domain).empty()) {
    report("M-06", where, advice,
           "the model does not import ai.onnx, so its operators have no version");
  } else {
    report("O-04", where, advice, "the domain '{}' is not imported", domain);
  }
}

Versions versions_of(const Context& context, const ir::Node& node) {
  const Versions versions = schema::versions(node.domain, node.op_type);
  const schema::MoreSignatures* more = context.options.more;
  return versions.empty() && more ? more->versions(node.domain, node.op_type) : versions;
}

void report_unknown_operator(Context& context, const Where& where, const ir::Node& node,
                             int64_t version) {
  Report& report = context.report;
  const std::string_view domain = shown_domain(node.domain);
  const schema::MoreSignatures* more = context.options.more;
  const Versions versions = versions_of(context, node);
  if (!versions.empty()) {
    const schema::Signature& newest = versions.back();
    if (version < versions.front().since) {
      report("O-04", where,
             fmt::format("import version {} or more of {}", versions.front().since, domain),
             "{} exists from version {}; the model imports {}", node.op_type,
             versions.front().since, version);
    } else {
      report("O-04", where, fmt::format("import version {} or less of {}", newest.until, domain),
             "{} is gone after version {}; the model imports {}", node.op_type, newest.until,
             version);
    }
    return;
  }
  if (schema::is_standard_domain(node.domain)) {
    const bool is_new = context.first_time(fmt::format("O-04 {} {}", domain, node.op_type));
    report("O-04", where,
           is_new ? did_you_mean(schema::closest_name(node.domain, node.op_type)) : std::string(),
           "{} version {} has no operator {}", domain, version, node.op_type);
    return;
  }
  std::vector<std::string_view> names;
  if (more) names = more->names(node.domain);
  if (names.empty() && context.functions.empty() && !context.options.unknown_domains_are_errors &&
      context.options.profile == Profile::runnable)
    return;  // D-25 is no error
  for (const auto& [key, function] : context.functions) {
    if (std::get<0>(key) == ir::canonical_domain(node.domain)) names.push_back(std::get<1>(key));
  }
  const bool own_domain = !names.empty();
  const std::string advice = did_you_mean(closest(node.op_type, names));
  if (context.options.unknown_domains_are_errors || own_domain) {
    report("O-04", where, advice, "neither an operator set nor a function defines {}.{}", domain,
           node.op_type);
  } else if (context.first_time(fmt::format("D-25 {} {}", domain, node.op_type))) {
    report("D-25", where, "", "nothing is known of {}.{}; its nodes are not checked", domain,
           node.op_type);
  }
}

// ---- inputs and outputs

struct Side {
  const std::vector<std::string>& values;
  std::string_view what;  // "input"
  size_t least, most;
};

// The number of values without empty ones after the last parameter.
size_t without_empty_tail(const Side& side) {
  size_t count = side.values.size();
  while (count > side.most && side.values[count - 1].empty()) --count;
  return count;
}

std::string advice_on_extra(const Context& context, const Where& where, const Side& side,
                            const schema::Signature& signature) {
  const Versions versions = versions_of(context, *where.node);
  return side.what == "input" ? advice_on_input(versions, signature, side.most)
                              : advice_on_output(versions, signature, side.most);
}

template <class FormalAt>
void check_side(Context& context, const Where& where, const Side& side,
                const schema::Signature& signature, FormalAt formal_at) {
  Report& report = context.report;
  const std::string_view op = where.node->op_type;
  const size_t count = without_empty_tail(side);
  if (count < side.values.size()) {
    report("D-16", where, "remove them", "{} takes at most {} {}s; {} empty ones follow", op,
           side.most, side.what, side.values.size() - count);
  }
  if (count > side.most) {
    report("D-10", where, advice_on_extra(context, where, side, signature),
           "{} has at most {} {}s; found {}", op, side.most, side.what, count);
    return;
  }
  if (count < side.least) {
    const schema::Formal* missing = formal_at(count);
    const bool variadic = missing && missing->option == schema::FormalOption::variadic;
    report(
        variadic ? RuleId("D-11") : RuleId("D-10"), where,
        missing && side.what == "input"
            ? advice_on_missing_input(versions_of(context, *where.node), signature, missing->name)
            : std::string(),
        "{} has at least {} {}{}; found {}{}", op, side.least, side.what,
        side.least == 1 ? "" : "s", count,
        missing ? fmt::format(", so '{}' is missing", missing->name) : std::string());
  }
  for (size_t i = 0; i < count; ++i) {
    const schema::Formal* formal = formal_at(i);
    if (!side.values[i].empty() || !formal || formal->option != schema::FormalOption::single)
      continue;
    report("D-15", where.in(fmt::format("{} {}", side.what, i)), "",
           "the {} '{}' of {} is required; it is left out", side.what, formal->name, op);
  }
}

// ---- attributes

// Lists with one entry for each axis or value: that one is left out says what no entries would.
bool lies_empty(const schema::Attribute& formal, const ir::Attribute& attribute) {
  constexpr auto lists = std::to_array<std::string_view>(
      {"dilations", "kernel_shape", "output_padding", "output_shape", "pads", "scan_input_axes",
       "scan_input_directions", "scan_output_axes", "scan_output_directions", "strides"});
  return formal.kind == ir::AttributeKind::ints && attribute.ints.empty() &&
         attribute.ref_attr_name.empty() && std::ranges::find(lists, formal.name) != lists.end();
}

void check_signature_attributes(Context& context, const Where& where,
                                const schema::Signature& signature) {
  Report& report = context.report;
  const ir::Node& node = *where.node;
  for (const ir::Attribute& attribute : node.attributes) {
    if (attribute.name.empty() || attribute.name.starts_with("__")) continue;
    const Where place = where.in("attribute", attribute.name);
    const schema::Attribute* formal = signature.attribute(attribute.name);
    if (!formal) {
      std::vector<std::string_view> names;
      for (const schema::Attribute& known : signature.attributes) names.push_back(known.name);
      std::string advice =
          advice_on_attribute(versions_of(context, node), signature, attribute.name);
      if (advice.empty()) advice = did_you_mean(closest(attribute.name, names), "remove it");
      report("D-23", place, advice, "{} of version {} has no such attribute", node.op_type,
             signature.since);
      continue;
    }
    if (lies_empty(*formal, attribute)) {
      report.lax("D-10", place, "leave it out",
                 "it has an entry for each axis or value; the list is empty");
    }
    const ir::AttributeKind kind = attribute.effective_kind();
    const auto wanted = static_cast<ir::AttributeKind>(formal->kind);
    if (kind == ir::AttributeKind::undefined || kind == wanted) continue;
    // Releases 1.0 and 1.1 declared some lists of ai.onnx.ml as one number.
    if (kind == ir::AttributeKind::int_ && wanted == ir::AttributeKind::ints) {
      report.not_fatal("D-10", place, "", "it is of type ints; found int");
    } else {
      report("D-10", place,
             advice_on_kind(versions_of(context, node), signature, attribute.name, kind),
             "it is of type {}; found {}", name_of(wanted), name_of(kind));
    }
  }
  for (const schema::Attribute& formal : signature.attributes) {
    if (!formal.required || node.find(formal.name)) continue;
    const Where place = where.in("attribute", formal.name);
    if (formal.name == "consumed_inputs") {  // a hint that releases 1.0 and 1.1 did not know
      report.not_fatal("D-22", place, "give it", "{} requires it; it is missing", node.op_type);
    } else {
      const std::string advice =
          advice_on_missing_attribute(versions_of(context, node), signature, formal.name);
      report("D-22", place, advice.empty() ? "give it" : advice, "{} requires it; it is missing",
             node.op_type);
    }
  }
}

void check_signature(Context& context, const Unit& unit, const Where& where,
                     const schema::Signature& signature) {
  Report& report = context.report;
  const ir::Node& node = *where.node;
  if (signature.deprecated) {
    const schema::Signature* newest = schema::newest(node.domain, node.op_type);
    report("O-13", where,
           newest && !newest->deprecated ? fmt::format("import version {} or more", newest->since)
                                         : "",
           "{} is deprecated since version {}", node.op_type, signature.since);
    return;
  }
  if (signature.experimental) {
    if (signature.extra && ir::canonical_domain(node.domain).empty()) {
      const auto versions = schema::versions(node.domain, node.op_type);
      const auto first = std::ranges::find(versions, false, &schema::Signature::extra);
      if (first != versions.end()) {
        report("O-12", where, fmt::format("import version {} or more", first->since),
               "{} is no part of the standard before version {}", node.op_type, first->since);
        return;
      }
      report("O-12", where, "", "{} was an experiment; the standard has no such operator any more",
             node.op_type);
      return;
    }
    report("O-11", where, "", "{} is experimental and may change", node.op_type);
  }
  const Side inputs{node.inputs, "input", static_cast<size_t>(signature.min_inputs),
                    static_cast<size_t>(signature.max_inputs)};
  const Side outputs{node.outputs, "output", static_cast<size_t>(signature.min_outputs),
                     static_cast<size_t>(signature.max_outputs)};
  check_side(context, where, inputs, signature, [&](size_t i) { return signature.input(i); });
  check_side(context, where, outputs, signature, [&](size_t i) { return signature.output(i); });
  check_signature_attributes(context, where, signature);
  if (!unit.function || &unit.imports == &context.model.opset_imports) return;
  const int64_t outside = version_of(context, {context.model.opset_imports}, node);
  if (outside > 0 &&
      schema::find(node.domain, node.op_type, outside, context.options.more) != &signature) {
    report("F-17", where, "import the same version in both",
           "{} means version {} here and another under the model's version {} of {}", node.op_type,
           signature.since, outside, shown_domain(node.domain));
  }
}

// ---- calls of model-local functions

constexpr size_t max_compared = 1000;

// What the function declares, with and without a default.
std::unordered_set<std::string_view> parameters_of(const ir::Function& function) {
  std::unordered_set<std::string_view> names(function.attributes.begin(),
                                             function.attributes.end());
  for (const ir::Attribute& declared : function.attribute_protos) names.insert(declared.name);
  return names;
}

void check_call(Context& context, const Where& where, const ir::Function& function) {
  Report& report = context.report;
  const ir::Node& node = *where.node;
  const auto check_count = [&](size_t found, size_t most, std::string_view what) {
    if (found > most) {
      report("F-24", where, "", "the function {} has {} {}s; the call has {}", function.name, most,
             what, found);
    }
  };
  check_count(node.inputs.size(), function.inputs.size(), "input");
  check_count(node.outputs.size(), function.outputs.size(), "output");
  std::unordered_set<std::string_view> given;
  const auto declared = node.attributes.empty() ? given : parameters_of(function);
  for (const ir::Attribute& attribute : node.attributes) {
    given.insert(attribute.name);
    if (attribute.name.starts_with("__") || declared.contains(attribute.name)) continue;
    std::vector<std::string_view> names(function.attributes.begin(), function.attributes.end());
    for (const ir::Attribute& other : function.attribute_protos) names.push_back(other.name);
    if (names.size() > max_compared) names.clear();  // comparing takes time for each
    report("F-25", where.in("attribute", attribute.name),
           did_you_mean(closest(attribute.name, names), "remove it"),
           "the function {} declares no such attribute", function.name);
  }
  const auto needed = context.needed_parameters.find(&function);
  if (needed == context.needed_parameters.end()) return;
  for (const std::string_view parameter : needed->second) {
    if (given.contains(parameter)) continue;
    report("F-15", where.in("attribute", parameter), "give it",
           "an operator in the function {} requires it, and it has no default", function.name);
  }
}

// ---- annotations

void check_annotations(Context& context, const Where& where) {
  const ir::Node& node = *where.node;
  const auto needs = [&](bool has, int version, std::string_view what) {
    if (!has || context.ir_version >= version) return;
    context.report("D-24", where, fmt::format("set ir_version to {} or more", version),
                   "{} came with IR version {}; the model says {}", what, version,
                   context.ir_version);
  };
  needs(!node.overload.empty(), 10, "overload");
  needs(!node.metadata_props.empty(), 10, "metadata of nodes");
  needs(!node.device_configurations.empty(), 11, "device_configurations");
  check_distinct_keys(context, "D-24", where, node.metadata_props);
  if (!node.device_configurations.empty()) context.has_device_annotations = true;
}

// Of an operator whose signature is unknown. One from outside may do something with its inputs.
void check_has_outputs(Context& context, const Where& where, const ir::Node& node) {
  if (!node.outputs.empty()) return;
  constexpr auto message = "a node has outputs; this one has none";
  if (schema::is_standard_domain(node.domain) || node.inputs.empty()) {
    context.report("D-07", where, "", message);
  } else {
    context.report.at_most_warning("D-07", where, "", message);
  }
}

void bind(Context& context, const Unit& unit, const Where& where) {
  const ir::Node& node = *where.node;
  const int64_t version = version_of(context, unit, node);
  const ir::Function* function = called_function(context, node);
  if (version == 0) report_missing_import(context, unit, where, node, function != nullptr);
  if (function) return check_call(context, where, *function);
  if (!node.overload.empty()) {
    context.report("F-23", where, "", "no function of the model has the overload '{}'",
                   node.overload);
  }
  if (version < 1) return;
  check_known_version(context, unit, where, node, version);
  const schema::Signature* signature =
      schema::find(node.domain, node.op_type, version, context.options.more);
  if (signature) {
    check_signature(context, unit, where, *signature);
  } else {
    report_unknown_operator(context, where, node, version);
    check_has_outputs(context, where, node);
  }
}

// The names of the attributes before one, asked of each in turn. A few are compared faster than
// they are hashed.
class NamesBefore {
 public:
  explicit NamesBefore(std::span<const ir::Attribute> attributes) : attributes_(attributes) {}

  bool has(const ir::Attribute& attribute) {
    if (attributes_.size() > few) return !names_.insert(attribute.name).second;
    const auto before = attributes_.first(static_cast<size_t>(&attribute - attributes_.data()));
    return std::ranges::find(before, attribute.name, &ir::Attribute::name) != before.end();
  }

 private:
  static constexpr size_t few = 16;
  std::span<const ir::Attribute> attributes_;
  std::unordered_set<std::string_view> names_;
};

}  // namespace

void check_node(Context& context, const Unit& unit, const Where& where) {
  const ir::Node& node = *where.node;
  NamesBefore names(node.attributes);
  for (const ir::Attribute& attribute : node.attributes) {
    const Where place = where.in("attribute", attribute.name);
    if (!attribute.name.empty() && names.has(attribute)) {
      context.report("A-16", place, "remove one", "the node has two attributes of this name");
    }
    check_attribute(context, unit, place, attribute);
  }
  check_annotations(context, where);
  if (node.op_type.empty()) {
    context.report("D-01", where, "", "a node says its operator; op_type is empty");
    return;
  }
  bind(context, unit, where);
}

}  // namespace sardonyx::check
