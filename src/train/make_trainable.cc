// A training model of a model for inference.
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "base/fail.h"
#include "base/listed.h"
#include "base/similar.h"
#include "compose/rename.h"
#include "ir/dimension.h"
#include "ir/origin.h"
#include "ir/walk.h"
#include "lower/inline.h"
#include "session/lowered.h"
#include "session/model.h"
#include "tools/convert.h"
#include "tools/saving.h"
#include "train/draft.h"
#include "train/finish.h"
#include "train/master_weights.h"
#include "train/merge_lora.h"

namespace sardonyx {
namespace {

using namespace train;

// The least version of ai.onnx that has all that is added, BatchNormalization's form among it.
constexpr int64_t min_opset = 15;
constexpr int64_t converted_opset = 17;

// Whether a function's nodes have another form in training, or become products of half precision.
bool changes_in_training(const ir::Function& function, const TrainableOptions& options) {
  bool changes = false;
  ir::walk(function, {.node = [&](const ir::WalkPlace&, const ir::Node& node, size_t) {
             changes = changes || has_training_form(node, options);
           }});
  return changes;
}

// Calls of functions give way to their nodes where these are not the same in training.
void open_functions(ir::Model& model, const TrainableOptions& options, TrainableReport& report) {
  if (std::ranges::none_of(model.functions, [&](const ir::Function& function) {
        return changes_in_training(function, options);
      }))
    return;
  try {
    model = lower::inline_functions(model);
    report.notes.push_back(
        "functions have given way to their nodes, of which some change in training");
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    report.notes.push_back(
        fmt::format("nodes in functions keep their form for inference: {}", error.what()));
  }
}

// The model as it is written to, with all operators in a form that can be trained.
ir::Model prepared(const Model& model, const TrainableOptions& options, TrainableReport& report) {
  const Model::Implementation& from = model.implementation();
  refuse_broken(from);
  if (!from.runnable().training_info.empty())
    fail_at(from.model.path, ErrorCode::bad_input, "the model has training information already");
  ir::Model made = from.runnable();
  const int64_t opset = ir::imported_version(made.opset_imports, "");
  if (opset < min_opset) {
    made = convert(model, {.opset = converted_opset, .assume_inference = true});
    report.notes.push_back(
        fmt::format("upgraded from version {} of ai.onnx to {}", opset, converted_opset));
  }
  open_functions(made, options, report);
  // Up to IR version 3 initializers stand among the inputs and are constants.
  if (made.ir_version.value_or(0) < 4) {
    const auto defaults = defaults_of(*made.graph);
    std::erase_if(made.graph->inputs,
                  [&](const ir::ValueInfo& input) { return defaults.contains(input.name); });
  }
  made.ir_version = std::max<int64_t>(made.ir_version.value_or(0), 8);
  return made;
}

const ir::ValueInfo& output_of(const ir::Graph& graph, const std::string& wanted) {
  if (graph.outputs.empty()) fail(ErrorCode::bad_input, "the model has no outputs");
  if (wanted.empty()) return graph.outputs[0];
  const auto found = std::ranges::find(graph.outputs, wanted, &ir::ValueInfo::name);
  if (found != graph.outputs.end()) return *found;
  std::string names;
  for (const ir::ValueInfo& one : graph.outputs)
    names += (names.empty() ? "'" : ", '") + one.name + "'";
  fail(ErrorCode::bad_input, "the model has no output '{}'; it has {}", wanted, names);
}

bool is_half(ElementType type) {
  return type == ElementType::float16 || type == ElementType::bfloat16;
}

ElementType element_of(const ir::ValueInfo& output) {
  return output.type && output.type->kind == ir::TypeProto::Kind::tensor
             ? output.type->element_type()
             : ElementType::undefined;
}

bool may_have_loss(const ir::ValueInfo& output) {
  const ElementType type = element_of(output);
  return type == ElementType::float32 || type == ElementType::float64 || is_half(type);
}

// Classifiers give labels first, as a rule, and their scores after them.
void require_loss(const ir::Graph& graph, const ir::ValueInfo& output) {
  if (may_have_loss(output)) return;
  std::vector<std::string> others;
  for (const ir::ValueInfo& one : graph.outputs) {
    if (may_have_loss(one)) others.push_back("'" + one.name + "'");
  }
  fail_at(fmt::format("output '{}'", output.name), ErrorCode::bad_input,
          "a loss is of float16, bfloat16, float or double; this is {}{}{}",
          output.type ? ir::declared_text(*output.type) : "of no declared type",
          others.empty() ? "" : "; name another output that it is of: ",
          others.empty() ? "" : listed(others, 8));
}

void require_sound(const TrainableOptions& o) {
  const auto require = [](bool holds, std::string_view what, double value) {
    if (!holds) fail(ErrorCode::bad_input, "{}; got {}", what, value);
  };
  const auto is_finite_from_0 = [](double number) { return number >= 0 && std::isfinite(number); };
  const auto is_positive = [](double number) { return number > 0 && std::isfinite(number); };
  require(is_finite_from_0(o.learning_rate), "learning_rate must be finite and not negative",
          o.learning_rate);
  require(o.momentum >= 0 && o.momentum < 1, "momentum must be in [0, 1)", o.momentum);
  require(o.smoothing >= 0 && o.smoothing < 1, "smoothing must be in [0, 1)", o.smoothing);
  require(o.beta1 >= 0 && o.beta1 < 1, "beta1 must be in [0, 1)", o.beta1);
  require(o.beta2 >= 0 && o.beta2 < 1, "beta2 must be in [0, 1)", o.beta2);
  require(is_positive(o.epsilon), "epsilon must be positive and finite", o.epsilon);
  require(is_finite_from_0(o.weight_decay), "weight_decay must be finite and not negative",
          o.weight_decay);
  require(o.clip_norm >= 0, "clip_norm must not be negative", o.clip_norm);
  require(o.clip_value >= 0, "clip_value must not be negative", o.clip_value);
  require(is_positive(o.huber_delta), "huber_delta must be positive and finite", o.huber_delta);
  require(is_positive(o.loss_scale), "loss_scale must be positive and finite", o.loss_scale);
  require(o.scale_growth >= 1, "scale_growth must be at least 1",
          static_cast<double>(o.scale_growth));
  require(o.accumulate >= 1, "accumulate must be at least 1", static_cast<double>(o.accumulate));
  require(o.schedule.warmup >= 0, "warmup must not be negative",
          static_cast<double>(o.schedule.warmup));
  const auto kind = o.schedule.kind;
  if (kind != Schedule::Kind::constant && kind != Schedule::Kind::exponential)
    require(o.schedule.steps >= 1, "a schedule needs at least 1 step",
            static_cast<double>(o.schedule.steps));
  if (kind == Schedule::Kind::step || kind == Schedule::Kind::exponential)
    require(is_positive(o.schedule.factor), "the factor of a schedule must be positive and finite",
            o.schedule.factor);
}

void import(ir::Model& model, std::string_view domain, int64_t version) {
  if (ir::imported_version(model.opset_imports, domain) > 0) return;
  model.opset_imports.push_back({std::string(domain), version, {}});
}

// The inputs that `scores` depends on: constants of the derivative.
std::vector<std::string> inputs_behind(const ir::Graph& graph, const std::string& scores) {
  std::unordered_set<std::string> read{scores};
  for (const size_t index : nodes_behind(graph, scores))
    read.insert(graph.nodes[index].inputs.begin(), graph.nodes[index].inputs.end());
  std::vector<std::string> inputs;
  for (const ir::ValueInfo& input : graph.inputs) {
    if (read.contains(input.name)) inputs.push_back(input.name);
  }
  return inputs;
}

class Making {
 public:
  Making(const Model& model, const TrainableOptions& options, TrainableReport& report)
      : options_(options),
        report_(report),
        model_(prepared(model, options, report)),
        main_(*model_.graph),
        names_(compose::value_names(model_)) {}

