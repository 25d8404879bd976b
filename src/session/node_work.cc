#include "session/node_work.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "ops/internal/attention.h"
#include "ops/internal/conv_chain.h"
#include "ops/internal/elementwise.h"
#include "ops/internal/node.h"
#include "ops/internal/products.h"
#include "ops/internal/quantized.h"

namespace sardonyx {
namespace {

using OperandState = OperandShape::State;
using ops::internal::Attention;
using ops::internal::from_node;
using ops::internal::FusedConvChain;
using ops::internal::FusedElementwise;
using ops::internal::is;
using ops::internal::MatMul;
using ops::internal::QLinearConv;
using ops::internal::QuantizedConv;

// Operators that move, choose or describe elements without arithmetic.
bool only_moves(std::string_view op) {
  static const std::unordered_set<std::string_view> names = {"Cast",
                                                             "CastLike",
                                                             "Compress",
                                                             "Concat",
                                                             "ConcatFromSequence",
                                                             "Constant",
                                                             "ConstantOfShape",
                                                             "DepthToSpace",
                                                             "Dropout",
                                                             "Expand",
                                                             "EyeLike",
                                                             "Flatten",
                                                             "Gather",
                                                             "GatherElements",
                                                             "GatherND",
                                                             "Identity",
                                                             "NonZero",
                                                             "OneHot",
                                                             "Optional",
                                                             "OptionalGetElement",
                                                             "OptionalHasElement",
                                                             "Pad",
                                                             "Range",
                                                             "Reshape",
                                                             "ReverseSequence",
                                                             "ScatterElements",
                                                             "ScatterND",
                                                             "SequenceAt",
                                                             "SequenceConstruct",
                                                             "SequenceEmpty",
                                                             "SequenceErase",
                                                             "SequenceInsert",
                                                             "SequenceLength",
                                                             "Shape",
                                                             "Size",
                                                             "Slice",
                                                             "SpaceToDepth",
                                                             "Split",
                                                             "SplitToSequence",
                                                             "Squeeze",
                                                             "StringConcat",
                                                             "StringNormalizer",
                                                             "StringSplit",
                                                             "TensorScatter",
                                                             "Tile",
                                                             "Transpose",
                                                             "Trilu",
                                                             "Unique",
                                                             "Unsqueeze",
                                                             "Where"};
  return names.contains(op);
}

bool counts_what_it_reads(std::string_view op) {
  return op.starts_with("Reduce") || op == "Softmax" || op == "LogSoftmax" || op == "ArgMax" ||
         op == "ArgMin" || op.starts_with("Global") || op == "TopK" || op == "CumSum";
}

// They read of an input what they make, not all of it.
bool reads_a_part(std::string_view op) {
  return op.starts_with("Gather") || op == "Slice" || op == "Compress" || op == "SequenceAt";
}

// NaN where the shape is not known.
double elements(const OperandShape& operand) {
  if (operand.state != OperandState::known) return NAN;
  double product = 1;
  for (const int64_t size : operand.shape) product *= static_cast<double>(size);
  return product;
}

double dimension(const OperandShape& operand, int axis) {
  if (operand.state != OperandState::known) return NAN;
  const int rank = static_cast<int>(operand.shape.size()), at = axis < 0 ? axis + rank : axis;
  return at < 0 || at >= rank ? NAN : static_cast<double>(operand.shape[static_cast<size_t>(at)]);
}

// The product of the dimensions from `axis` on.
double product_from(const OperandShape& operand, size_t axis) {
  if (operand.state != OperandState::known) return NAN;
  double product = 1;
  for (size_t i = axis; i < operand.shape.size(); ++i)
    product *= static_cast<double>(operand.shape[i]);
  return product;
}

double bytes_of(const OperandShape& operand) {
  const double count = elements(operand);
  return std::isnan(count) ? 0 : std::ceil(count * bit_width(operand.element) / 8);
}

int64_t int_attribute(const ir::Node& node, std::string_view name, int64_t otherwise) {
  const ir::Attribute* found = node.find(name);
  return found == nullptr ? otherwise : found->i.value_or(otherwise);
}

struct Operands {
  const ir::Node& node;
  std::span<const OperandShape> inputs, outputs;
  const OperandShape& in(size_t i) const { return i < inputs.size() ? inputs[i] : none; }
  const OperandShape& out(size_t i) const { return i < outputs.size() ? outputs[i] : none; }
  bool has(size_t i) const { return in(i).state != OperandState::absent; }

