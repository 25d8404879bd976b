// docs/upgrades.md against the code: what it says changes nothing, `upgrade` leaves alone.
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <tuple>

#include "graph_support.h"
#include "ops/upgrade_context.h"

namespace sardonyx::ops_test {
namespace {

using Version = std::tuple<std::string, std::string, int64_t>;  // domain, operator, since

// The versions that the page says are the same as the next.
std::set<Version> unchanged_versions() {
  std::ifstream file(SARDONYX_SOURCE_DIR "/docs/upgrades.md");
  std::stringstream text;
  text << file.rdbuf();
  std::string page = text.str();
  const size_t begin = page.find("## Steps that change nothing");
  if (begin == std::string::npos) return {};
  page.erase(0, begin);
  const std::regex step(R"((ml\.)?([A-Za-z0-9]+)\s+(\d+)→(\d+))");
  std::set<Version> versions;
  for (auto it = std::sregex_iterator(page.begin(), page.end(), step); it != std::sregex_iterator();
       ++it) {
    versions.insert({(*it)[1].matched ? "ai.onnx.ml" : "", (*it)[2], std::stoll((*it)[3])});
  }
  return versions;
}

ir::Attribute placeholder(const schema::Attribute& formal) {
  ir::Attribute attribute;
  attribute.name = formal.name;
  attribute.kind = formal.kind;
  if (formal.kind == ir::AttributeKind::graph) attribute.g = std::make_shared<const ir::Graph>();
  if (formal.kind == ir::AttributeKind::int_) attribute.i = 1;
  return attribute;
}

// A node with the least that a version asks for.
ir::Node min_node(const schema::Signature& signature) {
  ir::Node node;
  node.domain = signature.domain;
  node.op_type = signature.name;
  for (int32_t i = 0; i < std::max(signature.min_inputs, 1); ++i)
    node.inputs.push_back(fmt::format("in_{}", i));
  node.outputs = {"out"};
  for (const schema::Attribute& formal : signature.attributes) {
    if (formal.required) node.attributes.push_back(placeholder(formal));
  }
  return node;
}

TEST(Upgrade, StepsThatChangeNothing) {
  const std::set<Version> unchanged = unchanged_versions();
  ASSERT_GT(unchanged.size(), 300u);
  int looked_at = 0;
  for (const schema::Signature& signature : schema::all_signatures()) {
    const auto versions = schema::versions(signature.domain, signature.name);
    const schema::Signature& newest = versions.back();
    bool same = signature.since < newest.since && !newest.deprecated && !signature.extra;
    for (const schema::Signature& later : versions) {
      if (later.since < signature.since || later.since == newest.since) continue;
      same = same &&
             unchanged.contains({std::string(later.domain), std::string(later.name), later.since});
    }
    const ops::Operator* op = ops::find_operator(signature.domain, signature.name);
    if (!same || op == nullptr || op->upgrade == nullptr) continue;
    SCOPED_TRACE(fmt::format("{}-{}", signature.name, signature.since));
    ++looked_at;
    ir::Node node = min_node(signature);
    const size_t attributes = node.attributes.size(), inputs = node.inputs.size();
    const std::string name = node.op_type;
    const ops::UpgradeContext::Services services;
    ops::UpgradeContext context(node, signature.since, &signature, services);
    op->upgrade(context);
    EXPECT_FALSE(context.dropped());
    EXPECT_TRUE(context.take_before().empty());
    EXPECT_TRUE(context.take_after().empty());
    EXPECT_EQ(node.op_type, name);
    EXPECT_EQ(node.attributes.size(), attributes);
    EXPECT_EQ(node.inputs.size(), inputs);
  }
  EXPECT_GT(looked_at, 80);
}

// Every attribute that the version has, and all its inputs.
ir::Node full_node(const schema::Signature& signature) {
  constexpr int32_t most = 6;
  ir::Node node = min_node(signature);
  node.attributes.clear();
  for (const schema::Attribute& formal : signature.attributes)
    node.attributes.push_back(placeholder(formal));
  for (int32_t i = static_cast<int32_t>(node.inputs.size());
       i < std::min(signature.max_inputs, most); ++i)
    node.inputs.push_back(fmt::format("in_{}", i));
  return node;
}

// Lowering does not ask `upgrade` from Operator::same_since on.
TEST(Upgrade, VersionsThatAreTheSameStayAsTheyAre) {
  int looked_at = 0;
  for (const schema::Signature& signature : schema::all_signatures()) {
    const schema::Signature& newest = *schema::newest(signature.domain, signature.name);
    const ops::Operator* op = ops::find_operator(signature.domain, signature.name);
    if (op == nullptr || op->upgrade == nullptr || newest.deprecated) continue;
    if (signature.since < op->same_since || signature.since == newest.since) continue;
    for (ir::Node node : {min_node(signature), full_node(signature)}) {
      SCOPED_TRACE(fmt::format("{}-{}", signature.name, signature.since));
      ++looked_at;
      const size_t attributes = node.attributes.size();
      const ir::Node before = node;
      const ops::UpgradeContext::Services services;
      ops::UpgradeContext context(node, signature.since, &signature, services);
      op->upgrade(context);
      EXPECT_FALSE(context.dropped());
      EXPECT_TRUE(context.take_before().empty());
      EXPECT_TRUE(context.take_after().empty());
      EXPECT_EQ(node.op_type, before.op_type);
      EXPECT_EQ(node.inputs, before.inputs);
      ASSERT_EQ(node.attributes.size(), attributes);
      for (size_t i = 0; i < attributes; ++i)
        EXPECT_EQ(node.attributes[i].name, before.attributes[i].name);
    }
  }
  EXPECT_GT(looked_at, 100);
}

}  // namespace
}  // namespace sardonyx::ops_test
