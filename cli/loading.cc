#include "loading.h"

#include <fmt/format.h>

#include <chrono>

#include "arguments.h"
#include "sardonyx/machine.h"
#include "sardonyx/text.h"
#include "terminal.h"

namespace sardonyx::cli {

void add_library_option(const Options& command, std::vector<std::string>& libraries) {
  command
      .add_option("--library", libraries,
                  "A library of operators (docs/custom_operators.md), whose code then runs here; "
                  "repeatable")
      .check(not_empty())
      .one_value_each()
      .type_name("FILE");
}

void add_loading_options(const Options& command, LoadingOptions& options) {
  add_model_argument(command, "MODEL", options.model,
                     "The model: .onnx, .ort, .json, .textproto, or .onnxtxt in textual syntax");
  command
      .add_option("-t,--threads", options.threads,
                  "Threads to compute with; 0: all this process may use")
      .check(whole_number(0, 4096))
      .type_name("N");
  command
      .add_option("--trust-folder", options.trusted_folder,
                  "A folder that links of external data may lead into; links are refused otherwise")
      .check(not_empty())
      .type_name("DIR");
  add_operator_sets(command, options.operator_sets);
  add_library_option(command, options.libraries);
  add_renamed_flag(command, "--reference", "--plain", options.reference,
                   "Reference execution: node after node, without plan and fusion");
  command.add_flag("--exact", options.exact, "No algorithm that trades accuracy for speed");
  command.add_flag(
      "--assume-inference", options.assume_inference,
      "BatchNormalization and Dropout of opsets up to 6 without is_test mean inference");
  command.add_flag(
      "--flush-denormals", options.flush_denormals,
      "Numbers nearer to 0 than the least normal one count as 0; processors are slow with them");
  command.add_flag("--strict-model", options.strict_model,
                   "Refuse a model that breaks a rule, even where its meaning is clear");
  options.fixed_dims.add(command,
                         "Plan for these sizes, by name or place: batch=4,image.2=224; runs "
                         "with others are refused");
  add_renamed_flag(command, "--prepack", "--pack-early", options.prepack,
                   "Pack all weights before the first run; otherwise the first run packs them");
  command
      .add_option("--packed", options.packed,
                  "Take packed weights from this file, which `sardonyx pack` has made of the model")
      .check(not_empty())
      .type_name("FILE.sdx");
  command
      .add_option("--cache-folder", options.cache_folder,
                  "Keep packed weights in files of this folder, for the next time")
      .check(not_empty())
      .type_name("DIR");
}

Model load_model(const LoadingOptions& options) {
  LoadOptions load_options;
  load_options.trusted_folder = options.trusted_folder;
  load_options.operator_sets = options.operator_sets;
  load_options.libraries = options.libraries;
  load_options.strict = options.strict_model;
  const auto printer = std::make_shared<WarningPrinter>(options.model);
  load_options.warn = [printer](const Warning& warning) { (*printer)(warning); };
  return Model(options.model, load_options);
}

SessionOptions planning_options(const LoadingOptions& options) {
  SessionOptions made;
  made.threads = options.threads;
  made.exact = options.exact;
  made.assume_inference = options.assume_inference;
  made.dimensions = options.fixed_dims.sizes();
  return made;
}

Loaded load(const LoadingOptions& options, bool all_outputs) {
  if (options.reference &&
      (options.prepack || !options.packed.empty() || !options.cache_folder.empty()))
    throw UsageError("--prepack, --packed and --cache-folder: reference execution packs nothing");
  const Progress progress("loading " + options.model);
  name_mapped_file(options.model);
  const Threads threads(options.threads);
  const int wanted = options.threads > 0 ? options.threads : usable_processors();
  if (threads.count() < wanted)
    warn(
        fmt::format("the system started {} of {} threads; limits of processes or of memory may "
                    "be why (ulimit -u, ulimit -v)",
                    threads.count(), wanted));
  SessionOptions session_options = planning_options(options);
  session_options.shared_threads = threads;
  session_options.reference = options.reference;
  session_options.prepack = options.prepack;
  session_options.flush_denormals = options.flush_denormals;
  session_options.packed = options.packed;
  session_options.cache_folder = options.cache_folder;
  session_options.seed = options.seed;
  session_options.all_outputs = all_outputs;
  const double start = now_ms();
  Model model = load_model(options);
  Session session(model, session_options);
  return {std::move(model), std::move(session), threads.count(), now_ms() - start};
}

namespace {
constexpr int shown_warnings = 10;
}

void WarningPrinter::operator()(const Warning& warning) {
  if (count_++ < shown_warnings)
    warn(fmt::format("{}: {}", printable(model_), printable_message(warning.to_string())));
}

WarningPrinter::~WarningPrinter() {
  if (count_ > shown_warnings)
    say(fmt::format("sardonyx: {} more warnings of the model\n", count_ - shown_warnings));
}

double now_ms() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace sardonyx::cli
