// How messages call nodes and values that lowering has made.
#include "ir/origin.h"

#include <gtest/gtest.h>

namespace sardonyx::ir {
namespace {

Node node_making(const std::string& output) {
  Node node;
  node.op_type = "MatMul";
  node.inputs = {"x", "w__3"};
  node.outputs = {output};
  return node;
}

TEST(Origin, NodesOfTheFileKeepTheirNames) {
  const Node node = node_making("t__12");
  EXPECT_EQ(place_of(node), "MatMul making 't__12'");
  EXPECT_EQ(told_name(node, "t__12"), "t__12");
}

TEST(Origin, ValuesInsideAFunctionHaveItsNames) {
  Node node = node_making("t__12");
  node.origin = "in function F, called by own.F making 'z'";
  EXPECT_EQ(place_of(node), "MatMul making 't' (in function F, called by own.F making 'z')");
  EXPECT_EQ(told_name(node, "w__3"), "w");
  EXPECT_EQ(told_name(node, "x"), "x");
}

TEST(Origin, ValuesThatOnlyLoweringKnowsAreNotNamed) {
  Node node = node_making("MatMul__0");
  node.sources = {"com.microsoft.GemmFastGelu making 'y'"};
  EXPECT_EQ(place_of(node), "MatMul (from com.microsoft.GemmFastGelu making 'y')");
  EXPECT_EQ(told_name(node, "w__3"), "");
  EXPECT_EQ(told_name(node, "x"), "x");
  node.outputs = {"y"};
  EXPECT_EQ(place_of(node), "MatMul making 'y' (from com.microsoft.GemmFastGelu making 'y')");
}

TEST(Origin, OnlyTwoUnderscoresAndANumberAreLowerings) {
  Node node = node_making("y");
  node.origin = "in function F, called by F making 'z'";
  for (const char* name : {"a_1", "12", "__", "b__", "c__x1", ""})
    EXPECT_EQ(told_name(node, name), name);
  EXPECT_EQ(told_name(node, "d__1__2"), "d__1");
}

}  // namespace
}  // namespace sardonyx::ir
