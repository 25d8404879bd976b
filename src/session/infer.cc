#include "sardonyx/infer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "base/mapped_file.h"
#include "base/name_map.h"
#include "ir/dim_hash.h"
#include "ir/may_agree.h"
#include "ir/walk.h"
#include "session/custom.h"
#include "session/inferred_model.h"
#include "session/model.h"
#include "session/operator_sets.h"
#include "session/reading.h"
#include "wire/append.h"
#include "wire/outline.h"
#include "wire/write.h"

namespace sardonyx {
namespace {

using State = InferredValue::State;

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

  // What is known is also written into the graph, subgraphs included.
  void main_graph_written(ir::Graph& graph) { report_main(graph, &graph); }
  // Into the bodies of functions goes what holds in all their calls.
  void functions_written(std::vector<ir::Function>& functions) {
    std::unordered_map<const ir::Function*, std::vector<const rewrite::InlinedCall*>> calls;
    for (const rewrite::InlinedCall& call : inferred_.calls) calls[call.function].push_back(&call);
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
    const auto list_value = [&](const std::string& name) { list(label, name, inner); };
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

  ir::TypeProto type_in_all(std::span<const rewrite::InlinedCall* const> calls,
                            const std::string& value) const {
    std::optional<ir::TypeProto> type;
    for (const rewrite::InlinedCall* call : calls) {
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

  void write(ir::Function& function, std::span<const rewrite::InlinedCall* const> calls) const {
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

  void list(const std::string& label, const std::string& name, const ir::Graph* inner) {
    InferredValue& value = inference_.values.emplace_back();
    value.graph = label;
    value.name = name;
    describe(value, inner);
  }

  void describe(InferredValue& value, const ir::Graph* inner) {
    const std::string& name = value.name;
    const infer::Known* known = inferred_.find_in(inner, name);
    if (known != nullptr && known->type.is_tensor() && known->type.shape)
      return describe(known->type, value);
    const ir::ValueType resolved = known ? inferred_.resolved(known->type) : ir::ValueType();
    value.state = inferred_.state(inner, name, resolved);
    value.element = resolved.element;
    value.type = resolved.to_string();
    if (resolved.shape) list_sizes(*resolved.shape, value);
  }

  // Of a tensor of known rank, as nearly all are.
  void describe(const ir::ValueType& type, InferredValue& value) {
    value.element = type.element;
    if (!describe_numbers(type, value)) {
      value.state = list_sizes(*type.shape, value);
      text_ = name_of(type.element);
      char before = '[';
      for (const std::string& size : *value.shape) {
        text_.append(1, before).append(size);
        before = ',';
      }
      value.type = text_ += ']';
    }
    if (type.element == ElementType::undefined) value.state = State::partial;
  }

  // Of a few sizes that are all numbers, as most are; false: of others.
  static bool describe_numbers(const ir::ValueType& type, InferredValue& value) {
    constexpr size_t most = 8, digits = 20, longest_name = 64;
    const ir::Dims& sizes = *type.shape;
    if (sizes.size() > most || !std::ranges::all_of(sizes, &ir::Dim::is_constant)) return false;
    std::array<char, longest_name + most*(digits + 1) + 2> text;
    const std::string_view name = name_of(type.element);
    char* end = text.data() + name.copy(text.data(), longest_name);
    *end++ = '[';
    std::vector<std::string>& texts = value.shape.emplace();
    texts.reserve(sizes.size());
    for (const ir::Dim& size : sizes) {
      if (!texts.empty()) *end++ = ',';
      char* const start = end;
      const int64_t number = *size.value();
      if (number >= 0 && number <= 9) {
        *end++ = static_cast<char>('0' + number);
      } else {
        end = std::to_chars(start, start + digits, number).ptr;
      }
      texts.emplace_back(start, end);
    }
    *end++ = ']';
    value.type = std::string(text.data(), end);
    value.state = State::known;
    return true;
  }

  // The texts of a tensor's sizes, and how much is known of them all.
  State list_sizes(std::span<const ir::Dim> sizes, InferredValue& value) {
    std::vector<std::string>& texts = value.shape.emplace();
    texts.reserve(sizes.size());
    State state = State::known;
    for (const ir::Dim& dim : sizes) {
      if (dim.is_constant()) {
        std::array<char, 20> digits;
        const auto written =
            std::to_chars(digits.data(), digits.data() + digits.size(), *dim.value());
        texts.emplace_back(digits.data(), written.ptr);
        continue;
      }
      const Size& size = size_of(dim);
      texts.push_back(size.text);
      state = std::max(state, size.state);
    }
    return state;
  }

  // What is said of a size that is no number. Few sizes stand in many types.
  struct Size {
    std::string text;
    State state;
  };
  const Size& size_of(const ir::Dim& dim) {
    const auto [place, is_new] = sizes_.try_emplace(dim);
    Size& size = place->second;
    if (!is_new) return size;
    const ir::Dim resolved = inferred_.symbols.resolved(dim);
    size = {resolved.to_string(), inferred_.state(resolved)};
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
      } else if (!known.value && (dim.value || !dim.param || dim.param->empty())) {
        dim.value.reset();
        dim.param = known.param;
      }
    }
  }

  const InferredModel& inferred_;
  Inference& inference_;
  std::unordered_map<ir::Dim, Size, ir::DimHash> sizes_;
  std::unordered_set<int> noted_;
  // Of the lowered graphs: the nodes that make their values.
  std::unordered_map<const ir::Graph*, NameMap<const ir::Node*>> makers_;
  std::string text_;  // of the type at hand: its memory serves the next
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

// Infers the model and writes what is known into it.
Inference infer_into(ir::Model& model, const InferOptions& options,
                     const ops::CustomTable& custom) {
  constexpr int64_t functions_have_value_info = 10;
  const size_t own_functions = model.functions.size();
  add_operator_sets(model, read_operator_sets(options.operator_sets));
  InferredModel inferred;
  inferred.keep_nodes = false;
  infer_model(model, options, custom, inferred);
  Inference inference;
  Reporter reporter(inferred, inference);
  reporter.main_graph_written(*model.graph);
  if (model.ir_version.value_or(0) >= functions_have_value_info)
    reporter.functions_written(model.functions);
  report_findings(inferred, options, inference);
  model.functions.erase(model.functions.begin() + static_cast<std::ptrdiff_t>(own_functions),
                        model.functions.end());
  return inference;
}

Inference infer_only(const ir::Model& model, const InferOptions& options,
                     const ops::CustomTable& custom) {
  InferredModel inferred;
  inferred.keep_nodes = false;
  infer_model(model, options, custom, inferred);
  Inference inference;
  Reporter(inferred, inference).main_graph(*model.graph);
  report_findings(inferred, options, inference);
  return inference;
}

// The main graph's nodes on their way from the file to inference, with a list of what they make.
class ListedNodes : public ir::NodeSource {
 public:
  ListedNodes(wire::Outline& outline, std::vector<InferredValue>& values)
      : outline_(outline), values_(values) {
    const std::vector<ir::ValueInfo>& inputs = outline.model.graph->inputs;
    values_.reserve(inputs.size() + outline.size());
    for (const ir::ValueInfo& input : inputs) values_.emplace_back().name = input.name;
  }

  size_t size() const override { return outline_.size(); }
  ir::Node* next() override {
    ir::Node* node = outline_.next();
    if (node == nullptr) return nullptr;
    for (const std::string& name : node->outputs) {
      if (!name.empty()) values_.emplace_back().name = name;
    }
    if (has_graphs(*node)) keep(*node);
    return node;
  }
  // Those with subgraphs: what finds and names these.
  const std::vector<ir::Node>& holders() const { return holders_; }

 private:
  void keep(const ir::Node& node) {
    ir::Node& kept = holders_.emplace_back();
    kept.op_type = node.op_type;
    kept.domain = node.domain;
    kept.name = node.name;
    kept.outputs = node.outputs;
    for (const ir::Attribute& attribute : node.attributes) {
      if (ir::has_graphs(attribute)) kept.attributes.push_back(attribute);
    }
  }

  wire::Outline& outline_;
  std::vector<InferredValue>& values_;
  std::vector<ir::Node> holders_;
};

// Whether an attribute says nothing of types.
bool is_unread(std::string_view domain, std::string_view op_type, std::string_view attribute) {
  const ops::Operator* op = ops::find_operator(domain, op_type);
  if (op == nullptr || op->upgrade != nullptr || !op->infer_reads) return false;
  return std::ranges::find(*op->infer_reads, attribute) == op->infer_reads->end();
}

// Infers a file whose nodes are read one after another. Nullopt where that doesn't do: what
// has to be said of it then is said by reading all first.
std::optional<Inference> infer_in_passing(const MappedFile& file, const InferOptions& options) {
  if (form_of(file.path()) != ModelForm::binary || !options.operator_sets.empty())
    return std::nullopt;
  try {
    wire::Outline outline(file);
    if (outline.model.functions.empty()) outline.leave_out(is_unread);
    Inference inference;
    ListedNodes nodes(outline, inference.values);
    InferredModel inferred;
    inferred.keep_nodes = false;
    infer_model(outline.model, options,
                custom_table(options.custom_operators.get(), options.libraries), inferred, &nodes);
    Reporter(inferred, inference).main_graph_listed(nodes.holders());
    report_findings(inferred, options, inference);
    return inference;
  } catch (const Error&) {
    return std::nullopt;
  }
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
  const MappedFile file(path);
  if (std::optional<Inference> inference = infer_in_passing(file, options))
    return std::move(*inference);
  ir::Model model = read_model_file(file);
  add_operator_sets(model, read_operator_sets(options.operator_sets));
  return infer_only(model, options,
                    custom_table(options.custom_operators.get(), options.libraries));
}

Inference infer_types(const Model& model, const InferOptions& options) {
  return infer_only(model.implementation().model, options, model.implementation().custom);
}

Inference infer_file(const std::string& path, const std::string& output,
                     const InferOptions& options) {
  const MappedFile file(path);
  ir::Model model = read_model_file(file);
  if (has_external_data(model) && folder_at(path) != folder_at(output)) {
    fail_at(output, ErrorCode::bad_input,
            "the model has external data beside it and can only be written to its own folder, {}",
            folder_of(path));
  }
  Inference inference =
      infer_into(model, options, custom_table(options.custom_operators.get(), options.libraries));
  for (ir::ValueInfo& info : model.graph->inputs) {
    if (!info.type || !info.type->shape) continue;
    for (ir::Dimension& dim : info.type->shape->dims) {
      const auto found = dim.param ? options.sizes.find(*dim.param) : options.sizes.end();
      if (found == options.sizes.end()) continue;
      dim.value = found->second;
      dim.param.reset();
    }
  }
  wire::write_model(model, output, &file);
  return inference;
}

namespace {

// What can only be said by changing bytes of the file: declarations that know less.
int64_t count_left_out(const ir::Model& model, const ir::Model& typed) {
  const auto differ = [](const std::vector<ir::ValueInfo>& a, const std::vector<ir::ValueInfo>& b) {
    int64_t count = 0;
    for (size_t i = 0; i < a.size() && i < b.size(); ++i)
      count += wire::write_value_info(a[i]) != wire::write_value_info(b[i]);
    return count;
  };
  return differ(model.graph->value_info, typed.graph->value_info) +
         differ(model.graph->outputs, typed.graph->outputs);
}

}  // namespace

Inference infer_in_place(const std::string& path, const InferOptions& options) {
  if (!options.sizes.empty()) {
    fail_at(path, ErrorCode::bad_input,
            "sizes for named dimensions change what the file declares; adding to it cannot");
  }
  if (form_of(path) != ModelForm::binary)
    fail_at(path, ErrorCode::unsupported, "only a file in the binary form can be added to");
  const MappedFile file(path, MappedFile::Access::append);
  const uint64_t size = file.bytes().size();
  const ir::Model model = read_model_file(file);
  ir::Model typed = model;
  Inference inference =
      infer_into(typed, options, custom_table(options.custom_operators.get(), options.libraries));
  const size_t before = model.graph->value_info.size();
  const auto added = std::span<const ir::ValueInfo>(typed.graph->value_info).subspan(before);
  if (!added.empty() && !wire::can_append(size)) {
    wire::write_model(typed, path, &file);
    return inference;
  }
  const size_t written = wire::append_value_info(file.descriptor(), path, size, added);
  const int64_t left = count_left_out(model, typed) + static_cast<int64_t>(added.size() - written);
  if (left > 0) {
    inference.findings.push_back(
        {false, path,
         fmt::format("{} values are declared already with less than was inferred; adding to the "
                     "file cannot change that, writing it anew (-o) does",
                     left)});
  }
  return inference;
}

}  // namespace sardonyx
