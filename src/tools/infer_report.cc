#include "tools/infer_report.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/name_map.h"
#include "ir/dim_hash.h"
#include "ir/dimension.h"
#include "ir/may_agree.h"
#include "ir/walk.h"

namespace sardonyx {
namespace {

using State = InferredValue::State;

// Matches the values of the model's graphs with those of their lowered forms. Nodes keep the names
// of their outputs when they are upgraded, which finds a subgraph's lowered form.
class Reporter {
 public:
  Reporter(const InferredModel& inferred, InferredTexts& texts, Inference& inference)
      : inferred_(inferred), texts_(texts), inference_(inference) {
    texts.belong_to(inference);
  }

  // What is known is also written into the graph, subgraphs included.
  void main_graph_written(ir::Graph& graph) { report_main(graph, &graph); }
  // Into the bodies of functions goes what holds in all their calls.
  void functions_written(std::vector<ir::Function>& functions) {
    std::unordered_map<const ir::Function*, std::vector<const lower::InlinedCall*>> calls;
    for (const lower::InlinedCall& call : inferred_.calls) calls[call.function].push_back(&call);
    for (ir::Function& function : functions) {
      const auto found = calls.find(&function);
      if (found != calls.end()) write(function, found->second);
    }
  }
  void main_graph(const ir::Graph& graph) { report_main(graph, nullptr); }
  // The same where the values of the main graph are listed already, by their names; `holders`: its
  // nodes with subgraphs.
  void main_graph_listed(const std::vector<ir::Node>& holders) {
    for (InferredValue& value : inference_.values) describe(value, nullptr);
    for (const ir::Node& node : holders) subgraphs(node, nullptr, inferred_.graph, {});
  }

 private:
  void report_main(const ir::Graph& graph, ir::Graph* into) {
    report(graph, into, inferred_.graph, nullptr, {});
  }

  // Lists the graph's values; `into` is null or the graph itself, to be written into; `inner` its
  // lowered form where it is a subgraph.
  void report(const ir::Graph& graph, ir::Graph* into, const ir::Graph& lowered,
              const ir::Graph* inner, const std::string& label) {
    const std::string_view of = label.empty() ? std::string_view() : texts_.keep(label);
    const auto list_value = [&](std::string_view name) { list(of, name, inner); };
    size_t values = inference_.values.size() + graph.inputs.size();
    for (const ir::Node& node : graph.nodes) values += node.outputs.size();
    if (inner == nullptr) inference_.values.reserve(values);
    for (const ir::ValueInfo& input : graph.inputs) list_value(input.name);
    for (const ir::Node& node : graph.nodes) {
      for (const std::string& name : node.outputs) {
        if (!name.empty()) list_value(name);
      }
    }
    if (into != nullptr) write(*into, inner);
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      subgraphs(graph.nodes[i], into ? &into->nodes[i] : nullptr, lowered, label);
  }

  void write(ir::Graph& graph, const ir::Graph* inner) const {
    const auto type_of = [&](const std::string& name) { return inferred_.type_in(inner, name); };
    std::unordered_set<std::string_view> outputs;
    for (const ir::ValueInfo& output : graph.outputs) outputs.insert(output.name);
    // Those that are declared stay where they are, and their names, until all are found.
    const size_t before = graph.value_info.size();
    NameMap<size_t> declared;
    declared.reserve(std::max(before, graph.nodes.size()));
    for (size_t i = 0; i < before; ++i) {
      const auto [at, is_new] = declared.emplace(graph.value_info[i].name, i);
      if (!is_new) *at = i;
    }
    std::vector<ir::ValueInfo> added;
    added.reserve(graph.nodes.size() - std::min(graph.nodes.size(), before));
    for (const ir::Node& node : graph.nodes) {
      for (const std::string& name : node.outputs) {
        if (name.empty() || outputs.contains(name)) continue;
        const ir::ValueType type = type_of(name);
        if (!type.is_known()) continue;
        const auto [at, fresh] = declared.emplace(name, before + added.size());
        if (fresh) added.emplace_back().name = name;
        write(*at < before ? graph.value_info[*at] : added[*at - before], type);
      }
    }
    if (before == 0) {
      graph.value_info = std::move(added);
    } else {
      std::ranges::move(added, std::back_inserter(graph.value_info));
    }
    for (ir::ValueInfo& output : graph.outputs) write(output, type_of(output.name));
    for (ir::ValueInfo& input : graph.inputs) write(input, type_of(input.name));
  }

