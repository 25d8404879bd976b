// sardonyx make-trainable
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arguments.h"
#include "commands.h"
#include "loading.h"
#include "os.h"
#include "sardonyx/graph.h"
#include "sardonyx/training_artifacts.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

using json = nlohmann::ordered_json;

struct MakeTrainableCommand {
  std::string model, output, external_data;
  std::string loss = "softmax-cross-entropy", optimizer = "adam", schedule = "constant",
              precision = "float32";
  std::vector<std::string> lora, outputs;
  std::vector<std::pair<std::string, Option>> of_models;  // what artifacts say themselves
  bool random_weights = false, as_json = false;
  int64_t ignored = 0;
  Option ignore, rate;
  TrainableOptions options;

  int run() {
    if (rate.count() > 0 && options.learning_rate == 0)
      throw UsageError("--learning-rate: must be positive; got 0");
    TrainableReport report;
    const bool artifacts = os::is_folder(model);
    {
      const Progress progress("making " + model + " trainable");
      report = artifacts ? of_artifacts() : of_model();
    }
    tell_written(output, as_json ? cli::text_of(to_json(report)) : text_of(report));
    return ok;
  }

  TrainableReport of_artifacts() {
    for (const auto& [name, option] : of_models) {
      if (option.count() > 0)
        throw UsageError(fmt::format(
            "{} is for a model; '{}' is a folder of training artifacts, which say that themselves",
            name, model));
    }
    loss = "that of the eval model", optimizer = "that of the optimizer model";
    ArtifactOptions made;
    made.outputs = outputs;
    made.learning_rate = options.learning_rate;
    return make_trainable(TrainingArtifacts::in(model), made, output, external_data);
  }

  TrainableReport of_model() {
    if (outputs.size() > 1)
      throw UsageError(
          "--output-name: the loss is of one output; a folder of artifacts may have "
          "several that inference is for");
    if (!outputs.empty()) options.output = outputs[0];
    options.loss = loss_named(loss);
    options.optimizer = optimizer_named(optimizer);
    const int64_t warmup = options.schedule.warmup;
    options.schedule = schedule_named(schedule);
    options.schedule.warmup = warmup;
    options.precision = precision_named(precision);
    for (const std::string& text : lora) options.lora.push_back(lora_named(text));
    if (random_weights) options.initial_weights = InitialWeights::random;
    if (ignore.count() > 0) options.ignore_index = ignored;
    LoadingOptions loading;
    loading.model = model;
    const Model loaded = load_model(loading);
    refuse_unused(loaded);
    return make_trainable(loaded, options, output, external_data);
  }

  // What was given, and would do nothing beside the other options.
  void refuse_unused(const Model& loaded) const {
    const auto are_of = [&](std::string_view whose, bool is_chosen,
                            std::initializer_list<std::string_view> names) {
      for (const auto& [name, option] : of_models) {
        if (!is_chosen && option.count() > 0 && std::ranges::find(names, name) != names.end())
          throw UsageError(fmt::format("{} is of {}", name, whose));
      }
    };
    const auto learns_by = [&](std::initializer_list<Optimizer> some) {
      return std::ranges::find(some, options.optimizer) != some.end();
    };
    using enum Optimizer;
    are_of("--loss softmax-cross-entropy", options.loss == Loss::softmax_cross_entropy,
           {"--class-axis", "--ignore-index"});
    are_of("--loss huber", options.loss == Loss::huber, {"--huber-delta"});
    are_of("--optimizer momentum", learns_by({momentum}), {"--momentum", "--nesterov"});
    are_of("--optimizer adam, adamw or lamb", learns_by({adam, adamw, lamb}),
           {"--beta1", "--beta2"});
    are_of("--optimizer rmsprop", learns_by({rmsprop}), {"--smoothing"});
    are_of("optimizers other than sgd and momentum", !learns_by({sgd, momentum}), {"--epsilon"});
    are_of("--random-weights and --lora", random_weights || !lora.empty(), {"--seed"});
    bool may_be_half = false;
    for (const ValueInfoView& one : loaded.graph().outputs()) {
      const std::string type = one.type_text();
      may_be_half = may_be_half || type.starts_with("float16") || type == "?";
    }
    are_of("--precision fp16, and of models of float16",
           options.precision == Precision::float16 || may_be_half,
           {"--loss-scale", "--scale-growth"});
  }

  std::string text_of(const TrainableReport& report) const {
    std::string text = fmt::format(
        "wrote {}: {} initializers learn, {} elements; {} are frozen\n"
        "  the loss, {}, compares with the input '{}'; {} updates\n",
        shown(output), report.trained.size(), grouped(report.trained_elements),
        report.frozen.size(), loss, shown(report.target), optimizer);
    if (!report.statistics.empty())
      text += fmt::format("  {} running statistics are updated\n", report.statistics.size());
    for (const std::string& function : report.functions)
      text += fmt::format("  the model has got the function {}\n", function);
    for (const std::string& note : report.notes) text += fmt::format("  {}\n", shown(note));
    return text;
  }

  json to_json(const TrainableReport& report) const {
    return {{"output", output},
            {"loss", loss},
            {"optimizer", optimizer},
            {"target", report.target},
            {"trained", report.trained},
            {"trained_elements", report.trained_elements},
            {"frozen", report.frozen},
            {"statistics", report.statistics},
            {"functions", report.functions},
            {"notes", report.notes}};
  }
};

