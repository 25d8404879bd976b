// sardonyx bench
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "arguments.h"
#include "commands.h"
#include "loading.h"
#include "memory.h"
#include "model_inputs.h"
#include "os.h"
#include "sardonyx/info.h"
#include "sardonyx/machine.h"
#include "sardonyx/text.h"
#include "serve.h"
#include "statistics.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

using json = nlohmann::ordered_json;

constexpr double wanted_ms = 1000;  // of runs, where --repeat does not say
constexpr int max_runs = 100000;

struct BenchCommand {
  LoadingOptions loading;
  ModelInputs inputs;
  int repeat = 0;
  bool serve = false, probe = false, as_json = false;

  int run();

 private:
  int run_probe() const;
  int run_model();
  struct Times {
    double first;  // packs weights, unless --prepack has
    std::vector<double> later;
  };
  Times time_runs(const Session& session, const std::vector<NamedValue>& given) const;
};

int BenchCommand::run_probe() const {
  json report = json::object();
  std::string text;
  const Progress progress("probing this machine's peak");
  for (const int threads : {1, 2}) {
    if (threads > usable_processors()) break;
    const MachinePeak peak = probe_machine(threads);
    report[fmt::format("gflops_{}", threads)] = peak.gflops;
    report[fmt::format("gbps_{}", threads)] = peak.gbps;
    text += fmt::format("{} {}: {:.1f} GFLOP/s, {:.1f} GB/s\n", threads,
                        threads == 1 ? "thread " : "threads", peak.gflops, peak.gbps);
  }
  if (as_json) {
    emit_json(report);
  } else {
    emit(text);
  }
  return ok;
}

BenchCommand::Times BenchCommand::time_runs(const Session& session,
                                            const std::vector<NamedValue>& given) const {
  Progress progress("running " + loading.model);
  const double very_begin = now_ms();
  std::vector<Value> outputs = inputs.explaining([&] { return session.run(given); });
  const double begin = now_ms();
  std::vector<double> times;
  while (repeat > 0
             ? times.size() < static_cast<size_t>(repeat)
             : times.size() < 5 || (now_ms() - begin < wanted_ms && times.size() < max_runs)) {
    const double start = now_ms();
    outputs = session.run(given);
    times.push_back(now_ms() - start);
  }
  return {begin - very_begin, std::move(times)};
}

int BenchCommand::run_model() {
  inputs.parse();
  loading.seed = inputs.seed();
  const double base = os::resident_megabytes();
  const Loaded loaded = load(loading);
  inputs.fill_with_random();
  const std::vector<NamedValue> given = inputs.values(loaded.model, loaded.session.inputs());
  auto [first, times] = time_runs(loaded.session, given);
  const double peak = os::peak_megabytes();
  std::sort(times.begin(), times.end());
  const double middle = median(times), high = percentile(times, 0.9);
  const ModelInfo info = model_info(loading.model, inputs.sizes(), loading.libraries);
  const double flops = info.cost ? info.cost->flops : 0;
  const double gflops = flops / middle * 1e-6;
  if (as_json) {
    emit_json(json{{"model", loading.model},
                   {"threads", loaded.threads},
                   {"load_ms", loaded.milliseconds},
                   {"first_ms", first},
                   {"runs", times.size()},
                   {"min_ms", times.front()},
                   {"median_ms", middle},
                   {"p90_ms", high},
                   {"max_ms", times.back()},
                   {"flops", flops},
                   {"gflops", gflops},
                   {"packed_bytes", loaded.session.packed_bytes()},
                   {"arena_bytes", loaded.session.arena_bytes()},
                   {"peak_mb", peak},
                   {"base_mb", base}});
    return ok;
  }
  emit(fmt::format(
      "{}: {} {}\nload    {}, first run {}\nrun     {} median of {}; best {}, 9 of 10 within {}\n"
      "speed   {:.1f} GFLOP/s ({} a run)\nmemory  {:.1f} MB at most, {:.1f} MB before loading; {} "
      "packed weights, {} arena\n",
      printable(loading.model), loaded.threads, loaded.threads == 1 ? "thread" : "threads",
      milliseconds(loaded.milliseconds), milliseconds(first), milliseconds(middle), times.size(),
      milliseconds(times.front()), milliseconds(high), gflops, flops_text(flops), peak, base,
      bytes_text(static_cast<double>(loaded.session.packed_bytes())),
      bytes_text(static_cast<double>(loaded.session.arena_bytes()))));
  return ok;
}

int BenchCommand::run() {
  if (serve && probe) throw UsageError("--serve and --probe exclude each other");
  if (serve && !loading.model.empty())
    throw UsageError("bench: --serve takes no MODEL; its command 'load' names one");
  if (probe && !loading.model.empty())
    throw UsageError("bench: --probe measures the machine, and takes no MODEL");
  if (serve) return serve_lines();
  if (probe) return run_probe();
  if (loading.model.empty())
    throw UsageError("bench: MODEL is required; see 'sardonyx bench --help'");
  return run_model();
}

}  // namespace

void add_bench(const Options& app, Action& action) {
  auto command = std::make_shared<BenchCommand>();
  const Options bench =
      app.add_command("bench", "Time a model; inputs that are not given are random");
  add_loading_options(bench, command->loading);
  bench.option("MODEL").required(false);
  command->inputs.add_options(bench);
  bench.add_option("-n,--repeat", command->repeat, "How many runs; without it, one second of runs")
      .check(whole_number(1, 1000000000))
      .type_name("N");
  bench.add_flag("--probe", command->probe,
                 "Measure the machine's peak instead: multiply-adds and reading of memory");
  bench.add_flag("--serve", command->serve,
                 "Take commands from standard input, one a line (docs/cli.md)");
  bench.add_flag("--json", command->as_json, "One JSON object (docs/cli.md)");
  bench.on_chosen([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace sardonyx::cli
