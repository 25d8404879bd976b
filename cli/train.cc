// sardonyx train
#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <exception>
#include <memory>
#include <optional>

#include "arguments.h"
#include "commands.h"
#include "curve.h"
#include "fail.h"
#include "loading.h"
#include "os.h"
#include "sardonyx/fit.h"
#include "sardonyx/model.h"
#include "sardonyx/outputs.h"
#include "sardonyx/trainable.h"
#include "saving.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

using json = nlohmann::ordered_json;

constexpr int interrupted = 130;  // what shells say of a program that Ctrl-C ended

std::atomic<bool> stop_wanted = false;
void on_interrupt() { stop_wanted = true; }

// NaN is no number of JSON's.
json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json to_json(const std::vector<Metric>& metrics) {
  json made = json::object();
  for (const Metric& metric : metrics) made[metric.name] = number(metric.value);
  return made;
}

std::string text_of(const std::vector<Metric>& metrics) {
  std::string text;
  for (const Metric& metric : metrics)
    text += fmt::format("{}{} {:.6g}", text.empty() ? "" : ", ", shown(metric.name), metric.value);
  return text;
}

// What can't be written is said before the training, not after it.
void require_place(const std::string& path) {
  if (descriptor_named(path)) return;  // which no system needs a folder /dev for
  if (os::is_folder(path)) fail_at(path, ErrorCode::unreadable, "cannot write: is a folder");
  const std::string folder = os::text(os::path(path).parent_path());
  if (!folder.empty() && !os::is_folder(folder))
    fail_at(path, ErrorCode::unreadable, "cannot write: there is no folder '{}'", folder);
}

struct TrainCommand {
  std::string model, output, data, validation, plot, external_data, augment;
  std::string bad_loss = "stop";
  bool resume = false, as_json = false, inference_only = false, merge_lora = false;
  bool anew = false, as_it_is = false, recompute = false;
  int threads = 0;
  int64_t log_every = 0, seed = 0;
  Option seeded;
  FitOptions options;

  Curve losses{"loss", {}}, validated{"validation", {}};
  CurveTable epochs;
  double rate = 0;             // examples a second
  int64_t done = 0, told = 0;  // examples, in all and up to the last epoch
  std::exception_ptr untold;   // why standard output could not be written to

  int run() {
    options.bad_loss = bad_loss == "skip" ? BadLoss::skip : BadLoss::stop;
    if (!plot.empty() && !plot.ends_with(".svg") && !plot.ends_with(".html"))
      throw UsageError(fmt::format("--plot draws .svg and .html; '{}' is neither", plot));
    if (!augment.empty()) options.augment = augmentation_named(augment);
    require_place(output);
    if (!plot.empty()) require_place(plot);
    require_known_ending(output, model);
    if (drawing_form_of(output))
      throw UsageError(fmt::format("--output {}: a drawing holds no weights", output));
    const std::string data_name = os::text(os::path(external_data).filename());
    if (!external_data.empty() && (descriptor_named(output) || data_name != external_data ||
                                   data_name == os::text(os::path(output).filename())))
      throw UsageError(
          fmt::format("--external-data {}: expected the name of another file beside the output",
                      external_data));
    if (resume && options.checkpoints.empty())
      throw UsageError("--resume needs the folder of the checkpoints, --checkpoint DIR");
    const Checkpoint from = resume ? last_checkpoint(options.checkpoints) : Checkpoint();
    TrainingSession session = load(from);
    const TrainingData examples = TrainingData::read(data, session, options.which);
    std::optional<TrainingData> held_back;
    if (!validation.empty()) {
      held_back = TrainingData::read(validation, session, options.measure);
      options.validation = &*held_back;
    }
    return train(session, examples);
  }

  TrainingSession load(const Checkpoint& from) {
    const Progress progress("preparing " + model);
    LoadingOptions loading;
    loading.model = from.path.empty() ? model : from.path;
    options.first_step = from.step;
    TrainingOptions training;
    training.threads = threads;
    if (recompute) training.recompute = true;
    if (seeded.count() > 0 && from.path.empty()) training.seed = static_cast<uint64_t>(seed);
    const Model loaded = load_model(loading);
    if (merge_lora) sardonyx::merge_lora(loaded);  // or says that there is nothing to merge
    TrainingSession session(loaded, training);
    // A model that nobody has trained yet begins with its initialization.
    if (from.path.empty() && (anew || (session.turn() == 0 && !as_it_is))) session.initialize();
    return session;
  }

