#include "compose/merge.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "base/fail.h"
#include "compose/extract.h"
#include "compose/rename.h"
#include "ir/may_agree.h"
#include "ir/walk.h"
#include "wire/text_print.h"
#include "wire/write.h"

namespace sardonyx::compose {
namespace {

using FunctionId = std::tuple<std::string_view, std::string_view, std::string_view>;

FunctionId id_of(const ir::Function& function) {
  return {ir::canonical_domain(function.domain), function.name, function.overload};
}

const ir::ValueInfo* find(const std::vector<ir::ValueInfo>& infos, std::string_view name) {
  const auto found = std::ranges::find(infos, name, &ir::ValueInfo::name);
  return found == infos.end() ? nullptr : &*found;
}

std::string listed(const std::vector<ir::ValueInfo>& infos) {
  std::string text;
  for (const ir::ValueInfo& info : infos)
    text += fmt::format("{}'{}'", text.empty() ? "" : ", ", info.name);
  return text;
}

bool calls_any(const ir::Function& function, const std::set<std::string>& names) {
  bool calls = false;
  ir::walk(function, {.node = [&](const ir::WalkPlace&, const ir::Node& node, size_t) {
             calls = calls || names.contains(node.op_type);
           }});
  return calls;
}

// Names of a model's functions that another model calls as operators, having no such function.
std::set<std::string> operators_elsewhere(const ir::Model& model, const ir::Model& other) {
  std::set<FunctionId> defined, theirs;
  for (const ir::Function& function : model.functions) defined.insert(id_of(function));
  for (const ir::Function& function : other.functions) theirs.insert(id_of(function));
  std::set<std::string> names;
  if (defined.empty()) return names;
  const ir::WalkCallbacks look = {.node = [&](const ir::WalkPlace&, const ir::Node& node, size_t) {
    const FunctionId called(ir::canonical_domain(node.domain), node.op_type, node.overload);
    if (defined.contains(called) && !theirs.contains(called)) names.insert(node.op_type);
  }};
  ir::walk(*other.graph, look);
  for (const ir::Function& function : other.functions) ir::walk(function, look);
  return names;
}

// Names of functions of one key that say different things, themselves or by what they call, which
// `clashes` is of already.
std::set<std::string> clashing_functions(const ir::Model& first, const ir::Model& second,
                                         std::set<std::string> clashes) {
  std::map<FunctionId, const ir::Function*> known;
  for (const ir::Function& function : first.functions) known[id_of(function)] = &function;
  std::vector<const ir::Function*> same;
  for (const ir::Function& function : second.functions) {
    const auto found = known.find(id_of(function));
    if (found == known.end()) continue;
    if (wire::write_function(*found->second) == wire::write_function(function)) {
      same.push_back(&function);
    } else {
      clashes.insert(function.name);
    }
  }
  for (size_t before = SIZE_MAX; before != clashes.size();) {
    before = clashes.size();
    std::erase_if(same, [&](const ir::Function* function) {
      const bool differs = clashes.contains(function->name) || calls_any(*function, clashes);
      if (differs) clashes.insert(function->name);
      return differs;
    });
  }
  return clashes;
}

void add_prefix(ir::Model& model, const std::string& prefix, const std::set<std::string>& clashes) {
  if (prefix.empty()) return;
  std::set<std::string> own;
  for (const ir::Function& function : model.functions) {
    if (clashes.contains(function.name)) own.insert(function.name);
  }
  rename(model, prefixed(model, prefix, own));
  model.graph->name = prefix + model.graph->name;
}

class Merging {
 public:
  Merging(ir::Model first, ir::Model second, const MergeOptions& options)
      : first_(std::move(first)), second_(std::move(second)), options_(options) {}

