#include "passes/fusion/normalizations.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "ir/tensor.h"
#include "ops/upgrade_context.h"

namespace sardonyx::passes {
namespace {

bool is_half(ElementType type) {
  return type == ElementType::float16 || type == ElementType::bfloat16;
}

bool is_half(const infer::ValueFacts* known) {
  return known != nullptr && known->type.is_tensor() && is_half(known->type.element);
}

// What both normalisations are made of.
class Normalization {
 protected:
  Normalization(GraphIndex& index, size_t root) : index_(index), root_(root) {}

  ElementType element(const std::string& value) const {
    const infer::ValueFacts* known = index_.known(value);
    return known && known->type.is_tensor() ? known->type.element : ElementType::undefined;
  }

  // ReduceMean over the last axis, which stays as 1: what it is of; null where it is not.
  const std::string* last_axis_mean(const ir::Node* node) const {
    if (!is_op(node, "ReduceMean") || node->inputs.size() < 2) return nullptr;
    const ir::Attribute* keeps = node->find("keepdims");
    const infer::ValueFacts* known = index_.known(node->inputs[0]);
    const Tensor* axes = index_.constant(node->inputs[1]);
    if ((keeps != nullptr && keeps->i == 0) || known == nullptr || !known->type.shape ||
        known->type.shape->empty() || axes == nullptr || axes->size() != 1)
      return nullptr;
    const int64_t axis = ir::aligned(*axes).elements<int64_t>()[0];
    const bool last = axis == -1 || axis == static_cast<int64_t>(known->type.shape->size()) - 1;
    return last ? &node->inputs[0] : nullptr;
  }

  bool is_square(const ir::Node* node, const std::string& of) const {
    if (is_op(node, "Pow")) return node->inputs[0] == of && index_.scalar(node->inputs[1]) == 2.0;
    return is_op(node, "Mul") && node->inputs[0] == of && node->inputs[1] == of;
  }

  // A term that is added to a constant scalar.
  struct Sum {
    const std::string* term;
    double scalar;
  };
  std::optional<Sum> with_scalar(const ir::Node* node) const {
    if (!is_op(node, "Add")) return std::nullopt;
    for (const size_t side : {size_t{1}, size_t{0}}) {
      if (const auto scalar = index_.scalar(node->inputs[side]))
        return Sum{&node->inputs[1 - side], *scalar};
    }
    return std::nullopt;
  }

  bool is_last_axis_vector(const std::string& value, const std::string& x, ElementType type) const {
    const auto *v = index_.known(value), *data = index_.known(x);
    return v && data && v->type.shape && data->type.shape && v->type.element == type &&
           v->type.shape->size() == 1 && v->type.shape->front() == data->type.shape->back();
  }

  // The node of this kind that alone uses the value, and a vector along the last axis of x, its
  // other input.
  struct RowStep {
    size_t node;
    std::string vector;
  };
  std::optional<RowStep> row_step(const std::string& value, std::string_view op,
                                  const std::string& x, ElementType type) const {
    const size_t user = index_.only_user(value);
    if (user == index_.size() || !is_op(&index_.node(user), op)) return std::nullopt;
    const std::string* vector = other_input(index_.node(user), value);
    if (vector == nullptr || !is_last_axis_vector(*vector, x, type)) return std::nullopt;
    return RowStep{user, *vector};
  }

  // A scale of ones; "" where the length of rows is open.
  std::string ones(const std::string& x) {
    const auto length = index_.known(x)->type.shape->back().value();
    if (!length) return {};
    Tensor ones(ElementType::float32, {*length});
    for (float& one : ones.mutable_elements<float>()) one = 1;
    return index_.add_initializer(ones, "ones");
  }

  bool put(size_t last, std::string_view op, std::vector<std::string> inputs, double epsilon,
           std::span<const size_t> with = {}) {
    ir::Node fused;
    fused.op_type = op;
    fused.name = index_.node(root_).name;
    fused.inputs = std::move(inputs);
    fused.outputs = {index_.node(last).outputs[0]};
    fused.attributes = {ops::int_attribute("axis", -1),
                        ops::float_attribute("epsilon", static_cast<float>(epsilon))};
    index_.replace(last, std::move(fused), with);
    return true;
  }

  GraphIndex& index_;
  size_t root_;  // the node that divides
};

class LayerNormalization : Normalization {
 public:
  LayerNormalization(GraphIndex& index, size_t root) : Normalization(index, root) {}

