// A training model of ONNX Runtime's training artifacts.
#include "sardonyx/training_artifacts.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "base/listed.h"
#include "base/os.h"
#include "compose/extract.h"
#include "compose/rename.h"
#include "ir/tensor.h"
#include "ir/walk.h"
#include "session/model.h"
#include "tools/saving.h"
#include "train/artifact_forms.h"
#include "train/draft.h"
#include "train/finish.h"
#include "train/ort_checkpoint.h"

namespace sardonyx {

using namespace train;

namespace {

constexpr std::string_view microsoft = "com.microsoft";
// Nodes of versions 13 and 14 mean the same in 15, which is the first with CastLike.
constexpr int64_t oldest_opset = 13, min_opset = 15;

ir::Model model_in(const std::string& path) {
  const Model model(path);
  const Model::Implementation& held = model.implementation();
  ir::Model made = held.with_data();
  if (!made.graph) fail_at(path, ErrorCode::invalid_model, "the model has no graph");
  return made;
}

std::vector<std::string> names_of(const std::vector<ir::ValueInfo>& values) {
  std::vector<std::string> names;
  for (const ir::ValueInfo& one : values) names.push_back(one.name);
  return names;
}

std::string quoted(const std::vector<std::string>& names) {
  std::vector<std::string> marked;
  for (const std::string& name : names) marked.push_back("'" + name + "'");
  return marked.empty() ? "none" : listed(marked, 8);
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// Only what the outputs need, inputs among it.
ir::Graph part_of(const ir::Model& model, const std::vector<std::string>& outputs) {
  ir::Graph part = *compose::extract(model, names_of(model.graph->inputs), outputs).graph;
  std::unordered_set<std::string> read(outputs.begin(), outputs.end());
  const auto add = [&](const ir::WalkPlace&, const ir::Node& node, size_t) {
    read.insert(node.inputs.begin(), node.inputs.end());
  };
  ir::walk(part, {.enter = {}, .leave = {}, .node = add});
  std::erase_if(part.inputs, [&](const ir::ValueInfo& one) { return !read.contains(one.name); });
  part.value_info.clear();
  return part;
}

// --- The optimizer ------------------------------------------------------------------------------

struct OptimizerParts {
  UpdateRule rule;
  double clip_norm = 0;
};

double float_in(const ir::Node& node, std::string_view name, double otherwise) {
  const ir::Attribute* found = node.find(name);
  return found != nullptr && found->f ? *found->f : otherwise;
}
int64_t int_in(const ir::Node& node, std::string_view name, int64_t otherwise) {
  const ir::Attribute* found = node.find(name);
  return found != nullptr && found->i ? *found->i : otherwise;
}

OptimizerParts optimizer_of(const ir::Model& model) {
  std::optional<UpdateRule> rule;
  double clip_norm = 0;
  for (const ir::Node& node : model.graph->nodes) {
    const std::string_view op = node.domain == microsoft ? node.op_type : std::string_view();
    if (op == "InplaceClipGradNorm" && !rule) {
      clip_norm = float_in(node, "max_norm", 1);
    } else if (op == "AdamWOptimizer" && !rule) {
      rule =
          artifact_adamw(float_in(node, "alpha", 0.9), float_in(node, "beta", 0.999),
                         float_in(node, "epsilon", 1e-8), float_in(node, "weight_decay", 1e-2),
                         int_in(node, "adam_mode", 0) == 1, int_in(node, "correct_bias", 1) != 0);
    } else if (op == "SGDOptimizerV2" && !rule) {
      TrainableOptions options;
      options.optimizer = Optimizer::sgd;
      rule = rule_of(options);
      rule->rate = 0.001;  // the training API's for all optimizers
    } else {
      fail_at(model.path, ErrorCode::unsupported,
              "{}: optimizer models of one AdamWOptimizer or SGDOptimizerV2, and "
              "InplaceClipGradNorm before it, are read",
              ir::describe(node));
    }
  }
  if (!rule) fail_at(model.path, ErrorCode::invalid_model, "the optimizer model has no optimizer");
  return {*rule, clip_norm};
}

// --- Where inference ends -----------------------------------------------------------------------

// How values of a graph reach its loss.
class Paths {
 public:
  Paths(const ir::Graph& graph, const std::set<std::string>& parameters, const std::string& loss)
      : graph_(graph), parameters_(parameters) {
    for (const size_t index : nodes_behind(graph, loss)) {
      for (const std::string& output : graph.nodes[index].outputs) maker_.emplace(output, index);
    }
    for (const ir::ValueInfo& input : graph.inputs) {
      if (!parameters.contains(input.name)) inputs_.push_back(input.name);
    }
  }

  // Inputs that meet no parameter on their way: what the loss compares with.
  std::vector<std::string> targets() {
    std::vector<std::string> found;
    for (const std::string& input : inputs_) {
      const std::set<size_t> reached = nodes_after({input});
      const bool meets = std::ranges::any_of(reached, [&](size_t index) {
        return std::ranges::any_of(graph_.nodes[index].inputs, [&](const std::string& name) {
          return parameters_.contains(name);
        });
      });
      if (!meets && !reached.empty()) found.push_back(input);
    }
    return found;
  }

  // The last value that all ways from the other inputs to the loss have in common and that no
  // target has a part in; empty: there is none.
  std::string last_common(const std::vector<std::string>& targets, const std::string& loss) {
    const std::set<size_t> compared = nodes_after(targets);
    const std::set<size_t> reached = nodes_after(others(targets));
    const auto end = maker_.find(loss);
    if (end == maker_.end() || !reached.contains(end->second)) return {};
    // The node that dominates each: through which all ways to it lead. Nodes are in order.
    std::unordered_map<size_t, Dominator> dominators;
    for (const size_t index : reached) {
      std::optional<Dominator> common;
      for (const std::string& name : graph_.nodes[index].inputs) {
        const auto maker = maker_.find(name);
        const bool is_source = contains(inputs_, name) && !contains(targets, name);
        if (!is_source && (maker == maker_.end() || !reached.contains(maker->second))) continue;
        Dominator way;
        if (!is_source) way = {maker->second, dominators.at(maker->second).depth + 1, name, false};
        common = common ? meet(dominators, *common, way) : way;
      }
      dominators[index] = common.value_or(Dominator{});
    }
    Dominator at = dominators.at(end->second);
    while (!at.is_start && compared.contains(at.node)) at = dominators.at(at.node);
    return at.is_start ? std::string() : at.value;
  }

 private:
  struct Dominator {
    size_t node = 0, depth = 0;
    std::string value;     // of the node, that is read
    bool is_start = true;  // before all nodes
  };

  static Dominator meet(const std::unordered_map<size_t, Dominator>& known, Dominator a,
                        Dominator b) {
    while (!(a.is_start && b.is_start) && (a.is_start != b.is_start || a.node != b.node)) {
      if (b.is_start || (!a.is_start && a.depth >= b.depth))
        a = known.at(a.node);
      else
        b = known.at(b.node);
    }
    return a;
  }

  std::vector<std::string> others(const std::vector<std::string>& targets) const {
    std::vector<std::string> left;
    for (const std::string& input : inputs_) {
      if (!contains(targets, input)) left.push_back(input);
    }
    return left;
  }

  // Nodes on ways from these inputs to the loss.
  std::set<size_t> nodes_after(const std::vector<std::string>& inputs) const {
    std::unordered_set<std::string> reached(inputs.begin(), inputs.end());
    std::set<size_t> nodes, on_the_way;
    for (const auto& [value, index] : maker_) on_the_way.insert(index);
    for (const size_t index : on_the_way) {
      const ir::Node& node = graph_.nodes[index];
      if (std::ranges::none_of(node.inputs,
                               [&](const std::string& name) { return reached.contains(name); }))
        continue;
      nodes.insert(index);
      reached.insert(node.outputs.begin(), node.outputs.end());
    }
    return nodes;
  }

  const ir::Graph& graph_;
  const std::set<std::string>& parameters_;
  std::vector<std::string> inputs_;
  std::unordered_map<std::string, size_t> maker_;
};

// --- Putting them together ----------------------------------------------------------------------

class Joining {
 public:
  Joining(const TrainingArtifacts& artifacts, const ArtifactOptions& options,
          TrainableReport& report)
      : options_(options),
        report_(report),
        training_(model_in(artifacts.training_model)),
        eval_(model_in(artifacts.eval_model)),
        optimizer_(optimizer_of(model_in(artifacts.optimizer_model))),
        checkpoint_(read_ort_checkpoint(artifacts.checkpoint)),
        eval_path_(artifacts.eval_model),
        training_path_(artifacts.training_model),
        checkpoint_path_(artifacts.checkpoint),
        names_({}) {}

  ir::Model make() {
    require_fitting();
    for (const auto* list : {&checkpoint_.trained, &checkpoint_.frozen}) {
      for (const ir::TensorProto& one : *list) parameters_.insert(one.name);
    }
    std::set<std::string> taken = compose::value_names(eval_);
    taken.insert(parameters_.begin(), parameters_.end());
    const std::set<std::string> trained = compose::value_names(training_);
    taken.insert(trained.begin(), trained.end());
    names_ = NamePool(std::move(taken));
    add_main();
    NamePool again = names_;
    add_algorithm();
    names_ = std::move(again);
    add_measure();
    import_domains();
    return std::move(made_);
  }

 private:
  void require_fitting() const {
    const int64_t opset = ir::imported_version(training_.opset_imports, "");
    const int64_t other = ir::imported_version(eval_.opset_imports, "");
    if (opset != other)
      fail_at(eval_path_, ErrorCode::bad_input,
              "it imports version {} of ai.onnx, the training model version {}; they must be made "
              "of one model",
              other, opset);
    if (opset < oldest_opset)
      fail_at(training_path_, ErrorCode::unsupported,
              "it imports version {} of ai.onnx; artifacts from version {} on are read", opset,
              oldest_opset);
    for (const ir::Model* one : {&training_, &eval_}) {
      if (one->graph->outputs.empty())
        fail_at(one->path, ErrorCode::invalid_model, "the model has no outputs, and so no loss");
    }
    if (training_.graph->outputs[0].name != eval_.graph->outputs[0].name)
      fail_at(eval_path_, ErrorCode::bad_input,
              "its loss is '{}', that of the training model '{}'; they must be made of one model",
              eval_.graph->outputs[0].name, training_.graph->outputs[0].name);
    constexpr std::string_view buffer = "_grad.accumulation.buffer";
    const std::vector<std::string> trained = names_of_tensors(checkpoint_.trained);
    const std::set<std::string> known(trained.begin(), trained.end());
    for (const ir::ValueInfo& input : training_.graph->inputs) {
      if (!input.name.ends_with(buffer)) continue;
      const std::string name = input.name.substr(0, input.name.size() - buffer.size());
      if (!known.contains(name))
        fail_at(checkpoint_path_, ErrorCode::bad_input,
                "the training model learns the parameter '{}', which the checkpoint does not have "
                "among those that learn: {}",
                name, quoted(trained));
    }
  }

  const std::string& loss() const { return eval_.graph->outputs[0].name; }

  // The eval model without its loss.
  void add_main() {
    (void)standardize_forward(*eval_.graph);
    Paths paths(*eval_.graph, parameters_, loss());
    targets_ = paths.targets();
    std::vector<std::string> outputs = options_.outputs;
    if (outputs.empty()) {
      outputs = names_of(eval_.graph->outputs);
      outputs.erase(outputs.begin());
    }
    if (outputs.empty() && !targets_.empty()) {
      const std::string last = paths.last_common(targets_, loss());
      if (!last.empty()) outputs.push_back(last);
    }
    if (outputs.empty())
      fail_at(eval_path_, ErrorCode::bad_input,
              "it can't be told what is compared with the target: name the outputs that inference "
              "is for (ArtifactOptions::outputs, --output-name)");
    made_.ir_version = std::max<int64_t>(eval_.ir_version.value_or(0), 8);
    made_.producer_name = eval_.producer_name;
    made_.graph = part_of(eval_, outputs);
    ir::Graph& main = *made_.graph;
    if (main.name.empty()) main.name = "main";
    std::set<std::string> used;
    for (const ir::ValueInfo& input : main.inputs) used.insert(input.name);
    std::erase_if(main.inputs,
                  [&](const ir::ValueInfo& one) { return parameters_.contains(one.name); });
    forward_ = part_of(training_, forward_outputs());
    for (const ir::ValueInfo& input : forward_.inputs) used.insert(input.name);
    add_parameters(main, used);
    for (const ir::ValueInfo& input : forward_.inputs) {
      if (parameters_.contains(input.name) || contains(targets_, input.name)) continue;
      // What only the loss reads, and is no target, is an input of the algorithm, too.
      if (!std::ranges::count(main.inputs, input.name, &ir::ValueInfo::name))
        targets_.push_back(input.name);
    }
    if (!targets_.empty()) report_.target = targets_[0];
  }

  // The loss, and what else the training model gives that is not gradients.
  std::vector<std::string> forward_outputs() const {
    std::set<std::string> gradients;
    for (const ir::Node& node : training_.graph->nodes) {
      if (node.domain == microsoft && node.op_type.starts_with("InPlaceAccumulator"))
        gradients.insert(node.outputs.begin(), node.outputs.end());
    }
    std::vector<std::string> outputs;
    for (const ir::ValueInfo& one : training_.graph->outputs) {
      if (!gradients.contains(one.name)) outputs.push_back(one.name);
    }
    return outputs;
  }

  void add_parameters(ir::Graph& main, const std::set<std::string>& used) {
    for (const auto* list : {&checkpoint_.trained, &checkpoint_.frozen}) {
      for (const ir::TensorProto& tensor : *list) {
        if (!used.contains(tensor.name)) continue;
        main.initializers.push_back(tensor);
        if (list == &checkpoint_.frozen) {
          report_.frozen.push_back(tensor.name);
          continue;
        }
        if (element_ == ElementType::undefined) element_ = tensor.element_type();
        if (tensor.element_type() != element_ ||
            (element_ != ElementType::float32 && element_ != ElementType::float64))
          fail_at(fmt::format("parameter '{}'", tensor.name), ErrorCode::unsupported,
                  "it is of {}; all parameters that learn must be of float, or all of double",
                  name_of(tensor.element_type()));
        Parameter& one = trained_.emplace_back();
        one.name = tensor.name, one.shape = tensor.dims;
        report_.trained.push_back(tensor.name);
        int64_t elements = 1;
        for (const int64_t size : tensor.dims) elements *= size;
        report_.trained_elements += elements;
      }
    }
    if (trained_.empty())
      fail_at(training_path_, ErrorCode::bad_input,
              "the loss depends on none of the parameters of the checkpoint that learn: {}",
              quoted(names_of_tensors(checkpoint_.trained)));
  }

  static std::vector<std::string> names_of_tensors(const std::vector<ir::TensorProto>& tensors) {
    std::vector<std::string> names;
    for (const ir::TensorProto& one : tensors) names.push_back(one.name);
    return names;
  }

  // The forward part of the training model with names of its own, its derivative, and the update.
  void add_algorithm() {
    const std::vector<NodeUpdate> statistics = standardize_forward(forward_);
    ir::Model renamed;
    renamed.graph = std::move(forward_);
    compose::Renaming renaming;
    std::set<std::string> kept = parameters_;
    for (const ir::ValueInfo& input : renamed.graph->inputs) kept.insert(input.name);
    for (const std::string& name : compose::value_names(renamed)) {
      if (kept.contains(name)) continue;
      renaming.values[name] = names_.make(name == loss() ? "loss" : name + "_training");
    }
    compose::rename(renamed, renaming);
    const auto now = [&](const std::string& name) {
      const auto found = renaming.values.find(name);
      return found == renaming.values.end() ? name : found->second;
    };
    ir::Graph graph = std::move(*renamed.graph);
    graph.name = "train";
    for (ir::Node& node : graph.nodes) {
      if (!node.name.empty()) node.name += "_training";
    }
    keep_own_inputs(graph);
    GraphBuilder builder(graph, names_, element_);
    std::vector<std::string> constants = names_of(made_.graph->inputs);
    std::erase_if(constants, [&](const std::string& name) { return !reads(graph, name); });
    for (const ir::ValueInfo& input : graph.inputs) constants.push_back(input.name);
    const auto gradients = add_gradient(graph, builder, trained_, constants, now(loss()));
    TrainableOptions options;
    options.learning_rate = rate();
    options.clip_norm = optimizer_.clip_norm;
    Updates updates =
        add_updates(builder, trained_, gradients, "", optimizer_.rule, options, opset());
    for (const std::string& one : {updates.rate, updates.norm}) {
      if (!one.empty()) builder.output(one, element_, {});
    }
    begin_with_checkpoint(graph, updates);
    ir::TrainingInfo info;
    for (const UpdateBinding& one : updates.bindings)
      info.update_binding.push_back({one.state, one.updated, {}});
    for (const NodeUpdate& one : statistics) {
      const auto tensor =
          std::ranges::find(made_.graph->initializers, one.state, &ir::TensorProto::name);
      if (tensor == made_.graph->initializers.end()) continue;
      builder.output(now(one.updated), tensor->element_type(), tensor->dims);
      info.update_binding.push_back({one.state, now(one.updated), {}});
      report_.statistics.push_back(one.state);
      std::erase(report_.frozen, one.state);
    }
    info.algorithm = std::move(graph);
    made_.training_info.push_back(std::move(info));
    for (ir::Function& function : updates.functions) {
      report_.functions.push_back(function.domain + "." + function.name);
      made_.functions.push_back(std::move(function));
    }
  }

  double rate() const {
    if (options_.learning_rate < 0)
      fail(ErrorCode::bad_input, "learning_rate must not be negative; got {}",
           options_.learning_rate);
    if (options_.learning_rate > 0) return options_.learning_rate;
    const bool told = checkpoint_.optimizer && checkpoint_.optimizer->learning_rate > 0;
    return told ? checkpoint_.optimizer->learning_rate : optimizer_.rule.rate;
  }

  int64_t opset() const {
    return std::max(ir::imported_version(eval_.opset_imports, ""), min_opset);
  }

  static bool reads(const ir::Graph& graph, const std::string& name) {
    bool found = false;
    const auto look = [&](const ir::WalkPlace&, const ir::Node& node, size_t) {
      found = found || contains(node.inputs, name);
    };
    ir::walk(graph, {.enter = {}, .leave = {}, .node = look});
    return found;
  }

  // The inputs that the main graph does not have.
  void keep_own_inputs(ir::Graph& graph) const {
    std::erase_if(graph.inputs, [&](const ir::ValueInfo& one) {
      return parameters_.contains(one.name) || !contains(targets_, one.name);
    });
  }

  void begin_with_checkpoint(ir::Graph& algorithm, const Updates& updates) const {
    if (!checkpoint_.optimizer) return;
    const auto initializer = [&](const std::string& name) -> ir::TensorProto& {
      return *std::ranges::find(algorithm.initializers, name, &ir::TensorProto::name);
    };
    const int64_t steps = checkpoint_.optimizer->steps;
    ir::TensorProto& count = initializer(updates.count);
    count = ir::to_proto(Tensor::scalar<int64_t>(steps), updates.count);
    for (size_t k = 0; k < updates.slots.size(); ++k) {
      for (size_t i = 0; i < trained_.size(); ++i) {
        const auto of = checkpoint_.optimizer->averages.find(trained_[i].name);
        if (of == checkpoint_.optimizer->averages.end()) continue;
        const auto average = of->second.find(fmt::format("momentum{}", k));
        if (average == of->second.end()) continue;
        ir::TensorProto& slot = initializer(updates.slots[k][i]);
        if (average->second.dims != slot.dims || average->second.data_type != slot.data_type)
          fail_at(fmt::format("parameter '{}'", trained_[i].name), ErrorCode::bad_input,
                  "the checkpoint's {} has another shape or type than the parameter",
                  average->first);
        slot = average->second;
        slot.name = updates.slots[k][i];
      }
    }
  }

  // The loss of the eval model, as far as the main graph does not compute it.
  void add_measure() {
    ir::Graph graph = part_of(eval_, {loss()});
    graph.name = "measure";
    std::unordered_set<std::string> known;
    for (const ir::Node& node : made_.graph->nodes)
      known.insert(node.outputs.begin(), node.outputs.end());
    for (const ir::TensorProto& one : made_.graph->initializers) known.insert(one.name);
    std::erase_if(graph.nodes, [&](const ir::Node& node) {
      return std::ranges::any_of(node.outputs, [&](const std::string& name) {
        return !name.empty() && known.contains(name);
      });
    });
    std::erase_if(graph.initializers,
                  [&](const ir::TensorProto& one) { return known.contains(one.name); });
    std::erase_if(graph.inputs, [&](const ir::ValueInfo& one) {
      return parameters_.contains(one.name) ||
             std::ranges::count(made_.graph->inputs, one.name, &ir::ValueInfo::name) > 0;
    });
    const std::string name = names_.make("loss");
    if (known.contains(loss())) {  // an output of inference, too
      graph.nodes.push_back({});
      graph.nodes.back().op_type = "Identity";
      graph.nodes.back().inputs = {loss()};
      graph.nodes.back().outputs = {name};
    } else {
      for (ir::Node& node : graph.nodes) {
        std::ranges::replace(node.inputs, loss(), name);
        std::ranges::replace(node.outputs, loss(), name);
      }
    }
    graph.outputs = {value_info(name, element_, {})};
    made_.training_info.emplace_back().algorithm = std::move(graph);
  }

  void import_domains() {
    std::set<std::string> used;
    const auto add = [&](const ir::WalkPlace&, const ir::Node& node, size_t) {
      used.insert(std::string(ir::canonical_domain(node.domain)));
    };
    const ir::WalkCallbacks look{.enter = {}, .leave = {}, .node = add};
    ir::walk(*made_.graph, look);
    for (const ir::TrainingInfo& info : made_.training_info) ir::walk(*info.algorithm, look);
    used.insert("");
    for (const std::string& domain : used) {
      int64_t version = ir::imported_version(training_.opset_imports, domain);
      version = std::max(version, ir::imported_version(eval_.opset_imports, domain));
      if (domain.empty()) version = opset();
      made_.opset_imports.push_back({domain, std::max<int64_t>(version, 1), {}});
    }
  }

  const ArtifactOptions& options_;
  TrainableReport& report_;
  ir::Model training_, eval_;
  OptimizerParts optimizer_;
  OrtCheckpoint checkpoint_;
  std::string eval_path_, training_path_, checkpoint_path_;
  NamePool names_;
  std::set<std::string> parameters_;
  std::vector<std::string> targets_;
  std::vector<Parameter> trained_;
  ElementType element_ = ElementType::undefined;
  ir::Graph forward_;
  ir::Model made_;
};

ir::Model joined(const TrainingArtifacts& artifacts, const ArtifactOptions& options,
                 TrainableReport* report) {
  TrainableReport unread;
  TrainableReport& told = report != nullptr ? *report : unread;
  told = {};
  ir::Model made = Joining(artifacts, options, told).make();
  require_gradients(made);
  return made;
}

}  // namespace

TrainingArtifacts TrainingArtifacts::in(const std::string& folder) {
  const auto inside = [base = os::path(folder)](const char* name) { return os::text(base / name); };
  return {inside("training_model.onnx"), inside("eval_model.onnx"), inside("optimizer_model.onnx"),
          inside("checkpoint")};
}

Model make_trainable(const TrainingArtifacts& artifacts, const ArtifactOptions& options,
                     TrainableReport* report) {
  return model_of(joined(artifacts, options, report));
}

TrainableReport make_trainable(const TrainingArtifacts& artifacts, const ArtifactOptions& options,
                               const std::string& path, const std::string& external_data) {
  TrainableReport report;
  SaveOptions saving;
  saving.external_data = external_data;
  save_model(joined(artifacts, options, &report), path, saving);
  return report;
}

}  // namespace sardonyx
