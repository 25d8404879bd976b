// The passes in their order: what they are told of, what they leave, and that it is sound.
#include "passes/pass_manager.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "lower/lower.h"
#include "passes/pipeline.h"
#include "passes/verify.h"
#include "sardonyx/passes.h"
#include "wire/text_parse.h"

namespace sardonyx {
namespace {

ir::Graph parsed(std::string_view graph) {
  return *wire::parse_model("<ir_version: 10, opset_import: [\"\" : 21, \"sardonyx\" : 1]>\n" +
                            std::string(graph))
              .graph;
}

std::optional<std::string> broken(std::string_view text) {
  const ir::Graph graph = parsed(text);
  infer::Scope scope;
  ir::SymbolTable symbols;
  infer::InferenceContext findings;
  findings.symbols = &symbols;
  infer::enter(graph, scope, findings);
  return passes::find_broken(graph, scope);
}

TEST(Verify, SoundGraphs) {
  EXPECT_EQ(broken("g (float[2] x, bool c) => (float[2] y) { a = Exp(x) y = If(c) "
                   "<then_branch = t () => (o) { o = Neg(a) }, else_branch = e () => (p) "
                   "{ p = Abs(x) }> }"),
            std::nullopt);
}

TEST(Verify, NamesWhatIsBroken) {
  EXPECT_EQ(broken("g (float[2] x) => (float[2] y) { y = Exp(a) a = Neg(x) }"),
            "Exp making 'y' reads 'a' before it is made");
  EXPECT_EQ(broken("g (float[2] x) => (float[2] y) { y = Exp(x) y = Neg(x) }"),
            "'y' is made by another node before Neg making 'y'");
  EXPECT_EQ(broken("g (float[2] x) => (float[2] y) { a = Exp(x) }"), "nothing makes output 'y'");
  EXPECT_EQ(broken("g (float[2] x) => (float[2] y) { y = sardonyx.Nothing(x) }"),
            "Nothing making 'y' is no internal operator");
  EXPECT_EQ(
      broken("g (bool c, float[2] x) => (float[2] y) { y = If(c) <then_branch = t () => (o) "
             "{ o = Neg(later) }, else_branch = e () => (p) { p = Abs(x) }> later = Exp(x) }"),
      "If making 'y' reads 'later' before it is made");
}

// A graph with bodies is worked on from the inside out, and each pass is told of once.
TEST(PassManager, TellsOfEachPassOverEachGraph) {
  ir::Graph graph = parsed(R"(g (bool c, float[N, 2] x) => (float[N, 2] y) {
    w = Constant<value = float[2, 2] {1, 2, 3, 4}>()
    y = If(c) <then_branch = then () => (t) { m = MatMul(x, w) t = Relu(m) },
               else_branch = otherwise () => (e) { a = Identity(x) e = Neg(a) }>
  })");
  ThreadPool pool(1);
  passes::OptimizeOptions options{.pool = &pool};
  std::vector<std::string> seen;
  options.observer = [&](const passes::PassEvent& event) {
    EXPECT_GE(event.seconds, 0);
    if (event.changed) seen.push_back(std::string(event.pass) + " of " + std::string(event.place));
  };
  passes::optimize(graph, options);
  const std::vector<std::string> wanted{"fuse-epilogues of then_branch of If making 'y'",
                                        "remove-no-ops of else_branch of If making 'y'",
                                        "fold-constants of main graph"};
  EXPECT_EQ(seen, wanted);
}

TEST(PassManager, StopsAfterAPass) {
  const std::string text = R"(<ir_version: 10, opset_import: ["" : 21]>
g (float[N, 2] x) => (float[N, 2] y) {
  w = Constant<value = float[2, 2] {1, 2, 3, 4}>()
  m = MatMul(x, w)
  s = Sigmoid(m)
  y = Mul(m, s)
})";
  const Model model = Model::from_text(text);
  EXPECT_NE(optimized_text(model, {}, {.stop_after = "fold-constants"}).find("Sigmoid"),
            std::string::npos);
  const std::string whole = optimized_text(model);
  EXPECT_EQ(whole.find("Sigmoid"), std::string::npos) << whole;
  EXPECT_NE(whole.find("activation"), std::string::npos) << whole;
  try {
    optimized_text(model, {}, {.stop_after = "fuse-all"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_NE(std::string(error.what()).find("'fuse-all'; there are hoist-loop-invariants"),
              std::string::npos);
  }
}

// What is printed is a model that parses: tools may take it from there.
TEST(PassManager, TextsParse) {
  const Model model = Model::from_text(R"(<ir_version: 10, opset_import: ["" : 21]>
g (float[1, 3, 8, 8] x) => (float[1, 4, 6, 6] y) {
  w = Constant<value_floats = [1.0, 2.0]>()
  s = Constant<value_ints = [4, 3, 3, 3]>()
  e = Constant<value_ints = [108]>()
  b = Tile(w, t)
  t = Constant<value_ints = [54]>()
  k = Reshape(b, s)
  c = Conv(x, k)
  y = Relu(c)
})");
  int texts = 0;
  optimized_text(model, {},
                 {.observe =
                      [&](const PassRun&, const auto& text) {
                        ++texts;
                        EXPECT_NO_THROW(wire::parse_model(text()));
                      },
                  .max_elements = 1000});
  EXPECT_GT(texts, 10);
}

TEST(PassManager, NamesAreUniqueAndSaid) {
  std::set<std::string> names;
  for (const PassDescription& pass : optimizer_passes()) {
    EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
    EXPECT_FALSE(pass.summary.empty()) << pass.name;
  }
  EXPECT_GT(names.size(), 20u);
}

}  // namespace
}  // namespace sardonyx