  ir::Model run() {
    if (!first_.graph || !second_.graph)
      fail(ErrorCode::invalid_model, "both models must have a graph");
    if (!first_.training_info.empty() || !second_.training_info.empty())
      fail(ErrorCode::unsupported, "models with training information cannot be merged");
    for (const auto& [output, input] : options_.connections) require_connectable(output, input);
    std::set<std::string> of_one = operators_elsewhere(first_, second_);
    if (!of_one.empty()) require_prefix(options_.first_prefix, "first", *of_one.begin());
    std::set<std::string> of_other = operators_elsewhere(second_, first_);
    if (!of_other.empty()) require_prefix(options_.second_prefix, "second", *of_other.begin());
    of_one.merge(of_other);
    const std::set<std::string> clashes = clashing_functions(first_, second_, std::move(of_one));
    if (!clashes.empty() && options_.first_prefix.empty() && options_.second_prefix.empty())
      fail(ErrorCode::bad_input,
           "both models define function '{}', in different ways; a prefix keeps them apart",
           *clashes.begin());
    add_prefix(first_, options_.first_prefix, clashes);
    add_prefix(second_, options_.second_prefix, clashes);
    connect();
    require_distinct();
    merge_imports();
    merge_graphs();
    merge_functions();
    merge_header();
    if (!options_.outputs.empty()) choose_outputs();
    return std::move(first_);
  }

 private:
  void require_connectable(const std::string& output, const std::string& input) const {
    const ir::ValueInfo* from = find(first_.graph->outputs, output);
    const ir::ValueInfo* to = find(second_.graph->inputs, input);
    if (from == nullptr)
      fail(ErrorCode::bad_input, "the first model has no output '{}'; it has {}", output,
           listed(first_.graph->outputs));
    if (to == nullptr)
      fail(ErrorCode::bad_input, "the second model has no input '{}'; it has {}", input,
           listed(second_.graph->inputs));
    if (from->type && to->type && !ir::may_agree(*from->type, *to->type))
      fail(ErrorCode::bad_input, "output '{}' is {} and cannot feed input '{}', which is {}",
           output, wire::print(*from->type), input, wire::print(*to->type));
  }

  static void require_prefix(const std::string& prefix, std::string_view which,
                             std::string_view function) {
    if (!prefix.empty()) return;
    fail(ErrorCode::bad_input,
         "the {} model defines function '{}', which is an operator to the other; a prefix for that "
         "model keeps them apart",
         which, function);
  }

  // Inputs of the second model that are fed take the name of what feeds them.
  void connect() {
    std::map<std::string, std::string> fed;
    for (const auto& [output, input] : options_.connections) {
      const std::string name = options_.second_prefix + input;
      if (!fed.try_emplace(name, options_.first_prefix + output).second)
        fail(ErrorCode::bad_input, "input '{}' is fed twice", input);
      used_outputs_.insert(options_.first_prefix + output);
    }
    ir::Graph& graph = *second_.graph;
    std::erase_if(graph.inputs, [&](const ir::ValueInfo& i) { return fed.contains(i.name); });
    std::erase_if(graph.initializers,
                  [&](const ir::TensorProto& t) { return fed.contains(t.name); });
    std::erase_if(graph.sparse_initializers,
                  [&](const ir::SparseTensorProto& t) { return fed.contains(t.values.name); });
    // An input that has the name already keeps it, or else the first that is fed gets it.
    std::map<std::string, std::string> renamed, aliases;
    for (const auto& [input, output] : fed) {
      if (input == output) connected_.insert(output);
    }
    for (const auto& [input, output] : fed) {
      if (input == output) continue;
      (connected_.insert(output).second ? renamed : aliases)[input] = output;
    }
    const std::set<std::string> names = value_names(second_);
    Renaming renaming;  // all at once, since inputs may swap their names
    for (const auto& [input, output] : renamed) {
      if (names.contains(output) && !renamed.contains(output))
        fail(ErrorCode::bad_input,
             "the second model has a value '{}' of its own; give it another name with a prefix",
             output);
      if (names.contains(input)) renaming.values[input] = output;
    }
    rename(second_, renaming);
    for (const auto& [input, output] : aliases) alias(input, output);
  }

  // `input` is one more name of `output`: an Identity makes it.
  void alias(const std::string& input, const std::string& output) {
    ir::Node identity;
    identity.op_type = "Identity";
    identity.inputs = {output};
    identity.outputs = {input};
    second_.graph->nodes.insert(second_.graph->nodes.begin(), std::move(identity));
  }

  void require_distinct() const {
    std::set<std::string> mine = value_names(first_);
    for (const std::string& name : value_names(second_)) {
      if (mine.contains(name) && !connected_.contains(name))
        fail(ErrorCode::bad_input,
             "both models have a value '{}'; a prefix keeps them apart (--prefix1, --prefix2)",
             name);
    }
  }

