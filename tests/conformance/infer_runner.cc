// Infers models of ONNX backend test cases and holds every type, shape and element against what a
// plain run makes:
//   infer_runner --cases DIR [--filter RE] [--symbolic] [--random N] [--exceptions FILE] [--json
//   FILE]
// Cases that contradict themselves, as the exceptions list them for the release that a folder's
// name says, are left out.
// With --symbolic every dimension of every input is a name of its own; with --random, too, and each
// model also runs on inputs of up to N other shapes, drawn at random: the types that hold for names
// must hold for all of them. What the models declare of outputs is not used. Exit code 0 when
// nothing that was inferred was wrong.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/bytes.h"
#include "base/thread_pool.h"
#include "eval/eval.h"
#include "exceptions.h"
#include "ops/families/fixed_point.h"
#include "session/inferred_model.h"
#include "wire/external.h"
#include "wire/read.h"

namespace fs = std::filesystem;
using namespace sardonyx;
using State = InferredValue::State;

namespace {

constexpr const char* state_names[] = {"known", "bounded", "open", "partial", "unknown"};

struct Totals {
  int64_t states[5] = {};
  int64_t checked_sizes = 0, checked_elements = 0, unevaluable = 0;
  int wrong = 0, skipped = 0, cases = 0;
  int random_runs = 0, random_cases = 0;  // runs on other shapes, and cases that had one
};

// The sizes of a run, learned value by value.
class Bindings {
 public:
  explicit Bindings(const InferredModel& model)
      : model_(model), sizes_(static_cast<size_t>(model.symbols.size()), INT64_MIN) {}

  // An error where `dim` can't be `actual`.
  std::optional<std::string> learn(const ir::Dim& inferred, int64_t actual) {
    const ir::Dim dim = model_.symbols.resolved(inferred);
    if (const ir::Symbol* symbol = dim.as_symbol()) {
      int64_t& bound = sizes_[static_cast<size_t>(symbol->id)];
      if (bound == INT64_MIN) {
        bound = actual;
        if (symbol->is_size && actual < 0) return fmt::format("{} is {}", symbol->name, actual);
        if (!symbol->upper) return std::nullopt;
        const auto upper = model_.symbols.resolved(*symbol->upper).evaluate(sizes_);
        if (upper && *upper < actual) {
          return fmt::format("{} is {}, its bound {} is {}", symbol->name, actual,
                             symbol->upper->to_string(), *upper);
        }
        return std::nullopt;
      }
    }
    const auto low = dim.lower(), high = dim.upper();
    if ((low && *low > actual) || (high && *high < actual))
      return fmt::format("{} should lie in [{}, {}]", actual, low.value_or(INT64_MIN),
                         high.value_or(INT64_MAX));
    const auto value = dim.evaluate(sizes_);
    if (!value) {
      ++unevaluable;
      return std::nullopt;
    }
    if (*value != actual)
      return fmt::format("{} is {}, the run makes {}", dim.to_string(), *value, actual);
    return std::nullopt;
  }

  int64_t unevaluable = 0;

 private:
  const InferredModel& model_;
  std::vector<int64_t> sizes_;
};

std::optional<int64_t> integer_at(const Tensor& tensor, int64_t i) {
  const void* data = tensor.data();
  switch (tensor.element_type()) {
    case ElementType::int64: return static_cast<const int64_t*>(data)[i];
    case ElementType::int32: return static_cast<const int32_t*>(data)[i];
    case ElementType::int16: return static_cast<const int16_t*>(data)[i];
    case ElementType::int8: return static_cast<const int8_t*>(data)[i];
    case ElementType::uint8: return static_cast<const uint8_t*>(data)[i];
    case ElementType::uint16: return static_cast<const uint16_t*>(data)[i];
    case ElementType::uint32: return static_cast<const uint32_t*>(data)[i];
    case ElementType::boolean: return static_cast<const uint8_t*>(data)[i];
    default: return std::nullopt;
  }
}

// In the units in which inference knows floats; INT64_MIN, which nothing is, for what is none.
int64_t in_units(double value) {
  const double units = value * static_cast<double>(ops::float_unit);
  return units == std::floor(units) && std::fabs(units) < 9e18 ? static_cast<int64_t>(units)
                                                               : INT64_MIN;
}

// The element as inference knows it; nullopt for types whose elements it does not follow.
std::optional<int64_t> known_at(const Tensor& tensor, int64_t i) {
  if (tensor.element_type() == ElementType::float32)
    return in_units(static_cast<const float*>(tensor.data())[i]);
  if (tensor.element_type() == ElementType::float64)
    return in_units(static_cast<const double*>(tensor.data())[i]);
  return integer_at(tensor, i);
}

bool same_floats(const Tensor& a, const Tensor& b) {
  return a.element_type() == b.element_type() && a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.byte_size()) == 0;
}

