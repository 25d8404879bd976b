// Runs graphs that a generator wrote (tests/python/random_graphs.py) in every way there is, and
// holds the answers against each other:
//   graph_runner --cases DIR
// A case is a folder with model.onnx, comparison.json and test_data_set_*/input_*.pb, whose sizes
// may differ from set to set: one session runs them all, forwards and then backwards. Held together
// are
// - planned runs on one thread and on two, bit for bit;
// - the first and the second run of a set, the second into tensors that the caller brings, bit for
// bit, and the run of a session that has run nothing else;
// - runs of all sets after runs that were cancelled or had no memory, and on several threads at the
// same time, bit for bit;
// - a session with other options (without fusing, exact, or packed early, by the name of the case)
// and plain evaluation;
// - planned runs and plain evaluation, bit for bit where comparison.json says "exact", or names the
// output in "exact_outputs";
// - plain evaluation and test_data_set_*/output_*.pb where there are such.
// Plain evaluation may refuse sets but the first, and that as well where comparison.json says
// "may_refuse"; the planned run then has to end, too. No run takes more than 20 seconds or 1 GiB.
// The name of a case is printed before it begins, so that a crash has one; a difference is a line
// behind it. Exit code 0 when there was none.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
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
  std::vector<std::string> exact_outputs;
};

struct Set {
  std::vector<NamedValue> inputs;
  std::vector<Value> expected;  // by somebody else; may be empty
};

struct Case {
  ir::Graph graph;
  Comparison plan, other;
  bool may_refuse = false;
  std::vector<Set> sets;
};

Comparison comparison_of(const nlohmann::json& json) {
  return {json.value("exact", false), json.value("worst", 0.0),
          json.value("mean", 0.0),    json.value("absolute", 0.0),
          json.value("bytes", 0.0),   json.value("exact_outputs", std::vector<std::string>())};
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
  one.may_refuse = json.value("may_refuse", false);
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

std::optional<std::string> other_tensor_bits(const Tensor& a, const Tensor& e) {
  if (e.element_type() == ElementType::string)
    return conformance::difference(Value(a), Value(e), {0, 0});
  if (a.byte_size() == 0 || std::memcmp(a.data(), e.data(), a.byte_size()) == 0)
    return std::nullopt;
  return conformance::difference(Value(a), Value(e), {0, 0}).value_or("other bits");
}

// Calls `compare` with the tensors that two values of one form are made of.
template <class Compare>
std::optional<std::string> compare_tensors(const Value& actual, const Value& expected,
                                           const Compare& compare) {
  if (auto form = conformance::difference_in_form(actual, expected)) return form;
  switch (expected.kind()) {
    case Value::Kind::tensor: return compare(actual.tensor(), expected.tensor());
    case Value::Kind::sequence: {
      const auto &a = actual.sequence().items, &e = expected.sequence().items;
      if (a.size() != e.size()) return fmt::format("{} items instead of {}", a.size(), e.size());
      for (size_t i = 0; i < e.size(); ++i) {
        if (const auto found = compare_tensors(a[i], e[i], compare))
          return fmt::format("item {}: {}", i, *found);
      }
      return std::nullopt;
    }
    case Value::Kind::optional: {
      const auto &a = actual.optional().held, &e = expected.optional().held;
      if (!a != !e) return a ? "something instead of nothing" : "nothing instead of something";
      return a ? compare_tensors(*a, *e, compare) : std::nullopt;
    }
    default: return conformance::difference(actual, expected, {0, 0});
  }
}

std::optional<std::string> other_bits(const Value& actual, const Value& expected) {
  return compare_tensors(actual, expected, other_tensor_bits);
}

std::optional<std::string> tensor_too_far(const Tensor& actual, const Tensor& expected,
                                          const Comparison& allowed) {
  if (expected.element_type() == ElementType::string)
    return conformance::difference(Value(actual), Value(expected), {0, 0});
  const std::vector<double> a = conformance::numbers(actual), e = conformance::numbers(expected);
  const ElementType type = expected.element_type();
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
      return fmt::format("element {} of {} is {} instead of {}", i, to_string(expected.shape()),
                         a[i], e[i]);
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
      mean / size, worst / size, place, to_string(expected.shape()), a[place], e[place]);
}

std::optional<std::string> too_far(const Value& actual, const Value& expected,
                                   const Comparison& allowed) {
  return compare_tensors(actual, expected, [&](const Tensor& a, const Tensor& e) {
    return tensor_too_far(a, e, allowed);
  });
}

// How an output of this name has to agree.
Comparison comparison_for(const std::string& output, Comparison allowed) {
  const auto& exact = allowed.exact_outputs;
  allowed.exact |= std::find(exact.begin(), exact.end(), output) != exact.end();
  return allowed;
}

RunOptions limits() {
  RunOptions options;
  options.memory_limit = int64_t{1} << 30;
  options.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  return options;
}

// Fills tensors of the caller that have the shapes of an earlier run.
std::vector<Value> run_into(const Session& session, const Set& set,
                            const std::vector<Value>& earlier) {
  std::vector<Value> inputs, outputs;
  for (const auto& [name, value] : set.inputs) inputs.push_back(value);
  for (const Value& value : earlier) {
    outputs.push_back(value.is_tensor()
                          ? Value(Tensor(value.tensor().element_type(), value.tensor().shape()))
                          : Value());
  }
  session.run(inputs, outputs, limits());
  return outputs;
}

Session session_of(const fs::path& folder, int threads, bool plain) {
  SessionOptions options;
  options.threads = threads;
  options.reference = plain;
  return Session((folder / "model.onnx").string(), options);
}

enum class Allowed { nothing, declared, anything };  // to be refused

