#include "passes/fusion/activations.h"

#include <cmath>
#include <utility>

namespace sardonyx::passes {
namespace {

class Activations {
 public:
  explicit Activations(GraphIndex& index) : index_(index) {}

  // x * 0.5 * (1 + erf(x / sqrt(2))), multiplied in any order.
  bool gelu(size_t i) {
    const ir::Node& erf = index_.node(i);
    if (!is_op(&erf, "Erf") || !index_.is_float32(erf.inputs[0])) return false;
    const ir::Node* scaled = index_.producer(erf.inputs[0]);
    if (scaled == nullptr) return false;
    std::string x;
    constexpr double rounded = 2e-4;  // as 1.414 is, and what half precision has made of a root
    if (is_op(scaled, "Div") &&
        is_number(scaled->inputs[1], std::sqrt(2.0), scaled->inputs[0], rounded)) {
      x = scaled->inputs[0];
    } else if (is_op(scaled, "Mul")) {
      for (const size_t side : {size_t{0}, size_t{1}}) {
        const std::string& other = scaled->inputs[1 - side];
        if (is_number(scaled->inputs[side], std::sqrt(0.5), other, rounded)) x = other;
      }
    }
    if (x.empty()) return false;
    const size_t add = index_.only_user(erf.outputs[0]);
    if (add == index_.size() || !is_op(&index_.node(add), "Add")) return false;
    const std::string* one = other_input(index_.node(add), erf.outputs[0]);
    if (one == nullptr || !is_number(*one, 1.0, x)) return false;
    // Two multiplications remain: by x and by one half, which may be multiplied with each other
    // first.
    bool by_x = false, by_half = false;
    std::string value = index_.node(add).outputs[0];
    size_t last = add;
    while (!(by_x && by_half)) {
      const size_t mul = index_.only_user(value);
      if (mul == index_.size() || !is_op(&index_.node(mul), "Mul")) return false;
      const std::string* factor = other_input(index_.node(mul), value);
      if (factor == nullptr) return false;
      if (!by_x && *factor == x) {
        by_x = true;
      } else if (!by_half && is_number(*factor, 0.5, x)) {
        by_half = true;
      } else if (!by_x && !by_half && is_half_of(index_.producer(*factor), x)) {
        by_x = by_half = true;
      } else {
        return false;
      }
      last = mul;
      value = index_.node(mul).outputs[0];
    }
    ir::Node fused;
    fused.op_type = "Gelu";
    fused.name = erf.name;
    fused.inputs = {x};
    fused.outputs = {value};
    index_.replace(last, std::move(fused));
    return true;
  }

  // x * sigmoid(x)
  bool silu(size_t i) {
    const ir::Node& mul = index_.node(i);
    if (!is_op(&mul, "Mul") || !index_.is_float32(mul.outputs[0])) return false;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const ir::Node* sigmoid = index_.producer(mul.inputs[side]);
      if (!is_op(sigmoid, "Sigmoid") || sigmoid->inputs[0] != mul.inputs[1 - side]) continue;
      ir::Node fused;
      fused.op_type = "Swish";
      fused.name = mul.name;
      fused.inputs = {mul.inputs[1 - side]};
      fused.outputs = mul.outputs;
      index_.replace(i, std::move(fused));
      return true;
    }
    return false;
  }

 private:
  // Whether it is this constant number, but for a share of it, of no more dimensions than x: what
  // is computed of both would have as many.
  bool is_number(const std::string& value, double wanted, const std::string& x,
                 double share = 0) const {
    const auto number = index_.scalar(value);
    if (!number || !(std::abs(*number - wanted) <= share * wanted)) return false;
    const int64_t rank = index_.constant(value)->rank();
    const ir::Dims* shape = index_.shape_of(x);
    return rank == 0 || (shape != nullptr && std::cmp_less_equal(rank, shape->size()));
  }

  bool is_half_of(const ir::Node* node, const std::string& x) const {
    if (!is_op(node, "Mul")) return false;
    const std::string* factor = other_input(*node, x);
    return factor != nullptr && is_number(*factor, 0.5, x);
  }

  GraphIndex& index_;
};

}  // namespace

void fuse_activations(GraphIndex& index) {
  Activations found(index);
  index.for_each([&](size_t i) { found.gelu(i) || found.silu(i); });
}

}  // namespace sardonyx::passes
