// Regions against their steps one by one, on every instruction set: the same bits.
#include "kernels/elementwise/fused_elementwise.h"

#include <cstring>
#include <limits>
#include <random>

#include "kernels/rows_support.h"

namespace sardonyx::kernels {
namespace {

using test::each_target;
using test::one_thread;
using test::random_floats;
using test::two_threads;
using Kind = ElementwiseOperand::Kind;

constexpr UnaryOp unary_ops[] = {
    UnaryOp::abs,      UnaryOp::neg,        UnaryOp::exp,        UnaryOp::sqrt,
    UnaryOp::floor,    UnaryOp::ceil,       UnaryOp::round,      UnaryOp::square,
    UnaryOp::relu,     UnaryOp::leaky_relu, UnaryOp::clamp,      UnaryOp::hard_sigmoid,
    UnaryOp::tanh,     UnaryOp::hard_swish, UnaryOp::reciprocal, UnaryOp::thresholded_relu,
    UnaryOp::softsign,
};
constexpr BinaryOp binary_ops[] = {BinaryOp::add, BinaryOp::sub, BinaryOp::mul,   BinaryOp::div,
                                   BinaryOp::min, BinaryOp::max, BinaryOp::prelu, BinaryOp::gate};

struct Case {
  ElementwiseProgram program;
  int64_t rows, row;
  std::vector<std::vector<float>> inputs;
  int64_t count() const { return rows * row; }
};

// Tiles are read after they were written, by neighbours and by later steps, and written again.
Case random_case(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](size_t n) { return static_cast<int>(random() % n); };
  Case made;
  made.rows = 1 + below(3);
  const int64_t sizes[] = {1, 5, 16, 127, 129, 1024, 1100, 2500};
  made.row = sizes[below(std::size(sizes))];
  const int inputs = 1 + below(4);
  for (int i = 0; i < inputs; ++i) {
    const auto extent =
        i == 0 ? ElementwiseExtent::whole : static_cast<ElementwiseExtent>(below(3));
    made.program.extents.push_back(extent);
    const int64_t n = extent == ElementwiseExtent::whole ? made.count()
                      : extent == ElementwiseExtent::row ? made.row
                                                         : 1;
    made.inputs.push_back(random_floats(n, -2.0f, 2.0f, seed + static_cast<uint32_t>(i)));
    if (n > 4)
      made.inputs.back()[static_cast<size_t>(below(static_cast<size_t>(n)))] =
          std::numeric_limits<float>::quiet_NaN();
  }
  bool written[ElementwiseProgram::max_tiles] = {};
  int newest = -1;
  const auto operand = [&](bool single) {
    for (;;) {
      const int t = below(ElementwiseProgram::max_tiles);
      if (newest >= 0 && below(3) > 0) return ElementwiseOperand{Kind::tile, newest};
      if (below(2) == 0 && written[t]) return ElementwiseOperand{Kind::tile, t};
      const int i = below(static_cast<size_t>(inputs));
      if (single || made.program.extents[static_cast<size_t>(i)] != ElementwiseExtent::single)
        return ElementwiseOperand{Kind::input, i};
    }
  };
  const int steps = 1 + below(100);
  for (int s = 0; s < steps; ++s) {
    ElementwiseStep step;
    step.a = operand(false);
    if (below(2) == 0) {
      step.unary = unary_ops[below(std::size(unary_ops))];
      step.params = {0.25, 1.5};
    } else {
      step.kind = ElementwiseStep::Kind::binary;
      step.binary = binary_ops[below(std::size(binary_ops))];
      step.b = operand(true);
      if (below(2) == 0) std::swap(step.a, step.b);
    }
    step.to = {Kind::tile, below(ElementwiseProgram::max_tiles)};
    if (s + 1 == steps) step.to = {Kind::output, 0};
    if (step.to.kind == Kind::tile) written[newest = step.to.index] = true;
    made.program.steps.push_back(step);
  }
  return made;
}

std::vector<float> one_by_one(const Case& c) {
  const auto n = static_cast<size_t>(c.count());
  std::vector<std::vector<float>> tiles(ElementwiseProgram::max_tiles, std::vector<float>(n));
  std::vector<float> output(n);
  const auto read = [&](const ElementwiseOperand& o) {
    if (o.kind == Kind::tile) return tiles[static_cast<size_t>(o.index)];
    const auto& input = c.inputs[static_cast<size_t>(o.index)];
    std::vector<float> all(n);
    for (size_t i = 0; i < n; ++i) all[i] = input[i % input.size()];
    return all;
  };
  for (const ElementwiseStep& step : c.program.steps) {
    auto& to = step.to.kind == Kind::tile ? tiles[static_cast<size_t>(step.to.index)] : output;
    const auto a = read(step.a);
    if (step.kind == ElementwiseStep::Kind::unary) {
      unary_tile(step.unary)(a.data(), to.data(), c.count(), step.params);
    } else {
      const auto b = read(step.b);
      binary_tile(step.binary, Sides::both)(a.data(), b.data(), to.data(), c.count());
    }
  }
  return output;
}

TEST(FusedElementwise, GivesTheBitsOfItsStepsOneByOne) {
  each_target([] {
    int chained = 0;
    for (uint32_t seed = 0; seed < 300; ++seed) {
      Case c = random_case(seed);
      ASSERT_TRUE(bind_fused_elementwise(c.program));
      for (const ElementwiseRun& run : c.program.runs) chained += !run.links.empty();
      const void* inputs[ElementwiseProgram::max_inputs];
      for (size_t i = 0; i < c.inputs.size(); ++i) inputs[i] = c.inputs[i].data();
      std::vector<float> y(static_cast<size_t>(c.count()));
      run_fused_elementwise(c.program, inputs, y.data(), c.count(), c.row,
                            seed % 2 == 0 ? one_thread() : two_threads());
      const auto expected = one_by_one(c);
      for (size_t i = 0; i < y.size(); ++i) {
        if (std::isnan(y[i]) && std::isnan(expected[i])) continue;
        ASSERT_EQ(std::memcmp(&y[i], &expected[i], sizeof(float)), 0)
            << "seed " << seed << ", element " << i << ": " << y[i] << ", one by one "
            << expected[i];
      }
    }
    EXPECT_GT(chained, 100);
  });
}

TEST(FusedElementwise, WritesOverAnInput) {
  each_target([] {
    ElementwiseProgram program;
    program.extents = {ElementwiseExtent::whole, ElementwiseExtent::single};
    ElementwiseStep step;
    step.kind = ElementwiseStep::Kind::binary;
    step.binary = BinaryOp::sub;
    step.a = {Kind::input, 1}, step.b = {Kind::input, 0}, step.to = {Kind::tile, 0};
    program.steps.push_back(step);
    step.a = {Kind::tile, 0}, step.b = {Kind::input, 0}, step.to = {Kind::output, 0};
    program.steps.push_back(step);
    ASSERT_TRUE(bind_fused_elementwise(program));
    ASSERT_EQ(program.runs.size(), 1U);
    std::vector<float> x = random_floats(3000, -1.0f, 1.0f, 7), expected(x.size());
    const float one = 1;
    for (size_t i = 0; i < x.size(); ++i) expected[i] = (one - x[i]) - x[i];
    const void* inputs[] = {x.data(), &one};
    run_fused_elementwise(program, inputs, x.data(), 3000, 3000, two_threads());
    EXPECT_EQ(x, expected);
  });
}

}  // namespace
}  // namespace sardonyx::kernels