  int train(TrainingSession& session, const TrainingData& examples) {
    const os::Interrupts interrupts(on_interrupt);
    options.stop = &stop_wanted;
    FitResult result;
    {
      Progress progress("training");
      options.on_step = [&](const FitProgress& at) { tell_step(at, progress); };
      options.on_epoch = [&](const EpochResult& epoch) { tell_epoch(epoch); };
      result = fit(session, examples, options);
    }
    if (options.first_step > 0 && result.step == options.first_step && !result.stopped)
      warn(
          fmt::format("nothing was trained: the checkpoint has {} steps behind it, and the {} "
                      "epochs have no more",
                      grouped(result.step), grouped(options.epochs)));
    const bool is_kept = result.stopped && !result.checkpoint.empty();
    if (!is_kept) {
      TrainingSaveOptions saving;
      saving.inference_only = inference_only;
      saving.merge_lora = merge_lora;
      saving.external_data = external_data;
      session.save(output, saving);
    }
    if (!plot.empty()) draw();
    tell_end(result, is_kept);
    if (untold) std::rethrow_exception(untold);
    return result.stopped ? interrupted : ok;
  }

  void draw() const {
    std::vector<Curve> curves{losses};
    if (!validated.points.empty()) curves.push_back(validated);
    const std::string svg = curve_svg(curves, "loss over steps");
    write_text(plot,
               plot.ends_with(".html") ? curve_page(svg, "Training of " + model, epochs) : svg);
  }

  // A row of numbers for the page.
  void keep(const EpochResult& epoch, double speed) {
    std::vector<std::string> row{std::to_string(epoch.epoch + 1)};
    epochs.heads = {"epoch"};
    const auto add = [&](const std::string& head, double value, const char* form) {
      epochs.heads.push_back(head);
      row.push_back(fmt::format(fmt::runtime(form), value));
    };
    for (const Metric& one : epoch.training) add(one.name, one.value, "{:.6g}");
    for (const Metric& one : epoch.validation) add("validation " + one.name, one.value, "{:.6g}");
    add("examples a second", speed, "{:.0f}");
    epochs.rows.push_back(std::move(row));
  }

  void tell_step(const FitProgress& at, Progress& progress) {
    rate = static_cast<double>(at.examples) / std::max(at.seconds, 1e-9);
    done = at.examples;
    losses.points.push_back({static_cast<double>(at.step), at.loss});
    const double left = at.seconds / static_cast<double>(at.step - options.first_step) *
                        static_cast<double>(at.steps - at.step);
    progress.set(
        fmt::format("epoch {}/{}, step {}/{}, loss {:.5g}, {:.0f} examples a second, {:.0f} s left",
                    at.epoch + 1, options.epochs, at.step, at.steps, at.loss, rate, left));
    if (at.skipped && !as_json)
      warn(fmt::format("step {}: the loss is {}; the step is left out", at.step, at.loss));
    if (!as_json || log_every == 0 || at.step % log_every != 0) return;
    json line = {{"event", "step"},
                 {"epoch", at.epoch + 1},
                 {"step", at.step},
                 {"loss", number(at.loss)},
                 {"skipped", at.skipped},
                 {"metrics", to_json(at.metrics)},
                 {"examples_per_second", number(rate)}};
    tell(line);
  }

  void tell_epoch(const EpochResult& epoch) {
    if (!epoch.validation.empty() && !losses.points.empty())
      validated.points.push_back({losses.points.back().x, epoch.validation[0].value});
    // A training that goes on from a checkpoint may do the rest of an epoch alone.
    const double speed = static_cast<double>(done - told) / std::max(epoch.seconds, 1e-9);
    told = done;
    if (plot.ends_with(".html")) keep(epoch, speed);
    if (as_json) {
      json line = {{"event", "epoch"},
                   {"epoch", epoch.epoch + 1},
                   {"training", to_json(epoch.training)},
                   {"validation", to_json(epoch.validation)},
                   {"seconds", epoch.seconds}};
      tell(line);
      return;
    }
    tell(fmt::format("epoch {}/{}: {}{}{}, {:.0f} examples a second\n", epoch.epoch + 1,
                     options.epochs, text_of(epoch.training),
                     epoch.validation.empty() ? "" : "; validation: ", text_of(epoch.validation),
                     speed));
  }

  void tell_end(const FitResult& result, bool is_kept) {
    if (as_json) {
      json line = {{"event", "end"},
                   {"steps", result.step},
                   {"stopped", result.stopped},
                   {"stopped_early", result.stopped_early},
                   {"skipped", result.skipped},
                   {"checkpoint", result.checkpoint},
                   {"output", is_kept ? "" : output}};
      tell(line);
      return;
    }
    std::string text = fmt::format("{} steps", grouped(result.step));
    if (result.skipped > 0) text += fmt::format(", {} left out", grouped(result.skipped));
    if (result.stopped_early) text += ", ended early";
    if (is_kept) {
      text +=
          fmt::format("; stopped, the state is in {}: --resume goes on", shown(result.checkpoint));
    } else {
      text += fmt::format("{}; wrote {}", result.stopped ? ", stopped" : "", shown(output));
    }
    tell(text + "\n");
  }

