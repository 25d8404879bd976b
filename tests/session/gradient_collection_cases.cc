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

// How many items there are does not depend on what they hold, nor do places that are chosen.
void counts(const Check& check) {
  Draw draw(65);
  const Input x = draw.input("x", {2, 3});
  check("s = SequenceConstruct(x, x)\n n = SequenceLength(s)\n f = CastLike(n, x)\n y = Mul(x, f)",
        {x});
  check(
      "f = Cast<to = 1>(b)\n k = Constant<value = int64 {2}>()\n s = Constant<value = float[1, 1, "
      "3] {0.9, 0.5, 0.7}>()\n i = NonMaxSuppression(f, s, k)\n r = "
      "Constant<value_ints = [2]>()\n l = Constant<value_ints = [3]>()\n a = "
      "Constant<value_ints = [1]>()\n at = Slice(i, r, l, a)\n c = Squeeze(at, a)\n h = "
      "Squeeze(b)\n g = Gather(h, c)\n y = Mul(g, g)",
      {{"b", draw.values({1, 3, 4}, 0, 1)}}, Precision::float32);
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

// What an iteration hands to the next one may hold nothing: at the beginning, or every other time.
void optional_states(const Check& check) {
  Draw draw(63);
  const Input x = draw.input("x", {2, 3}), w = draw.input("w", {2, 3});
  const std::string begin = number("n", 4) + number("two", 2) + number("one", 1) +
                            "yes = Constant<value = bool {1}>()\n ";
  const std::string read =
      " g = Identity(c)\n h = OptionalHasElement(o)\n e = If(h) <then_branch = t () => (p) { q = "
      "OptionalGetElement(o)\n p = Mul(q, w) }, else_branch = f () => (r) { r = Sin(x) }>\n ";
  const std::string body =
      "body = b (int64 i, bool c, optional(double[2, 3]) o) => (bool g, "
      "optional(double[2, 3]) next) {";
  check(begin + "none = Optional<type = double[2, 3]>()\n z = Loop(n, yes, none) <" + body + read +
            "next = Optional(e) }>\n y = OptionalGetElement(z)",
        {x, w});
  // What is read is handed out as well, and the last one is empty.
  const std::string listed =
      "body = b (int64 i, bool c, optional(double[2, 3]) o) => (bool g, "
      "optional(double[2, 3]) next, double[2, 3] e) {";
  check(
      begin + "some = Optional(x)\n z, y = Loop(n, yes, some) <" + listed + read +
          "k = Mod(i, two)\n odd = Equal(k, one)\n next = If(odd) <then_branch = t2 () => (a) { a "
          "= Optional<type = double[2, 3]>() }, else_branch = f2 () => (d) { d = Optional(e) }> }>",
      {x, w});
  // Of sequences, and beside a state that is a tensor.
  check(
      begin +
          "none = Optional<type = seq(double[2, 3])>()\n z, v = Loop(n, yes, none, x) <body = b "
          "(int64 i, bool c, optional(seq(double[2, 3])) o, double[2, 3] u) => (bool g, "
          "optional(seq(double[2, 3])) next, double[2, 3] up) { g = Identity(c)\n h = "
          "OptionalHasElement(o)\n e = If(h) <then_branch = t () => (p) { q = "
          "OptionalGetElement(o)\n m = Mul(u, w)\n p = SequenceInsert(q, m) }, else_branch = f () "
          "=> (r) { r = SequenceConstruct(u, x) }>\n next = Optional(e)\n up = Cos(u) }>\n a = "
          "OptionalGetElement(z)\n j = ConcatFromSequence<axis = 0>(a)\n k = "
          "ReduceSum<keepdims = 0>(j)\n y = Mul(k, v)",
      {x, w});
}

// What an If makes may hold nothing.
void optional_branches(const Check& check) {
  Draw draw(64);
  const Input x = draw.input("x", {2, 3}), w = draw.input("w", {2, 3});
  for (const char* condition : {"0", "1"}) {
    check(fmt::format(
              "c = Constant<value = bool {{{}}}>()\n o = If(c) <then_branch = a () => (p) {{ s = "
              "Sin(x)\n p = Optional(s) }}, else_branch = b () => (q) {{ q = Optional<type = "
              "double[2, 3]>() }}>\n h = OptionalHasElement(o)\n y = If(h) <then_branch = t () => "
              "(r) {{ g = OptionalGetElement(o)\n r = Mul(g, w) }}, else_branch = f () => (v) {{ v "
              "= Mul(x, x) }}>",
              condition),
          {x, w});
  }
}

constexpr GradientCases collection_groups[] = {{"Sequences", sequences},
                                               {"Counts", counts},
                                               {"MappedSequences", mapped_sequences},
                                               {"OptionalValues", optional_values},
                                               {"OptionalStates", optional_states},
                                               {"OptionalBranches", optional_branches}};

}  // namespace

std::span<const GradientCases> collection_cases() { return collection_groups; }

}  // namespace sardonyx::test
