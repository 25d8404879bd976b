// Each pass on a graph of its own, before and after: tests/passes/cases/PASS.onnxtxt is the model,
// PASS.expected the nodes of the graph as the pass finds and as it leaves them.
// SARDONYX_UPDATE_CASES=1 writes what is found; read it before it is committed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "lower/lower.h"
#include "ops/internal/node.h"
#include "passes/optimize.h"
#include "sardonyx/passes.h"
#include "wire/text_parse.h"
#include "wire/text_print.h"

namespace sardonyx {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The nodes, a line each, those of graphs inside below them.
std::string nodes_of(const ir::Graph& graph) {
  std::string text;
  for (const ir::Node& node : graph.nodes)
    text += "  " + wire::print(node, {.max_elements = 8}) + "\n";
  return text;
}

class PassCases : public testing::TestWithParam<std::string> {};

TEST_P(PassCases, ChangesTheGraphAsExpected) {
  const std::filesystem::path folder = SARDONYX_SOURCE_DIR "/tests/passes/cases";
  const std::filesystem::path file = folder / (GetParam() + ".onnxtxt");
  ASSERT_TRUE(std::filesystem::exists(file)) << "every pass has a case: " << file;
  ir::Graph graph = lower::lower(wire::parse_model(read(file)));
  std::string before = nodes_of(graph), found;
  ThreadPool pool(1);
  passes::OptimizeOptions options{.pool = &pool};
  options.observer = [&](const passes::PassEvent& event) {
    for (const ir::Node& node : event.graph.nodes) {
      if (!ir::is_internal(node)) continue;
      EXPECT_EQ(ops::internal::problem_of(node), std::nullopt)
          << event.pass << ": " << wire::print(node, {.max_elements = 8});
    }
    if (event.place != "main graph") return;
    const std::string after = nodes_of(event.graph);
    if (event.pass == GetParam() && event.changed && found.empty())
      found = "before\n" + before + "after\n" + after;
    before = after;
  };
  passes::optimize(graph, options);
  ASSERT_FALSE(found.empty()) << GetParam() << " changed nothing";
  const std::filesystem::path expected = folder / (GetParam() + ".expected");
  if (std::getenv("SARDONYX_UPDATE_CASES") != nullptr) std::ofstream(expected) << found;
  EXPECT_EQ(found, read(expected));
}

std::vector<std::string> names() {
  std::vector<std::string> list;
  for (const PassDescription& pass : optimizer_passes()) list.push_back(pass.name);
  return list;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, PassCases, testing::ValuesIn(names()), test_name);

}  // namespace
}  // namespace sardonyx