std::optional<std::string> compare(const infer::Known& known, const Value& value,
                                   Bindings& bindings, Totals& totals) {
  const ir::ValueType actual = ir::type_of(value);
  if (!known.type.is_known() || !actual.is_known()) return std::nullopt;
  if (known.type.kind != actual.kind)
    return fmt::format("{} was inferred, the run makes {}", known.type.to_string(),
                       actual.to_string());
  if (!value.is_tensor()) return std::nullopt;
  const Tensor& tensor = value.tensor();
  if (known.type.element != ElementType::undefined && known.type.element != tensor.element_type()) {
    return fmt::format("{} was inferred, the run makes {}", known.type.to_string(),
                       actual.to_string());
  }
  if (known.type.shape) {
    if (known.type.shape->size() != tensor.shape().size())
      return fmt::format("shape {} was inferred, the run makes {}",
                         ir::to_string(*known.type.shape), to_string(tensor.shape()));
    for (size_t d = 0; d < tensor.shape().size(); ++d) {
      ++totals.checked_sizes;
      if (const auto wrong = bindings.learn((*known.type.shape)[d], tensor.shape()[d]))
        return fmt::format("dimension {} of {}: {}", d, known.type.to_string(), *wrong);
    }
  }
  if (known.constant && ops::has_float_elements(tensor.element_type()) &&
      !same_floats(*known.constant, tensor))
    return "the floats that were inferred are others than those the run makes";
  if (known.elements) {
    if (static_cast<int64_t>(known.elements->size()) != tensor.size())
      return fmt::format("{} elements were inferred, the run makes {}", known.elements->size(),
                         tensor.size());
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const auto element = known_at(tensor, i);
      if (!element) break;
      ++totals.checked_elements;
      if (const auto wrong = bindings.learn((*known.elements)[static_cast<size_t>(i)], *element))
        return fmt::format("element {}: {}", i, *wrong);
    }
  }
  return std::nullopt;
}

struct Settings {
  std::vector<std::string> roots;
  std::string filter = ".*";
  std::string json_path;
  bool symbolic = false;
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

void open_inputs(ir::Graph& graph) {
  for (ir::ValueInfo& input : graph.inputs) {
    if (!input.type || !input.type->shape) continue;
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
    const infer::Known* declared = made.scope.find_here(input.name);
    if (declared && declared->type.is_tensor() && value.is_tensor() &&
        declared->type.element != value.tensor().element_type()) {
      throw Error(ErrorCode::unsupported, "the data of an input are not of its type");
    }
  }
  return inputs;
}

// Runs the lowered graph, checking every value as it is made.
std::optional<std::string> check_run(std::span<const Value> inputs, const InferredModel& made,
                                     Totals& totals) {
  Bindings bindings(made);
  eval::Frame frame;
  std::optional<std::string> wrong;
  const auto check = [&](const std::string& name, const Value& value) {
    const infer::Known* known = made.scope.find_here(name);
    if (wrong || known == nullptr) return;
    if (const auto found = compare(*known, value, bindings, totals))
      wrong = fmt::format("'{}': {}", name, *found);
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind() == Value::Kind::none) continue;
    check(made.graph.inputs[i].name, inputs[i]);
    frame.set(made.graph.inputs[i].name, inputs[i]);
  }
  std::unordered_set<const ir::Node*> own;
  for (const ir::Node& node : made.graph.nodes) own.insert(&node);
  ThreadPool pool(1);
  eval::Environment environment(pool);
  environment.memory_limit = int64_t{1} << 32;
  eval::Options options;
  options.observe = [&](const ir::Node& node, size_t output, const Value& value) {
    if (own.contains(&node) && !node.outputs[output].empty()) check(node.outputs[output], value);
  };
  eval::run_graph(made.graph, frame, environment, options);
  totals.unevaluable += bindings.unevaluable;
  return wrong;
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
      if (const auto wrong = check_run(others, made, totals)) return "with other sizes: " + *wrong;
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

nlohmann::json infer_case(const fs::path& folder, const Settings& settings, Totals& totals) {
  nlohmann::json report = {{"case", folder.string()}};
  if (const conformance::Exception* found = broken(folder, settings)) {
    report["skipped"] = found->reason;
    return report;
  }
  try {
    ir::Model model = wire::read_model((folder / "model.onnx").string());
    forget_declarations(*model.graph);
    if (settings.symbolic || settings.random > 0) open_inputs(*model.graph);
    if (settings.random > 0) forget_inside(*model.graph);
    InferredModel made;
    infer_model(model, {}, {}, made);
    for (const InferFinding& problem : made.problems)
      report["problems"].push_back(problem.place + ": " + problem.message);
    report["values"] = values_of(*model.graph, made, totals);
    ++totals.cases;
    const std::vector<Value> inputs = inputs_of(folder, made);
    auto wrong = check_run(inputs, made, totals);
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
  app.add_flag("--symbolic", settings.symbolic, "Every dimension of every input is a name");
  app.add_option("--random", settings.random, "Runs on inputs of other shapes, for each case");
  app.add_option("--exceptions", settings.exceptions_path, "The list of cases that can't be met");
  CLI11_PARSE(app, argc, argv);
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
  fmt::print("; {} sizes and {} elements checked, {} not evaluated\n", totals.checked_sizes,
             totals.checked_elements, totals.unevaluable);
  if (settings.random > 0)
    fmt::print("{} runs with other sizes, of {} cases\n", totals.random_runs, totals.random_cases);
  return totals.wrong == 0 ? 0 : 1;
}