  bool replace() {
    const ir::Node& div = index_.node(root_);
    if (!is_op(&div, "Div")) return false;
    const ir::Node* deviation = index_.producer(div.inputs[0]);
    const ir::Node* root = index_.producer(div.inputs[1]);
    if (!is_op(deviation, "Sub") || !is_op(root, "Sqrt")) return false;
    const std::string x = deviation->inputs[0];
    const std::string* averaged = last_axis_mean(index_.producer(deviation->inputs[1]));
    if (!index_.is_float32(x) || averaged == nullptr || *averaged != x ||
        !index_.same_shape(div.outputs[0], x))
      return false;
    const auto sum = with_scalar(index_.producer(root->inputs[0]));
    const std::string* squares = sum ? last_axis_mean(index_.producer(*sum->term)) : nullptr;
    if (squares == nullptr || !is_square(index_.producer(*squares), div.inputs[0])) return false;
    size_t last = root_;
    std::vector<std::string> inputs{x};
    if (const auto scaled = row_step(div.outputs[0], "Mul", x, ElementType::float32)) {
      last = scaled->node;
      inputs.push_back(scaled->vector);
      const std::string& value = index_.node(last).outputs[0];
      if (const auto shifted = row_step(value, "Add", x, ElementType::float32)) {
        last = shifted->node;
        inputs.push_back(shifted->vector);
      }
    } else {
      inputs.push_back(ones(x));
      if (inputs.back().empty()) return false;
    }
    return put(last, "LayerNormalization", std::move(inputs), sum->scalar);
  }
};

class RmsNormalization : Normalization {
 public:
  RmsNormalization(GraphIndex& index, size_t root) : Normalization(index, root) {}

  bool replace() {
    const ir::Node& node = index_.node(root_);
    const bool divides = is_op(&node, "Div");
    if (!divides && !is_op(&node, "Mul")) return false;
    const std::string normal = node.outputs[0];
    for (const size_t side : {size_t{0}, size_t{1}}) {
      if (divides && side == 1) continue;
      const std::string wide = node.inputs[side];
      const auto epsilon = divides ? root_of_mean(node.inputs[1], wide)
                                   : inverse_root_of_mean(node.inputs[1 - side], wide);
      if (epsilon && index_.is_float32(wide) && index_.same_shape(normal, wide))
        return scale(normal, wide, *epsilon);
    }
    return false;
  }

 private:
  // The node of this kind that makes the value, which nothing but the pattern uses.
  const ir::Node* inner(const std::string& value, std::string_view op) const {
    const ir::Node* node = index_.producer(value);
    return is_op(node, op) && index_.uses(value) == 1 ? node : nullptr;
  }

  // mean(x * x) + epsilon: the epsilon.
  std::optional<double> mean_of_squares(const std::string& value, const std::string& x) const {
    const auto sum = with_scalar(inner(value, "Add"));
    const std::string* squares = sum ? last_axis_mean(inner(*sum->term, "ReduceMean")) : nullptr;
    if (squares == nullptr || index_.uses(*squares) != 1 ||
        !is_square(index_.producer(*squares), x))
      return std::nullopt;
    return sum->scalar;
  }

  std::optional<double> root_of_mean(const std::string& value, const std::string& x) const {
    const ir::Node* root = inner(value, "Sqrt");
    return root ? mean_of_squares(root->inputs[0], x) : std::nullopt;
  }

  std::optional<double> inverse_root_of_mean(const std::string& value, const std::string& x) const {
    if (const ir::Node* inverse = inner(value, "Reciprocal"))
      return root_of_mean(inverse->inputs[0], x);
    if (const ir::Node* inverse = inner(value, "Div");
        inverse != nullptr && index_.scalar(inverse->inputs[0]) == 1.0)
      return root_of_mean(inverse->inputs[1], x);
    if (const ir::Node* power = inner(value, "Pow");
        power != nullptr && index_.scalar(power->inputs[1]) == -0.5)
      return mean_of_squares(power->inputs[0], x);
    return std::nullopt;
  }

  // With the scale that follows, where one does, and the Casts before and after.
  bool scale(const std::string& normal, const std::string& wide, double epsilon) {
    std::string x = wide;
    std::vector<size_t> with;
    const size_t maker = index_.producer_index(wide);
    if (maker != index_.size() && is_op(&index_.node(maker), "Cast") &&
        is_half(element(index_.node(maker).inputs[0]))) {
      x = index_.node(maker).inputs[0];
      with.push_back(maker);
    }
    if (const auto scaled = row_step(normal, "Mul", wide, ElementType::float32))
      return put(scaled->node, "RMSNormalization", {x, scaled->vector}, epsilon, with);
    const size_t user = index_.only_user(normal);
    if (x != wide && user != index_.size() && is_op(&index_.node(user), "Cast")) {
      const std::string& narrow = index_.node(user).outputs[0];
      const auto scaled = row_step(narrow, "Mul", wide, element(x));
      if (scaled && element(narrow) == element(x))
        return put(scaled->node, "RMSNormalization", {x, scaled->vector}, epsilon, with);
    }
    const std::string scale = ones(wide);
    return !scale.empty() && put(root_, "RMSNormalization", {x, scale}, epsilon, with);
  }
};

template <class Match>
void each(GraphIndex& index) {
  for (size_t i = 0; i < index.size(); ++i) {
    if (!index.is_dead(i)) Match(index, i).replace();
  }
}

}  // namespace

void fuse_layer_normalizations(GraphIndex& index) { each<LayerNormalization>(index); }

void fuse_rms_normalizations(GraphIndex& index) { each<RmsNormalization>(index); }

bool has_casts_of_half(const ir::Graph& graph, const infer::Scope& scope) {
  return std::ranges::any_of(graph.nodes, [&](const ir::Node& node) {
    return is_op(&node, "Cast") && is_half(scope.find(node.inputs[0]));
  });
}

}  // namespace sardonyx::passes
