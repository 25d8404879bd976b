// Runs folders of ONNX backend test cases in one process:
//   conformance_runner --cases DIR [--release X.Y.Z --exceptions FILE] [--filter RE]
//                      [--mode planned|plain|both] [--threads N] [--json FILE]
// A case is a folder with model.onnx, test_data_set_*/{input,output}_*.pb and tolerance.json. Exit
// code 0 when nothing failed. Cases that need an operator without code count as skipped; of those
// that exceptions.txt lists for the release, the form of the outputs is compared, or that they are
// refused.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "compare.h"
#include "exceptions.h"
#include "sardonyx/session.h"
#include "wire/external.h"
#include "wire/read.h"

namespace fs = std::filesystem;
using namespace sardonyx;
using conformance::Exception;
using conformance::Tolerance;

namespace {

struct Settings {
  std::vector<std::string> roots;
  std::string filter = ".*";
  std::string mode = "both";
  std::string json_path;
  std::string exceptions_path;
  std::string release;
  conformance::Exceptions exceptions;
  int threads = 2;
  bool quiet = false;
};

struct Outcome {
  std::string name;
  std::string op;
  std::string state;  // passed, failed, skipped, superseded
  std::string reason;
};

std::vector<fs::path> numbered(const fs::path& folder, const std::string& prefix) {
  std::vector<fs::path> files;
  for (int i = 0;; ++i) {
    fs::path file = folder / fmt::format("{}_{}.pb", prefix, i);
    if (!fs::exists(file)) return files;
    files.push_back(std::move(file));
  }
}

Tolerance tolerance_of(const fs::path& folder) {
  Tolerance tolerance;
  std::ifstream file(folder / "tolerance.json");
  if (!file) return tolerance;
  const auto json = nlohmann::json::parse(file);
  tolerance.relative = json.value("rtol", tolerance.relative);
  tolerance.absolute = json.value("atol", tolerance.absolute);
  return tolerance;
}

// Up to release 1.18 the files hold the bits of bfloat16 as uint16.
Value as_declared(Value value, const ir::TypeProto& type) {
  if (type.kind != ir::TypeProto::Kind::tensor || !value.is_tensor()) return value;
  const Tensor bits = value.tensor();
  if (type.element_type() != ElementType::bfloat16 || bits.element_type() != ElementType::uint16)
    return value;
  Tensor tensor(ElementType::bfloat16, bits.shape());
  std::memcpy(tensor.mutable_data(), bits.data(), static_cast<size_t>(bits.size()) * 2);
  return tensor;
}

std::vector<Value> read_values(const fs::path& set, const std::string& prefix,
                               const std::vector<ir::ValueInfo>& infos) {
  std::vector<Value> values;
  const auto files = numbered(set, prefix);
  for (size_t i = 0; i < files.size() && i < infos.size(); ++i) {
    const ir::TypeProto type = infos[i].type.value_or(ir::TypeProto());
    values.push_back(as_declared(wire::read_value(read_file(files[i].string()), type), type));
  }
  return values;
}

// Inputs of the graph that a caller feeds: those without an initializer come first in the files.
std::vector<ir::ValueInfo> fed_inputs(const ir::Graph& graph, size_t files) {
  if (files >= graph.inputs.size()) return graph.inputs;
  std::vector<ir::ValueInfo> fed;
  for (const auto& input : graph.inputs) {
    const bool has_default = std::any_of(graph.initializers.begin(), graph.initializers.end(),
                                         [&](const auto& t) { return t.name == input.name; });
    if (!has_default) fed.push_back(input);
  }
  return fed;
}

// How the outputs of a case differ from what it expects, at first: in anything, and in kinds,
// types or shapes.
struct Verdict {
  std::optional<std::string> values, form;
};

Verdict run_mode(const fs::path& folder, const ir::Graph& graph, bool plain,
                 const Settings& settings) {
  SessionOptions options;
  options.threads = settings.threads;
  options.reference = plain;
  const Session session((folder / "model.onnx").string(), options);
  const Tolerance tolerance = tolerance_of(folder);
  Verdict verdict;
  int sets = 0;
  for (int s = 0; fs::exists(folder / fmt::format("test_data_set_{}", s)); ++s, ++sets) {
    const fs::path set = folder / fmt::format("test_data_set_{}", s);
    const auto infos = fed_inputs(graph, numbered(set, "input").size());
    const std::vector<Value> inputs = read_values(set, "input", infos);
    const std::vector<Value> expected = read_values(set, "output", graph.outputs);
    std::vector<NamedValue> named;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].kind() != Value::Kind::none) named.emplace_back(infos[i].name, inputs[i]);
    }
    const std::vector<Value> outputs = session.run(named);
    for (size_t i = 0; i < expected.size() && i < outputs.size(); ++i) {
      const auto note = [&](std::optional<std::string>& into, std::optional<std::string> found) {
        if (!found || into) return;
        into = fmt::format("{}: output '{}': {}", plain ? "plain" : "planned",
                           graph.outputs[i].name, *found);
      };
      note(verdict.values, conformance::difference(outputs[i], expected[i], tolerance));
      note(verdict.form, conformance::difference_in_form(outputs[i], expected[i]));
    }
  }
  if (sets == 0) throw Error(ErrorCode::bad_input, "the case has no data set");
  return verdict;
}

Verdict run_modes(const fs::path& folder, const ir::Graph& graph, const Settings& settings) {
  Verdict all;
  for (const bool plain : {false, true}) {
    if (settings.mode == (plain ? "planned" : "plain")) continue;
    const Verdict one = run_mode(folder, graph, plain, settings);
    if (!all.values) all.values = one.values;
    if (!all.form) all.form = one.form;
  }
  return all;
}

