#include <gtest/gtest.h>

#include <string>

#include "sardonyx/error.h"
#include "schema/signature_text.h"

namespace sardonyx::schema {
namespace {

TEST(SignatureText, ReadsEveryStatement) {
  const auto owned = parse_signatures("com.example", R"(# what a file may hold
Op
  since 3                       # the newest first
    in x: T
    in more: tensor(int64) variadic(0) mixed
    out y: T
    out z: U optional
    attr axis: int = -1
    attr scale: float = 1.5
    attr mode: string = "a, \"b\" # c"
    attr pads: ints = [1, -2]
    attr names: strings = ["x", "y"]
    attr body: graph required
    where T in float_ieee bfloat16
    where U in string
    nondeterministic
  since 2 like 3, no in more, attr axis: int required, no nondeterministic, until 2
  since 1 like 2, inputs 0..1, outputs 1..*, until 1
)");
  ASSERT_TRUE(owned);
  const auto versions = owned->versions();
  ASSERT_EQ(versions.size(), 3u);
  const Signature &one = versions[0], &two = versions[1], &three = versions[2];
  EXPECT_EQ(one.since, 1);
  EXPECT_EQ(one.domain, "com.example");
  EXPECT_EQ(three.name, "Op");
  EXPECT_TRUE(three.nondeterministic);
  EXPECT_FALSE(two.nondeterministic);
  EXPECT_EQ(three.min_inputs, 1);
  EXPECT_EQ(three.max_inputs, unlimited);
  EXPECT_EQ(three.min_outputs, 1);
  EXPECT_EQ(three.max_outputs, 2);
  EXPECT_FALSE(three.inputs[1].homogeneous);
  EXPECT_EQ(three.inputs[1].types.size(), 1u);
  EXPECT_TRUE(allows(three.inputs[0], TypeId::tensor(ElementType::bfloat16)));
  EXPECT_TRUE(allows(three.inputs[0], TypeId::tensor(ElementType::float64)));
  EXPECT_FALSE(allows(three.inputs[0], TypeId::tensor(ElementType::int8)));
  EXPECT_EQ(three.attribute("axis")->default_int, -1);
  EXPECT_EQ(three.attribute("scale")->default_float, 1.5f);
  EXPECT_EQ(three.attribute("mode")->default_string, "a, \"b\" # c");
  EXPECT_EQ(three.attribute("pads")->default_ints[1], -2);
  EXPECT_EQ(three.attribute("names")->default_strings[1], "y");
  EXPECT_TRUE(three.attribute("body")->required);
  EXPECT_EQ(two.inputs.size(), 1u);
  EXPECT_TRUE(two.attribute("axis")->required);
  EXPECT_EQ(two.until, 2);
  EXPECT_EQ(one.min_inputs, 0);
  EXPECT_EQ(one.max_outputs, unlimited);
  EXPECT_EQ(bound_version(versions, 0), nullptr);
  EXPECT_EQ(bound_version(versions, 2), &two);
  EXPECT_EQ(bound_version(versions, 9), &three);
}

TEST(SignatureText, SaysWhichLineItCannotRead) {
  const auto message = [](const std::string& text) -> std::string {
    try {
      parse_signatures("d", text);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(""), "signature: it holds no version ('since N')");
  EXPECT_EQ(message("My Op"), "signature, line 1: expected the operator's name; found 'My Op'");
  EXPECT_EQ(message("Op\nin x: T"), "signature of Op, line 2: expected 'since'; found 'in x: T'");
  EXPECT_EQ(message("Op\nsince 0"),
            "signature of Op, line 2: expected a version, 1 or more; found '0'");
  EXPECT_EQ(message("Op\nsince 1\nsince 1"), "signature of Op, line 3: version 1 occurs twice");
  EXPECT_EQ(message("Op\nsince 1\nin x: T"),
            "signature of Op: 'x' has the type 'T', which no 'where' defines");
  EXPECT_EQ(message("Op\nsince 1\nout y: seq(tensor(float))"),
            "signature of Op, line 3: operators from outside take and give tensors; found the type "
            "'seq(tensor(float))'");
  EXPECT_EQ(message("Op\nsince 1\nwhere T in quux"),
            "signature of Op, line 3: 'quux' is no element type and no set of spec/type_sets.txt");
  for (const char* statement : {"attr a: quux",
                                "attr a: int = x",
                                "attr a: ints = 3",
                                "attr a: string = x",
                                "attr a",
                                "attr a: int maybe",
                                "in x",
                                "in x: float maybe",
                                "in x: float variadic(-1)",
                                "in x: float mixed",
                                "no in x",
                                "no attr a",
                                "no quux",
                                "inputs 3..2",
                                "inputs 1",
                                "until x",
                                "body 3",
                                "where T is float",
                                "where T in",
                                "since 2 like 7",
                                "since 2 near 1",
                                "attr a: tensor = 3",
                                "attr a: string = \"x\\n\"",
                                "quux"}) {
    EXPECT_NE(message(std::string("Op\nsince 1\n") + statement), "") << statement;
  }
  EXPECT_NE(message("Op\nsince 1\nin x: float variadic(1)\nin y: float"), "");
}

}  // namespace
}  // namespace sardonyx::schema
