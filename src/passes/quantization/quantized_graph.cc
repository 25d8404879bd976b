#include "passes/quantization/quantized_graph.h"

#include <algorithm>

#include "ir/tensor.h"
#include "passes/attributes.h"

namespace sardonyx::passes {

ElementType QuantizedGraph::element(const std::string& value) const {
  const infer::ValueFacts* known = index.known(value);
  return known && known->type.is_tensor() ? known->type.element : ElementType::undefined;
}

std::optional<int64_t> QuantizedGraph::count(const std::string& value) const {
  const infer::ValueFacts* known = index.known(value);
  const auto shape = known ? known->type.concrete_shape() : std::nullopt;
  if (!shape) return std::nullopt;
  int64_t product = 1;
  for (const int64_t dim : *shape) {
    if (__builtin_mul_overflow(product, dim, &product)) return std::nullopt;
  }
  return product;
}

std::optional<size_t> QuantizedGraph::rank(const std::string& value) const {
  const infer::ValueFacts* known = index.known(value);
  if (known == nullptr || !known->type.shape) return std::nullopt;
  return known->type.shape->size();
}

bool QuantizedGraph::is_zero(const std::string& value) const {
  if (value.empty()) return true;
  const Tensor* tensor = index.constant(value);
  if (tensor == nullptr) return false;
  const auto* bytes = static_cast<const uint8_t*>(tensor->data());
  return std::all_of(bytes, bytes + tensor->byte_size(), [](uint8_t b) { return b == 0; });
}

bool QuantizedGraph::is_column_vector(const std::string& value, const std::string& product) const {
  const auto dims = rank(value);
  const auto length = count(value);
  const infer::ValueFacts* known = index.known(product);
  if (!dims || !length || *dims > 1 || !known || !known->type.shape || known->type.shape->empty() ||
      element(value) != ElementType::float32)
    return false;
  return *length == 1 || known->type.shape->back() == *length;
}

bool QuantizedGraph::is_ordinary(const std::string& scale) const {
  const Tensor* given = index.constant(scale);
  if (given == nullptr || given->element_type() != ElementType::float32) return true;
  const Tensor held = ir::aligned(*given);
  return std::ranges::all_of(held.elements<float>(),
                             [](float s) { return s >= 0x1p-40f && s <= 0x1p40f; });
}

bool QuantizedGraph::sums_fit(int64_t terms, const std::string& weights,
                              const std::string& zero) const {
  constexpr int64_t largest = 255, all = int64_t{1} << 30;  // half of int32: a bias is added, too
  if (terms < all / (largest * largest)) return true;
  const Tensor *w = index.constant(weights), *z = zero.empty() ? nullptr : index.constant(zero);
  if (w == nullptr || (!zero.empty() && z == nullptr)) return false;
  const auto range = [](const Tensor& bytes) {
    const auto* at = static_cast<const uint8_t*>(bytes.data());
    const int flip = bytes.element_type() == ElementType::int8 ? 0x80 : 0;
    int low = 255, high = 0;
    for (int64_t i = 0; i < bytes.size(); ++i) {
      const int value = at[i] ^ flip;
      low = std::min(low, value), high = std::max(high, value);
    }
    return std::pair(low - flip, high - flip);
  };
  const auto [low, high] = range(*w);
  const auto [least, most] = z ? range(*z) : std::pair(0, 0);
  const int64_t farthest = std::max(high - least, most - low);
  return terms < all / (largest * std::max<int64_t>(1, farthest));
}

std::optional<Quantized> QuantizedGraph::dequantized(const std::string& value) const {
  const ir::Node* node = index.producer(value);
  if (!is_op(node, "DequantizeLinear") || attr_int(*node, "block_size", 0) != 0)
    return std::nullopt;
  Quantized q{node->inputs[0], node->inputs[1], input(*node, 2), element(node->inputs[0]),
              attr_int(*node, "axis", 1)};
  if (!is_byte(q.type) || element(q.scale) != ElementType::float32 ||
      element(value) != ElementType::float32 || !is_ordinary(q.scale))
    return std::nullopt;
  const auto dims = rank(q.value);
  if (!dims || !count(q.scale)) return std::nullopt;
  if (q.axis < 0) q.axis += static_cast<int64_t>(*dims);
  return q;
}

std::optional<Quantized> QuantizedGraph::dequantized_by_one(const std::string& value) const {
  const auto q = dequantized(value);
  return q && is_one(q->scale) ? q : std::nullopt;
}

std::optional<Quantized> QuantizedGraph::quantized(const ir::Node& node) const {
  if (!is_op(&node, "QuantizeLinear") || attr_int(node, "block_size", 0) != 0) return std::nullopt;
  Quantized q{node.inputs[0], node.inputs[1], input(node, 2), element(node.outputs[0]), 0};
  if (!is_byte(q.type) || !is_one(q.scale) || element(q.scale) != ElementType::float32 ||
      element(q.value) != ElementType::float32 || !is_ordinary(q.scale))
    return std::nullopt;
  return q;
}

std::optional<int32_t> QuantizedGraph::zero_point(const std::string& value) const {
  return value.empty() ? 0 : index.byte(value);
}

bool QuantizedGraph::same_parameters(const Quantized& a, const Quantized& b) const {
  if (a.type != b.type) return false;
  // A scale that only the run knows may be 0 or no number, which no byte comes through unchanged.
  const auto scale_a = index.scalar(a.scale), scale_b = index.scalar(b.scale);
  if (!scale_a || scale_a != scale_b) return false;
  const auto zero_a = zero_point(a.zero), zero_b = zero_point(b.zero);
  return a.zero == b.zero || (zero_a && zero_a == zero_b);
}

std::string QuantizedGraph::zero_of(const Quantized& q) {
  if (!q.zero.empty()) return q.zero;
  Tensor zero(q.type, {});
  *static_cast<uint8_t*>(zero.mutable_data()) = 0;
  return index.add_initializer(zero, "zero");
}

size_t QuantizedGraph::sole_producer(const std::string& value) const {
  const size_t i = index.producer_index(value);
  return i != index.size() && index.uses(value) == 1 ? i : index.size();
}

std::string QuantizedGraph::before_relu(const Quantized& to, std::vector<size_t>& covered) const {
  const size_t at = sole_producer(to.value);
  if (at == index.size() || !is_op(&index.node(at), "Relu")) return to.value;
  const auto zero = zero_point(to.zero);
  if (!zero || *zero != (to.type == ElementType::int8 ? -128 : 0)) return to.value;
  const auto scale = index.scalar(to.scale);
  if (!scale || !(*scale > 0)) return to.value;  // below 0 what is negative would count
  covered.push_back(at);
  return index.node(at).inputs[0];
}

void QuantizedGraph::replace(size_t at, ir::Node node, std::vector<size_t> covered,
                             const std::vector<std::string>& dequantized) {
  node.name = index.node(covered.empty() ? at : covered.back()).name;
  for (const std::string& value : dequantized) {
    const size_t maker = index.producer_index(value);
    if (maker != index.size()) covered.push_back(maker);
  }
  index.replace(at, std::move(node), covered);
}

}  // namespace sardonyx::passes