  // A log that is full costs no training: that is said at the end.
  void tell(const std::string& text) {
    try {
      if (!untold) tell_written(output, text);
    } catch (const Error&) {
      untold = std::current_exception();
    }
  }

  void tell(const json& line) {
    tell(line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
  }
};

void add_data_options(const Options& train, TrainCommand& command) {
  FitOptions& o = command.options;
  train
      .add_option("--data", command.data,
                  "An .npz file with an array for each input of a step, or a folder of NAME.npy")
      .required()
      .check(not_empty())
      .type_name("FILE|FOLDER");
  const Option validation =
      train.add_option("--validation", command.validation, "The same, to measure after each epoch")
          .check(not_empty())
          .type_name("FILE|FOLDER");
  train.add_option("--epochs", o.epochs, "How often to go through the data")
      .check(whole_number(0))
      .type_name("N");
  train.add_option("--batch", o.batch, "Examples of a step").check(whole_number(1)).type_name("N");
  train.add_flag("--shuffle,!--no-shuffle", o.shuffle, "Each epoch in another order (the default)");
  train
      .add_option("--augment", command.augment,
                  "Images in another form in each epoch: flip, crop:PIXELS, or flip,crop:PIXELS")
      .check(not_empty())
      .type_name("WHAT");
  train.add_flag("--drop-last", o.drop_last, "Leave out a last batch that is smaller");
  command.seeded = train.add_option("--seed", command.seed, "Of the order and of all that is drawn")
                       .check(whole_number(0))
                       .type_name("N");
  train.add_option("--algorithm", o.which, "The entry of training_info that learns")
      .check(whole_number(0))
      .type_name("N");
  train.add_option("--measure", o.measure, "The entry of training_info that --validation runs")
      .check(whole_number(0))
      .needs(validation)
      .type_name("N");
}

void add_course_options(const Options& train, TrainCommand& command) {
  FitOptions& o = command.options;
  const Option anew = train.add_flag("--initialize", command.anew,
                                     "Run the initialization, although the model was trained");
  train.add_flag("--no-initialize", command.as_it_is, "Begin with the weights that the model has")
      .excludes(anew);
  const auto folder = train.add_option("--checkpoint", o.checkpoints, "A folder for checkpoints")
                          .check(not_empty())
                          .type_name("DIR");
  train
      .add_option("--every", o.every, "Steps between checkpoints; without it, one after each epoch")
      .check(whole_number(1))
      .needs(folder)
      .type_name("N");
  train.add_option("--keep", o.keep, "How many checkpoints stay")
      .check(whole_number(1))
      .needs(folder)
      .type_name("N");
  train.add_flag("--resume", command.resume, "Go on from the newest checkpoint, if there is one");
  train
      .add_option("--bad-loss", command.bad_loss,
                  "What to do with a step whose loss is no finite number: stop or skip")
      .check(one_of({"stop", "skip"}))
      .type_name("{stop,skip}");
  train
      .add_option("--patience", o.patience,
                  "End after so many epochs without a smaller loss of --validation")
      .check(whole_number(1))
      .type_name("N");
}

}  // namespace

void add_train(const Options& app, Action& action) {
  auto command = std::make_shared<TrainCommand>();
  const Options train = app.add_command("train", "Train a training model on data");
  add_model_argument(train, "MODEL", command->model,
                     "A model with training information (make-trainable makes one)");
  train.add_option("-o,--output", command->output, "The trained model to write")
      .required()
      .transform(output_file())
      .type_name("FILE");
  train.add_flag("--inference-only", command->inference_only,
                 "Write it without its training information");
  train.add_flag("--merge-lora", command->merge_lora,
                 "Write it with LoRA's products added to the weights, for inference alone");
  train
      .add_option("--external-data", command->external_data,
                  "The file beside it that takes the larger tensors")
      .check(not_empty())
      .type_name("FILE");
  add_data_options(train, *command);
  add_course_options(train, *command);
  train.add_option("--threads", command->threads, "How many threads to use; 0: all there are")
      .check(whole_number(0, 4096))
      .type_name("N");
  train.add_flag("--recompute", command->recompute,
                 "Compute parts of the network again instead of keeping them: less memory");
  train
      .add_option("--plot", command->plot,
                  "Draw the loss over the steps; a page has the epochs' numbers, too")
      .check(not_empty())
      .type_name("FILE.svg|FILE.html");
  const Option as_json =
      train.add_flag("--json", command->as_json, "A line of JSON for each epoch, and at the end");
  train.add_option("--log-every", command->log_every, "With --json: one for every N-th step, too")
      .needs(as_json)
      .check(whole_number(1))
      .type_name("N");
  train.on_chosen([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace sardonyx::cli
