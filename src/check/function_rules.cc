// Rules of model-local functions.
#include <algorithm>
#include <functional>

#include "check/context.h"
#include "check/cycles.h"
#include "ir/instantiate.h"
#include "ir/walk.h"

namespace sardonyx::check {
namespace {

constexpr size_t max_functions = 10000;

std::string shown_name(const ir::Function& function) {
  const std::string_view domain = ir::canonical_domain(function.domain);
  std::string name = fmt::format("{}{}{}", domain, domain.empty() ? "" : ".", function.name);
  if (!function.overload.empty()) name += ":" + function.overload;
  return name;
}

Where place_of(const ir::Function& function, std::string& storage) {
  storage = fmt::format("function '{}'", shown_name(function));
  return {.root = storage};
}

std::tuple<std::string_view, std::string_view, std::string_view> key_of(const ir::Function& f) {
  return {ir::canonical_domain(f.domain), f.name, f.overload};
}

// Each node of the body and of all graphs in it, once.
void for_each_node(const ir::Function& function,
                   const std::function<void(const ir::Node&)>& visit) {
  std::unordered_set<const ir::Graph*> seen;
  ir::walk(function,
           {.enter =
                [&](const ir::WalkPlace& place) {
                  return !place.graph || seen.insert(place.graph).second;
                },
            .node = [&](const ir::WalkPlace&, const ir::Node& node, size_t) { visit(node); }});
}

int64_t version_in(const ir::Function& function, std::string_view domain) {
  return ir::imported_version(function.opset_imports, domain);
}

// Parameters that an operator of the body requires and that have no default.
std::vector<std::string_view> needed_parameters(const Context& context,
                                                const ir::Function& function) {
  std::vector<std::string_view> needed;
  for_each_node(function, [&](const ir::Node& node) {
    const schema::Signature* signature = schema::find(
        node.domain, node.op_type, version_in(function, node.domain), context.options.more);
    if (!signature) return;
    for (const ir::Attribute& attribute : node.attributes) {
      if (attribute.ref_attr_name.empty()) continue;
      const schema::Attribute* formal = signature->attribute(attribute.name);
      const bool declared = std::ranges::find(function.attributes, attribute.ref_attr_name) !=
                            function.attributes.end();
      if (formal && formal->required && declared) needed.push_back(attribute.ref_attr_name);
    }
  });
  std::ranges::sort(needed);
  needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
  return needed;
}

void check_names(Context& context, const Where& where, const std::vector<std::string>& names,
                 std::string_view what) {
  std::unordered_set<std::string_view> seen;
  for (const std::string& name : names) {
    const Where place = where.in(fmt::format("{} '{}'", what, name));
    if (name.empty()) context.report("F-10", place, "", "it has a name; it is empty");
    if (!seen.insert(name).second) {
      context.report("F-10", place, "rename one", "the function has two {}s of this name", what);
    }
  }
}

void check_parameters(Context& context, const Where& where, const ir::Function& function) {
  std::unordered_set<std::string_view> seen;
  const auto note = [&](const std::string& name) {
    if (seen.insert(name).second) return;
    context.report("F-12", where.in(fmt::format("attribute '{}'", name)), "keep one",
                   "the function declares it twice");
  };
  for (const std::string& name : function.attributes) note(name);
  for (const ir::Attribute& attribute : function.attribute_protos) {
    note(attribute.name);
    check_attribute(context, {function.opset_imports, &function},
                    where.in(fmt::format("attribute '{}'", attribute.name)), attribute);
  }
  if (!function.attribute_protos.empty()) {
    context.report("F-13", where, "set ir_version to 9 or more",
                   "defaults of attributes came with IR version 9; the model says {}",
                   context.ir_version);
  }
}

// An output is a value of the body, or an input.
void check_outputs(Context& context, const Where& where, const ir::Function& function) {
  std::unordered_set<std::string_view> defined(function.inputs.begin(), function.inputs.end());
  for (const ir::Node& node : function.nodes) {
    defined.insert(node.outputs.begin(), node.outputs.end());
  }
  for (const std::string& output : function.outputs) {
    if (output.empty() || defined.contains(output)) continue;
    context.report("F-11", where.in(fmt::format("output '{}'", output)), "",
                   "no node of the function computes it, nor is it an input");
  }
}

void check_imports(Context& context, const Where& where, const ir::Function& function) {
  std::unordered_map<std::string_view, int64_t> seen;
  for (const ir::OperatorSetId& import : function.opset_imports) {
    const std::string_view domain = ir::canonical_domain(import.domain);
    const Where place =
        where.in(fmt::format("opset_import '{}'", domain.empty() ? "ai.onnx" : domain));
    check_version_range(context, place, import.version);
    const auto [before, is_new] = seen.emplace(domain, import.version);
    if (is_new) continue;
    if (before->second == import.version) {
      context.report.at_most_warning("F-16", place, "remove one", "the domain is imported twice");
    } else {
      context.report.not_fatal("F-16", place, "the highest version binds; remove the others",
                               "the domain is imported with the versions {} and {}", before->second,
                               import.version);
    }
  }
}

void check_function(Context& context, const ir::Function& function) {
  Report& report = context.report;
  std::string storage;
  const Where where = place_of(function, storage);
  if (function.name.empty()) report("F-04", where, "", "a function has a name; it is empty");
  if (schema::newest(function.domain, function.name)) {
    report("F-19", where, "rename it",
           "the standard has an operator of this name; the function takes its place");
  }
  const auto needs = [&](bool has, RuleId rule, int version, std::string_view what) {
    if (!has || context.ir_version >= version) return;
    report(rule, where, fmt::format("set ir_version to {} or more", version),
           "{} came with IR version {}; the model says {}", what, version, context.ir_version);
  };
  needs(!function.overload.empty(), "D-24", 10, "overload");
  needs(!function.value_info.empty(), "M-25", 10, "value_info of functions");
  needs(!function.metadata_props.empty(), "MP-03", 10, "metadata of functions");
  check_distinct_keys(context, "F-22", where, function.metadata_props);
  check_names(context, where, function.inputs, "input");
  check_names(context, where, function.outputs, "output");
  check_parameters(context, where, function);
  check_imports(context, where, function);
  check_outputs(context, where, function);
  check_body(context, {function.opset_imports, &function}, function);
}

// Which functions each calls, by their numbers in the model.
std::vector<std::vector<size_t>> calls(const Context& context) {
  const std::vector<ir::Function>& functions = context.model.functions;
  std::vector<std::vector<size_t>> next(functions.size());
  for (size_t i = 0; i < functions.size(); ++i) {
    for_each_node(functions[i], [&](const ir::Node& node) {
      const ir::Function* called = called_function(context, node);
      if (called) next[i].push_back(static_cast<size_t>(called - functions.data()));
    });
  }
  return next;
}

// The longest chain of calls where there are no cycles: components come callees first.
size_t call_depth(const std::vector<std::vector<size_t>>& next,
                  const std::vector<size_t>& component) {
  std::vector<size_t> order(next.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](size_t i) { return component[i]; });
  std::vector<size_t> depth(next.size(), 1);
  size_t deepest = 0;
  for (const size_t i : order) {
    for (const size_t callee : next[i]) depth[i] = std::max(depth[i], depth[callee] + 1);
    deepest = std::max(deepest, depth[i]);
  }
  return deepest;
}

void check_calls(Context& context) {
  const std::vector<ir::Function>& functions = context.model.functions;
  const std::vector<std::vector<size_t>> next = calls(context);
  const Cycles cycles = find_cycles(next);
  for (const std::vector<size_t>& cycle : cycles.paths) {
    std::string text, storage;
    for (size_t i = 0; i < std::min<size_t>(cycle.size(), 8); ++i) {
      text += shown_name(functions[cycle[i]]) + " -> ";
    }
    context.report("F-18", place_of(functions[cycle[0]], storage), "",
                   "a function does not call itself; found {}{}", text,
                   shown_name(functions[cycle[0]]));
  }
  if (cycles.paths.empty() &&
      call_depth(next, cycles.component) > static_cast<size_t>(ir::max_call_depth)) {
    context.report("F-28", {.root = "model"}, "inline some of them",
                   "functions call each other at most {} deep", ir::max_call_depth);
  }
}

}  // namespace

const ir::Function* called_function(const Context& context, const ir::Node& node) {
  if (context.functions.empty()) return nullptr;
  const auto found =
      context.functions.find({ir::canonical_domain(node.domain), node.op_type, node.overload});
  return found == context.functions.end() ? nullptr : found->second;
}

void index_functions(Context& context) {
  for (const ir::Function& function : context.model.functions) {
    if (!context.functions.emplace(key_of(function), &function).second) {
      std::string storage;
      context.report("F-03", place_of(function, storage), "rename one or give it an overload",
                     "two functions have this domain, name and overload");
    }
    std::vector<std::string_view> needed = needed_parameters(context, function);
    if (!needed.empty()) context.needed_parameters.emplace(&function, std::move(needed));
  }
}

void check_functions(Context& context) {
  if (context.model.functions.size() > max_functions) {
    context.report("F-28", {.root = "model"}, "", "a model has at most {} functions; found {}",
                   max_functions, context.model.functions.size());
    return;
  }
  for (const ir::Function& function : context.model.functions) check_function(context, function);
  check_calls(context);
}

}  // namespace sardonyx::check
