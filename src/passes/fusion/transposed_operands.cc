#include "passes/fusion/transposed_operands.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "ops/internal/node.h"
#include "ops/internal/products.h"

namespace sardonyx::passes {
namespace {

using ops::internal::MatMul;
using Perm = std::vector<int64_t>;

bool is_matmul(const ir::Node& node) {
  return ops::internal::is<MatMul>(node) || is_op(&node, "MatMul");
}

bool is_product_of_floats(const GraphIndex& index, size_t i) {
  const ir::Node& node = index.node(i);
  return is_matmul(node) && index.constant(node.inputs[MatMul::b]) == nullptr &&
         index.is_float32(node.inputs[MatMul::a]) && index.is_float32(node.inputs[MatMul::b]);
}

// The perm of the Transpose that makes `value` for node `user` alone; nullopt where it is none, or
// leaves no elements of its matrices side by side.
std::optional<Perm> perm_of(const GraphIndex& index, const std::string& value, size_t user) {
  const ir::Node* transpose = index.producer(value);
  const ir::Dims* shape = index.shape_of(value);
  if (!is_op(transpose, "Transpose") || shape == nullptr || shape->size() < 2 ||
      index.only_user(value) != user || !index.is_float32(transpose->inputs[0]))
    return std::nullopt;
  const auto rank = static_cast<int64_t>(shape->size());
  Perm perm;
  if (const ir::Attribute* given = transpose->find("perm"); given != nullptr) {
    perm = given->ints;
  } else {
    for (int64_t axis = rank; axis-- > 0;) perm.push_back(axis);
  }
  if (static_cast<int64_t>(perm.size()) != rank) return std::nullopt;
  const bool in_pieces = perm.back() == rank - 1 || perm[perm.size() - 2] == rank - 1;
  return in_pieces ? std::optional(perm) : std::nullopt;
}

}  // namespace

bool has_transposed_operands(const ir::Graph& graph) {
  std::unordered_set<std::string_view> transposed;
  for (const ir::Node& node : graph.nodes) {
    if (is_op(&node, "Transpose") && !node.outputs.empty()) transposed.insert(node.outputs[0]);
  }
  return !transposed.empty() && std::ranges::any_of(graph.nodes, [&](const ir::Node& node) {
    return is_matmul(node) && (transposed.contains(node.inputs[MatMul::a]) ||
                               transposed.contains(node.inputs[MatMul::b]));
  });
}

void fuse_transposed_operands(GraphIndex& index) {
  index.for_each([&](size_t i) {
    if (!is_product_of_floats(index, i)) return;
    ir::Node fused = index.node(i);
    auto op = std::get<MatMul>(*ops::internal::product_of(fused));
    std::vector<size_t> covered;
    const auto take = [&](MatMul::Input side, Perm& perm) {
      if (!perm.empty()) return;
      const std::string value = fused.inputs[side];
      const auto taken = perm_of(index, value, i);
      if (!taken) return;
      const size_t transpose = index.producer_index(value);
      perm = *taken;
      fused.inputs[side] = index.node(transpose).inputs[0];
      covered.push_back(transpose);
    };
    take(MatMul::a, op.perm_a);
    take(MatMul::b, op.perm_b);
    if (covered.empty()) return;
    ops::internal::write(op, fused);
    index.replace(i, std::move(fused), covered);
  });
}

}  // namespace sardonyx::passes
