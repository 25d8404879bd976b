// Models that the textual syntax cannot say, limits, profiles and options of the checker.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "check/check.h"
#include "ir/dimension.h"
#include "sardonyx/error.h"
#include "wire/text_parse.h"

namespace sardonyx {
namespace {

using check::Diagnostic;
using check::Profile;
using ir::AttributeKind;

std::vector<Diagnostic> findings(const ir::Model& model, Profile profile = Profile::standard) {
  check::Options options;
  options.profile = profile;
  return check::check(model, options);
}

std::string listing(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) text += "  " + diagnostic.to_string() + "\n";
  return text;
}

size_t count_of(const std::vector<Diagnostic>& diagnostics, std::string_view rule,
                std::string_view part = "") {
  size_t count = 0;
  for (const Diagnostic& diagnostic : diagnostics) {
    count += diagnostic.rule == rule && diagnostic.to_string().find(part) != std::string::npos;
  }
  return count;
}

ir::Model base() {
  return wire::parse_model(R"(<ir_version: 10, opset_import: ["": 21]>
    g (float[2] x) => (float[2] y) <float[2] w = {1, 2}, string[1] s = {"a"}, bool[2] b = {0, 1}>
    { y = Softmax <axis = 0> (x) })");
}

struct Broken {
  std::string_view rule;
  std::string_view part;
  std::function<void(ir::Model&)> damage;
};

ir::Attribute& axis(ir::Model& model) { return *model.graph->nodes[0].find("axis"); }
ir::TensorProto& tensor(ir::Model& model, size_t index) { return model.graph->initializers[index]; }
Bytes bytes(std::string_view text) { return Bytes::copy_of(std::as_bytes(std::span(text))); }

TEST(BrokenModels, NodesWithoutOutputsAreWarningsOutsideTheStandard) {
  const auto severity = [](std::string_view domain, bool inputs) {
    ir::Model model = base();
    model.opset_imports.push_back({"com.own", 1, {}});
    ir::Node& node = model.graph->nodes.emplace_back();
    node.op_type = "Log2File";
    node.domain = domain;
    if (inputs) node.inputs = {"x"};
    for (const Diagnostic& diagnostic : findings(model)) {
      if (diagnostic.rule == "D-07") return diagnostic.severity;
    }
    return check::Severity::info;
  };
  EXPECT_EQ(severity("", true), check::Severity::error);
  EXPECT_EQ(severity("com.own", true), check::Severity::warning);
  EXPECT_EQ(severity("com.own", false), check::Severity::error);
}

TEST(BrokenModels, AreFound) {
  const Broken cases[] = {
      {"M-17", "a model has a graph; it is missing", [](ir::Model& m) { m.graph.reset(); }},
      {"M-02", "a model says its IR version; found 0", [](ir::Model& m) { m.ir_version = 0; }},
      {"A-02", "the type says int, the value is float",
       [](ir::Model& m) { axis(m).i.reset(), axis(m).f = 1.0f; }},
      {"A-02", "the type of an attribute is 1 to 14; found 77",
       [](ir::Model& m) { axis(m).kind = static_cast<AttributeKind>(77); }},
      {"A-04", "an attribute has one value; found int and float",
       [](ir::Model& m) { axis(m).f = 1.0f; }},
      {"X-09", "one field holds the elements; float_data and int64_data do",
       [](ir::Model& m) { tensor(m, 0).int64_data = {1}; }},
      {"X-10", "float_data does not hold elements of int32",
       [](ir::Model& m) { tensor(m, 0).data_type = 6; }},
      {"X-11", "int32_data does not hold elements of float",
       [](ir::Model& m) { tensor(m, 2).data_type = 1; }},
      {"X-12", "string_data does not hold elements of float",
       [](ir::Model& m) { tensor(m, 1).data_type = 1; }},
      {"X-14", "raw_data does not hold elements of string",
       [](ir::Model& m) {
         tensor(m, 1).string_data.clear();
         tensor(m, 1).has_raw_data = true;
         tensor(m, 1).raw_data = bytes("a");
       }},
      {"X-17", "bytes of bool are 0 or 1; found 7",
       [](ir::Model& m) {
         tensor(m, 2).int32_data.clear();
         tensor(m, 2).has_raw_data = true;
         tensor(m, 2).raw_data = bytes("\x01\x07");
       }},
      {"X-26", "shape [2] of float needs 8 bytes in raw_data; found 5",
       [](ir::Model& m) {
         tensor(m, 0).float_data = {};
         tensor(m, 0).has_raw_data = true;
         tensor(m, 0).raw_data = bytes("12345");
       }},
      {"X-07", "found [4611686018427387904,4]",
       [](ir::Model& m) {
         tensor(m, 0).dims = {int64_t{1} << 62, 4};
       }},
      {"A-12", "a reference to an attribute carries no value",
       [](ir::Model& m) { axis(m).ref_attr_name = "p"; }},
  };
  for (const Broken& broken : cases) {
    ir::Model model = base();
    EXPECT_EQ(count_of(findings(model), broken.rule), 0u) << listing(findings(model));
    broken.damage(model);
    const std::vector<Diagnostic> found = findings(model);
    EXPECT_EQ(count_of(found, broken.rule, broken.part), 1u) << broken.rule << "\n"
                                                             << listing(found);
  }
}

// A value that proto3 writers leave out, or write though it is zero, is no mistake.
TEST(BrokenModels, ZeroValuesMayBeLeftOut) {
  ir::Model model = base();
  axis(model).i.reset();
  EXPECT_FALSE(check::has_errors(findings(model)));
  axis(model).f = 0.0f;
  EXPECT_FALSE(check::has_errors(findings(model)));
}

// Files of IR version 1 do not say the kinds of attributes.
TEST(BrokenModels, KindsAreImpliedInVersion1) {
  ir::Model model = wire::parse_model(R"(<ir_version: 1>
    g (float[2] x) => (float[2] y) { y = Softmax <axis: undefined = 0> (x) })");
  EXPECT_FALSE(check::has_errors(findings(model))) << listing(findings(model));
}

ir::Graph nested_graph(int depth) {
  auto graph = std::make_shared<ir::Graph>(
      wire::parse_graph("g () => (y) { y = Constant <value_int = 1> () }"));
  for (int i = 0; i < depth; ++i) {
    auto outer = std::make_shared<ir::Graph>(wire::parse_graph("g () => (y) {}"));
    ir::Node node = wire::parse_node("y = If (c)");
    ir::Attribute branch;
    branch.name = "then_branch";
    branch.kind = AttributeKind::graph;
    branch.g = graph;
    node.attributes.push_back(branch);
    outer->nodes.push_back(node);
    graph = outer;
  }
  return *graph;
}

TEST(Limits, GraphsNestSoDeep) {
  ir::Model model = base();
  model.graph = nested_graph(64);
  EXPECT_EQ(count_of(findings(model), "L-01"), 0u);
  model.graph = nested_graph(65);
  EXPECT_EQ(count_of(findings(model), "L-01"), 1u);
  model.graph = nested_graph(20000);
  EXPECT_EQ(count_of(findings(model, Profile::runnable), "L-01"), 1u);
  // Taken apart from the outside: the destructors would follow the nesting one inside the other.
  std::shared_ptr<const ir::Graph> graph = model.graph->nodes[0].attributes[0].g;
  model.graph.reset();
  while (graph && !graph->nodes.empty() && !graph->nodes[0].attributes.empty()) {
    std::shared_ptr<const ir::Graph> inner = graph->nodes[0].attributes[0].g;
    graph = std::move(inner);
  }
}

TEST(Limits, TypesNestSoDeep) {
  const auto type = [](int depth) {
    std::string text = "float";
    for (int i = 0; i < depth; ++i) text = "seq(" + text + ")";
    return wire::parse_type(text);
  };
  ir::Model model = base();
  model.graph->inputs[0].type = type(15);
  EXPECT_EQ(count_of(findings(model), "L-02"), 0u);
  model.graph->inputs[0].type = type(16);
  EXPECT_EQ(count_of(findings(model), "L-02"), 1u);
}

TEST(Limits, RanksAreBounded) {
  ir::Model model = base();
  ir::TypeProto& type = *model.graph->inputs[0].type;
  type.shape.emplace().dims.resize(ir::max_declared_rank);
  EXPECT_EQ(count_of(findings(model), "L-03"), 0u);
  type.shape->dims.emplace_back();
  EXPECT_EQ(count_of(findings(model), "L-03"), 1u);
}

// Graphs that two attributes share, forty deep: 2^40 ways to the innermost.
TEST(Limits, SharedGraphsAreBounded) {
  auto graph = std::make_shared<ir::Graph>();
  graph->name = "g";
  graph->nodes.resize(1000, wire::parse_node("= Op ()"));
  for (int i = 0; i < 40; ++i) {
    auto outer = std::make_shared<ir::Graph>();
    outer->name = "g";
    ir::Node node = wire::parse_node("y = If (c)");
    for (const std::string_view name : {"then_branch", "else_branch"}) {
      ir::Attribute branch;
      branch.name = name;
      branch.kind = AttributeKind::graph;
      branch.g = graph;
      node.attributes.push_back(branch);
    }
    outer->nodes.push_back(node);
    graph = outer;
  }
  ir::Model model = base();
  model.graph = *graph;
  const std::vector<Diagnostic> found = findings(model);
  EXPECT_GT(count_of(found, "O-04", "no operator Op"), 0u) << listing(found);
}

TEST(Limits, FunctionsCallSoDeep) {
  const auto chain = [](int length) {
    std::string text =
        "<ir_version: 10, opset_import: [\"\": 21, \"a.b\": 1]> g (float[2] x) => (float[2] y) { y "
        "= a.b.f0 (x) }\n";
    for (int i = 0; i < length; ++i) {
      const std::string body = i + 1 < length ? "a.b.f" + std::to_string(i + 1) : "Relu";
      text += "<domain: \"a.b\", opset_import: [\"\": 21, \"a.b\": 1]> f" + std::to_string(i) +
              " (p) => (q) { q = " + body + " (p) }\n";
    }
    return wire::parse_model(text);
  };
  EXPECT_EQ(listing(findings(chain(64), Profile::runnable)), "");
  EXPECT_EQ(count_of(findings(chain(65)), "F-28"), 1u);
}

TEST(Profiles, RunnableReportsWhatKeepsFromRunning) {
  // Advice, warnings and errors that a run does not mind.
  const ir::Model model = wire::parse_model(R"(<opset_import: ["": 21]>
    "" (float[] x) => (y) <float[3] gone> { y = Softmax (x) })");
  EXPECT_TRUE(check::has_errors(findings(model)));
  EXPECT_EQ(listing(findings(model, Profile::runnable)), "");
}

TEST(Profiles, StrictTurnsWhatIsOftenBrokenIntoErrors) {
  const ir::Model model = wire::parse_model(R"(<ir_version: 10, opset_import: ["": 21]>
    g (float[] x) => (float[] y) { y = Relu (x) })");
  EXPECT_FALSE(check::has_errors(findings(model)));
  EXPECT_TRUE(check::has_errors(findings(model, Profile::strict)));
}

TEST(Options, UnknownDomainsMayBeErrors) {
  const ir::Model model = wire::parse_model(R"(<ir_version: 10, opset_import: ["": 21, "a.b": 1]>
    g (float[2] x) => (float[2] y) { y = a.b.Op (x) })");
  EXPECT_FALSE(check::has_errors(findings(model)));
  check::Options options;
  options.unknown_domains_are_errors = true;
  EXPECT_EQ(
      count_of(check::check(model, options), "O-04", "neither an operator set nor a function"), 1u);
}

TEST(Options, FindingsAreLimited) {
  ir::Model model = base();
  for (int i = 0; i < 50; ++i) model.graph->nodes.push_back(wire::parse_node("= Relu (unknown)"));
  check::Options options;
  options.max_diagnostics = 10;
  const std::vector<Diagnostic> found = check::check(model, options);
  EXPECT_EQ(count_of(found, "more", "error: model: 90 more findings"), 1u) << listing(found);
  EXPECT_LE(found.size(), 10u + 10 + 10 + 3);
}

// A message says where, which rule, what was found and what to do.
TEST(Diagnostics, AreWholeSentencesWithPlaces) {
  const ir::Model model = wire::parse_model(R"(<ir_version: 10, opset_import: ["": 21]>
    main (float[2] x, bool c) => (float[2] y) {
      [choice] y = If (c) <then_branch = yes () => (a) { [act] a = Softmax <axes = 1> (x) },
                           else_branch = no () => (b) { b = Identity (x) }>
    })");
  const std::vector<Diagnostic> found = findings(model);
  ASSERT_EQ(count_of(found, "D-23"), 1u);
  for (const Diagnostic& diagnostic : found) {
    if (diagnostic.rule != "D-23") continue;
    EXPECT_EQ(diagnostic.to_string(),
              "error: graph 'main', node 0 If 'choice', then_branch 'yes', node 0 Softmax 'act', "
              "attribute 'axes': Softmax of version 13 has no such attribute; did you mean 'axis'? "
              "[D-23]");
    EXPECT_EQ(diagnostic.place.node_index, 0);
    EXPECT_EQ(diagnostic.place.node_name, "act");
    EXPECT_EQ(diagnostic.place.op, "Softmax");
    EXPECT_EQ(diagnostic.place.detail, "attribute 'axes'");
  }
}

// A long cycle, and an unordered graph of many nodes, take no stack and little time.
TEST(Scale, LongCyclesAndUnorderedGraphs) {
  ir::Model model = base();
  constexpr int count = 50000;
  ir::Graph& graph = *model.graph;
  graph.nodes.clear();
  for (int i = count; i-- > 0;) {
    graph.nodes.push_back(
        wire::parse_node("v" + std::to_string(i + 1) + " = Relu (v" + std::to_string(i) + ")"));
  }
  graph.inputs[0].name = "v0";
  graph.outputs[0].name = "v50000";
  EXPECT_EQ(count_of(findings(model), "G-03"), 1000u);
  graph.nodes.back().inputs[0] = "v50000";
  const std::vector<Diagnostic> found = findings(model);
  EXPECT_EQ(count_of(found, "G-02", "49992 more -> "), 1u);
  EXPECT_EQ(count_of(found, "G-03"), 0u);
}

// Whatever is done to a model, the checker says something and does not fall over.
TEST(Fuzz, MutatedModelsAreChecked) {
  const std::string text = R"(<ir_version: 10, opset_import: ["": 21, "a.b": 1],
   training_info: [{initialization: i () => (float[2] w0) { w0 = RandomNormal <shape = [2]> () },
     initialization_binding: ["w": "w0"], algorithm: t () => (float[2] w1) { w1 = Add (w, y) },
     update_binding: ["w": "w1"]}]>
 g (float[2] x, bool c, int64 n) => (float[2] y)
 <float[2] w = {1, 2}, sparse_tensor(float[3,4]) s = {float[2] {1, 2}, int64[2,2] {0, 1, 2, 3}},
  float[2] far = ["location": "w.bin", "offset": "4096", "length": "8"], seq(map(int64, float)) q>
 {
   z = If (c) <then_branch = a () => (k) { k = Neg (x) }, else_branch = b () => (l) { l = a.b.f <p = 1> (x) }>
   y = Loop (n, c, z) <body = d (int64 i, bool e, float[2] u) => (bool o, float[2] v) { o = Identity (e) v = Add (u, w) }>
 }
 <domain: "a.b", opset_import: ["": 21]> f <p, r: float = 1.0> (m) => (h) { h0 = Elu <alpha: float = @r> (m) h = Softmax <axis: int = @p> (h0) })";
  EXPECT_FALSE(check::has_errors(findings(wire::parse_model(text))))
      << listing(findings(wire::parse_model(text)));
  std::mt19937 random(3);
  const std::string_view alphabet = "(){}[]<>=,.:\"$?-\\ 0129abcefgklmnpwxyz";
  int checked = 0, broken = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string mutated = text;
    for (int i = 1 + static_cast<int>(random() % 3); i > 0; --i) {
      const size_t at = random() % mutated.size();
      switch (random() % 3) {
        case 0: mutated[at] = alphabet[random() % alphabet.size()]; break;
        case 1: mutated.erase(at, 1 + random() % 3); break;
        default: mutated.insert(at, 1, alphabet[random() % alphabet.size()]); break;
      }
    }
    ir::Model model;
    try {
      model = wire::parse_model(mutated);
    } catch (const Error&) {
      continue;
    }
    ++checked;
    broken += check::has_errors(findings(model, Profile::strict));
    findings(model, Profile::runnable);
  }
  EXPECT_GT(checked, 500);
  EXPECT_GT(broken, 300);
}

}  // namespace
}  // namespace sardonyx
