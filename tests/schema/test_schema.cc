// ValueFacts facts of the standard, and what holds for every signature.
#include "schema/schema.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>

namespace sardonyx::schema {
namespace {

std::string text_of(std::span<const TypeId> types) {
  std::string text;
  for (const TypeId type : types) {
    if (!text.empty()) text += ' ';
    text += to_string(type);
  }
  return text;
}

std::string name_and_version(const Signature& signature) {
  return std::string(signature.domain) + "." + std::string(signature.name) + "-" +
         std::to_string(signature.since);
}

TEST(Schema, CountsOfTheRelease) {
  std::set<std::pair<std::string_view, std::string_view>> operators;
  size_t signatures = 0, functions = 0, contextual = 0, deprecated = 0;
  for (const Signature& signature : all_signatures()) {
    if (signature.extra) continue;
    ++signatures;
    operators.emplace(signature.domain, signature.name);
  }
  EXPECT_EQ(signatures, 659u);
  EXPECT_EQ(operators.size(), 227u);
  for (const auto& [domain, name] : operators) {
    const Signature& signature = *newest(domain, name);
    functions += signature.function != FunctionKind::none;
    contextual += signature.function == FunctionKind::contextual;
    deprecated += signature.deprecated;
  }
  EXPECT_EQ(functions, 49u);
  EXPECT_EQ(contextual, 21u);
  EXPECT_EQ(deprecated, 4u);
  const auto count = [&](std::string_view domain) {
    return std::ranges::count(operators, domain, [](const auto& key) { return key.first; });
  };
  EXPECT_EQ(count(""), 203);
  EXPECT_EQ(count("ai.onnx.ml"), 19);
  EXPECT_EQ(count("ai.onnx.preview.training"), 4);
  EXPECT_EQ(count("ai.onnx.preview"), 1);
}

TEST(Schema, EverySignatureIsWellFormed) {
  const Signature* before = nullptr;
  for (const Signature& signature : all_signatures()) {
    SCOPED_TRACE(name_and_version(signature));
    if (before) {
      EXPECT_LT(std::tie(before->domain, before->name, before->since),
                std::tie(signature.domain, signature.name, signature.since));
    }
    before = &signature;
    EXPECT_GE(signature.since, 1);
    EXPECT_LE(signature.min_inputs, signature.max_inputs);
    EXPECT_LE(signature.min_outputs, signature.max_outputs);
    EXPECT_TRUE(std::ranges::is_sorted(signature.attributes, {}, &Attribute::name));
    EXPECT_EQ(signature.function == FunctionKind::none, signature.function_opsets.empty());
    for (const Attribute& attribute : signature.attributes) {
      EXPECT_NE(attribute.kind, AttributeKind::undefined);
      EXPECT_FALSE(attribute.required && attribute.has_default) << attribute.name;
      EXPECT_EQ(signature.attribute(attribute.name), &attribute);
    }
    for (const TypeConstraint& constraint : signature.constraints) {
      EXPECT_FALSE(constraint.types.empty());
      EXPECT_TRUE(std::ranges::is_sorted(constraint.types));
      EXPECT_EQ(signature.constraint(constraint.name), &constraint);
    }
  }
}

TEST(Schema, EveryFormalHasReadableTypes) {
  for (const Signature& signature : all_signatures()) {
    SCOPED_TRACE(name_and_version(signature));
    for (const auto formals : {signature.inputs, signature.outputs}) {
      for (const Formal& formal : formals) {
        ASSERT_FALSE(formal.types.empty());
        for (const TypeId type : formal.types) {
          EXPECT_EQ(parse_type(to_string(type)), type) << to_string(type);
          EXPECT_TRUE(allows(formal, type));
        }
        if (formal.constraint >= 0) {
          const auto& constraint = signature.constraints[static_cast<size_t>(formal.constraint)];
          EXPECT_EQ(constraint.name, formal.type);
          EXPECT_EQ(text_of(constraint.types), text_of(formal.types));
        } else {
          ASSERT_EQ(formal.types.size(), 1u);
          EXPECT_EQ(to_string(formal.types[0]), formal.type);
        }
        const bool last = &formal == &formals.back();
        EXPECT_TRUE(formal.option != FormalOption::variadic || last);
      }
    }
  }
}

TEST(Schema, FindTakesTheNewestVersionNotAboveTheOpset) {
  EXPECT_EQ(find("", "Softmax", 0), nullptr);
  EXPECT_EQ(find("", "Softmax", 1)->since, 1);
  EXPECT_EQ(find("", "Softmax", 10)->since, 1);
  EXPECT_EQ(find("ai.onnx", "Softmax", 11)->since, 11);
  EXPECT_EQ(find("", "Softmax", 12)->since, 11);
  EXPECT_EQ(find("", "Softmax", 13)->since, 13);
  EXPECT_EQ(find("", "Softmax", std::numeric_limits<int64_t>::max())->since, 13);
  EXPECT_EQ(find("", "Softmax", std::numeric_limits<int64_t>::min()), nullptr);
  EXPECT_EQ(find("", "Celu", 11), nullptr);
  EXPECT_EQ(find("", "softmax", 13), nullptr);
  EXPECT_EQ(find("com.example", "Softmax", 13), nullptr);
  EXPECT_EQ(find("ai.onnx.ml", "Softmax", 13), nullptr);
  EXPECT_EQ(find("ai.onnx.ml", "LabelEncoder", 3)->since, 2);
  EXPECT_EQ(newest("", "Softmax")->since, 13);
  EXPECT_EQ(newest("", "NoSuchThing"), nullptr);
  const auto softmax = versions("ai.onnx", "Softmax");
  ASSERT_EQ(softmax.size(), 3u);
  EXPECT_EQ(softmax[0].since, 1);
  EXPECT_EQ(softmax[2].since, 13);
}

TEST(Schema, FactsOfSomeOperators) {
  const Signature& softmax = *find("", "Softmax", 13);
  EXPECT_EQ(softmax.attribute("axis")->default_int, -1);
  EXPECT_EQ(find("", "Softmax", 11)->attribute("axis")->default_int, 1);
  EXPECT_EQ(text_of(softmax.constraints[0].types),
            "tensor(float) tensor(float16) tensor(double) tensor(bfloat16)");
  EXPECT_EQ(softmax.function, FunctionKind::contextual);
  EXPECT_EQ(softmax.inputs[0].differentiable, Differentiability::differentiable);

  const Signature& cast = *find("", "Cast", 13);
  EXPECT_TRUE(cast.attribute("to")->required);
  EXPECT_EQ(cast.attribute("to")->kind, AttributeKind::int_);
  EXPECT_EQ(find("", "Cast", 1)->attribute("to")->kind, AttributeKind::string);

  const Signature& topk = *find("", "TopK", 11);
  EXPECT_EQ(topk.inputs[1].type, "tensor(int64)");
  EXPECT_EQ(topk.inputs[1].constraint, -1);
  EXPECT_EQ(topk.min_outputs, 2);

  const Signature& gru = *find("", "GRU", 14);
  EXPECT_EQ(gru.min_inputs, 3);
  EXPECT_EQ(gru.max_inputs, 6);
  EXPECT_EQ(gru.min_outputs, 0);
  EXPECT_EQ(gru.max_outputs, 2);
  EXPECT_EQ(gru.attribute("direction")->default_string, "forward");
  EXPECT_EQ(find("", "GRU", 1)->attribute("direction")->default_string, "foward");
  EXPECT_EQ(gru.attribute("clip")->has_default, false);

  const auto activations = find("", "RNN", 22)->attribute("activations")->default_strings;
  ASSERT_EQ(activations.size(), 2u);
  EXPECT_EQ(activations[1], "Tanh");

  const auto axes = find("", "MeanVarianceNormalization", 13)->attribute("axes")->default_ints;
  ASSERT_EQ(axes.size(), 3u);
  EXPECT_EQ(axes[1], 2);

  EXPECT_EQ(find("", "Selu", 22)->attribute("alpha")->default_float, 1.67326319217681884765625f);
  EXPECT_EQ(find("", "Clip", 6)->attribute("max")->default_float,
            std::numeric_limits<float>::max());
  EXPECT_EQ(find("", "Conv", 22)->attribute("auto_pad")->default_string, "NOTSET");
}

TEST(Schema, Flags) {
  EXPECT_TRUE(find("", "Upsample", 10)->deprecated);
  EXPECT_FALSE(find("", "Upsample", 9)->deprecated);
  EXPECT_TRUE(find("", "Upsample", 1)->experimental);
  EXPECT_TRUE(find("ai.onnx.preview", "FlexAttention", 1)->experimental);
  EXPECT_TRUE(find("", "RandomNormal", 1)->nondeterministic);
  EXPECT_FALSE(find("", "Add", 14)->nondeterministic);
  const Signature& normalization = *find("", "MeanVarianceNormalization", 13);
  EXPECT_EQ(normalization.function, FunctionKind::fixed);
  ASSERT_EQ(normalization.function_opsets.size(), 2u);
  EXPECT_EQ(normalization.function_opsets[1], 18);
  EXPECT_EQ(find("", "Add", 14)->function, FunctionKind::none);
  EXPECT_EQ(find("", "Dropout", 13)->inputs[1].differentiable,
            Differentiability::not_differentiable);
  EXPECT_EQ(find("", "Dropout", 12)->inputs[1].differentiable, Differentiability::not_said);
}

TEST(Schema, FormalsAtAPosition) {
  const Signature& concat = *find("", "Concat", 13);
  EXPECT_EQ(concat.max_inputs, unlimited);
  EXPECT_EQ(concat.input(0)->name, "inputs");
  EXPECT_EQ(concat.input(1000), concat.input(0));
  EXPECT_TRUE(concat.inputs[0].homogeneous);
  EXPECT_EQ(concat.output(1), nullptr);

  const Signature& loop = *find("", "Loop", 11);
  EXPECT_EQ(loop.min_inputs, 2);
  EXPECT_EQ(loop.input(1)->option, FormalOption::optional);
  EXPECT_EQ(loop.input(7)->name, "v_initial");
  EXPECT_EQ(loop.input(7)->min_arity, 0);
  EXPECT_FALSE(loop.input(7)->homogeneous);
  EXPECT_EQ(find("", "Constant", 1)->input(0), nullptr);
}

TEST(Schema, AllowedTypes) {
  const auto tensor = [](ElementType element) { return TypeId::tensor(element); };
  const TypeConstraint& identity = *find("", "Identity", 16)->constraint("V");
  EXPECT_TRUE(allows(identity, tensor(ElementType::float16)));
  EXPECT_TRUE(allows(identity, TypeId::optional(TypeId::sequence(tensor(ElementType::string)))));
  EXPECT_FALSE(allows(identity, TypeId::sequence(TypeId::optional(tensor(ElementType::string)))));
  EXPECT_FALSE(allows(identity, tensor(ElementType::int4)));
  EXPECT_FALSE(allows(identity, TypeId{}));
  EXPECT_FALSE(allows(identity, tensor(static_cast<ElementType>(99))));
  EXPECT_FALSE(allows(identity, tensor(static_cast<ElementType>(-1))));
  EXPECT_TRUE(allows(*find("", "Identity", 25)->constraint("V"), tensor(ElementType::int2)));
  const auto float6 = static_cast<ElementType>(27);
  EXPECT_TRUE(allows(find("", "QuantizeLinear", 28)->outputs[0], tensor(float6)));
  EXPECT_FALSE(allows(find("", "QuantizeLinear", 25)->outputs[0], tensor(float6)));

  const Formal& zip_map = find("ai.onnx.ml", "ZipMap", 1)->outputs[0];
  EXPECT_TRUE(allows(
      zip_map, TypeId::sequence(TypeId::map(ElementType::int64, tensor(ElementType::float32)))));
  EXPECT_FALSE(allows(
      zip_map, TypeId::sequence(TypeId::map(ElementType::int32, tensor(ElementType::float32)))));
}

TEST(Schema, Releases) {
  EXPECT_EQ(latest_opset(""), 28);
  EXPECT_EQ(latest_opset("ai.onnx"), 28);
  EXPECT_EQ(latest_opset("ai.onnx.ml"), 5);
  EXPECT_EQ(latest_opset("ai.onnx.training"), 1);
  EXPECT_EQ(latest_opset("ai.onnx.preview.training"), 1);
  EXPECT_EQ(latest_opset("ai.onnx.preview"), 1);
  EXPECT_EQ(latest_opset("com.microsoft"), 1);
  EXPECT_EQ(latest_opset("com.example"), 0);
  EXPECT_EQ(releases().front().name, "1.0");
  EXPECT_EQ(releases().back().name, "1.23.0");
  EXPECT_EQ(releases().back().ir_version, 14);
  EXPECT_EQ(release_of_opset("", 13)->name, "1.8.0");
  EXPECT_EQ(release_of_opset("", 3)->name, "1.1");
  EXPECT_EQ(release_of_opset("", 0), nullptr);
  EXPECT_EQ(release_of_opset("", 1000), nullptr);
  EXPECT_EQ(release_of_opset("com.microsoft", 1), nullptr);
  EXPECT_EQ(ir_version_for_opset("ai.onnx", 21), 10);
  EXPECT_EQ(ir_version_for_opset("ai.onnx.ml", 3), 8);
  for (size_t i = 1; i < releases().size(); ++i) {
    EXPECT_LE(releases()[i - 1].onnx_opset, releases()[i].onnx_opset);
    EXPECT_LE(releases()[i - 1].ir_version, releases()[i].ir_version);
  }
}

TEST(Schema, OperatorsThatLeftTheStandard) {
  const Signature* affine = find("", "Affine", 9);
  ASSERT_NE(affine, nullptr);
  EXPECT_TRUE(affine->extra);
  EXPECT_TRUE(affine->experimental);
  EXPECT_EQ(affine->attribute("alpha")->default_float, 1.0f);
  EXPECT_EQ(find("", "Affine", 10), nullptr);
  EXPECT_EQ(newest("", "Affine"), affine);
  for (const char* name :
       {"ATen", "ConstantFill", "Crop", "DynamicSlice", "GRUUnit", "GivenTensorFill", "ImageScaler",
        "ParametricSoftplus", "Scale", "ScaledTanh"}) {
    EXPECT_NE(find("", name, 1), nullptr) << name;
    EXPECT_EQ(find("", name, 13), nullptr) << name;
  }
  // The name lived on with another meaning.
  EXPECT_TRUE(find("", "MeanVarianceNormalization", 8)->extra);
  EXPECT_NE(find("", "MeanVarianceNormalization", 8)->attribute("across_channels"), nullptr);
  EXPECT_FALSE(find("", "MeanVarianceNormalization", 9)->extra);
}

TEST(Schema, FunctionTexts) {
  size_t fixed = 0;
  for (const Signature& signature : all_signatures()) {
    const bool is_newest = &signature == newest(signature.domain, signature.name);
    if (!is_newest || signature.function != FunctionKind::fixed) continue;
    ++fixed;
    const FunctionText* function = function_text(signature.domain, signature.name);
    ASSERT_NE(function, nullptr) << name_and_version(signature);
    EXPECT_EQ(function->name, signature.name);
    EXPECT_NE(function->text.find(std::string(signature.name) + " "), std::string_view::npos);
    EXPECT_EQ(function->text.substr(function->text.size() - 2), "}\n");
  }
  // Internal operators have bodies and no signatures.
  const auto of_the_standard = std::ranges::count_if(
      function_texts(), [](const FunctionText& text) { return text.domain != "sardonyx"; });
  EXPECT_EQ(fixed, static_cast<size_t>(of_the_standard));
  EXPECT_EQ(function_text("ai.onnx", "Elu"), function_text("", "Elu"));
  EXPECT_EQ(function_text("", "Conv"), nullptr);
}

TEST(Schema, ClosestName) {
  EXPECT_EQ(closest_name("", "SoftMax"), "Softmax");
  EXPECT_EQ(closest_name("", "softmax"), "Softmax");
  EXPECT_EQ(closest_name("ai.onnx", "Reulu"), "Relu");
  EXPECT_EQ(closest_name("", "Tranpsose"), "Transpose");
  EXPECT_EQ(closest_name("", "LayerNormalisation"), "LayerNormalization");
  EXPECT_EQ(closest_name("ai.onnx.ml", "TreeEnsmble"), "TreeEnsemble");
  EXPECT_EQ(closest_name("", "Affina"), "");  // what left the standard is no suggestion
  EXPECT_EQ(closest_name("", "Fnord"), "");
  EXPECT_EQ(closest_name("", ""), "");
  EXPECT_EQ(closest_name("", std::string(10'000, 'a')), "");
  EXPECT_EQ(closest_name("com.example", "Softmax"), "");
}

}  // namespace
}  // namespace sardonyx::schema
