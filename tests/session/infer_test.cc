// infer_types for models in memory: contradictions, lenient and strict.
#include "sardonyx/infer.h"

#include <gtest/gtest.h>

#include "sardonyx/session.h"

namespace sardonyx {
namespace {

constexpr std::string_view contradictory =
    "<ir_version: 10, opset_import: [\"\" : 21]>\n"
    "g (float[n, 4] x) => (float[n, 5] y) <float[k, 4] h> { h = Neg(x)  y = Relu(h) }";

TEST(InferTypes, ContradictionsAreWarningsOrErrors) {
  const Model model = Model::from_text(contradictory);
  for (const bool strict : {false, true}) {
    const Inference inference = infer_types(model, {.strict = strict});
    ASSERT_EQ(inference.findings.size(), 1u);
    const InferFinding& finding = inference.findings[0];
    EXPECT_EQ(finding.is_error, strict);
    EXPECT_EQ(inference.has_errors(), strict);
    EXPECT_EQ(finding.place, "Relu");
    EXPECT_EQ(finding.message,
              "the list of outputs declares 'y' as float[n,5]; the node makes float[n,4]; correct "
              "or remove the declaration");
    ASSERT_EQ(inference.names.size(), 1u);  // what agrees explains
    EXPECT_EQ(inference.names[0].name + " = " + inference.names[0].expression, "k = n");
    EXPECT_EQ(inference.values.back().type, "float[n,4]");
    EXPECT_EQ(inference.count(InferredValue::State::known), 3);
  }
}

TEST(InferTypes, GivenSizesMayMakeAContradiction) {
  const Model model = Model::from_text(
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[n, 4] x) => (float[3, 4] y) { y = Relu(x) }");
  EXPECT_FALSE(infer_types(model, {.strict = true}).has_errors());  // it holds where n is 3
  EXPECT_TRUE(infer_types(model, {.sizes = {{"n", 3}}, .strict = true}).findings.empty());
  EXPECT_TRUE(infer_types(model, {.sizes = {{"n", 4}}, .strict = true}).has_errors());
}

}  // namespace
}  // namespace sardonyx
