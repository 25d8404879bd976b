// Times what a caller sees of the engine beside the kernels; prints one JSON object.
//
//   engine_bench run MODEL COUNT                    microseconds of a run on bound inputs
//
//   engine_bench pasts MODEL STEPS                  a decoder whose past grows by one each time
//
//   engine_bench lengths MODEL DIM LOW HIGH COUNT   random lengths beside the same length again
//
//   engine_bench shapes MODEL DIM LOW HIGH COUNT    memory over runs of random shapes
//
//   engine_bench more MODEL DIM SIZE COUNT          further sessions of one Model beside the first
//
//   engine_bench callers MODEL CALLERS THREADS      one session for many callers beside sessions of
//                                                   one thread and one caller each
//
// Inputs are random. One thread where nothing else is said.
#include <time.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "sardonyx/inputs.h"
#include "sardonyx/profile.h"
#include "sardonyx/session.h"

namespace {

using namespace sardonyx;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers[numbers.size() / 2];
}

double resident_now_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
  }
  return 0;
}

std::vector<Value> inputs_of(const Session& session, const DimSizes& sizes) {
  std::vector<Value> values;
  for (const ValueDescription& input : session.inputs())
    values.push_back(random_value(input, shape_for(input, sizes), 1));
  return values;
}

SessionOptions with_threads(int threads) {
  SessionOptions options;
  options.threads = threads;
  return options;
}

// Of this thread alone, so that a busy machine disturbs less.
double processor_us() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

int time_runs(const std::string& model, int count) {
  const Session session(model, with_threads(1));
  const std::vector<Value> inputs = inputs_of(session, {});
  std::vector<Value> outputs(session.outputs().size());
  session.run(inputs, outputs);
  std::vector<double> times;
  for (int batch = 0; batch < 31; ++batch) {
    const double start = processor_us();
    for (int i = 0; i < count; ++i) session.run(inputs, outputs);
    times.push_back((processor_us() - start) / count);
  }
  std::printf("{\"us\": %.4f, \"steps\": %zu}\n", median(times), session.steps().size());
  return 0;
}

// Microseconds that a run spent outside its steps: taking inputs and binding sizes.
double outside_us(const Profile& profile) {
  const Profile::Run& run = profile.runs().back();
  double inside = 0;
  for (const Profile::Sum& sum : run.steps)
    inside += static_cast<double>(sum.nanoseconds - sum.inside_nanoseconds);
  return (static_cast<double>(run.end - run.begin) - inside) * 1e-3;
}

int time_pasts(const std::string& model, int steps) {
  const Session session(model, with_threads(1));
  std::vector<double> fresh, again, fresh_ms, again_ms;
  for (int past = 1; past <= steps; ++past) {
    const auto inputs = inputs_of(
        session,
        {{"batch", 1}, {"sequence", 1}, {"past_sequence", past}, {"total_sequence", past + 1}});
    for (const bool is_new : {true, false}) {
      Profile profile;
      RunOptions options;
      options.profile = &profile;
      std::vector<Value> outputs(session.outputs().size());
      session.run(inputs, outputs, options);
      const Profile::Run& run = profile.runs().back();
      (is_new ? fresh : again).push_back(outside_us(profile));
      (is_new ? fresh_ms : again_ms).push_back(static_cast<double>(run.end - run.begin) * 1e-6);
    }
  }
  std::printf(
      "{\"new_us\": %.2f, \"same_us\": %.2f, \"new_ms\": %.4f, \"same_ms\": %.4f, \"steps\": "
      "%zu}\n",
      median(fresh), median(again), median(fresh_ms), median(again_ms), session.steps().size());
  return 0;
}

DimSizes sizes_for(const std::string& name, int64_t size) {
  DimSizes sizes{{"batch", 1}};
  sizes[name] = size;
  return sizes;
}

// Each length once as a change from another one, once more as it is.
int time_lengths(const std::string& model, const std::string& name, int low, int high, int count) {
  const Session session(model, with_threads(1));
  std::mt19937 random(1);
  std::uniform_int_distribution<int64_t> any(low, high);
  std::vector<Value> first(session.outputs().size());
  session.run(inputs_of(session, sizes_for(name, high)), first);
  std::vector<double> ratios;
  double changed = 0, same = 0;
  for (int i = 0; i < count; ++i) {
    const auto inputs = inputs_of(session, sizes_for(name, any(random)));
    double times[2];
    for (double& time : times) {
      std::vector<Value> outputs(session.outputs().size());
      const double start = processor_us();
      session.run(inputs, outputs);
      time = (processor_us() - start) * 1e-3;
    }
    changed += times[0], same += times[1];
    ratios.push_back(times[1] / times[0]);
  }
  std::printf("{\"random_ms\": %.3f, \"fixed_ms\": %.3f, \"ratio\": %.4f}\n", changed / count,
              same / count, median(ratios));
  return 0;
}

