// com.microsoft: DynamicQuantizeMatMul, MatMulIntegerToFloat and QGemm.
#include "ops/contrib/integer_products.h"

#include "ops/operator.h"

namespace sardonyx::ops {

std::string integer_product(Body& body, const IntegerProduct& p) {
  Names inputs{p.a, p.b, p.a_zero, p.b_zero};
  while (inputs.back().empty()) inputs.pop_back();
  const std::string sums = body.cast(body.op("MatMulInteger", inputs), ElementType::float32);
  std::string y = body.op("Mul", {sums, body.op("Mul", {p.a_scale, p.b_scale})});
  if (!p.bias.empty()) y = body.op("Add", {y, p.bias});
  return y;
}

namespace contrib_integer_products_unit {
namespace {

void to_float(UpgradeContext& ctx) {
  Body body(ctx);
  const bool half = ctx.element(2) == ElementType::float16;
  const auto wide = [&](size_t i) {
    return half && body.has(i) ? body.cast(body.input(i), ElementType::float32) : body.input(i);
  };
  const std::string y = integer_product(body, {body.input(0), body.input(1), body.input(4),
                                               body.input(5), wide(2), wide(3), wide(6)});
  if (half)
    return body.give(0, "Cast", {y},
                     {int_attribute("to", static_cast<int64_t>(ElementType::float16))});
  body.give(0, "Identity", {y});
}

void dynamic(UpgradeContext& ctx) {
  Body body(ctx);
  const Names a = body.several("DynamicQuantizeLinear", {body.input(0)}, 3);
  body.give(0, "Identity",
            {integer_product(body, {a[0], body.input(1), a[2], body.input(3), a[1], body.input(2),
                                    body.input(4)})});
}

void gemm(UpgradeContext& ctx) {
  Body body(ctx);
  const NodeView node = ctx.old();
  const auto operand = [&](size_t i, const char* flag) {
    return node.attr_int(flag, 0) != 0 ? body.transpose(body.input(i), {1, 0}) : body.input(i);
  };
  // C is in units of the product's scale, and so joins the integer sums.
  const std::string a = operand(0, "transA"), b = operand(3, "transB");
  std::string sums = body.op("MatMulInteger", {a, b, body.input(2), body.input(5)});
  if (body.has(6)) sums = body.op("Add", {sums, body.input(6)});
  std::string scale = body.op("Mul", {body.input(1), body.input(4)});
  if (const float alpha = node.attr_float("alpha", 1); alpha != 1)
    scale = body.op("Mul", {scale, body.number(alpha, 1)});
  const std::string y = body.op("Mul", {body.cast(sums, ElementType::float32), scale});
  if (!body.has(7)) return body.give(0, "Identity", {y});
  Names inputs{y, body.input(7)};
  if (body.has(8)) inputs.push_back(body.input(8));
  body.give(0, "QuantizeLinear", inputs);
}

constexpr Operator operators[] = {
    {.name = "DynamicQuantizeMatMul", .domain = "com.microsoft", .upgrade = dynamic},
    {.name = "MatMulIntegerToFloat", .domain = "com.microsoft", .upgrade = to_float},
    {.name = "QGemm", .domain = "com.microsoft", .upgrade = gemm},
};

}  // namespace
}  // namespace contrib_integer_products_unit

std::span<const Operator> contrib_integer_products_operators() {
  return contrib_integer_products_unit::operators;
}

}  // namespace sardonyx::ops
