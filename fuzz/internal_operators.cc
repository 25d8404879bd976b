// A node of any internal operator, drawn from the bytes: whatever it says and is given, there is an
// error or an answer, planned and plain; where both answer, in the same types and shapes.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "eval/eval.h"
#include "internal_node.h"
#include "ops/internal/node.h"
#include "run/plan.h"
#include "sardonyx/error.h"
#include "target.h"
#include "wire/text_print.h"

namespace {

using namespace sardonyx;
using fuzzing::InternalNode;

// How many nodes of each operator were drawn, and how many of them ran to their end.
class Tally {
 public:
  ~Tally() { print(); }
  static Tally& get() {
    static Tally tally;
    return tally;
  }
  void add(const std::string& name, bool ran) {
    ++counts_[name].first;
    if (ran) ++counts_[name].second;
  }

 private:
  Tally() = default;
  void print() const {
    long long drawn = 0, ran = 0;
    for (const auto& [name, count] : counts_) drawn += count.first, ran += count.second;
    std::printf("%lld internal nodes drawn, %lld ran\n", drawn, ran);
    if (std::getenv("SARDONYX_FUZZ_TALLY") == nullptr) return;
    for (const auto& [name, count] : counts_)
      std::printf("%8lld %8lld %s\n", count.first, count.second, name.c_str());
  }

  std::map<std::string, std::pair<long long, long long>> counts_;
};

// With SARDONYX_FUZZ_SHOW set: what a crash's file stands for.
void show(const ir::Graph& graph) {
  if (std::getenv("SARDONYX_FUZZ_SHOW") == nullptr) return;
  ir::Model model;
  model.graph = graph;
  std::fprintf(stderr, "%s\n", wire::print(model).c_str());
}

using Outputs = std::optional<std::vector<Value>>;

// Nothing where `work` throws an Error.
template <class Work>
Outputs outputs_of(ThreadPool& pool, const Work& work) {
  eval::Environment environment(pool);
  environment.memory_limit = 64 << 20;
  environment.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  try {
    return work(environment);
  } catch (const Error& error) {
    if (std::getenv("SARDONYX_FUZZ_SHOW") != nullptr) std::fprintf(stderr, "%s\n", error.what());
    return std::nullopt;
  }
}

Outputs planned(const InternalNode& drawn, ThreadPool& pool) {
  return outputs_of(pool, [&](eval::Environment& environment) {
    ops::PackCache packs;
    run::PlanServices services;
    services.packs = &packs;
    const run::Plan plan(drawn.graph, {}, {}, services);
    std::vector<Value> outputs(drawn.graph.outputs.size());
    plan.run(drawn.inputs, {}, outputs, environment);
    return outputs;
  });
}

Outputs plain(const InternalNode& drawn, ThreadPool& pool) {
  return outputs_of(pool, [&](eval::Environment& environment) {
    eval::Frame frame;
    for (size_t i = 0; i < drawn.inputs.size(); ++i)
      frame.set(drawn.graph.inputs[i].name, drawn.inputs[i]);
    return eval::run_graph(drawn.graph, frame, environment);
  });
}

void compare(const std::vector<Value>& a, const std::vector<Value>& b) {
  require(a.size() == b.size(), "planned and plain give as many outputs");
  for (size_t i = 0; i < a.size(); ++i) {
    require(a[i].kind() == b[i].kind(), "planned and plain give the same kinds");
    if (!a[i].is_tensor()) continue;
    require(a[i].tensor().element_type() == b[i].tensor().element_type(), "the same types");
    require(a[i].tensor().shape() == b[i].tensor().shape(), "the same shapes");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static ThreadPool alone(1), several(3);
  ThreadPool& pool = size % 4 == 0 ? several : alone;
  const InternalNode drawn = fuzzing::draw_internal_node(data, size);
  if (ops::internal::problem_of(drawn.node)) return 0;
  show(drawn.graph);
  const Outputs of_plan = planned(drawn, pool), of_nodes = plain(drawn, pool);
  if (of_plan && of_nodes) compare(*of_plan, *of_nodes);
  Tally::get().add(drawn.node.op_type, of_plan.has_value());
  return 0;
}
