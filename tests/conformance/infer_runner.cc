// Infers models of ONNX backend test cases and holds every type, shape and element against what a
// plain run makes:
//   infer_runner --cases DIR [--filter RE] [--inputs fixed|named|unranked] [--random N]
//                [--exceptions FILE] [--json FILE]
// Cases that contradict themselves, as the exceptions list them for the release that a folder's
// name says, are left out.
// Inputs are as the case declares them (fixed), or every dimension of every one is a name of its
// own, or not even their ranks are known. With --random inputs that were fixed are named, and each
// model also runs on inputs of up to N other shapes, drawn at random: the types that hold for names
// must hold for all of them. What the models declare of outputs is not used. Exit code 0 when
// nothing that was inferred was wrong.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "against_run.h"
#include "base/bytes.h"
#include "exceptions.h"
#include "ir/dimension.h"
#include "tools/inferred_model.h"
#include "wire/external.h"
#include "wire/read.h"

namespace fs = std::filesystem;
using namespace sardonyx;
using State = InferredValue::State;

namespace {

constexpr const char* state_names[] = {"known", "bounded", "open", "partial", "unknown"};

struct Totals : conformance::Checked {
  int64_t states[5] = {};
  int wrong = 0, skipped = 0, cases = 0;
  int random_runs = 0, random_cases = 0;  // runs on other shapes, and cases that had one
};

enum class Inputs { fixed, named, unranked };

struct Settings {
  std::vector<std::string> roots;
  std::string filter = ".*";
  std::string json_path;
  Inputs inputs = Inputs::fixed;
  int random = 0;
  std::string exceptions_path;
  conformance::Exceptions exceptions;
};

void forget_declarations(ir::Graph& graph) {
  graph.value_info.clear();
  for (ir::ValueInfo& output : graph.outputs) {
    if (output.type) output.type->shape.reset(), output.type->nested.reset();
    if (output.type && output.type->kind != ir::TypeProto::Kind::tensor) output.type.reset();
  }
}

// What bodies and branches declare holds for the inputs that the case has.
void forget_inside(ir::Graph& graph) {
  for (ir::Node& node : graph.nodes) {
    for (ir::Attribute& attribute : node.attributes) {
      if (!attribute.g) continue;
      auto inner = std::make_shared<ir::Graph>(*attribute.g);
      forget_declarations(*inner);
      forget_inside(*inner);
      attribute.g = std::move(inner);
    }
  }
}

void open_inputs(ir::Graph& graph, Inputs inputs) {
  if (inputs == Inputs::fixed) return;
  for (ir::ValueInfo& input : graph.inputs) {
    if (!input.type || !input.type->shape) continue;
    if (inputs == Inputs::unranked) {
      input.type->shape.reset();
      continue;
    }
    int axis = 0;
    for (ir::Dimension& dim : input.type->shape->dims) {
      dim.value.reset();
      dim.param = fmt::format("{}.{}", input.name, axis++);
    }
  }
}

// The inputs of the case's first data set; a value of kind none where there is no file.
std::vector<Value> inputs_of(const fs::path& folder, const InferredModel& made) {
  std::vector<Value> inputs;
  for (size_t i = 0; i < made.graph.inputs.size(); ++i) {
    const ir::ValueInfo& input = made.graph.inputs[i];
    const fs::path file = folder / "test_data_set_0" / fmt::format("input_{}.pb", i);
    Value& value = inputs.emplace_back();
    if (!fs::exists(file)) continue;
    value = wire::read_value(read_file(file.string()), input.type.value_or(ir::TypeProto()));
    const infer::ValueFacts* declared = made.scope.find_here(input.name);
    if (declared && declared->type.is_tensor() && value.is_tensor() &&
        declared->type.element != value.tensor().element_type()) {
      throw Error(ErrorCode::unsupported, "the data of an input are not of its type");
    }
  }
  return inputs;
}

// The tensor with other sizes, filled with its own elements again and again.
Tensor with_sizes(const Tensor& tensor, const std::map<int64_t, int64_t>& sizes) {
  Shape shape;
  for (const int64_t size : tensor.shape()) shape.push_back(sizes.at(size));
  const int width = bit_width(tensor.element_type());
  if (tensor.element_type() == ElementType::string || width % 8 != 0 || tensor.size() == 0)
    return tensor;
  Tensor made(tensor.element_type(), shape);
  auto* to = static_cast<std::byte*>(made.mutable_data());
  const auto* from = static_cast<const std::byte*>(tensor.data());
  for (size_t i = 0; i < made.byte_size(); ++i) to[i] = from[i % tensor.byte_size()];
  return made;
}

// Runs the model on inputs of other shapes. Sizes that are equal stay equal; where a model can't
// run so, only one of them becomes another.
std::optional<std::string> check_random_runs(std::span<const Value> inputs,
                                             const InferredModel& made, const Settings& settings,
                                             Totals& totals) {
  std::set<int64_t> distinct;
  for (const Value& value : inputs) {
    if (value.is_tensor())
      distinct.insert(value.tensor().shape().begin(), value.tensor().shape().end());
  }
  const std::vector<int64_t> present(distinct.begin(), distinct.end());
  if (present.empty()) return std::nullopt;
  std::mt19937_64 random(distinct.size());
  bool ran = false;
  for (int run = 0; run < settings.random; ++run) {
    std::map<int64_t, int64_t> sizes;
    for (const int64_t size : present) sizes[size] = size;
    const auto change = [&](int64_t size) {
      sizes[size] = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(std::min<int64_t>(
                                                            2 * size + 2, size + 12)));
    };
    if (run % 2 == 0) {
      for (const int64_t size : present) change(size);
    } else {
      change(present[random() % present.size()]);
    }
    std::vector<Value> others;
    for (const Value& value : inputs)
      others.push_back(value.is_tensor() ? Value(with_sizes(value.tensor(), sizes)) : value);
    try {
      if (const auto wrong = conformance::check_run(others, made, totals))
        return "with other sizes: " + *wrong;
      ++totals.random_runs;
      ran = true;
    } catch (const Error&) {
      continue;  // the model takes no such sizes, as inference may have learned
    }
  }
  totals.random_cases += ran;
  return std::nullopt;
}