  // The node of a lowered graph that has these outputs.
  const ir::Node* lowered_form(const ir::Node& node, const ir::Graph& lowered) {
    const auto [place, is_new] = makers_.try_emplace(&lowered);
    auto& makers = place->second;
    if (is_new) makers.reserve(lowered.nodes.size());
    for (size_t i = 0; is_new && i < lowered.nodes.size(); ++i) {
      for (const std::string& name : lowered.nodes[i].outputs)
        makers.emplace(name, &lowered.nodes[i]);
    }
    for (const std::string& name : node.outputs) {
      const ir::Node* const* found = name.empty() ? nullptr : makers.find(name);
      if (found == nullptr) continue;
      const ir::Node& maker = **found;
      return maker.op_type == node.op_type && maker.outputs == node.outputs ? &maker : nullptr;
    }
    return nullptr;
  }

  void subgraphs(const ir::Node& node, ir::Node* into, const ir::Graph& lowered,
                 const std::string& label) {
    if (!has_graphs(node)) return;
    const ir::Node* holder = lowered_form(node, lowered);
    if (holder == nullptr) return;
    const auto go = [&](const ir::Graph& graph, std::shared_ptr<const ir::Graph>* written,
                        const ir::Graph* inner, const std::string& attribute) {
      if (inner == nullptr || !inferred_.subgraphs.contains(inner)) return;
      std::string name = label;
      if (!label.empty()) name += ", ";
      name.append(ir::describe(node)).append(1, ' ').append(attribute);
      if (written == nullptr) return report(graph, nullptr, *inner, inner, name);
      auto copy = std::make_shared<ir::Graph>(graph);
      report(*copy, copy.get(), *inner, inner, name);
      *written = std::move(copy);
    };
    for (size_t a = 0; a < node.attributes.size(); ++a) {
      const ir::Attribute& attribute = node.attributes[a];
      ir::Attribute* written = into ? &into->attributes[a] : nullptr;
      if (!attribute.g && attribute.graphs.empty()) continue;
      const ir::Attribute* made = holder->find(attribute.name);
      if (made == nullptr) continue;
      if (attribute.g)
        go(*attribute.g, written ? &written->g : nullptr, made->g.get(), attribute.name);
      for (size_t i = 0; i < attribute.graphs.size() && i < made->graphs.size(); ++i) {
        go(*attribute.graphs[i], written ? &written->graphs[i] : nullptr, made->graphs[i].get(),
           attribute.name);
      }
    }
  }

  // What holds of a function's values in all calls.
  static void join(ir::TypeProto& type, const ir::TypeProto& other) {
    if (type.kind != other.kind || type.elem_type != other.elem_type) {
      type = {};
      return;
    }
    if (!type.shape || !other.shape || type.shape->dims.size() != other.shape->dims.size()) {
      type.shape.reset();
    } else {
      for (size_t d = 0; d < type.shape->dims.size(); ++d) {
        ir::Dimension& dim = type.shape->dims[d];
        const ir::Dimension& with = other.shape->dims[d];
        if (dim.value != with.value || dim.param != with.param) dim = {};
      }
    }
    if (type.nested && other.nested) {
      ir::TypeProto nested = *type.nested;
      join(nested, *other.nested);
      type.nested = std::make_shared<const ir::TypeProto>(std::move(nested));
    }
  }