  ir::Model make() {
    lift_constants(main_, names_);
    output_ = output_of(main_, options_.output);
    require_loss(main_, output_);
    network_ = element_of(output_);
    element_ = is_half(network_) ? ElementType::float32 : network_;
    if (options_.precision != Precision::float32 && network_ != ElementType::float32)
      fail(ErrorCode::bad_input,
           "products of half precision are of models whose output is float32; that of '{}' is {}",
           output_.name, name_of(network_));
    if (!options_.lora.empty() && is_half(network_))
      fail(ErrorCode::bad_input, "LoRA is for models of float or double; output '{}' is {}",
           output_.name, name_of(network_));
    const auto lora = add_lora(main_, options_, element_, names_, report_);
    scores_ = scores_of(main_, output_, options_);
    if (const ir::Node* twice = applied_twice(main_, scores_, options_.loss))
      report_.notes.push_back(fmt::format(
          "the loss has a {0} of its own, and the scores come out of another one: {1}; learn from "
          "an output that is what this one takes, '{2}'",
          twice->op_type, ir::place_of(*twice), twice->inputs.at(0)));
    parameters_ = choose_parameters(main_, scores_.name, network_, options_, lora, report_);
    for (const Parameter& one : parameters_) trained_.insert(one.name);
    if (is_half(network_)) {
      add_master_weights(main_, parameters_, network_, names_);
      for (size_t i = 0; i < parameters_.size(); ++i) report_.trained[i] = parameters_[i].name;
    }
    target_ = names_.make("target");
    report_.target = target_;
    // Both algorithms name their values alike: each stands beside the main graph alone.
    NamePool again = names_;
    add_algorithm();
    add_measure(again);
    if (options_.recompute)
      model_.metadata_props.push_back({"sardonyx.training.recompute", "1", {}});
    import(model_, preview_domain, 1);
    if (!model_.functions.empty()) import(model_, function_domain, 1);
    return std::move(model_);
  }