nlohmann::json values_of(const ir::Graph& original, const InferredModel& made, Totals& totals) {
  nlohmann::json values = nlohmann::json::object();
  for (const ir::Node& node : original.nodes) {
    for (const std::string& name : node.outputs) {
      if (name.empty()) continue;
      const ir::ValueType type = made.type(name);
      const State state = made.state(nullptr, name, type);
      ++totals.states[static_cast<size_t>(state)];
      nlohmann::json value = {{"op", node.op_type},
                              {"state", state_names[static_cast<size_t>(state)]},
                              {"type", type.to_string()},
                              {"kind", static_cast<int>(type.kind)},
                              {"element", static_cast<int>(type.element)},
                              {"shape", nullptr}};
      if (type.shape) {
        value["shape"] = nlohmann::json::array();
        for (const ir::Dim& dim : *type.shape)
          value["shape"].push_back(dim.value() ? nlohmann::json(*dim.value())
                                               : nlohmann::json(dim.to_string()));
      }
      values[name] = std::move(value);
    }
  }
  return values;
}

// Null where the case can run; otherwise why not.
const conformance::Exception* broken(const fs::path& folder, const Settings& settings) {
  for (const fs::path& part : folder) {
    const conformance::Exception* found = settings.exceptions.find(
        conformance::parse_release(part.string()), folder.filename().string());
    if (found && found->kind == conformance::Exception::Kind::broken) return found;
  }
  return nullptr;
}

// The sizes that the inputs declare as 0, which are open without it (ir/dimension.h).
std::map<std::string, int64_t, std::less<>> declared_zeros(const ir::Model& model) {
  std::map<std::string, int64_t, std::less<>> zeros;
  std::vector<ir::ValueInfo> named = model.graph->inputs;
  ir::name_open_sizes(named);
  for (size_t i = 0; i < named.size(); ++i) {
    if (!named[i].type || !named[i].type->shape) continue;
    const auto &dims = named[i].type->shape->dims,
               &as_given = model.graph->inputs[i].type->shape->dims;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (as_given[d].value == 0 && dims[d].param) zeros.emplace(*dims[d].param, 0);
    }
  }
  return zeros;
}

