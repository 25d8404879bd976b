// Functions of one value of bytes, as tables, against plain runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "sardonyx/session.h"

namespace sardonyx {
namespace {

int count(const Session& session, std::string_view kernel) {
  return static_cast<int>(std::ranges::count_if(
      session.steps(), [&](const auto& step) { return step.kernel.starts_with(kernel); }));
}

Tensor bytes(const std::string& type, int64_t n, int factor) {
  Tensor made(type == "int8" ? ElementType::int8 : ElementType::uint8, {n});
  auto* to = static_cast<uint8_t*>(made.mutable_data());
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<uint8_t>(i * factor);
  return made;
}

// Bytes x and o of `type`, scales s, t, u and their zero points; what `body` makes of them must be
// the bytes of plain runs. Expects so many steps of each kind.
void check(const std::string& body, const std::string& outputs, int tables, int fused) {
  for (const std::string type : {"uint8", "int8"}) {
    const std::string zero = type == "int8" ? "-7" : "121";
    const std::string text = R"(<ir_version: 10, opset_import: ["" : 21]>
g ()" + type + "[N] x, " + type +
                             "[N] o) => (" + outputs + R"() {
  s = Constant<value = float {0.043}>()
  t = Constant<value = float {0.031}>()
  u = Constant<value = float {0.0121}>()
  z = Constant<value = )" + type +
                             " {" + zero + R"(}>()
  one = Constant<value = float {1.0}>()
  half = Constant<value = float {0.5}>()
)" + body + "}";
    const Model model = Model::from_text(text);
    for (const int64_t n : {1, 64, 200, 1000}) {
      const std::vector<NamedValue> inputs{{"x", bytes(type, n, 7)}, {"o", bytes(type, n, 11)}};
      const auto wanted = Session(model, {.reference = true}).run(inputs);
      for (const int threads : {1, 2}) {
        Session session(model, {.threads = threads});
        EXPECT_EQ(count(session, "lookup_table"), tables) << text;
        EXPECT_EQ(count(session, "fused_elementwise"), fused) << text;
        const auto made = session.run(inputs);
        ASSERT_EQ(made.size(), wanted.size());
        for (size_t i = 0; i < made.size(); ++i) {
          const Tensor &a = made[i].tensor(), &b = wanted[i].tensor();
          ASSERT_EQ(a.shape(), b.shape());
          ASSERT_EQ(a.element_type(), b.element_type());
          EXPECT_EQ(std::memcmp(a.data(), b.data(), a.byte_size()), 0) << text;
        }
      }
    }
  }
}

TEST(LookupTables, OneOperator) {
  check(R"(
  f = DequantizeLinear(x, s, z)
  e = Erf(f)
  y = QuantizeLinear(e, u, z)
)",
        "y", 1, 0);
}

TEST(LookupTables, AnotherScaleAndAnotherType) {
  check(R"(
  other = Constant<value = uint8 {3}>()
  f = DequantizeLinear(x, s, z)
  y = QuantizeLinear(f, u, other)
)",
        "y", 1, 0);
}

// Every value between two operators is bytes, and x is read at the beginning and at the end.
TEST(LookupTables, ActivationsSpelledOut) {
  check(R"(
  f = DequantizeLinear(x, s, z)
  d = Mul(f, half)
  dq = QuantizeLinear(d, t, z)
  df = DequantizeLinear(dq, t, z)
  e = Erf(df)
  eq = QuantizeLinear(e, u, z)
  ef = DequantizeLinear(eq, u, z)
  p = Add(ef, one)
  pq = QuantizeLinear(p, u, z)
  pf = DequantizeLinear(pq, u, z)
  m = Mul(f, pf)
  mq = QuantizeLinear(m, s, z)
  mf = DequantizeLinear(mq, s, z)
  h = Mul(mf, half)
  y = QuantizeLinear(h, t, z)
)",
        "y", 1, 0);
}

TEST(LookupTables, ValuesThatOthersReadStay) {
  check(R"(
  f = DequantizeLinear(x, s, z)
  e = Sigmoid(f)
  q = QuantizeLinear(e, u, z)
  qf = DequantizeLinear(q, u, z)
  m = Mul(f, qf)
  y = QuantizeLinear(m, s, z)
)",
        "y, q", 2, 0);
}

TEST(LookupTables, NotOfTwoValues) {
  check(R"(
  f = DequantizeLinear(x, s, z)
  e = Sigmoid(f)
  q = QuantizeLinear(e, u, z)
  qf = DequantizeLinear(q, u, z)
  of = DequantizeLinear(o, t, z)
  m = Mul(of, qf)
  y = QuantizeLinear(m, s, z)
)",
        "y", 1, 1);
}

// What the caller gives, or floats besides, are no constants.
TEST(LookupTables, NotOfFloats) {
  check(R"(
  f = DequantizeLinear(x, s, z)
  e = Sigmoid(f)
  twice = Add(e, e)
)",
        "twice", 0, 1);
}

}  // namespace
}  // namespace sardonyx