void judge(Outcome& outcome, const Verdict& verdict, const Exception* exception) {
  const auto fail = [&](std::string reason) {
    outcome.state = "failed";
    outcome.reason = std::move(reason);
  };
  if (exception == nullptr) {
    if (verdict.values) fail(*verdict.values);
  } else if (exception->kind == Exception::Kind::broken) {
    fail("is listed as broken, and runs: take it from the list of exceptions");
  } else if (verdict.form) {
    fail(fmt::format("{} (of a case whose form alone is compared: {})", *verdict.form,
                     exception->reason));
  } else if (exception->kind == Exception::Kind::superseded) {
    if (!verdict.values)
      return fail("is listed as superseded, and passes: take it from the list of exceptions");
    outcome.state = "superseded";
    outcome.reason = exception->reason;
  }
}

// A case without an end in the usual way.
void judge(Outcome& outcome, const Error& error, const Exception* exception) {
  const bool refused = error.code() == ErrorCode::bad_input ||
                       error.code() == ErrorCode::invalid_model ||
                       error.code() == ErrorCode::unreadable;
  if (refused && exception != nullptr && exception->kind == Exception::Kind::broken) {
    outcome.state = "superseded";
    outcome.reason = exception->reason;
    return;
  }
  outcome.state = error.code() == ErrorCode::unsupported ? "skipped" : "failed";
  outcome.reason = error.what();
}

Outcome run_case(const fs::path& folder, const Settings& settings) {
  Outcome outcome{folder.filename().string(), "", "passed", ""};
  const Exception* exception =
      settings.exceptions.find(conformance::parse_release(settings.release), outcome.name);
  try {
    const ir::Model model = wire::read_model((folder / "model.onnx").string());
    const ir::Graph& graph = model.graph.value();
    if (!graph.nodes.empty()) {
      outcome.op = graph.nodes.back().op_type;
      for (const auto& node : graph.nodes) {
        if (outcome.name.find("_" + node.op_type) != std::string::npos) outcome.op = node.op_type;
      }
    }
    judge(outcome, run_modes(folder, graph, settings), exception);
  } catch (const Error& error) {
    judge(outcome, error, exception);
  } catch (const std::exception& error) {
    outcome.state = "failed";
    outcome.reason = fmt::format("an exception that is no Error: {}", error.what());
  }
  return outcome;
}

std::vector<fs::path> find_cases(const Settings& settings) {
  std::vector<fs::path> cases;
  const std::regex filter(settings.filter);
  for (const std::string& root : settings.roots) {
    for (auto it = fs::recursive_directory_iterator(
             root, fs::directory_options::follow_directory_symlink);
         it != fs::recursive_directory_iterator(); ++it) {
      if (it->path().filename() != "model.onnx") continue;
      const fs::path folder = it->path().parent_path();
      if (std::regex_search(folder.filename().string(), filter)) cases.push_back(folder);
    }
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Runs ONNX backend test cases");
  app.add_option("--cases", settings.roots, "Folders that hold cases, at any depth")->required();
  app.add_option("--filter", settings.filter,
                 "Only cases whose name has a match of this expression");
  app.add_option("--mode", settings.mode)->check(CLI::IsMember({"planned", "plain", "both"}));
  app.add_option("--threads", settings.threads);
  app.add_option("--json", settings.json_path, "Write the outcomes here");
  app.add_option("--release", settings.release, "The release of onnx that the cases are of");
  app.add_option("--exceptions", settings.exceptions_path,
                 "The list of cases whose expected outputs cannot all be met");
  app.add_flag("--quiet", settings.quiet, "Only the totals");
  CLI11_PARSE(app, argc, argv);
  try {
    if (!settings.exceptions_path.empty()) {
      settings.exceptions = conformance::Exceptions(read_file(settings.exceptions_path).text());
    }
  } catch (const Error& error) {
    fmt::print(stderr, "conformance_runner: {}\n", error.what());
    return 2;
  }

  std::vector<Outcome> outcomes;
  for (const fs::path& folder : find_cases(settings)) {
    if (std::getenv("SARDONYX_TRACE_CASES")) fmt::print(stderr, "{}\n", folder.string());
    outcomes.push_back(run_case(folder, settings));
  }

  std::map<std::string, int> totals{
      {"passed", 0}, {"failed", 0}, {"skipped", 0}, {"superseded", 0}};
  std::map<std::string, std::map<std::string, int>> by_op;
  nlohmann::json json = {{"cases", nlohmann::json::array()}};
  for (const Outcome& outcome : outcomes) {
    ++totals[outcome.state];
    ++by_op[outcome.op][outcome.state];
    json["cases"].push_back({{"name", outcome.name},
                             {"op", outcome.op},
                             {"state", outcome.state},
                             {"reason", outcome.reason}});
    if (outcome.state != "passed" && !settings.quiet) {
      fmt::print("{} {}: {}\n", outcome.state, outcome.name, outcome.reason);
    }
  }
  if (!settings.quiet) {
    for (const auto& [op, states] : by_op) {
      const auto count = [&states = states](const char* state) {
        return states.contains(state) ? states.at(state) : 0;
      };
      fmt::print("{:28} {:4} passed {:4} failed {:4} skipped {:4} superseded\n", op,
                 count("passed"), count("failed"), count("skipped"), count("superseded"));
    }
  }
  for (const auto& [state, count] : totals) json[state] = count;
  if (!settings.json_path.empty()) std::ofstream(settings.json_path) << json.dump(1) << "\n";
  fmt::print("{} passed, {} failed, {} skipped, {} superseded\n", totals["passed"],
             totals["failed"], totals["skipped"], totals["superseded"]);
  return totals["failed"] == 0 ? 0 : 1;
}