  ir::TypeProto type_in_all(std::span<const lower::InlinedCall* const> calls,
                            const std::string& value) const {
    std::optional<ir::TypeProto> type;
    for (const lower::InlinedCall* call : calls) {
      const std::string* name = call->names.find(value);
      if (name == nullptr || name->empty()) continue;
      const ir::ValueType known = inferred_.type_in(call->graph, *name);
      if (!known.is_known()) return {};
      ir::TypeProto made = ir::to_proto(known);
      if (!type) {
        type = std::move(made);
      } else {
        join(*type, made);
      }
    }
    return type.value_or(ir::TypeProto());
  }

  void write(ir::Function& function, std::span<const lower::InlinedCall* const> calls) const {
    std::unordered_map<std::string, size_t> declared;
    for (size_t i = 0; i < function.value_info.size(); ++i)
      declared[function.value_info[i].name] = i;
    for (const ir::Node& node : function.nodes) {
      for (const std::string& name : node.outputs) {
        const ir::TypeProto type = name.empty() ? ir::TypeProto() : type_in_all(calls, name);
        if (type.kind == ir::TypeProto::Kind::none) continue;
        const auto [at, fresh] = declared.emplace(name, function.value_info.size());
        if (fresh) function.value_info.emplace_back().name = name;
        write(function.value_info[at->second], type);
      }
    }
  }

  void list(std::string_view label, std::string_view name, const ir::Graph* inner) {
    texts_.charge(sizeof(InferredValue));
    InferredValue& value = inference_.values.emplace_back();
    value.graph = label;
    value.name = texts_.keep(name);
    describe(value, inner);
  }

  void describe(InferredValue& value, const ir::Graph* inner) {
    const infer::ValueFacts* known = inferred_.find_in(inner, value.name);
    if (known != nullptr && known->type.is_tensor() && known->type.shape) {
      value.element = known->type.element;
      value.state = list_sizes(*known->type.shape, value);
      if (value.element == ElementType::undefined) value.state = State::partial;
      return;
    }
    const ir::ValueType resolved = known ? inferred_.resolved(known->type) : ir::ValueType();
    value.state = inferred_.state(inner, value.name, resolved);
    value.element = resolved.element;
    value.other_type = texts_.keep(resolved.to_string());
    if (resolved.shape) list_sizes(*resolved.shape, value);
  }

  // The sizes of a tensor, and how much is known of them all.
  State list_sizes(std::span<const ir::Dim> dims, InferredValue& value) {
    const std::span<InferredSize> sizes = texts_.sizes(dims.size());
    State state = State::known;
    for (size_t d = 0; d < dims.size(); ++d) {
      const int64_t number = dims[d].value().value_or(-1);
      if (number >= 0) {
        new (&sizes[d]) InferredSize{number, {}};
        continue;
      }
      const Size& size = size_of(dims[d]);
      new (&sizes[d]) InferredSize{-1, size.text};
      state = std::max(state, size.state);
    }
    value.shape = sizes;
    return state;
  }

  // What is said of a size that is no number. Few sizes stand in many types.
  struct Size {
    std::string_view text;
    State state;
  };
  const Size& size_of(const ir::Dim& dim) {
    const auto [place, is_new] = sizes_.try_emplace(dim);
    Size& size = place->second;
    if (!is_new) return size;
    const ir::Dim resolved = inferred_.symbols.resolved(dim);
    size = {texts_.keep(resolved.to_string()), inferred_.state(resolved)};
    std::vector<int> ids;
    resolved.collect_symbols(ids);
    for (const int id : ids) note(id);
    return size;
  }

  void note(int id) {
    if (!noted_.insert(id).second) return;
    const ir::Symbol* decided = inferred_.decided_by(id);
    if (decided == nullptr) {
      const ir::Symbol& symbol = inferred_.symbols[id];
      if (symbol.decided_by_run)  // an element of an input
        inference_.names.push_back({symbol.name, inferred_.unknowns.at(id)->reason});
      return;
    }
    InferredUnknown& unknown = inference_.unknowns.emplace_back();
    unknown.name = inferred_.symbols[id].name;
    if (decided->upper) unknown.bound = inferred_.symbols.resolved(*decided->upper).to_string();
    const auto found = inferred_.unknowns.find(decided->id);
    if (found == inferred_.unknowns.end()) {
      unknown.reason = decided->decided_by_run ? "the model leaves it open"
                                               : "only the model's declaration names it";
    } else {
      unknown.node = found->second->node;
      unknown.reason = found->second->reason;
    }
  }

