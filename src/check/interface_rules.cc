// Rules of what a graph shows: name, inputs, outputs, initializers, documentation.
#include "check/context.h"

namespace sardonyx::check {
namespace {

using Kind = ir::TypeProto::Kind;

bool is_main(const ir::WalkPlace& place) { return !place.outer && place.root == "graph"; }

void check_value(Context& context, const ir::WalkPlace& place, const ir::ValueInfo& info,
                 std::string_view what, size_t index) {
  Report& report = context.report;
  const Where here{.graph = &place};
  const Where where =
      info.name.empty() ? here.in(fmt::format("{} {}", what, index)) : here.in(what, info.name);
  if (info.name.empty()) {
    report(place.outer ? RuleId("S-01") : RuleId("N-09"), where, "", "it has a name; it is empty");
  }
  if (!info.metadata_props.empty()) {
    if (context.ir_version < 10) {
      report("MP-03", where, "set ir_version to 10 or more",
             "metadata of values came with IR version 10; the model says {}", context.ir_version);
    }
    check_distinct_keys(context, "MP-03", where, info.metadata_props);
  }
  const bool main = is_main(place);
  const bool is_input = what == "input";
  if (!info.type) {
    constexpr std::string_view message =
        "inputs and outputs of the main graph have types; it has none";
    if (main && is_input) report("G-06", where, "declare it", message);
    if (main && !is_input) report.not_fatal("G-06", where, "declare it", message);
    return;
  }
  check_type(context, where, *info.type, main && is_input);
  if (!main) return;
  const bool is_tensor = info.type->kind == Kind::tensor || info.type->kind == Kind::sparse_tensor;
  if (info.type->kind == Kind::none && !is_input) {
    report.not_fatal("T-13", where, "say what it is", "the type says nothing");
  }
  if (is_tensor && !info.type->shape) {
    report("G-07", where, "declare its rank; single dimensions may stay open",
           "inputs and outputs of the main graph have a rank");
  }
}

// An initializer that is the default of an input.
void check_agreement(Context& context, const Where& where, const ir::TensorProto& tensor,
                     const ir::ValueInfo& input) {
  if (!input.type || input.type->kind != Kind::tensor) return;
  const ir::TypeProto& type = *input.type;
  if (type.elem_type != 0 && type.elem_type != tensor.data_type) {
    context.report("G-17", where, "", "the input of its name is of {}; it is of {}",
                   name_of(type.element_type()), name_of(tensor.element_type()));
  }
  if (!type.shape) return;
  bool agrees = type.shape->dims.size() == tensor.dims.size();
  for (size_t i = 0; agrees && i < tensor.dims.size(); ++i) {
    const std::optional<int64_t>& size = type.shape->dims[i].value;
    agrees = !size || *size < 0 || *size == tensor.dims[i];
  }
  if (!agrees) {
    std::string declared;
    for (const ir::Dimension& dim : type.shape->dims) {
      declared += declared.empty() ? "" : ",";
      declared += dim.value ? std::to_string(*dim.value) : dim.param.value_or("?");
    }
    context.report("G-17", where, "", "the input of its name has shape [{}]; it has {}", declared,
                   to_string(tensor.dims));
  }
}

void check_initializers(Context& context, const ir::WalkPlace& place) {
  const ir::Graph& graph = *place.graph;
  std::unordered_map<std::string_view, const ir::ValueInfo*> inputs;
  for (const ir::ValueInfo& input : graph.inputs) inputs.emplace(input.name, &input);
  size_t constants_as_inputs = 0;
  const Where here{.graph = &place};
  for (const ir::TensorProto& tensor : graph.initializers) {
    const Where where = here.in("initializer", tensor.name);
    if (tensor.name.empty()) {
      context.report("G-10", where, "", "an initializer has a name; it is empty");
    }
    check_tensor(context, where, tensor);
    const auto input = inputs.find(tensor.name);
    if (input == inputs.end()) continue;
    ++constants_as_inputs;
    check_agreement(context, where, tensor, *input->second);
  }
  for (const ir::SparseTensorProto& tensor : graph.sparse_initializers) {
    const Where where = here.in("sparse initializer", tensor.values.name);
    if (tensor.values.name.empty()) {
      context.report("X-30", where, "", "a sparse initializer has a name; it is empty");
    }
    check_sparse_tensor(context, where, tensor);
  }
  if (constants_as_inputs > 0 && is_main(place)) {
    context.report("G-15", here, "", "{} initializers are inputs, too, so callers may replace them",
                   constants_as_inputs);
  }
}

bool has_markup(std::string_view text) {
  for (const std::string_view tag : {"</", "<br", "<p>", "<div", "<table", "<script"}) {
    if (text.find(tag) != text.npos) return true;
  }
  return false;
}

void check_fields_of_versions(Context& context, const Where& where, const ir::Graph& graph) {
  const auto needs = [&](bool has, RuleId rule, int version, std::string_view what) {
    if (!has || context.ir_version >= version) return;
    context.report(rule, where, fmt::format("set ir_version to {} or more", version),
                   "{} came with IR version {}; the model says {}", what, version,
                   context.ir_version);
  };
  needs(!graph.sparse_initializers.empty(), "M-25", 6, "sparse initializers");
  needs(!graph.quantization_annotation.empty(), "M-25", 5, "quantization annotations");
  needs(!graph.metadata_props.empty(), "MP-03", 10, "metadata of graphs");
}

bool is_standard(const ir::Node& node, std::string_view op_type) {
  return node.op_type == op_type && ir::canonical_domain(node.domain).empty();
}

// What an operator gives to and takes from a graph it holds; nothing where it does not say.
struct Arity {
  std::optional<size_t> inputs, outputs;
};

Arity expected_arity(const ir::Node& node, int64_t version) {
  const size_t inputs = node.inputs.size(), outputs = node.outputs.size();
  if (is_standard(node, "If")) return {0, outputs};
  if (is_standard(node, "Loop")) return {std::max<size_t>(inputs, 2), outputs + 1};
  if (is_standard(node, "SequenceMap")) return {inputs, outputs};
  // Scan of opset 8 has an input more, which it keeps to itself.
  if (is_standard(node, "Scan") && version != 0 && inputs > 0) {
    return {version < 9 ? inputs - 1 : inputs, outputs};
  }
  return {};
}

// Up to IR version 3 the inputs of a nested graph may go on after those that its operator gives:
// with its constants.
void check_constants_as_inputs(Context& context, const ir::WalkPlace& place, size_t given) {
  const ir::Graph& graph = *place.graph;
  std::unordered_set<std::string_view> constants;
  for (const ir::TensorProto& tensor : graph.initializers) constants.insert(tensor.name);
  for (const ir::SparseTensorProto& sparse : graph.sparse_initializers) {
    constants.insert(sparse.values.name);
  }
  const Where where{.graph = &place};
  if (graph.inputs.size() < given) {
    context.report("S-09", where, "", "{} gives the graph {} inputs; it has {}",
                   place.holder->op_type, given, graph.inputs.size());
  }
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::string& name = graph.inputs[i].name;
    if (constants.contains(name) != (i < given)) continue;
    const Where input = where.in("input", name);
    if (i < given) {
      context.report("S-09", input, "remove the initializer, or move the input after the others",
                     "{} gives the first {} inputs their values; this is an initializer, too",
                     place.holder->op_type, given);
    } else {
      context.report("S-09", input, "remove it, or add an initializer of its name",
                     "{} gives the graph {} inputs; one after them is a constant",
                     place.holder->op_type, given);
    }
  }
}

}  // namespace

