#include "train/merge_lora.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/fail.h"
#include "ir/tensor.h"
#include "ir/walk.h"

namespace sardonyx::train {
namespace {

bool is_standard(const ir::Node& node, std::string_view op) {
  return node.op_type == op && ir::canonical_domain(node.domain).empty();
}

class Merging {
 public:
  explicit Merging(ir::Graph& graph) : graph_(graph) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      for (const std::string& output : graph.nodes[i].outputs) makers_[output] = i;
      for (const std::string& input : graph.nodes[i].inputs) ++uses_[input];
    }
    for (const ir::ValueInfo& output : graph.outputs) ++uses_[output.name];
    for (size_t i = 0; i < graph.initializers.size(); ++i) weights_[graph.initializers[i].name] = i;
    // What graphs inside nodes may read.
    const auto note = [&](const ir::WalkPlace& place, const ir::Node& node, size_t) {
      if (place.graph == &graph_) return;
      for (const std::string& input : node.inputs) ++uses_[input];
    };
    ir::walk(graph_, {.node = note});
  }

  size_t run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (const auto found = adapted(i)) merge(*found);
    }
    if (merged_ == 0) return 0;
    std::vector<ir::Node> kept;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!removed_.contains(i)) kept.push_back(std::move(graph_.nodes[i]));
    }
    graph_.nodes = std::move(kept);
    const auto is_unused = [&](const auto& one) { return unused_.contains(one.name); };
    std::erase_if(graph_.initializers, is_unused);
    std::erase_if(graph_.value_info, is_unused);
    std::erase_if(graph_.inputs, is_unused);  // which may name initializers, too
    return merged_;
  }

 private:
  // Add(product(x, w), [factor *] x a b).
  struct Adapted {
    size_t sum, product, low, high;
    std::optional<size_t> scaled, constant;
    double factor = 1;
  };

  std::optional<size_t> maker(const std::string& value) const {
    const auto found = makers_.find(value);
    return found == makers_.end() ? std::nullopt : std::optional(found->second);
  }
  const ir::TensorProto* matrix(const std::string& name) const {
    const auto found = weights_.find(name);
    if (found == weights_.end()) return nullptr;
    const ir::TensorProto& tensor = graph_.initializers[found->second];
    const ElementType type = tensor.element_type();
    const bool is_float = type == ElementType::float32 || type == ElementType::float64;
    return is_float && tensor.dims.size() == 2 ? &tensor : nullptr;
  }
  bool is_read_once(const std::string& value) const {
    const auto found = uses_.find(value);
    return found != uses_.end() && found->second == 1;
  }

  // A node that makes a product with a matrix, and whose value one node alone reads.
  const ir::Node* product_node(const std::string& value, std::string_view op) const {
    const auto index = maker(value);
    if (!index || !is_read_once(value)) return nullptr;
    const ir::Node& node = graph_.nodes[*index];
    return is_standard(node, op) && node.inputs.size() >= 2 && matrix(node.inputs[1]) ? &node
                                                                                      : nullptr;
  }

  std::optional<double> number(const std::string& value, std::optional<size_t>& node) const {
    const ir::TensorProto* tensor = nullptr;
    if (const auto found = weights_.find(value); found != weights_.end()) {
      tensor = &graph_.initializers[found->second];
    } else if (const auto index = maker(value)) {
      const ir::Attribute* given = graph_.nodes[*index].find("value");
      if (!is_standard(graph_.nodes[*index], "Constant") || given == nullptr || !given->t)
        return std::nullopt;
      tensor = given->t.get(), node = index;
    }
    if (tensor == nullptr) return std::nullopt;
    const Tensor decoded = ir::aligned(ir::to_tensor(*tensor));
    if (decoded.size() != 1) return std::nullopt;
    if (decoded.element_type() == ElementType::float32)
      return static_cast<double>(decoded.elements<float>()[0]);
    if (decoded.element_type() == ElementType::float64) return decoded.elements<double>()[0];
    return std::nullopt;
  }

  std::optional<Adapted> adapted(size_t index) const {
    const ir::Node& sum = graph_.nodes[index];
    if (!is_standard(sum, "Add") || sum.inputs.size() != 2) return std::nullopt;
    Adapted found{index, 0, 0, 0, {}, {}, 1};
    const ir::Node* product = product_node(sum.inputs[0], "MatMul");
    if (product == nullptr) product = product_node(sum.inputs[0], "Gemm");
    std::string high_value = sum.inputs[1];
    if (const auto scaled = maker(high_value);
        scaled && is_standard(graph_.nodes[*scaled], "Mul") && is_read_once(high_value)) {
      const ir::Node& node = graph_.nodes[*scaled];
      const auto factor = number(node.inputs[1], found.constant);
      if (!factor) return std::nullopt;
      found.scaled = scaled, found.factor = *factor, high_value = node.inputs[0];
    }
    const ir::Node* high = product_node(high_value, "MatMul");
    const ir::Node* low = high == nullptr ? nullptr : product_node(high->inputs[0], "MatMul");
    if (product == nullptr || low == nullptr || low->inputs[0] != product->inputs[0] ||
        low->inputs[1].find("_lora_A") == std::string::npos ||
        high->inputs[1].find("_lora_B") == std::string::npos || !is_read_once(low->inputs[1]) ||
        !is_read_once(high->inputs[1]))
      return std::nullopt;
    const auto at = [&](const ir::Node* node) {
      return static_cast<size_t>(node - graph_.nodes.data());
    };
    found.product = at(product), found.low = at(low), found.high = at(high);
    return found;
  }

  template <class T>
  static Tensor sum_of(const Tensor& w, const Tensor& a, const Tensor& b, double factor,
                       bool transposed) {
    Tensor made(w.element_type(), Shape(w.shape().begin(), w.shape().end()));
    const int64_t in = a.shape()[0], rank = a.shape()[1], out = b.shape()[1];
    const auto from = w.elements<T>(), left = a.elements<T>(), right = b.elements<T>();
    const auto to = made.template mutable_elements<T>();
    for (int64_t i = 0; i < in; ++i) {
      for (int64_t o = 0; o < out; ++o) {
        double sum = 0;
        for (int64_t r = 0; r < rank; ++r)
          sum += static_cast<double>(left[static_cast<size_t>(i * rank + r)]) *
                 static_cast<double>(right[static_cast<size_t>(r * out + o)]);
        const auto place = static_cast<size_t>(transposed ? o * in + i : i * out + o);
        to[place] = static_cast<T>(static_cast<double>(from[place]) + factor * sum);
      }
    }
    return made;
  }

  void merge(const Adapted& found) {
    ir::Node& product = graph_.nodes[found.product];
    const std::string weight = product.inputs[1], a_name = graph_.nodes[found.low].inputs[1],
                      b_name = graph_.nodes[found.high].inputs[1];
    const Tensor w = ir::aligned(ir::to_tensor(*matrix(weight))),
                 a = ir::aligned(ir::to_tensor(*matrix(a_name))),
                 b = ir::aligned(ir::to_tensor(*matrix(b_name)));
    const ir::Attribute *turned = product.find("transB"), *scale = product.find("alpha");
    const bool transposed = turned != nullptr && turned->i.value_or(0) != 0;
    const double alpha = scale != nullptr && scale->f ? static_cast<double>(*scale->f) : 1.0;
    const auto fits = [&](size_t in, size_t out) {
      return w.shape()[in] == a.shape()[0] && w.shape()[out] == b.shape()[1] &&
             a.shape()[1] == b.shape()[0];
    };
    if (alpha == 0 || w.element_type() != a.element_type() ||
        a.element_type() != b.element_type() || !(transposed ? fits(1, 0) : fits(0, 1)))
      return;
    const double factor = found.factor / alpha;
    const Tensor sum = w.element_type() == ElementType::float64
                           ? sum_of<double>(w, a, b, factor, transposed)
                           : sum_of<float>(w, a, b, factor, transposed);
    if (is_read_once(weight)) {
      graph_.initializers[weights_.at(weight)] = ir::to_proto(sum, weight);
    } else {
      std::string name = weight + "_merged";
      while (weights_.contains(name) || makers_.contains(name)) name += '_';
      weights_[name] = graph_.initializers.size();
      graph_.initializers.push_back(ir::to_proto(sum, name));
      --uses_[weight];
      uses_[name] = 1;
      product.inputs[1] = name;
    }
    const std::string plain = product.outputs[0];
    product.outputs[0] = graph_.nodes[found.sum].outputs[0];
    unused_.insert({plain, a_name, b_name, graph_.nodes[found.low].outputs[0],
                    graph_.nodes[found.high].outputs[0]});
    removed_.insert({found.sum, found.low, found.high});
    if (found.scaled) {
      const ir::Node& scaled = graph_.nodes[*found.scaled];
      unused_.insert(scaled.outputs[0]);
      removed_.insert(*found.scaled);
      if (is_read_once(scaled.inputs[1])) {
        unused_.insert(scaled.inputs[1]);
        if (found.constant) removed_.insert(*found.constant);
      }
    }
    ++merged_;
  }

  ir::Graph& graph_;
  std::unordered_map<std::string, size_t> makers_, weights_;
  std::unordered_map<std::string, int> uses_;
  std::unordered_set<size_t> removed_;
  std::unordered_set<std::string> unused_;
  size_t merged_ = 0;
};

}  // namespace

size_t merge_lora(ir::Model& model) { return model.graph ? Merging(*model.graph).run() : 0; }

}  // namespace sardonyx::train