  // Numbers and names that the model declares stay; what it leaves out is filled in.
  static void write(ir::ValueInfo& info, const ir::ValueType& type) {
    if (type.is_known()) write(info, ir::to_proto(type));
  }

  static void write(ir::ValueInfo& info, ir::TypeProto made) {
    if (!info.type) {
      info.type = std::move(made);
    } else {
      write(*info.type, std::move(made));
    }
  }

  static void write(ir::TypeProto& type, ir::TypeProto made) {
    if (type.kind != made.kind || type.elem_type != made.elem_type) {
      type = std::move(made);
      return;
    }
    // Types of items, whose sizes need not agree: only what can't be is replaced.
    if (made.nested && (!type.nested || type.nested->kind == ir::TypeProto::Kind::none ||
                        !ir::may_agree(*type.nested, *made.nested)))
      type.nested = made.nested;
    if (!made.shape) return;
    if (!type.shape || type.shape->dims.size() != made.shape->dims.size()) {
      type.shape = made.shape;
      return;
    }
    for (size_t d = 0; d < made.shape->dims.size(); ++d) {
      ir::Dimension& dim = type.shape->dims[d];
      const ir::Dimension& known = made.shape->dims[d];
      if (known.value && dim.value != known.value) {
        dim.value = known.value;
        dim.param.reset();
      } else if (!known.value && ir::declared_name(dim).empty()) {
        dim.value.reset();
        dim.param = known.param;
      }
    }
  }

  const InferredModel& inferred_;
  InferredTexts& texts_;
  Inference& inference_;
  std::unordered_map<ir::Dim, Size, ir::DimHash> sizes_;
  std::unordered_set<int> noted_;
  // Of the lowered graphs: the nodes that make their values.
  std::unordered_map<const ir::Graph*, NameMap<const ir::Node*>> makers_;
};

void report_findings(const InferredModel& inferred, const InferOptions& options,
                     Inference& inference) {
  inference.findings = inferred.problems;
  for (const infer::Disagreement& found : inferred.disagreements) {
    inference.findings.push_back(
        {found.contradiction && options.strict, found.node,
         found.contradiction
             ? fmt::format("{} declares '{}' as {}; {} {}; correct or remove the declaration",
                           found.where, found.value, found.declared, found.source, found.inferred)
             : fmt::format("{} declares '{}' as {}, which holds for some inputs only: {} {}",
                           found.where, found.value, found.declared, found.source,
                           found.inferred)});
  }
  for (int id = 0; id < inferred.symbols.size(); ++id) {
    const ir::Symbol& symbol = inferred.symbols[id];
    const ir::Dim* by = symbol.decided_by_run ? nullptr : inferred.symbols.explanation(id);
    if (by != nullptr)
      inference.names.push_back({symbol.name, inferred.symbols.resolved(*by).to_string()});
  }
}

}  // namespace

void report(const InferredModel& inferred, const InferOptions& options, const ir::Graph& graph,
            Inference& inference) {
  InferredTexts texts;
  Reporter(inferred, texts, inference).main_graph(graph);
  report_findings(inferred, options, inference);
}

void report_listed(const InferredModel& inferred, const InferOptions& options,
                   const std::vector<ir::Node>& holders, InferredTexts& texts,
                   Inference& inference) {
  Reporter(inferred, texts, inference).main_graph_listed(holders);
  report_findings(inferred, options, inference);
}

void report_written(const InferredModel& inferred, const InferOptions& options, ir::Model& model,
                    Inference& inference) {
  constexpr int64_t functions_have_value_info = 10;
  InferredTexts texts;
  Reporter reporter(inferred, texts, inference);
  reporter.main_graph_written(*model.graph);
  if (model.ir_version.value_or(0) >= functions_have_value_info)
    reporter.functions_written(model.functions);
  report_findings(inferred, options, inference);
}

}  // namespace sardonyx