void add_loss_options(const Options& make, MakeTrainableCommand& command) {
  TrainableOptions& o = command.options;
  make.add_option("--loss", command.loss, "The loss (softmax-cross-entropy)")
      .type_name("{softmax-cross-entropy,mse,l1,bce,bce-with-logits,huber}");
  make.add_option("--output-name", command.outputs,
                  "The output that the loss is of, if not the first; of artifacts: a value that "
                  "inference gives (may be repeated)")
      .one_value_each()
      .type_name("NAME");
  make.add_option("--class-axis", o.class_axis, "Where softmax-cross-entropy has its classes")
      .check(whole_number())
      .type_name("N");
  command.ignore = make.add_option("--ignore-index", command.ignored, "Targets that do not count")
                       .check(whole_number())
                       .type_name("N");
  make.add_option("--huber-delta", o.huber_delta, "Where huber becomes linear").type_name("X");
}

void add_optimizer_options(const Options& make, MakeTrainableCommand& command) {
  TrainableOptions& o = command.options;
  make.add_option("--optimizer", command.optimizer, "The rule of updates (adam)")
      .type_name("{sgd,momentum,adam,adamw,adagrad,rmsprop,lamb}");
  command.rate = make.add_option("--learning-rate", o.learning_rate,
                                 "0.001 for adam, adamw and lamb, 0.01 for others")
                     .type_name("X");
  make.add_option("--momentum", o.momentum, "Of momentum").type_name("X");
  make.add_flag("--nesterov", o.nesterov, "Of momentum");
  make.add_option("--beta1", o.beta1, "Of adam, adamw and lamb").type_name("X");
  make.add_option("--beta2", o.beta2, "Of adam, adamw and lamb").type_name("X");
  make.add_option("--smoothing", o.smoothing, "Of rmsprop").type_name("X");
  make.add_option("--epsilon", o.epsilon, "Added to divisors").type_name("X");
  make.add_option("--weight-decay", o.weight_decay, "Pulls weights to 0").type_name("X");
  make.add_option("--schedule", command.schedule,
                  "constant, linear:STEPS, cosine:STEPS, step:STEPS:FACTOR or exponential:FACTOR")
      .type_name("TEXT");
  make.add_option("--warmup", o.schedule.warmup, "Steps in which the learning rate rises")
      .check(whole_number(0))
      .type_name("N");
  make.add_option("--clip-norm", o.clip_norm, "Largest norm of all gradients together")
      .type_name("X");
  make.add_option("--clip-value", o.clip_value, "Largest magnitude of a gradient's element")
      .type_name("X");
  make.add_option("--accumulate", o.accumulate, "Steps whose gradients make one update")
      .check(whole_number(1))
      .type_name("N");
}

void add_cost_options(const Options& make, MakeTrainableCommand& command) {
  TrainableOptions& o = command.options;
  make.add_option("--precision", command.precision,
                  "float32, bf16 or fp16: what products are computed in")
      .type_name("NAME");
  make.add_option("--loss-scale", o.loss_scale,
                  "Of fp16: what the loss is multiplied with at first")
      .type_name("X");
  make.add_option("--scale-growth", o.scale_growth,
                  "Of fp16: steps after which the loss scale is doubled")
      .check(whole_number(1))
      .type_name("N");
  make.add_flag("--recompute", o.recompute,
                "Steps compute parts of the network again instead of keeping them: less memory");
}

void add_weight_options(const Options& make, MakeTrainableCommand& command) {
  TrainableOptions& o = command.options;
  make.add_option("--train", o.train,
                  "Only initializers of such names learn; * and ? as in shells; repeatable")
      .one_value_each()
      .type_name("PATTERN");
  make.add_option("--freeze", o.freeze, "Initializers of such names do not learn; repeatable")
      .one_value_each()
      .type_name("PATTERN");
  make.add_option("--lora", command.lora,
                  "Low-rank products of this rank beside those with such weights learn instead; "
                  "repeatable")
      .one_value_each()
      .type_name("RANK:PATTERN");
  make.add_flag("--random-weights", command.random_weights,
                "Initialization draws the weights anew");
  make.add_option("--seed", o.seed, "Of what is drawn").check(whole_number(0)).type_name("N");
}

}  // namespace

void add_make_trainable(const Options& app, Action& action) {
  auto command = std::make_shared<MakeTrainableCommand>();
  const Options make = app.add_command(
      "make-trainable", "Make a training model, as the standard describes it, of any model");
  add_model_argument(make, "MODEL", command->model,
                     "The model, in any form; or a folder of ONNX Runtime's training artifacts");
  make.add_option("-o,--output", command->output, "The training model to write")
      .required()
      .transform(output_file())
      .type_name("FILE");
  make.add_option("--external-data", command->external_data,
                  "The file beside it that takes the larger tensors")
      .check(not_empty())
      .type_name("FILE");
  add_loss_options(make, *command);
  add_optimizer_options(make, *command);
  add_weight_options(make, *command);
  add_cost_options(make, *command);
  make.add_flag("--json", command->as_json, "Print what was made as JSON");
  for (const char* name :
       {"--loss",       "--class-axis",   "--ignore-index", "--huber-delta", "--optimizer",
        "--momentum",   "--nesterov",     "--beta1",        "--beta2",       "--smoothing",
        "--epsilon",    "--weight-decay", "--schedule",     "--warmup",      "--clip-norm",
        "--clip-value", "--accumulate",   "--precision",    "--loss-scale",  "--scale-growth",
        "--recompute",  "--train",        "--freeze",       "--lora",        "--random-weights",
        "--seed"})
    command->of_models.emplace_back(name, make.option(name));
  make.on_chosen([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace sardonyx::cli
