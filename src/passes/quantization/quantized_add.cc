#include "passes/quantization/quantized_add.h"

#include <algorithm>
#include <optional>

#include "ir/node_values.h"
#include "ops/internal/elementwise.h"
#include "ops/internal/node.h"
#include "ops/internal/quantized.h"
#include "passes/graph_index.h"

namespace sardonyx::passes {
namespace {

using kernels::ElementwiseProgram;
using kernels::ElementwiseStep;
using ops::internal::FusedElementwise;
using ops::internal::QLinearConv;
using Kind = ElementwiseStep::Kind;

struct Sum {
  ElementwiseStep inputs[2];  // by the FusedElementwise's inputs
  kernels::ByteScale y;
  bool relu = false;
};

// What the program of a FusedElementwise does, where it is such a sum.
std::optional<Sum> sum_of(const ElementwiseProgram& program) {
  const auto& steps = program.steps;
  const bool relu = steps.size() == 5;
  if (program.extents.size() != 2 || (steps.size() != 4 && !relu) ||
      !std::ranges::all_of(program.extents,
                           [](auto extent) { return extent == kernels::ElementwiseExtent::whole; }))
    return std::nullopt;
  const ElementwiseStep &a = steps[0], &b = steps[1], &add = steps[2], &last = steps.back();
  if (a.kind != Kind::from_bytes || b.kind != Kind::from_bytes || a.a == b.a ||
      add.kind != Kind::binary || add.binary != kernels::BinaryOp::add ||
      last.kind != Kind::to_bytes)
    return std::nullopt;
  if (relu && (steps[3].kind != Kind::unary || steps[3].unary != kernels::UnaryOp::relu))
    return std::nullopt;
  // Others overflow, vanish or are no numbers, each in its own way.
  for (const ElementwiseStep* step : {&a, &b, &last}) {
    if (!(step->bytes.scale >= 0x1p-40f && step->bytes.scale <= 0x1p40f)) return std::nullopt;
  }
  Sum sum;
  sum.inputs[a.a.index] = a, sum.inputs[b.a.index] = b;
  sum.y = last.bytes, sum.relu = relu;
  return sum;
}

class Joiner {
 public:
  explicit Joiner(GraphIndex& index) : index_(index) {}

  void run() {
    for (size_t i = 0; i < index_.size(); ++i) {
      const ir::Node& node = index_.node(i);
      if (index_.is_dead(i) || !ops::internal::is<FusedElementwise>(node)) continue;
      const auto sum = sum_of(ops::internal::elementwise_program(ops::NodeView(node, nullptr)));
      if (!sum) continue;
      // Of two convolutions the later one: the other one's images can go before it.
      const size_t later =
          index_.producer_index(node.inputs[0]) > index_.producer_index(node.inputs[1]) ? 0 : 1;
      join(i, *sum, later) || join(i, *sum, 1 - later);
    }
  }

 private:
  // Whether node `i` is a convolution that can add, and rounds to the bytes that `from` reads.
  bool adds(size_t i, const kernels::ByteScale& from) const {
    if (i == index_.size()) return false;
    const ir::Node& node = index_.node(i);
    return ops::internal::is<QLinearConv>(node) && !ir::has_input(node, QLinearConv::addend) &&
           ops::internal::from_node<QLinearConv>(node).group == 1 &&
           index_.byte(node.inputs[QLinearConv::y_zero]) == from.zero;
  }

  bool join(size_t fusion, const Sum& sum, size_t side) {
    const ir::Node& node = index_.node(fusion);
    const kernels::ByteScale first = sum.inputs[side].bytes, second = sum.inputs[1 - side].bytes;
    const size_t conv = index_.producer_index(node.inputs[side]);
    if (second.type != sum.y.type || !adds(conv, first) ||
        index_.only_user(node.inputs[side]) != fusion)
      return false;
    ir::Node joined = index_.node(conv);
    auto op = ops::internal::from_node<QLinearConv>(joined);
    op.scales = {{first.scale, first.zero}, {second.scale, second.zero}, {sum.y.scale, sum.y.zero}};
    op.relu = sum.relu;
    ops::internal::write(op, joined);
    ir::set_input(joined, QLinearConv::addend, node.inputs[1 - side]);
    joined.outputs = node.outputs;
    const size_t covered[] = {conv};
    index_.replace(fusion, std::move(joined), covered);
    return true;
  }

  GraphIndex& index_;
};

}  // namespace

void fuse_quantized_adds(GraphIndex& index) { Joiner(index).run(); }

}  // namespace sardonyx::passes
