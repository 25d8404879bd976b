// sardonyx profile
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <unordered_map>

#include "arguments.h"
#include "commands.h"
#include "loading.h"
#include "model_inputs.h"
#include "os.h"
#include "profile_report.h"
#include "sardonyx/outputs.h"
#include "sardonyx/text.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

constexpr double wanted_ms = 1000;  // of runs, where --runs does not say
constexpr int min_runs = 5, max_runs = 1000;

// Whether both name one file, which may not be there yet; one that is none on a disk holds nothing.
bool are_one_file(const std::string& first, const std::string& second) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path a = fs::absolute(os::path(first), ignored),
                 b = fs::absolute(os::path(second), ignored);
  if (fs::exists(a, ignored))
    return fs::equivalent(a, b, ignored) && fs::is_regular_file(a, ignored);
  const fs::path whole = fs::weakly_canonical(a, ignored);  // empty where no file can be there
  return !whole.empty() && whole == fs::weakly_canonical(b, ignored);
}

struct ProfileCommand {
  LoadingOptions loading;
  ModelInputs inputs;
  int runs = 0;
  std::string html, trace;
  bool as_json = false;

  int run();

 private:
  void time_runs(const Session& session, const std::vector<NamedValue>& given,
                 Profile& profile) const;
};

// Outputs are made where those of the run before lie.
void ProfileCommand::time_runs(const Session& session, const std::vector<NamedValue>& given,
                               Profile& profile) const {
  std::vector<Value> values(session.inputs().size()), outputs(session.outputs().size());
  std::unordered_map<std::string_view, const Value*> by_name;
  for (const auto& [name, value] : given) by_name[name] = &value;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto found = by_name.find(session.inputs()[i].name);
    if (found != by_name.end()) values[i] = *found->second;
  }
  RunOptions options;
  options.profile = &profile;
  const double begin = now_ms();
  const auto more = [&] {
    const int done = static_cast<int>(profile.runs().size());
    if (runs > 0) return done < runs;
    return done < min_runs || (done < max_runs && now_ms() - begin < wanted_ms);
  };
  while (more()) session.run(values, outputs, options);
}

int ProfileCommand::run() {
  if (loading.reference)
    throw UsageError("profile: reference execution has no steps; leave out --reference");
  const auto is_standard_output = [](const std::string& path) {
    return descriptor_named(path) == os::standard_output;
  };
  if (is_standard_output(html) && is_standard_output(trace))
    throw UsageError("--html and --trace can't both go to standard output");
  if (!html.empty() && !trace.empty() && are_one_file(html, trace))
    throw UsageError(fmt::format("--html and --trace can't both go to '{}'", printable(html)));
  for (const std::string& written : {html, trace}) {
    if (!written.empty() && are_one_file(written, loading.model))
      throw UsageError(
          fmt::format("'{}' is the model, which would be lost; give the report another name",
                      printable(written)));
  }
  inputs.parse();
  loading.seed = inputs.seed();
  const Loaded loaded = load(loading);
  inputs.fill_with_random();
  const std::vector<NamedValue> given = inputs.values(loaded.model, loaded.session.inputs());
  Progress progress("running " + loading.model);
  const double start = now_ms();
  inputs.explaining([&] { return loaded.session.run(given); });
  const double first_ms = now_ms() - start;
  MachineLimits limits = measure_limits(loaded.threads);
  Profile profile;
  time_runs(loaded.session, given, profile);
  progress.set("writing the report");
  ProfileReport report = make_report(profile, std::move(limits));
  report.model = loading.model;
  report.guards = loaded.session.plan_for(given).guards;
  report.load_ms = loaded.milliseconds;
  report.first_ms = first_ms;
  if (!html.empty()) write_text(html, report_html(report));
  if (!trace.empty()) write_text(trace, report_trace(report));
  tell_written(is_standard_output(html) ? html : trace,
               as_json ? text_of(report_json(report)) : report_text(report));
  return ok;
}

}  // namespace

void add_profile(const Options& app, Action& action) {
  auto command = std::make_shared<ProfileCommand>();
  const Options profile = app.add_command(
      "profile",
      "Time each step of a model beside what the machine could do; inputs that are not "
      "given are random");
  add_loading_options(profile, command->loading);
  command->inputs.add_options(profile);
  profile.add_option("-n,--runs", command->runs, "How many runs; without it, one second of runs")
      .check(whole_number(1, 1000000))
      .type_name("N");
  profile.add_option("--html", command->html, "Write a page with tables, timeline and roofline")
      .transform(output_file())
      .type_name("FILE");
  profile
      .add_option("--trace", command->trace,
                  "Write all calls of steps as trace events, for chrome://tracing and Perfetto")
      .transform(output_file())
      .type_name("FILE");
  profile.add_flag("--json", command->as_json, "One JSON object (docs/profiling.md)");
  profile.on_chosen([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace sardonyx::cli