  // Before IR version 3 there were no imports, and ai.onnx had version 1.
  static void state_imports(ir::Model& model) {
    if (model.opset_imports.empty() && model.ir_version.value_or(3) < 3)
      model.opset_imports.push_back({"", 1, {}});
  }

  void merge_imports() {
    state_imports(first_);
    state_imports(second_);
    for (const ir::OperatorSetId& import : second_.opset_imports) {
      const int64_t version = ir::imported_version(first_.opset_imports, import.domain);
      if (version == 0) {
        first_.opset_imports.push_back(import);
      } else if (version != import.version) {
        fail(ErrorCode::bad_input,
             "the first model imports version {} of domain '{}', the second {}; convert one of "
             "them first",
             version, import.domain.empty() ? "ai.onnx" : import.domain, import.version);
      }
    }
  }

  void merge_graphs() {
    ir::Graph &a = *first_.graph, &b = *second_.graph;
    const auto append = [](auto& to, auto& from) {
      to.insert(to.end(), std::make_move_iterator(from.begin()),
                std::make_move_iterator(from.end()));
    };
    // What is no output any more keeps its type.
    for (const ir::ValueInfo& output : a.outputs) {
      if (used_outputs_.contains(output.name) && output.type && !find(a.inputs, output.name))
        a.value_info.push_back(output);
    }
    std::erase_if(a.outputs,
                  [&](const ir::ValueInfo& output) { return used_outputs_.contains(output.name); });
    a.name = a.name == b.name ? a.name : fmt::format("{}_{}", a.name, b.name);
    append(a.nodes, b.nodes);
    append(a.inputs, b.inputs);
    append(a.outputs, b.outputs);
    append(a.initializers, b.initializers);
    append(a.sparse_initializers, b.sparse_initializers);
    append(a.value_info, b.value_info);
    append(a.quantization_annotation, b.quantization_annotation);
    add_entries(a.metadata_props, b.metadata_props);
    if (a.doc_string.empty()) a.doc_string = b.doc_string;
  }

  void merge_functions() {
    std::set<FunctionId> known;
    for (const ir::Function& function : first_.functions) known.insert(id_of(function));
    std::vector<ir::Function> added;
    for (ir::Function& function : second_.functions) {
      if (!known.contains(id_of(function))) added.push_back(std::move(function));
    }
    for (ir::Function& function : added) first_.functions.push_back(std::move(function));
  }

  // Of two values for a key the first model's stays.
  static void add_entries(std::vector<ir::StringEntry>& to,
                          const std::vector<ir::StringEntry>& from) {
    for (const ir::StringEntry& entry : from) {
      if (std::ranges::find(to, entry.key, &ir::StringEntry::key) == to.end()) to.push_back(entry);
    }
  }

  void merge_header() {
    if (first_.ir_version && second_.ir_version)
      first_.ir_version = std::max(*first_.ir_version, *second_.ir_version);
    add_entries(first_.metadata_props, second_.metadata_props);
    for (ir::DeviceConfiguration& configuration : second_.configuration) {
      if (std::ranges::find(first_.configuration, configuration.name,
                            &ir::DeviceConfiguration::name) == first_.configuration.end())
        first_.configuration.push_back(std::move(configuration));
    }
  }

  void choose_outputs() {
    const ir::Graph& graph = *first_.graph;
    std::set<std::string_view> defaults;
    for (const ir::TensorProto& tensor : graph.initializers) defaults.insert(tensor.name);
    for (const ir::SparseTensorProto& tensor : graph.sparse_initializers)
      defaults.insert(tensor.values.name);
    std::vector<std::string> inputs;  // those with a default keep it
    for (const ir::ValueInfo& input : graph.inputs) {
      if (!defaults.contains(input.name)) inputs.push_back(input.name);
    }
    first_ = extract(first_, inputs, options_.outputs);
  }

  ir::Model first_, second_;
  const MergeOptions& options_;
  std::set<std::string> used_outputs_, connected_;
};

}  // namespace

ir::Model merge(ir::Model first, ir::Model second, const MergeOptions& options) {
  return Merging(std::move(first), std::move(second), options).run();
}

}  // namespace sardonyx::compose