nlohmann::json infer_case(const fs::path& folder, const Settings& settings, Totals& totals) {
  nlohmann::json report = {{"case", folder.string()}};
  if (const conformance::Exception* found = broken(folder, settings)) {
    report["skipped"] = found->reason;
    return report;
  }
  try {
    ir::Model model = wire::read_model((folder / "model.onnx").string());
    forget_declarations(*model.graph);
    open_inputs(*model.graph, settings.inputs);
    if (settings.random > 0) forget_inside(*model.graph);
    InferredModel made;
    InferOptions options;
    options.sizes = declared_zeros(model);
    infer_model(model, options, {}, made);
    for (const InferFinding& problem : made.problems)
      report["problems"].push_back(problem.place + ": " + problem.message);
    report["values"] = values_of(*model.graph, made, totals);
    ++totals.cases;
    const std::vector<Value> inputs = inputs_of(folder, made);
    auto wrong = conformance::check_run(inputs, made, totals);
    if (!wrong && settings.random > 0) wrong = check_random_runs(inputs, made, settings, totals);
    if (wrong) report["wrong"] = *wrong;
  } catch (const Error& error) {
    report[error.code() == ErrorCode::unsupported ? "skipped" : "wrong"] = error.what();
  } catch (const std::exception& error) {
    report["wrong"] = fmt::format("an exception that is no Error: {}", error.what());
  }
  return report;
}

std::vector<fs::path> find_cases(const Settings& settings) {
  std::vector<fs::path> cases;
  const std::regex filter(settings.filter);
  for (const std::string& root : settings.roots) {
    for (const auto& entry :
         fs::recursive_directory_iterator(root, fs::directory_options::follow_directory_symlink)) {
      const fs::path folder = entry.path().parent_path();
      if (entry.path().filename() == "model.onnx" &&
          std::regex_search(folder.filename().string(), filter)) {
        cases.push_back(folder);
      }
    }
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Infers ONNX backend test cases and checks that against a run");
  app.add_option("--cases", settings.roots, "Folders that hold cases, at any depth")->required();
  app.add_option("--filter", settings.filter, "Only cases whose name matches");
  app.add_option("--json", settings.json_path, "Write what was inferred here");
  const std::map<std::string, Inputs> kinds{
      {"fixed", Inputs::fixed}, {"named", Inputs::named}, {"unranked", Inputs::unranked}};
  app.add_option("--inputs", settings.inputs, "What is known of the shapes of inputs")
      ->transform(CLI::CheckedTransformer(kinds));
  app.add_option("--random", settings.random, "Runs on inputs of other shapes, for each case");
  app.add_option("--exceptions", settings.exceptions_path, "The list of cases that can't be met");
  CLI11_PARSE(app, argc, argv);
  if (settings.random > 0 && settings.inputs == Inputs::fixed) settings.inputs = Inputs::named;
  if (!settings.exceptions_path.empty()) {
    settings.exceptions = conformance::Exceptions(read_file(settings.exceptions_path).text());
  }

  Totals totals;
  nlohmann::json reports = nlohmann::json::array();
  for (const fs::path& folder : find_cases(settings)) {
    reports.push_back(infer_case(folder, settings, totals));
    const auto& report = reports.back();
    for (const char* state : {"wrong", "skipped"}) {
      if (!report.contains(state)) continue;
      ++(state[0] == 'w' ? totals.wrong : totals.skipped);
      fmt::print("{} {}: {}\n", state, folder.string(), report[state].get<std::string>());
    }
    if (report.contains("problems") && !report.contains("skipped")) {
      ++totals.wrong;
      fmt::print("problem {}: {}\n", folder.string(), report["problems"][0].get<std::string>());
    }
  }
  if (!settings.json_path.empty()) std::ofstream(settings.json_path) << reports.dump() << "\n";
  fmt::print("{} cases, {} wrong, {} skipped; values:", totals.cases, totals.wrong, totals.skipped);
  for (size_t i = 0; i < 5; ++i) fmt::print(" {} {}", totals.states[i], state_names[i]);
  fmt::print("; {} sizes and {} elements checked, {} not evaluated\n", totals.sizes,
             totals.elements, totals.unevaluable);
  if (settings.random > 0)
    fmt::print("{} runs with other sizes, of {} cases\n", totals.random_runs, totals.random_cases);
  return totals.wrong == 0 ? 0 : 1;
}
