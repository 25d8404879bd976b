// Runs models on Sardonyx and its peers in one process, without Python in what is timed.
//
//   bench_driver [--avx2|--avx-vnni] sardonyx onnxruntime=libonnxruntime.so
//   openvino=libopenvino_c.so
//
// --avx2: libraries from bench/avx2.py find a processor with AVX2 alone; --avx-vnni: with AVX-VNNI,
// too.
// Reads commands from standard input, one a line, and answers each with one line of JSON. ENGINE is
// "@sardonyx", "@onnxruntime" or "@openvino"; without it, the first one is meant.
//
//   [ENGINE] packed FILE.sdx        {}: models loaded from here on take their packed weights there
//   [ENGINE] load MODEL THREADS     {"create_ms": …}
//   [ENGINE] inputs FILE.npz        {}
//   [ENGINE] steps N                {"carried": …}: runs are steps of a decoder (steps.h)
//   [ENGINE] run N                  {"ms": […]}: the first N steps, of a decoder
//   [ENGINE] outputs DIR            {}: output_0.npy, or .pb of what is no tensor
//   [ENGINE] version                {"version": "…"}
//   turns SECONDS                   {"sardonyx": […], …}: milliseconds of all loaded, in turn
//   memory                          {"peak_mb": …, "base_mb": …}: now; before the last load
//   quit
//
// What fails is answered {"error": "…"}.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "avx2.h"
#include "engine.h"
#include "sardonyx/outputs.h"

namespace driver {
namespace {

using json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr int max_runs = 1000000, max_steps = 4096;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double process_megabytes(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field))
      return std::strtod(line.c_str() + field.size() + 1, nullptr) / 1024;
  }
  return 0;
}

int number_from(std::string_view text, int most) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0 || number > most)
    throw std::runtime_error("'" + std::string(text) + "' is no number up to " +
                             std::to_string(most));
  return number;
}

double seconds_from(std::string_view text) {
  double seconds = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || !(seconds >= 0 && seconds < 1e6))
    throw std::runtime_error("'" + std::string(text) + "' is no number of seconds");
  return seconds;
}

std::vector<double> times_of(Engine& engine, int count) {
  std::vector<double> times;
  times.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    const auto start = Clock::now();
    engine.run();
    times.push_back(milliseconds_since(start));
  }
  return times;
}

// Engines by name, and which of them have a model with inputs.
class Driver {
 public:
  void add(const std::string& word) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals),
                      library = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (engines_.empty()) first_ = name;
    if (name == "sardonyx")
      engines_.emplace_back(name, make_sardonyx());
    else if (name == "onnxruntime")
      engines_.emplace_back(name, make_onnxruntime(library));
    else if (name == "openvino")
      engines_.emplace_back(name, make_openvino(library));
    else
      throw std::runtime_error("there is no engine '" + name + "'");
  }

  json answer(std::string line) {
    std::string name = first_;
    if (line.starts_with('@')) {
      name = line.substr(1, line.find(' ') - 1);
      line.erase(0, std::min(line.find(' '), line.size() - 1) + 1);
    }
    const size_t blank = std::min(line.find(' '), line.size());
    const std::string command = line.substr(0, blank),
                      rest = line.substr(std::min(blank + 1, line.size()));
    if (command == "memory")
      return {{"peak_mb", process_megabytes("VmHWM")}, {"base_mb", base_mb_}};
    if (command == "turns") return turns(seconds_from(rest));
    Engine& engine = *found(name);
    if (command == "load") return load(name, engine, rest);
    if (command == "inputs") return inputs(name, engine, rest);
    if (command == "packed") {
      engine.set_packed(rest);
      return json::object();
    }
    if (command == "version") return {{"version", engine.version()}};
    if (command != "run" && command != "outputs" && command != "steps")
      throw std::runtime_error("unknown command '" + command + "'");
    if (!ready_[name]) throw std::runtime_error("no model with inputs is loaded");
    if (command == "steps") return {{"carried", engine.carry_on(number_from(rest, max_steps))}};
    if (command == "run") {
      engine.begin_anew();
      return {{"ms", times_of(engine, number_from(rest, max_runs))}};
    }
    sardonyx::write_output_folder(rest, engine.outputs());
    return json::object();
  }

 private:
  Engine* found(const std::string& name) const {
    for (const auto& [known, engine] : engines_)
      if (known == name) return engine.get();
    throw std::runtime_error("there is no engine '" + name + "' here");
  }

  json load(const std::string& name, Engine& engine, const std::string& rest) {
    const size_t blank = rest.rfind(' ');
    if (blank == std::string::npos) throw std::runtime_error("expected: load MODEL THREADS");
    ready_[name] = false;
    base_mb_ = process_megabytes("VmRSS");
    const auto start = Clock::now();
    engine.load(rest.substr(0, blank), number_from(std::string_view(rest).substr(blank + 1), 4096));
    return {{"create_ms", milliseconds_since(start)}};
  }

  json inputs(const std::string& name, Engine& engine, const std::string& file) {
    engine.set_inputs(file);
    ready_[name] = true;
    return json::object();
  }

  // Batches of about 60 ms in turn, at least five each; the first run of a batch warms up and is
  // dropped. Between batches, threads of the other engines stop to spin.
  json turns(double seconds) {
    std::vector<std::pair<std::string, Engine*>> playing;
    std::map<std::string, int> batch;
    std::map<std::string, std::vector<double>> times;
    for (const auto& [name, engine] : engines_) {
      if (!ready_[name]) continue;
      playing.emplace_back(name, engine.get());
      times_of(*engine, 2);
      batch[name] = static_cast<int>(
          std::clamp(60 / std::max(times_of(*engine, 1).front(), 1e-3), 1.0, 2000.0));
    }
    const auto start = Clock::now();
    for (int round = 0; round < 5 || (milliseconds_since(start) < seconds * 1e3 && round < 200);
         ++round) {
      for (const auto& [name, engine] : playing) {
        const std::vector<double> found = times_of(*engine, batch[name] + 1);
        times[name].insert(times[name].end(), found.begin() + 1, found.end());
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      std::reverse(playing.begin(), playing.end());
    }
    return times;
  }

  std::vector<std::pair<std::string, std::unique_ptr<Engine>>> engines_;
  std::string first_;
  std::map<std::string, bool> ready_;
  double base_mb_ = 0;
};

int serve(int count, char** words) {
  Driver driver;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--avx2" || word == "--avx-vnni")
      answer_for_avx2(word == "--avx-vnni");
    else
      driver.add(words[i]);
  }
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "quit") break;
    json answer;
    try {
      answer = driver.answer(line);
    } catch (const std::exception& error) {  // whatever it is, the caller hears of it
      answer = {{"error", error.what()}};
    }
    std::cout << answer.dump(-1, ' ', false, json::error_handler_t::replace) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace driver

int main(int count, char** words) try {
  return driver::serve(count, words);
} catch (const std::exception& error) {
  std::cerr << "bench_driver: " << error.what() << '\n';
  return 1;
}
