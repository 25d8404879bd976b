#include "sardonyx/infer.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/fail.h"
#include "ir/walk.h"
#include "session/custom.h"
#include "session/inferred_model.h"
#include "session/model.h"
#include "session/reading.h"
#include "wire/external.h"
#include "wire/write.h"

namespace sardonyx {
namespace {

using State = InferredValue::State;

// Small integer tensors may be shapes: they are read where their file is there.
void read_small_tensors(ir::Model& model) {
  constexpr int64_t most = 1024;
  wire::ExternalData external(model.folder);
  for (ir::TensorProto& tensor : model.graph->initializers) {
    if (!tensor.is_external()) continue;
    int64_t count = 1;
    for (const int64_t dim : tensor.dims) {
      if (dim < 0 || __builtin_mul_overflow(count, dim, &count)) count = most + 1;
    }
    const ElementType type = tensor.element_type();
    if (count > most || (type != ElementType::int64 && type != ElementType::int32)) continue;
    try {
      tensor.raw_data = external.bytes_of(tensor, static_cast<uint64_t>(byte_size(type, count)));
    } catch (const Error&) {
      continue;  // its type is enough
    }
    tensor.has_raw_data = true;
    tensor.data_location = 0;
    tensor.external_data.clear();
  }
}

bool has_external_data(const ir::Model& model) {
  bool found = false;
  const auto look = [&](const ir::TensorProto& tensor) { found |= tensor.is_external(); };
  ir::walk(model, {.enter =
                       [&](const ir::WalkPlace& place) {
                         if (place.graph) {
                           for (const auto& tensor : place.graph->initializers) look(tensor);
                         }
                         return true;
                       },
                   .node =
                       [&](const ir::WalkPlace&, const ir::Node& node, size_t) {
                         for (const ir::Attribute& attribute : node.attributes) {
                           if (attribute.t) look(*attribute.t);
                           for (const auto& tensor : attribute.tensors) look(*tensor);
                         }
                       }});
  return found;
}

// Matches the values of the model's graphs with those of their lowered forms. Nodes keep the names
// of their outputs when they are carried up, which finds a subgraph's lowered form.
class Reporter {
 public:
  Reporter(const InferredModel& inferred, Inference& inference)
      : inferred_(inferred), inference_(inference) {}

  using Types = std::function<ir::ValueType(const std::string&)>;

  void main_graph(ir::Graph& graph) {
    report(graph, inferred_.graph, {},
           [&](const std::string& name) { return inferred_.type(name); });
  }

 private:
  // Lists the graph's values and writes what is known of them into it.
  void report(ir::Graph& graph, const ir::Graph& lowered, const std::string& label,
              const Types& type_of) {
    std::set<std::string_view> outputs;
    for (const ir::ValueInfo& output : graph.outputs) outputs.insert(output.name);
    std::unordered_map<std::string, size_t> declared;
    for (size_t i = 0; i < graph.value_info.size(); ++i) declared[graph.value_info[i].name] = i;
    for (const ir::ValueInfo& input : graph.inputs) list(label, input.name, type_of(input.name));
    for (const ir::Node& node : graph.nodes) {
      for (const std::string& name : node.outputs) {
        if (name.empty()) continue;
        const ir::ValueType type = type_of(name);
        list(label, name, type);
        if (outputs.contains(name) || !type.is_known()) continue;
        const auto [at, fresh] = declared.emplace(name, graph.value_info.size());
        if (fresh) graph.value_info.emplace_back().name = name;
        write(graph.value_info[at->second], type);
      }
    }
    for (ir::ValueInfo& output : graph.outputs) write(output, type_of(output.name));
    for (ir::Node& node : graph.nodes) subgraphs(node, lowered, label);
  }

  void subgraphs(ir::Node& node, const ir::Graph& lowered, const std::string& label) {
    const auto holder = std::find_if(
        lowered.nodes.begin(), lowered.nodes.end(),
        [&](const auto& n) { return n.op_type == node.op_type && n.outputs == node.outputs; });
    if (holder == lowered.nodes.end()) return;
    const auto go = [&](std::shared_ptr<const ir::Graph>& graph, const ir::Graph* inner,
                        const std::string& attribute) {
      const auto types = inner ? inferred_.subgraphs.find(inner) : inferred_.subgraphs.end();
      if (types == inferred_.subgraphs.end()) return;
      auto copy = std::make_shared<ir::Graph>(*graph);
      report(
          *copy, *inner,
          fmt::format("{}{}{} {}", label, label.empty() ? "" : ", ", ir::describe(node), attribute),
          [&](const std::string& name) {
            const auto found = types->second.find(name);
            return found == types->second.end() ? ir::ValueType()
                                                : inferred_.resolved(found->second);
          });
      graph = std::move(copy);
    };
    for (ir::Attribute& attribute : node.attributes) {
      if (!attribute.g && attribute.graphs.empty()) continue;
      const ir::Attribute* made = holder->find(attribute.name);
      if (made == nullptr) continue;
      if (attribute.g) go(attribute.g, made->g.get(), attribute.name);
      for (size_t i = 0; i < attribute.graphs.size() && i < made->graphs.size(); ++i)
        go(attribute.graphs[i], made->graphs[i].get(), attribute.name);
    }
  }

