// Runs graphs that a generator wrote (tests/python/random_graphs.py) in every way there is, and
// holds the answers against each other:
//   graph_runner --cases DIR
// A case is a folder with model.onnx, comparison.json and test_data_set_*/input_*.pb, whose sizes
// may differ from set to set: one session runs them all, forwards and then backwards. Held together
// are
// - planned runs on one thread and on two, bit for bit;
// - the first and the second run of a set, the second into tensors that the caller brings, bit for
// bit;
// - planned runs and plain evaluation, bit for bit where comparison.json says "exact";
// - plain evaluation and test_data_set_*/output_*.pb where there are such.
// The name of a case is printed before it begins, so that a crash has one; a difference is a line
// behind it. Exit code 0 when there was none.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "compare.h"
#include "sardonyx/session.h"
#include "wire/external.h"
#include "wire/read.h"

namespace fs = std::filesystem;
using namespace sardonyx;

namespace {

// How far numbers may be apart: exactly equal, or by shares of the root mean square of what is
// expected.
struct Comparison {
  bool exact = false;
  double worst = 0, mean = 0;  // of one element, and of all
  double absolute = 0;         // allowed of each beside that
  double bytes = 0;            // of elements of eight bits
};

struct Set {
  std::vector<NamedValue> inputs;
  std::vector<Value> expected;  // by somebody else; may be empty
};

struct Case {
  ir::Graph graph;
  Comparison plan, other;
  std::vector<Set> sets;
};

Comparison comparison_of(const nlohmann::json& json) {
  return {json.value("exact", false), json.value("worst", 0.0), json.value("mean", 0.0),
          json.value("absolute", 0.0), json.value("bytes", 0.0)};
}

std::vector<Value> read_values(const fs::path& set, const char* prefix,
                               const std::vector<ir::ValueInfo>& infos) {
  std::vector<Value> values;
  for (size_t i = 0; i < infos.size(); ++i) {
    const fs::path file = set / fmt::format("{}_{}.pb", prefix, i);
    if (!fs::exists(file)) break;
    values.push_back(
        wire::read_value(read_file(file.string()), infos[i].type.value_or(ir::TypeProto())));
  }
  return values;
}

Case read_case(const fs::path& folder) {
  Case one;
  ir::Model model = wire::read_model((folder / "model.onnx").string());
  one.graph = std::move(model.graph.value());
  const auto json = nlohmann::json::parse(std::ifstream(folder / "comparison.json"));
  one.plan = comparison_of(json.at("plan"));
  one.other = comparison_of(json.at("other"));
  for (int s = 0; fs::exists(folder / fmt::format("test_data_set_{}", s)); ++s) {
    const fs::path files = folder / fmt::format("test_data_set_{}", s);
    Set set{{}, read_values(files, "output", one.graph.outputs)};
    const auto inputs = read_values(files, "input", one.graph.inputs);
    for (size_t i = 0; i < inputs.size(); ++i)
      set.inputs.emplace_back(one.graph.inputs[i].name, inputs[i]);
    one.sets.push_back(std::move(set));
  }
  if (one.sets.empty()) throw Error(ErrorCode::bad_input, "the case has no data set");
  return one;
}

std::optional<std::string> other_bits(const Value& actual, const Value& expected) {
  if (auto form = conformance::difference_in_form(actual, expected)) return form;
  const Tensor &a = actual.tensor(), &e = expected.tensor();
  if (std::memcmp(a.data(), e.data(), a.byte_size()) == 0) return std::nullopt;
  return conformance::difference(actual, expected, {0, 0}).value_or("other bits");
}

std::optional<std::string> too_far(const Value& actual, const Value& expected,
                                   const Comparison& allowed) {
  if (auto form = conformance::difference_in_form(actual, expected)) return form;
  const std::vector<double> a = conformance::numbers(actual.tensor()),
                            e = conformance::numbers(expected.tensor());
  const ElementType type = expected.tensor().element_type();
  const bool is_bytes = type == ElementType::int8 || type == ElementType::uint8;
  const double aside = is_bytes ? std::max(allowed.absolute, allowed.bytes) : allowed.absolute;
  double squares = 0, sum = 0, worst = 0;
  size_t count = 0, place = 0;
  for (size_t i = 0; i < e.size(); ++i) {
    if (a[i] == e[i] || (std::isnan(a[i]) && std::isnan(e[i]))) {
      if (std::isfinite(e[i])) squares += e[i] * e[i], ++count;
      continue;
    }
    if (allowed.exact || !std::isfinite(a[i]) || !std::isfinite(e[i]))
      return fmt::format("element {} of {} is {} instead of {}", i,
                         to_string(expected.tensor().shape()), a[i], e[i]);
    const double by = std::max(0.0, std::abs(a[i] - e[i]) - aside);
    squares += e[i] * e[i], sum += by, ++count;
    if (by > worst) worst = by, place = i;
  }
  if (count == 0) return std::nullopt;
  const double size = std::sqrt(squares / static_cast<double>(count)) + 1e-6;
  const double mean = sum / static_cast<double>(count);
  if (worst <= allowed.worst * size && mean <= allowed.mean * size) return std::nullopt;
  return fmt::format(
      "differs by {:.2g} of its RMS in the mean, by {:.2g} at element {} of {}: {} instead of {}",
      mean / size, worst / size, place, to_string(expected.tensor().shape()), a[place], e[place]);
}

// Fills tensors of the caller that have the shapes of an earlier run.
std::vector<Value> run_into(const Session& session, const Set& set,
                            const std::vector<Value>& earlier) {
  std::vector<Value> inputs, outputs;
  for (const auto& [name, value] : set.inputs) inputs.push_back(value);
  for (const Value& value : earlier)
    outputs.emplace_back(Tensor(value.tensor().element_type(), value.tensor().shape()));
  session.run(inputs, outputs);
  return outputs;
}

Session session_of(const fs::path& folder, int threads, bool plain) {
  SessionOptions options;
  options.threads = threads;
  options.plain = plain;
  return Session((folder / "model.onnx").string(), options);
}

// None where the sizes of the set do not suit the graph.
std::optional<std::vector<Value>> run_if_fitting(const Session& session, const Set& set,
                                                 bool may_fail) {
  try {
    return session.run(set.inputs);
  } catch (const Error&) {
    if (!may_fail) throw;
    return std::nullopt;
  }
}

std::vector<std::string> differences(const fs::path& folder) {
  const Case one = read_case(folder);
  const Session plain = session_of(folder, 1, true), single = session_of(folder, 1, false),
                pair = session_of(folder, 2, false);
  std::vector<std::string> found;
  std::vector<std::vector<Value>> made;
  const auto note = [&](size_t set, size_t output, const char* what,
                        std::optional<std::string> difference) {
    if (difference)
      found.push_back(fmt::format("set {}, output '{}', {}: {}", set,
                                  one.graph.outputs[output].name, what, *difference));
  };
  for (size_t s = 0; s < one.sets.size(); ++s) {
    made.emplace_back();
    const auto expected = run_if_fitting(plain, one.sets[s], s > 0);
    if (!expected) continue;
    const auto other = pair.run(one.sets[s].inputs);
    made[s] = single.run(one.sets[s].inputs);
    for (size_t i = 0; i < expected->size(); ++i) {
      note(s, i, "on two threads", other_bits(other[i], made[s][i]));
      note(s, i, "planned against plain", too_far(made[s][i], (*expected)[i], one.plan));
      if (i < one.sets[s].expected.size())
        note(s, i, "plain against the other",
             too_far((*expected)[i], one.sets[s].expected[i], one.other));
    }
  }
  for (size_t s = one.sets.size(); s-- > 0;) {
    if (made[s].empty()) continue;
    const auto again = run_into(single, one.sets[s], made[s]);
    for (size_t i = 0; i < again.size(); ++i)
      note(s, i, "run again", other_bits(again[i], made[s][i]));
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  std::string root;
  CLI::App app("Runs generated graphs in every way there is");
  app.add_option("--cases", root, "The folder that holds the cases")->required();
  CLI11_PARSE(app, argc, argv);
  std::vector<fs::path> cases;
  for (const auto& entry : fs::directory_iterator(root)) cases.push_back(entry.path());
  std::sort(cases.begin(), cases.end());
  size_t bad = 0;
  for (const fs::path& folder : cases) {
    fmt::print("{}\n", folder.filename().string());
    std::fflush(stdout);
    std::vector<std::string> found;
    try {
      found = differences(folder);
    } catch (const std::exception& error) {
      found.emplace_back(error.what());
    }
    for (const std::string& line : found) fmt::print("  {}\n", line);
    bad += found.size();
  }
  return bad == 0 ? 0 : 1;
}
