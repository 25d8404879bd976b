#include "serve.h"

#include <fmt/format.h>

#include <charconv>
#include <iostream>
#include <map>
#include <optional>
#include <string>

#include "commands.h"
#include "fail.h"
#include "loading.h"
#include "memory.h"
#include "os.h"
#include "sardonyx/inputs.h"
#include "sardonyx/outputs.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

using json = nlohmann::ordered_json;

constexpr int max_runs = 1000000;

int number_from(std::string_view text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) {
    fail(ErrorCode::bad_input, "'{}' is not a number", text);
  }
  return number;
}

class Server {
 public:
  json answer(const std::string& command, const std::string& rest) {
    if (command == "load" || command == "load-plain") return load_model(rest, command != "load");
    if (command == "packed") return take_packed(rest);
    if (command == "inputs") return read_inputs(rest);
    if (command == "run") return run(rest);
    if (command == "outputs") return write_outputs(rest);
    if (command == "memory") return {{"peak_mb", os::peak_megabytes()}, {"base_mb", base_mb_}};
    fail(
        ErrorCode::bad_input,
        "unknown command '{}'; known: load, load-plain, packed, inputs, run, outputs, memory, quit",
        command);
  }

 private:
  json load_model(const std::string& rest, bool plain) {
    const size_t blank = rest.rfind(' ');
    if (blank == std::string::npos) fail(ErrorCode::bad_input, "expected: load MODEL THREADS");
    LoadingOptions options;
    options.reference = plain;
    if (!plain) options.packed = packed_;
    options.model = rest.substr(0, blank);
    options.threads = number_from(std::string_view(rest).substr(blank + 1));
    loaded_.reset();
    inputs_.clear();
    outputs_.clear();
    base_mb_ = os::resident_megabytes();
    loaded_.emplace(load(options));
    return {{"create_ms", loaded_->milliseconds}};
  }

  // Models that are loaded from now on take their packed weights from this file; "": from none.
  json take_packed(const std::string& path) {
    packed_ = path;
    return json::object();
  }

  const Session& session() const {
    if (!loaded_) fail(ErrorCode::bad_input, "no model is loaded");
    return loaded_->session;
  }

  json read_inputs(const std::string& path) {
    const auto& wanted = session().inputs();
    std::vector<Value> inputs(wanted.size());
    for (NamedValue& value : read_npz_values(path, wanted)) {
      size_t i = 0;
      while (i < wanted.size() && wanted[i].name != value.first) ++i;
      if (i == wanted.size())
        fail(ErrorCode::bad_input, "the model has no input '{}'", value.first);
      inputs[i] = std::move(value.second);
    }
    inputs_ = std::move(inputs);
    outputs_.clear();
    return json::object();
  }

  // Outputs are made where those of the run before lie, as a caller does who runs again and again.
  json run(const std::string& rest) {
    const int count = number_from(rest);
    if (count == 0) return {{"ms", json::array()}};
    if (count > max_runs) fail(ErrorCode::bad_input, "at most {} runs at a time", max_runs);
    std::vector<Value> outputs = std::move(outputs_);  // none, if a run fails
    outputs.resize(session().outputs().size());
    json times = json::array();
    for (int i = 0; i < count; ++i) {
      const double start = now_ms();
      session().run(inputs_, outputs);
      times.push_back(now_ms() - start);
    }
    outputs_ = std::move(outputs);
    return {{"ms", std::move(times)}};
  }

  json write_outputs(const std::string& path) const {
    if (outputs_.size() != session().outputs().size() || outputs_.empty())
      fail(ErrorCode::bad_input, "nothing has run yet");
    if (path.ends_with(".npz")) {
      write_output_npz(path, session().outputs(), outputs_);
    } else {
      write_output_folder(path, outputs_);
    }
    return json::object();
  }

  std::optional<Loaded> loaded_;
  std::string packed_;
  std::vector<Value> inputs_, outputs_;
  double base_mb_ = 0;
};

}  // namespace

int serve_lines() {
  Server server;
  for (std::string line; std::getline(std::cin, line);) {
    if (line.ends_with('\r')) line.pop_back();
    const size_t blank = std::min(line.find(' '), line.size());
    const std::string command = line.substr(0, blank),
                      rest = line.substr(std::min(blank + 1, line.size()));
    if (command.empty()) continue;
    if (command == "quit") break;
    json answer;
    try {
      answer = server.answer(command, rest);
    } catch (const std::exception& error) {  // whatever it is, the caller hears of it
      answer = {{"error", error.what()}};
    }
    emit(answer.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
  }
  return ok;
}

}  // namespace sardonyx::cli