// None where the sizes of the set do not suit the graph, or what it declares of its inputs.
std::optional<std::vector<Value>> run_if_fitting(const Session& session, const Set& set,
                                                 Allowed allowed) {
  try {
    return session.run(set.inputs, limits());
  } catch (const Error& error) {
    const bool is_declared = error.code() == ErrorCode::bad_input;
    if (error.code() == ErrorCode::internal || allowed == Allowed::nothing ||
        (allowed == Allowed::declared && !is_declared))
      throw;
    return std::nullopt;
  }
}

// None where the model can't be run at all.
std::optional<Session> session_if_fitting(const fs::path& folder, int threads, bool plain,
                                          bool may_fail) {
  try {
    return session_of(folder, threads, plain);
  } catch (const Error& error) {
    if (!may_fail || error.code() == ErrorCode::internal) throw;
    return std::nullopt;
  }
}

// Options that a session may have beside the usual ones.
SessionOptions other_options(const fs::path& folder) {
  SessionOptions options;
  options.threads = 1;
  switch (std::hash<std::string>()(folder.filename().string()) % 3) {
    case 0: options.fuse = false; break;
    case 1: options.exact = true; break;
    default: options.prepack = true; break;
  }
  return options;
}

// Ends early in one way or another, most of the time.
void run_in_vain(const Session& session, const Set& set, size_t how) {
  const std::atomic<bool> cancel = how % 2 == 1;
  RunOptions options = limits();
  options.cancel = &cancel;
  if (how % 2 == 0) options.memory_limit = int64_t{1} << (how % 16);
  try {
    session.run(set.inputs, options);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) throw;
  }
}

// Whatever callers of one session at the same time make that is not what was `made`.
std::vector<std::string> of_many_callers(const Session& session, const Case& one,
                                         const std::vector<std::vector<Value>>& made) {
  std::vector<std::string> found;
  std::mutex mutex;
  std::vector<std::thread> callers;
  for (size_t caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&, caller] {
      for (size_t i = 0; i < one.sets.size(); ++i) {
        const size_t s = (i + caller) % one.sets.size();
        if (made[s].empty()) continue;
        std::optional<std::string> difference;
        try {
          const auto outputs = session.run(one.sets[s].inputs, limits());
          for (size_t o = 0; o < outputs.size() && !difference; ++o)
            difference = other_bits(outputs[o], made[s][o]);
        } catch (const std::exception& error) {
          difference = error.what();
        }
        if (!difference) continue;
        const std::lock_guard lock(mutex);
        found.push_back(fmt::format("set {}, with many callers: {}", s, *difference));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  return found;
}

// What plain evaluation makes of the sets.
std::vector<std::optional<std::vector<Value>>> plain_outputs(const fs::path& folder,
                                                             const Case& one) {
  std::vector<std::optional<std::vector<Value>>> outputs(one.sets.size());
  const auto session = session_if_fitting(folder, 1, true, one.may_refuse);
  for (size_t s = 0; session && s < one.sets.size(); ++s)
    outputs[s] = run_if_fitting(*session, one.sets[s],
                                s > 0 || one.may_refuse ? Allowed::anything : Allowed::nothing);
  return outputs;
}

std::vector<std::string> differences(const fs::path& folder) {
  const Case one = read_case(folder);
  const auto plain = plain_outputs(folder, one);
  // The model declares the sizes of the first set, if any.
  const bool runs = plain[0].has_value();
  const auto single = session_if_fitting(folder, 1, false, !runs),
             pair = session_if_fitting(folder, 2, false, !runs);
  std::optional<Session> other;
  if (runs) other.emplace((folder / "model.onnx").string(), other_options(folder));
  if (!single || !pair) return {};
  std::vector<std::string> found;
  std::vector<std::vector<Value>> made;
  const auto note = [&](size_t set, size_t output, const char* what,
                        std::optional<std::string> difference) {
    if (difference)
      found.push_back(fmt::format("set {}, output '{}', {}: {}", set,
                                  one.graph.outputs[output].name, what, *difference));
  };
  for (size_t s = 0; s < one.sets.size(); ++s) {
    const Set& set = one.sets[s];
    made.emplace_back();
    const auto& expected = plain[s];
    const auto on_two = run_if_fitting(*pair, set,
                                       !expected        ? Allowed::anything
                                       : one.may_refuse ? Allowed::declared
                                                        : Allowed::nothing);
    if (!expected || !on_two || !other) continue;
    made[s] = single->run(set.inputs, limits());
    std::vector<Value> fresh;
    const auto optioned = other->run(set.inputs, limits());
    if (one.sets.size() > 1) fresh = session_of(folder, 1, false).run(set.inputs, limits());
    for (size_t i = 0; i < expected->size(); ++i) {
      const std::string& name = one.graph.outputs[i].name;
      note(s, i, "on two threads", other_bits((*on_two)[i], made[s][i]));
      if (!fresh.empty()) note(s, i, "by a fresh session", other_bits(fresh[i], made[s][i]));
      note(s, i, "with other options",
           too_far(optioned[i], (*expected)[i], comparison_for(name, one.plan)));
      note(s, i, "planned against plain",
           too_far(made[s][i], (*expected)[i], comparison_for(name, one.plan)));
      if (i < set.expected.size()) {
        note(s, i, "plain against the other",
             too_far((*expected)[i], set.expected[i], comparison_for(name, one.other)));
      }
    }
  }
  for (size_t s = one.sets.size(); s-- > 0;) {
    if (made[s].empty()) continue;
    run_in_vain(*single, one.sets[s], s);
    const auto again = run_into(*single, one.sets[s], made[s]);
    for (size_t i = 0; i < again.size(); ++i)
      note(s, i, "run again", other_bits(again[i], made[s][i]));
  }
  for (std::string& line : of_many_callers(*pair, one, made)) found.push_back(std::move(line));
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
