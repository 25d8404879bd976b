// Infers random graphs that compute shapes (shape_graphs.h) with named sizes, and holds types,
// sizes and elements against plain runs of many sizes; planned runs must make the same as plain
// ones, too:
//   shape_runner [--seed N] [--count N] [--nodes N] [--runs N] [--least N]
// Sizes are 1 and more: what is 0 means "as it was" to Reshape and can't be divided by, where
// inference takes a name for a size like any other.
// Exit code 0 when nothing was wrong; the first graph that is, is printed.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <random>
#include <string>

#include "against_run.h"
#include "sardonyx/session.h"
#include "shape_graphs.h"
#include "wire/text_print.h"
#include "wire/write.h"

using namespace sardonyx;
using conformance::ShapeGraph;
using State = InferredValue::State;

namespace {

struct Totals : conformance::Checked {
  int64_t graphs = 0, runs = 0, planned = 0, values = 0, states[5] = {};
};

// Floats may differ by what fusing rounds otherwise; what shapes are made of may not.
std::optional<std::string> differ(const Value& planned, const Value& plain) {
  const Tensor &a = planned.tensor(), &b = plain.tensor();
  if (a.shape() != b.shape() || a.element_type() != b.element_type())
    return fmt::format("the plan makes {}, plain evaluation {}", to_string(a.shape()),
                       to_string(b.shape()));
  const bool exact = a.element_type() != ElementType::float32;
  if (exact && std::memcmp(a.data(), b.data(), a.byte_size()) != 0)
    return "the plan makes other elements than plain evaluation";
  return std::nullopt;
}

std::optional<std::string> compare_runs(const Session& planned, const Session& plain,
                                        const ShapeGraph& graph, std::span<const Value> values) {
  std::vector<NamedValue> inputs;
  for (size_t i = 0; i < values.size(); ++i)
    inputs.push_back({graph.model.graph->inputs[i].name, values[i]});
  std::vector<Value> expected, made;
  try {
    expected = plain.run(inputs);
  } catch (const Error&) {
    return std::nullopt;
  }
  try {
    made = planned.run(inputs);
  } catch (const Error& error) {
    return fmt::format("the plan fails where plain evaluation does not: {}", error.what());
  }
  for (size_t i = 0; i < made.size(); ++i) {
    if (const auto wrong = differ(made[i], expected[i]))
      return fmt::format("output '{}': {}", graph.model.graph->outputs[i].name, *wrong);
  }
  return std::nullopt;
}

std::optional<std::string> check(const ShapeGraph& graph, uint64_t seed, int runs, int64_t least,
                                 Totals& totals) {
  constexpr int64_t memory_limit = 1 << 26;
  InferredModel made;
  infer_model(graph.model, {}, {}, made);
  if (!made.problems.empty())
    return fmt::format("inference fails: {}: {}", made.problems[0].place, made.problems[0].message);
  for (const ir::Node& node : graph.model.graph->nodes) {
    for (const std::string& name : node.outputs) {
      const ir::ValueType type = made.type(name);
      ++totals.values;
      ++totals.states[static_cast<size_t>(made.state(nullptr, name, type))];
    }
  }
  const std::string bytes = wire::write_model(graph.model);
  const Model model(bytes.data(), bytes.size());
  SessionOptions as_written;
  as_written.reference = true;
  const Session planned(model), plain(model, as_written);
  std::mt19937_64 random(seed);
  for (int run = 0; run < runs; ++run) {
    const std::vector<Value> inputs = graph.draw_inputs(random, least + run % 2);
    try {
      if (const auto wrong = conformance::check_run(inputs, made, totals, memory_limit))
        return wrong;
      ++totals.runs;
    } catch (const Error&) {
      continue;  // the graph takes no such sizes
    }
    if (const auto wrong = compare_runs(planned, plain, graph, inputs)) return wrong;
    ++totals.planned;
  }
  return std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t seed = 1;
  int count = 1000, nodes = 14, runs = 8;
  int64_t least = 1;
  CLI::App app("Infers random graphs that compute shapes and checks that against runs");
  app.add_option("--seed", seed, "Of the first graph; each has the next");
  app.add_option("--count", count, "Graphs");
  app.add_option("--nodes", nodes, "Nodes of a graph, at most");
  app.add_option("--runs", runs, "Runs of each with sizes of its own");
  app.add_option("--least", least, "The least size of an input's dimensions");
  CLI11_PARSE(app, argc, argv);
  Totals totals;
  int wrong = 0;
  for (int i = 0; i < count; ++i, ++seed) {
    const ShapeGraph graph = conformance::draw_shape_graph(seed, nodes);
    std::optional<std::string> found;
    try {
      found = check(graph, seed, runs, least, totals);
    } catch (const std::exception& error) {
      found = fmt::format("an exception: {}", error.what());
    }
    ++totals.graphs;
    if (!found) continue;
    if (wrong++ == 0) fmt::print("{}\n", wire::print(graph.model));
    fmt::print("wrong --seed {} --count 1: {}\n", seed, *found);
  }
  fmt::print(
      "{} graphs, {} wrong; {} values: {} known, {} bounded, {} open, {} partial, {} unknown\n",
      totals.graphs, wrong, totals.values, totals.states[0], totals.states[1], totals.states[2],
      totals.states[3], totals.states[4]);
  fmt::print("{} sizes and {} elements checked in {} runs, {} of them planned, too\n", totals.sizes,
             totals.elements, totals.runs, totals.planned);
  return wrong == 0 ? 0 : 1;
}
