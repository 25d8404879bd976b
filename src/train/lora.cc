// Low-rank adaptation: products beside those with frozen weights.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/fail.h"
#include "ir/tensor.h"
#include "ops/upgrade_context.h"
#include "train/draft.h"

namespace sardonyx::train {
namespace {

struct Product {
  size_t node;
  int64_t in, out;  // sizes of what W takes and gives
};

// Whether a node multiplies with the weight, and how large that is.
bool is_product(const ir::Graph& graph, size_t index, const ir::TensorProto& weight,
                Product& found) {
  const ir::Node& node = graph.nodes[index];
  if (!ir::canonical_domain(node.domain).empty() || node.inputs.size() < 2 ||
      node.inputs[1] != weight.name || weight.dims.size() != 2)
    return false;
  const auto flag = [&](std::string_view name) {
    const ir::Attribute* attribute = node.find(name);
    return attribute != nullptr && attribute->i.value_or(0) != 0;
  };
  const bool is_gemm = node.op_type == "Gemm";
  if (node.op_type != "MatMul" && (!is_gemm || flag("transA"))) return false;
  const bool turned = is_gemm && flag("transB");
  found = {index, weight.dims[turned ? 1 : 0], weight.dims[turned ? 0 : 1]};
  return true;
}

// Uniform within 1 / sqrt(in), the same on every machine.
Tensor drawn(ElementType element, Shape shape, int64_t in, uint64_t seed) {
  Tensor tensor(element, std::move(shape));
  const double bound = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(in, 1)));
  uint64_t state = seed;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    const double unit = static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
    const double value = (2 * unit - 1) * bound;
    if (element == ElementType::float64)
      tensor.mutable_elements<double>()[static_cast<size_t>(i)] = value;
    else
      tensor.mutable_elements<float>()[static_cast<size_t>(i)] = static_cast<float>(value);
  }
  return tensor;
}

}  // namespace

std::vector<Parameter> add_lora(ir::Graph& graph, const TrainableOptions& options,
                                ElementType element, NamePool& names, TrainableReport& report) {
  std::vector<Parameter> added;
  if (options.lora.empty()) return added;
  struct Adapted {
    Product product;
    std::string weight;
    const Lora* lora;
  };
  std::vector<Adapted> adapted;
  std::vector<char> met(options.lora.size(), 0);
  std::unordered_map<std::string_view, const ir::TensorProto*> weights;
  for (const ir::TensorProto& one : graph.initializers) {
    if (one.element_type() == element) weights.emplace(one.name, &one);
  }
  for (const Lora& lora : options.lora) {
    if (lora.rank < 1)
      fail(ErrorCode::bad_input, "a rank of LoRA is at least 1; got {}", lora.rank);
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].inputs.size() < 2) continue;
    const auto weight = weights.find(graph.nodes[i].inputs[1]);
    Product product{};
    if (weight == weights.end() || !is_product(graph, i, *weight->second, product)) continue;
    for (size_t k = 0; k < options.lora.size(); ++k) {
      if (!fits(options.lora[k].pattern, weight->first)) continue;
      met[k] = 1;
      adapted.push_back({product, std::string(weight->first), &options.lora[k]});
      break;
    }
  }
  for (size_t k = 0; k < met.size(); ++k) {
    if (!met[k])
      fail(ErrorCode::bad_input,
           "no MatMul or Gemm has a matrix of {} as its second input whose name fits '{}'",
           name_of(element), options.lora[k].pattern);
  }
  std::vector<ir::Node> nodes;
  size_t next = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    ir::Node& node = nodes.emplace_back(std::move(graph.nodes[i]));
    if (next == adapted.size() || adapted[next].product.node != i) continue;
    const auto& [product, weight, lora] = adapted[next++];
    const std::string output = node.outputs[0], x = node.inputs[0];
    const std::string plain = names.make(output + "_frozen");
    node.outputs[0] = plain;
    ir::Graph made;
    GraphBuilder builder(made, names, element);
    const Shape a_shape{product.in, lora->rank}, b_shape{lora->rank, product.out};
    const uint64_t seed = options.seed * 0x9e3779b97f4a7c15 + next;
    const std::string a =
        builder.initializer(weight + "_lora_A", drawn(element, a_shape, product.in, seed));
    const std::string b = builder.initializer(weight + "_lora_B", zeros(element, b_shape));
    const std::string low = builder.add("MatMul", {x, a}, {}, output + "_low");
    std::string high = builder.add("MatMul", {low, b}, {}, output + "_high");
    const double factor = lora->alpha == 0 ? 1 : lora->alpha / static_cast<double>(lora->rank);
    if (factor != 1)
      high = builder.add("Mul", {high, builder.number(factor)}, {}, output + "_scaled");
    builder.add_to("Add", {plain, high}, {output});
    std::ranges::move(made.nodes, std::back_inserter(nodes));
    std::ranges::move(made.initializers, std::back_inserter(graph.initializers));
    added.push_back({a, a_shape, Parameter::Role::weight, product.in, "weight"});
    added.push_back({b, b_shape, Parameter::Role::bias, 0, "zeros"});
  }
  graph.nodes = std::move(nodes);
  report.notes.push_back(
      fmt::format("LoRA: {} products have got a low-rank one beside them", next));
  return added;
}

}  // namespace sardonyx::train