void check_interface(Context& context, const ir::WalkPlace& place) {
  const ir::Graph& graph = *place.graph;
  Report& report = context.report;
  const Where where{.graph = &place};
  if (graph.name.empty()) {
    report("G-05", where, "", "a graph has a name; it is empty");
  } else if (!context.first_time("graph " + graph.name)) {
    report("N-06", where, "", "another graph of the model has this name");
  }
  check_utf8(context, where, "graph", graph.name);
  if (has_markup(graph.doc_string)) {
    report("G-26", where.in("doc_string"), "", "documentation is Markdown without HTML");
  }
  check_distinct_keys(context, "G-27", where, graph.metadata_props);
  check_fields_of_versions(context, where, graph);
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    check_value(context, place, graph.inputs[i], "input", i);
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    check_value(context, place, graph.outputs[i], "output", i);
  }
  check_initializers(context, place);
}

void check_subgraph_arity(Context& context, const Unit& unit, const ir::WalkPlace& place) {
  const Arity expected = expected_arity(*place.holder, ir::opset_of(*place.holder, unit.imports));
  const ir::Graph& graph = *place.graph;
  const Where where{.graph = &place};
  if (expected.inputs && context.ir_version < 4) {
    check_constants_as_inputs(context, place, *expected.inputs);
  } else if (expected.inputs && *expected.inputs != graph.inputs.size()) {
    context.report("S-11", where, "", "{} gives the graph {} inputs; it has {}",
                   place.holder->op_type, *expected.inputs, graph.inputs.size());
  }
  if (expected.outputs && *expected.outputs != graph.outputs.size()) {
    context.report("S-11", where, "", "{} takes {} outputs from the graph; it has {}",
                   place.holder->op_type, *expected.outputs, graph.outputs.size());
  }
}

}  // namespace sardonyx::check