 private:
  static constexpr OperandShape none{};
};

// Of fused sums and residuals: one for each element that is made.
double added(const Operands& x) { return (x.has(2) ? 1 : 0) + (x.has(3) ? 1 : 0); }

// Scores and weighted sum: for each query and key, the width of keys and of values. The internal
// form may hold length before heads.
double attention_operations(const Operands& x) {
  const bool length_first =
      is<Attention>(x.node) && from_node<Attention>(x.node).transposed[Attention::k];
  const OperandShape& k = x.in(Attention::k);
  const bool has_heads = k.shape.size() == 4;
  double keys = dimension(k, has_heads ? (length_first ? 1 : 2) : length_first ? 0 : 1);
  if (x.has(Attention::past_key)) keys += dimension(x.in(Attention::past_key), 2);
  return 2 * keys * (elements(x.in(Attention::q)) + elements(x.out(0)));
}

// Of convolutions in a chain, from part to part.
double chain_operations(const Operands& x) {
  const auto dims = [](std::span<const int64_t> sizes) {
    return ir::Dims(sizes.begin(), sizes.end());
  };
  const auto chain = from_node<FusedConvChain>(x.node);
  ir::Dims shape = dims(x.in(FusedConvChain::x).shape);
  double sum = 0;
  for (size_t i = 0; i < chain.parts.size(); ++i) {
    const auto weights = static_cast<size_t>(FusedConvChain::weights(i));
    if (shape.size() != 4 || x.in(weights).shape.size() != 4) return NAN;
    shape = chain.parts[i].output(shape, dims(x.in(weights).shape));
    double made = 1;
    for (const ir::Dim& dim : shape) made *= static_cast<double>(dim.value().value_or(0));
    const bool bias = x.has(static_cast<size_t>(FusedConvChain::bias(i)));
    sum += made * (2 * product_from(x.in(weights), 1) + (bias ? 1 : 0));
  }
  const bool residual = x.has(static_cast<size_t>(chain.residual()));
  return sum + (residual ? elements(x.out(0)) : 0);
}

// The length of the products of a matrix product.
double inner_size(const Operands& x) {
  if (x.node.op_type == "Gemm")
    return dimension(x.in(0), int_attribute(x.node, "transA", 0) != 0 ? 0 : 1);
  if (const ir::Attribute* k = x.node.find("K"); k != nullptr && k->i)
    return static_cast<double>(*k->i);
  if (is<MatMul>(x.node)) {
    const auto perm = from_node<MatMul>(x.node).perm_a;
    if (!perm.empty()) return dimension(x.in(0), perm.back());
  }
  return dimension(x.in(0), -1);
}

std::optional<double> product_operations(const Operands& x) {
  const std::string_view op = x.node.op_type;
  const double made = elements(x.out(0));
  if (op == "Gemm") return made * (2 * inner_size(x) + added(x));
  if (op == "MatMul") return made * (2 * inner_size(x) + added(x));
  if (op.find("MatMul") != op.npos) return 2 * made * inner_size(x);
  if (op == "Conv") return made * (2 * product_from(x.in(1), 1) + added(x));
  if (is<FusedConvChain>(x.node)) return chain_operations(x);
  if (op == "DeformConv") return made * (2 * product_from(x.in(1), 1));
  if (op == "ConvInteger") return 2 * made * product_from(x.in(1), 1);
  if (op == "QuantizedConv")
    return made * (2 * product_from(x.in(QuantizedConv::w), 1) + 1 + x.has(QuantizedConv::bias));
  if (op == "QLinearConv") {
    constexpr double summing = 4;  // two made floats, added, and made bytes
    return made *
           (2 * product_from(x.in(QLinearConv::w), 1) + (x.has(QLinearConv::addend) ? summing : 0));
  }
  if (op == "ConvTranspose") {
    return 2 * elements(x.in(0)) * product_from(x.in(1), 1) + (x.has(2) ? made : 0);
  }
  if (op == "LSTM" || op == "GRU" || op == "RNN") {
    // [steps, batch, input] times W and R, each [directions, gates, …]
    const double rows = elements(x.in(0)) / dimension(x.in(0), -1);
    return 2 * rows * (elements(x.in(1)) + elements(x.in(2)));
  }
  if (op == "Attention") return attention_operations(x);
  if (op == "GroupQueryAttention") return 4 * made * dimension(x.out(1), 2);
  return std::nullopt;
}

double window(const ir::Node& node) {
  const ir::Attribute* kernel = node.find("kernel_shape");
  double product = 1;
  if (kernel != nullptr) {
    for (const int64_t size : kernel->ints) product *= static_cast<double>(size);
  }
  return product;
}

// One for each floating-point element that is made.
double element_operations(const Operands& x) {
  double sum = 0;
  bool known = false;
  for (const OperandShape& made : x.outputs) {
    if (made.state == OperandState::absent || made.element == ElementType::undefined) continue;
    known = true;
    if (is_floating(made.element)) sum += elements(made);
  }
  return known ? sum : NAN;
}

// Operators of a fusion.
double fusion_length(const ir::Node& node) {
  return static_cast<double>(from_node<FusedElementwise>(node).steps.size());
}

}  // namespace

double node_operations(const ir::Node& node, std::span<const OperandShape> inputs,
                       std::span<const OperandShape> outputs) {
  const std::string_view op = node.op_type;
  if (only_moves(op)) return 0;
  const Operands x{node, inputs, outputs};
  if (const auto operations = product_operations(x)) return *operations;
  if (is<FusedElementwise>(node)) return fusion_length(node) * elements(x.out(0));
  if (op == "MaxPool" || op == "AveragePool" || op == "LpPool") {
    return elements(x.out(0)) * window(node);
  }
  if (op.ends_with("Normalization") || op == "LRN") return 5 * elements(x.out(0));
  if (counts_what_it_reads(op)) return elements(x.in(0));
  return element_operations(x);
}

bool is_product(const ir::Node& node) {
  return product_operations(Operands{node, {}, {}}).has_value();
}

double node_bytes(const ir::Node& node, std::span<const OperandShape> inputs,
                  std::span<const OperandShape> outputs, const std::vector<bool>& is_read) {
  double made = 0, read = 0;
  for (const OperandShape& output : outputs) made += bytes_of(output);
  const bool whole = !reads_a_part(node.op_type);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i >= is_read.size() || !is_read[i]) continue;
    read += i == 0 && !whole ? std::min(bytes_of(inputs[i]), made) : bytes_of(inputs[i]);
  }
  return made + read;
}

}  // namespace sardonyx
