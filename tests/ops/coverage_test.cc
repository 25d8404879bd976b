// Every operator of spec/ has code or a body, and all code has a signature.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "ops/operator.h"
#include "schema/gradients.h"
#include "schema/schema.h"

namespace sardonyx::ops {
namespace {

// What a rewrite replaces (Gradient) or refuses with a reason (GraphCall) has inference only.
const std::set<std::string> without_kernel = {"ai.onnx.preview.training.Gradient",
                                              "ai.onnx.preview.training.GraphCall"};

std::string full_name(std::string_view domain, std::string_view name) {
  return domain.empty() ? std::string(name) : fmt::format("{}.{}", domain, name);
}

TEST(Coverage, EveryOperatorHasCodeOrABody) {
  std::set<std::string> missing;
  for (const schema::Signature& signature : schema::all_signatures()) {
    const Operator* op = find_operator(signature.domain, signature.name);
    const bool runs = op != nullptr && (op->prepare != nullptr || op->upgrade != nullptr);
    const bool has_body = schema::function_text(signature.domain, signature.name) != nullptr;
    const std::string name = full_name(signature.domain, signature.name);
    if (!runs && !has_body && !without_kernel.contains(name)) missing.insert(name);
  }
  EXPECT_EQ(missing, std::set<std::string>());
}

TEST(Coverage, AllCodeHasASignature) {
  for (const Operator* op : all_operators()) {
    if (op->domain == "sardonyx") continue;
    EXPECT_NE(schema::newest(op->domain, op->name), nullptr) << full_name(op->domain, op->name);
    EXPECT_TRUE(op->infer != nullptr || op->upgrade != nullptr) << op->name;
  }
}

TEST(Coverage, EveryGradientBelongsToAnOperator) {
  for (const schema::FunctionText& text : schema::gradient_texts()) {
    const std::string_view name = text.name.substr(0, text.name.find('.'));
    EXPECT_NE(find_operator(text.domain, name), nullptr) << full_name(text.domain, text.name);
  }
}

}  // namespace
}  // namespace sardonyx::ops