// The largest shape comes first, so that what grows later grows without need.
int watch_shapes(const std::string& model, const std::string& name, int low, int high, int count) {
  const Session session(model, with_threads(2));
  std::mt19937 random(1);
  std::uniform_int_distribution<int64_t> any(low, high);
  double first = 0;
  for (int i = 0; i < count; ++i) {
    const int64_t size = i == 0 ? high : any(random);
    std::vector<Value> outputs(session.outputs().size());
    session.run(inputs_of(session, sizes_for(name, size)), outputs);
    if (i == count / 20) first = resident_now_mb();
  }
  std::printf("{\"after_few_mb\": %.2f, \"after_all_mb\": %.2f, \"runs\": %d}\n", first,
              resident_now_mb(), count);
  return 0;
}

// Each session runs once and stays.
int make_more(const std::string& path, const std::string& name, int size, int count) {
  const Model model(path);
  std::vector<Session> sessions;
  double made_ms = 0;
  const auto add = [&] {
    const auto start = Clock::now();
    sessions.emplace_back(model, with_threads(1));
    made_ms = seconds_since(start) * 1e3;
    std::vector<Value> outputs(sessions.back().outputs().size());
    sessions.back().run(inputs_of(sessions.back(), sizes_for(name, size)), outputs);
  };
  const double before = resident_now_mb();
  add();
  const double first_ms = made_ms, first = resident_now_mb() - before;
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    add();
    times.push_back(made_ms);
  }
  std::printf("{\"first_ms\": %.3f, \"more_ms\": %.3f, \"first_mb\": %.2f, \"more_mb\": %.2f}\n",
              first_ms, median(times), first, (resident_now_mb() - before - first) / count);
  return 0;
}

// Runs a second by one caller of each session, each with inputs of its own, together. The clock
// starts when all of them have their inputs.
double throughput(const std::vector<const Session*>& sessions, double seconds) {
  std::atomic<bool> stop{false};
  std::atomic<int64_t> runs{0};
  std::barrier ready(static_cast<std::ptrdiff_t>(sessions.size()) + 1);
  std::vector<std::thread> callers;
  for (const Session* session : sessions) {
    callers.emplace_back([&, session] {
      const auto inputs = inputs_of(*session, {});
      std::vector<Value> outputs(session->outputs().size());
      ready.arrive_and_wait();
      while (!stop.load(std::memory_order_relaxed)) {
        session->run(inputs, outputs);
        runs.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  ready.arrive_and_wait();
  const auto start = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& caller : callers) caller.join();
  return static_cast<double>(runs.load()) / seconds_since(start);
}

int time_callers(const std::string& path, int callers, int threads) {
  const Model model(path);
  const Session shared(model, with_threads(threads));
  std::vector<Session> own;
  for (int i = 0; i < threads; ++i) own.emplace_back(model, with_threads(1));
  std::vector<const Session*> together(static_cast<size_t>(callers), &shared), apart;
  for (const Session& session : own) apart.push_back(&session);
  throughput(together, 0.3), throughput(apart, 0.3);
  std::vector<double> ours, theirs, ratios;
  for (int round = 0; round < 9; ++round) {
    ours.push_back(throughput(together, 0.6));
    theirs.push_back(throughput(apart, 0.6));
    ratios.push_back(ours.back() / theirs.back());
  }
  std::printf("{\"shared_per_s\": %.2f, \"independent_per_s\": %.2f, \"ratio\": %.4f}\n",
              median(ours), median(theirs), median(ratios));
  return 0;
}

int number(const char* word) { return std::max(1, std::atoi(word)); }

int run(int count, char** words) {
  const std::string what = count > 2 ? words[1] : "";
  if (what == "run" && count == 4) return time_runs(words[2], number(words[3]));
  if (what == "pasts" && count == 4) return time_pasts(words[2], number(words[3]));
  if (what == "lengths" && count == 7)
    return time_lengths(words[2], words[3], number(words[4]), number(words[5]), number(words[6]));
  if (what == "shapes" && count == 7)
    return watch_shapes(words[2], words[3], number(words[4]), number(words[5]), number(words[6]));
  if (what == "more" && count == 6)
    return make_more(words[2], words[3], number(words[4]), number(words[5]));
  if (what == "callers" && count == 5)
    return time_callers(words[2], number(words[3]), number(words[4]));
  std::fprintf(stderr, "usage: engine_bench run|pasts|lengths|shapes|more|callers MODEL …\n");
  return 2;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run(count, words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "engine_bench: %s\n", error.what());
    return 1;
  }
}
