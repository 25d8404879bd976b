// Graphs written as text, inferred with symbolic sizes or run plainly.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "eval/eval.h"
#include "infer/infer.h"
#include "schema/schema.h"
#include "wire/text_parse.h"

namespace sardonyx::ops_test {

// A graph whose values have been inferred. Nodes are of the newest versions.
class Inferred {
 public:
  explicit Inferred(std::string_view text) : graph_(wire::parse_graph(text)) {
    infer::InferenceContext findings{&symbols_, &constraints_, {}};
    infer::enter(graph_, scope_, findings);
    infer::infer_graph(graph_, scope_, findings);
  }

  const ops::ValueFacts& operator[](std::string_view name) const { return *scope_.find(name); }
  // "[batch,12,seq,64]"; "?" where the rank is unknown.
  std::string shape(std::string_view name) const {
    const auto& shape = (*this)[name].type.shape;
    return shape ? ir::to_string(*shape) : "?";
  }
  // The elements that are known of a value: "[batch,-1]"; "?" where they are not.
  std::string elements(std::string_view name) const {
    const auto& elements = (*this)[name].elements;
    return elements ? ir::to_string(*elements) : "?";
  }
  ir::SymbolTable& symbols() { return symbols_; }
  const std::vector<ops::Constraint>& constraints() const { return constraints_; }

 private:
  ir::Graph graph_;
  ir::SymbolTable symbols_;
  std::vector<ops::Constraint> constraints_;
  infer::Scope scope_;
};

// Runs a graph on these inputs, in the order of its inputs.
inline std::vector<Value> run(std::string_view text, std::vector<Value> inputs, int threads = 1,
                              uint64_t seed = 0) {
  const ir::Graph graph = wire::parse_graph(text);
  ThreadPool pool(threads);
  ops::RandomStreams random(seed);
  eval::Environment environment(pool, &random);
  eval::Frame frame;
  for (size_t i = 0; i < inputs.size(); ++i)
    frame.set(graph.inputs.at(i).name, std::move(inputs[i]));
  return eval::run_graph(graph, frame, environment);
}

template <class T>
std::vector<T> elements(const Value& value) {
  const auto span = value.tensor().elements<T>();
  return {span.begin(), span.end()};
}

// The message of the Error that `call` throws; fails the test where it throws none.
template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}

// A node of an old version, upgraded. `known` tells what is known of its inputs.
struct Upgraded {
  std::vector<ir::Node> nodes;  // before, the node, after
};

inline Upgraded upgraded(std::string_view node_text, int64_t since,
                         std::map<std::string, ops::ValueFacts, std::less<>> known = {}) {
  ir::Node node = wire::parse_node(node_text);
  const schema::Signature* old = schema::find(node.domain, node.op_type, since);
  int count = 0;
  ops::UpgradeContext::Services services;
  services.fresh_name = [&](std::string_view hint) { return fmt::format("{}_{}", hint, count++); };
  services.known = [&](std::string_view name) -> const ops::ValueFacts* {
    const auto found = known.find(name);
    return found == known.end() ? nullptr : &found->second;
  };
  ops::UpgradeContext context(node, since, old, services);
  const ops::Operator* op = ops::find_operator(node.domain, node.op_type);
  if (op != nullptr && op->upgrade != nullptr) op->upgrade(context);
  Upgraded result{context.take_before()};
  if (!context.dropped()) result.nodes.push_back(node);
  for (ir::Node& after : context.take_after()) result.nodes.push_back(std::move(after));
  return result;
}

// Runs an upgraded node on the values of its inputs by name; gives the value `output`.
inline Value run(const Upgraded& upgraded, const std::map<std::string, Value>& inputs,
                 const std::string& output) {
  ir::Graph graph;
  graph.nodes = upgraded.nodes;
  graph.outputs.emplace_back().name = output;
  ThreadPool pool(1);
  eval::Environment environment(pool);
  eval::Frame frame;
  for (const auto& [name, value] : inputs) frame.set(name, value);
  return eval::run_graph(graph, frame, environment)[0];
}

}  // namespace sardonyx::ops_test