 private:
  void add_algorithm() {
    ir::Graph graph;
    graph.name = "train";
    GraphBuilder builder(graph, names_, element_);
    graph.inputs.push_back(target_of(target_, output_, scores_, element_, options_));
    std::vector<RunningStatistics> statistics;
    const auto copies = add_training_form(main_, scores_.name, graph, builder, names_, trained_,
                                          options_, statistics);
    const auto copy = copies.find(scores_.name);
    const LossValues values =
        add_loss(builder, wide(builder, copy == copies.end() ? scores_.name : copy->second),
                 scores_, target_, options_);
    tell(builder, values);
    std::string scale, derived = values.loss;
    if (options_.precision == Precision::float16 || network_ == ElementType::float16) {
      scale = add_loss_scale(builder, options_);
      derived = builder.add("Mul", {values.loss, scale}, {}, "scaled_loss");
    }
    std::vector<std::string> constants = inputs_behind(main_, scores_.name);
    constants.push_back(target_);
    const auto gradients = add_gradient(graph, builder, parameters_, constants, derived);
    const int64_t opset = ir::imported_version(model_.opset_imports, "");
    Updates updates =
        add_updates(builder, parameters_, gradients, scale, rule_of(options_), options_, opset);
    for (const std::string& told : {updates.rate, updates.norm, updates.scale}) {
      if (!told.empty()) builder.output(told, element_, {});
    }
    for (RunningStatistics& one : statistics) {
      if (!updates.finite.empty())
        one.updated =
            builder.add("Where", {updates.finite, one.updated, one.state}, {}, one.state + "_held");
      const auto tensor = std::ranges::find(main_.initializers, one.state, &ir::TensorProto::name);
      builder.output(one.updated, tensor->element_type(), tensor->dims);
      report_.statistics.push_back(one.state);
    }
    ir::TrainingInfo info = initialization_of(main_, graph, parameters_, statistics, updates, scale,
                                              options_, element_, names_);
    for (const UpdateBinding& one : updates.bindings)
      info.update_binding.push_back({one.state, one.updated, {}});
    for (const RunningStatistics& one : statistics)
      info.update_binding.push_back({one.state, one.updated, {}});
    info.algorithm = std::move(graph);
    model_.training_info.push_back(std::move(info));
    for (ir::Function& function : updates.functions) {
      report_.functions.push_back(function.domain + "." + function.name);
      model_.functions.push_back(std::move(function));
    }
  }

  // Loss and accuracy of the main graph as it infers; nothing is updated.
  void add_measure(NamePool& names) {
    ir::Graph graph;
    graph.name = "measure";
    GraphBuilder builder(graph, names, element_);
    graph.inputs.push_back(target_of(target_, output_, scores_, element_, options_));
    tell(builder, add_loss(builder, wide(builder, scores_.name), scores_, target_, options_));
    model_.training_info.emplace_back().algorithm = std::move(graph);
  }

  // Losses are of float32 at least.
  std::string wide(GraphBuilder& builder, const std::string& scores) const {
    return is_half(network_) ? builder.cast(scores, element_) : scores;
  }

  void tell(GraphBuilder& builder, const LossValues& values) const {
    builder.output(values.loss, element_, {});
    if (!values.accuracy.empty()) builder.output(values.accuracy, element_, {});
  }

  const TrainableOptions& options_;
  TrainableReport& report_;
  ir::Model model_;
  ir::Graph& main_;
  NamePool names_;
  ir::ValueInfo output_;
  ElementType network_ = ElementType::undefined;  // what its output is of
  ElementType element_ = ElementType::undefined;  // of the loss, the parameters and the optimizer
  std::set<std::string> trained_;                 // what the network reads of them
  Scores scores_;
  std::vector<Parameter> parameters_;
  std::string target_;
};

ir::Model made_trainable(const Model& model, const TrainableOptions& options,
                         TrainableReport* report) {
  TrainableReport unread;
  TrainableReport& told = report != nullptr ? *report : unread;
  told = {};
  require_sound(options);
  ir::Model made = Making(model, options, told).make();
  require_gradients(made);
  return made;
}

}  // namespace

Model make_trainable(const Model& model, const TrainableOptions& options, TrainableReport* report) {
  return model_of(made_trainable(model, options, report));
}

Model merge_lora(const Model& model) {
  const Model::Implementation& from = model.implementation();
  refuse_broken(from);
  ir::Model made = from.runnable();
  train::drop_training(made);
  if (train::merge_lora(made) == 0)
    fail_at(from.model.path, ErrorCode::bad_input,
            "the model has no low-rank products to merge; make_trainable adds them where it is "
            "asked for LoRA");
  return model_of(made);
}

TrainableReport make_trainable(const Model& model, const TrainableOptions& options,
                               const std::string& path, const std::string& external_data) {
  TrainableReport report;
  SaveOptions saving;
  saving.external_data = external_data;
  save_model(made_trainable(model, options, &report), path, saving);
  return report;
}

}  // namespace sardonyx