  void list(const std::string& label, const std::string& name, const ir::ValueType& type) {
    InferredValue& value = inference_.values.emplace_back();
    value.graph = label;
    value.name = name;
    value.state = state_of(type);
    value.type = type.to_string();
    value.element = type.element;
    if (!type.shape) return;
    value.shape.emplace();
    for (const ir::Dim& dim : *type.shape) {
      value.shape->push_back(dim.to_string());
      std::vector<int> ids;
      dim.collect_symbols(ids);
      for (const int id : ids) note(id);
    }
  }

  void note(int id) {
    const ir::Symbol& symbol = inferred_.symbols[id];
    if (!symbol.decided_by_run || !noted_.insert(id).second) return;
    InferredUnknown& unknown = inference_.unknowns.emplace_back();
    unknown.name = symbol.name;
    if (symbol.upper) unknown.bound = inferred_.symbols.resolved(*symbol.upper).to_string();
    const auto found = inferred_.unknowns.find(id);
    if (found == inferred_.unknowns.end()) {
      unknown.reason = "the model leaves it open";
    } else {
      unknown.node = found->second.node;
      unknown.reason = found->second.reason;
    }
  }

  // Numbers and names that the model declares stay; what it leaves out is filled in.
  static void write(ir::ValueInfo& info, const ir::ValueType& type) {
    if (!type.is_known()) return;
    const ir::TypeProto made = ir::to_proto(type);
    if (!info.type || info.type->kind != made.kind || info.type->elem_type != made.elem_type) {
      info.type = made;
      return;
    }
    if (!info.type->nested) info.type->nested = made.nested;
    if (!made.shape) return;
    if (!info.type->shape || info.type->shape->dims.size() != made.shape->dims.size()) {
      info.type->shape = made.shape;
      return;
    }
    for (size_t d = 0; d < made.shape->dims.size(); ++d) {
      ir::Dimension& dim = info.type->shape->dims[d];
      const ir::Dimension& known = made.shape->dims[d];
      if (known.value && dim.value != known.value) {
        dim.value = known.value;
        dim.param.reset();
      } else if (!known.value && (dim.value || !dim.param || dim.param->empty())) {
        dim.value.reset();
        dim.param = known.param;
      }
    }
  }

  const InferredModel& inferred_;
  Inference& inference_;
  std::set<int> noted_;
};

void report_findings(const InferredModel& inferred, const InferOptions& options,
                     Inference& inference) {
  inference.findings = inferred.problems;
  for (const infer::Disagreement& found : inferred.disagreements) {
    inference.findings.push_back(
        {found.contradiction && options.strict, found.node,
         found.contradiction
             ? fmt::format(
                   "the model declares '{}' as {}; the node makes {}; correct or remove the "
                   "declaration",
                   found.value, found.declared, found.inferred)
             : fmt::format("the model declares '{}' as {}, which holds for some inputs only: the "
                           "node makes {}",
                           found.value, found.declared, found.inferred)});
  }
  for (int id = 0; id < inferred.symbols.size(); ++id) {
    const ir::Symbol& symbol = inferred.symbols[id];
    const ir::Dim* by = symbol.decided_by_run ? nullptr : inferred.symbols.explanation(id);
    if (by != nullptr)
      inference.names.push_back({symbol.name, inferred.symbols.resolved(*by).to_string()});
  }
}

// Infers the model and writes what is known into it.
Inference infer_into(ir::Model& model, const InferOptions& options,
                     const ops::CustomTable& custom) {
  if (!model.graph) fail_at(model.path, ErrorCode::invalid_model, "the model has no graph");
  InferredModel inferred;
  {
    ir::Model readable = model;
    read_small_tensors(readable);
    infer_model(readable, options, custom, inferred);
  }
  Inference inference;
  Reporter(inferred, inference).main_graph(*model.graph);
  report_findings(inferred, options, inference);
  return inference;
}

std::filesystem::path folder_at(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::weakly_canonical(folder_of(path), ignored);
}

}  // namespace

int64_t Inference::count(State state) const {
  return std::count_if(values.begin(), values.end(),
                       [&](const InferredValue& value) { return value.state == state; });
}

bool Inference::has_errors() const {
  return std::any_of(findings.begin(), findings.end(),
                     [](const InferFinding& finding) { return finding.is_error; });
}

Inference infer_types(const std::string& path, const InferOptions& options) {
  ir::Model model = read_model_file(path);
  return infer_into(model, options,
                    custom_table(options.custom_operators.get(), options.libraries));
}

Inference infer_types(const Model& model, const InferOptions& options) {
  ir::Model copy = model.implementation().model;
  return infer_into(copy, options, model.implementation().custom);
}

Inference infer_file(const std::string& path, const std::string& output,
                     const InferOptions& options) {
  ir::Model model = read_model_file(path);
  if (folder_at(path) != folder_at(output) && has_external_data(model)) {
    fail_at(output, ErrorCode::bad_input,
            "the model has external data beside it and can only be written to its own folder, {}",
            folder_of(path));
  }
  Inference inference =
      infer_into(model, options, custom_table(options.custom_operators.get(), options.libraries));
  if (model.graph) {
    for (auto* list : {&model.graph->inputs}) {
      for (ir::ValueInfo& info : *list) {
        if (!info.type || !info.type->shape) continue;
        for (ir::Dimension& dim : info.type->shape->dims) {
          const auto found = dim.param ? options.sizes.find(*dim.param) : options.sizes.end();
          if (found == options.sizes.end()) continue;
          dim.value = found->second;
          dim.param.reset();
        }
      }
    }
  }
  wire::write_model(model, output);
  return inference;
}

}  // namespace sardonyx
