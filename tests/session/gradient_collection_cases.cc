// Sequences and optional values on the way from x to y.
#include "gradient_draw.h"

namespace sardonyx::test {
namespace {

std::string number(std::string_view name, int64_t value) {
  return integers(name, Shape{}, {value});
}

void sequences(const Check& check) {
  Draw draw(60);
  for (int round = 0; round < 6; ++round) {
    const Input a = draw.input("a", {2, draw.between(1, 3)}),
                b = draw.input("b", {2, draw.between(1, 3)}),
                c = draw.input("c", {2, draw.between(1, 3)});
    const std::string list = "s = SequenceConstruct(a, b, a)\n ";
    check(list + number("i", draw.between(-3, 2)) + "t = SequenceAt(s, i)\n y = Mul(t, t)", {a, b});
    check(list + "y = ConcatFromSequence<axis = 1>(s)", {a, b});
    check(list + number("i", draw.between(-3, 3)) +
              "t = SequenceInsert(s, c, i)\n y = ConcatFromSequence<axis = -1>(t)",
          {a, b, c});
    check(
        list +
            "t = SequenceInsert(s, c)\n u = SequenceErase(t)\n y = ConcatFromSequence<axis = 1>(u)",
        {a, b, c});
    check(list + number("i", draw.between(-3, 2)) +
              "t = SequenceErase(s, i)\n y = ConcatFromSequence<axis = 1>(t)",
          {a, b});
    // Twice on the way, whole and in part.
    check(list + number("i", 1) +
              "t = SequenceAt(s, i)\n u = ConcatFromSequence<axis = 1>(s)\n v = ReduceSum<keepdims "
              "= 0>(u)\n y = Mul(t, v)",
          {a, b});
    const int64_t axis = draw.between(-2, 1);
    const Input x = draw.input("x", {4, 4});
    check(fmt::format("s = SplitToSequence<axis = {0}, keepdims = 0>(x)\n ", axis) +
              number("i", draw.between(-4, 3)) + "t = SequenceAt(s, i)\n y = Mul(t, t)",
          {x});
    check(fmt::format("s = SplitToSequence<axis = {0}>(x)\n y = ConcatFromSequence<axis = {0}>(s)",
                      axis),
          {x});
    check(number("n", 3) + fmt::format("s = SplitToSequence<axis = {}>(x, n)\n ", axis) +
              number("i", 1) + "t = SequenceAt(s, i)\n y = Mul(t, t)",
          {x});
    check(integers("n", {1, 2, 1}) + fmt::format("s = SplitToSequence<axis = {}>(x, n)\n ", axis) +
              number("i", 1) + "t = SequenceAt(s, i)\n y = Mul(t, t)",
          {x});
    check(fmt::format(
              "s = SequenceConstruct(a, d, a)\n y = ConcatFromSequence<axis = {}, new_axis = 1>(s)",
              draw.between(-3, 2)),
          {a, {"d", draw.values(a.value.shape(), -1, 1)}});
  }
  check(
      "e = SequenceEmpty<dtype = 11>()\n s = SequenceInsert(e, a)\n y = ConcatFromSequence<axis = "
      "0>(s)",
      {draw.input("a", {2, 2})});
}

void mapped_sequences(const Check& check) {
  Draw draw(61);
  const Input a = draw.input("a", {2, 2}), b = draw.input("b", {2, 3}), w = draw.input("w", {2, 1});
  check(
      "s = SequenceConstruct(a, b)\n t = SequenceMap<body = g (i) => (o) { p = Sin(i)\n o = Mul(p, "
      "w) }>(s)\n"
      " y = ConcatFromSequence<axis = 1>(t)",
      {a, b, w});
  // Two results, one of them unused in part, and a value that all items share.
  check(
      "s = SequenceConstruct(a, b)\n t, u = SequenceMap<body = g (i, v) => (o, q) { o = Mul(i, "
      "v)\n q = Exp(i) }>(s, w)\n"
      " p = ConcatFromSequence<axis = 1>(t)\n k = Constant<value = int64 {0}>()\n m = "
      "SequenceAt(u, k)\n"
      " n = ReduceSum<keepdims = 0>(m)\n y = Mul(p, n)",
      {a, b, w});
  check(
      "s = SequenceConstruct(a, b)\n r = SequenceConstruct(b, a)\n"
      " t = SequenceMap<body = g (i, j) => (o) { k = ReduceSum<keepdims = 0>(j)\n o = Mul(i, k) "
      "}>(s, r)\n"
      " y = ConcatFromSequence<axis = 1>(t)",
      {a, b});
}

void optional_values(const Check& check) {
  Draw draw(62);
  const Input x = draw.input("x", {2, 3});
  check("o = Optional(x)\n e = OptionalGetElement(o)\n y = Mul(e, x)", {x});
  check(
      "s = SequenceConstruct(x, x)\n o = Optional(s)\n e = OptionalGetElement(o)\n y = "
      "ConcatFromSequence<axis = 0>(e)",
      {x});
  // A sequence that a branch chooses.
  check(
      "s = SequenceConstruct(x, w)\n c = Constant<value = bool {1}>()\n z = Constant<value = int64 "
      "{0}>()\n"
      " t = If(c) <then_branch = a () => (p) { p = SequenceErase(s, z) }, else_branch = b () => "
      "(q) { q = Identity(s) }>\n"
      " y = ConcatFromSequence<axis = 0>(t)",
      {x, draw.input("w", {1, 3})});
}

constexpr GradientCases collection_groups[] = {{"Sequences", sequences},
                                               {"MappedSequences", mapped_sequences},
                                               {"OptionalValues", optional_values}};

}  // namespace

std::span<const GradientCases> collection_cases() { return collection_groups; }

}  // namespace sardonyx::test
