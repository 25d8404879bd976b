#include "passes/quantization/products.h"

#include <optional>

#include "ir/node_values.h"
#include "ops/internal/node.h"
#include "ops/internal/quantized.h"
#include "ops/upgrade_context.h"
#include "passes/attributes.h"
#include "passes/quantization/blocked_matrix.h"

namespace sardonyx::passes {
namespace {

using ops::internal::QuantizedMatMul;

class Products {
 public:
  explicit Products(QuantizedGraph& graph) : graph_(graph), index_(graph.index) {}

  bool to_bytes(size_t i) {
    const auto to = graph_.quantized(index_.node(i));
    if (!to) return false;
    std::vector<size_t> covered;
    size_t at = graph_.sole_producer(graph_.before_relu(*to, covered));
    if (at == index_.size()) return false;
    auto node = product_with_bias(at, covered);
    if (!node) return false;
    ir::set_input(*node, QuantizedMatMul::y_scale, to->scale);
    ir::set_input(*node, QuantizedMatMul::y_zero, graph_.zero_of(*to));
    node->outputs = index_.node(i).outputs;
    covered.push_back(at);
    const ir::Node& made = index_.node(at);
    graph_.replace(i, std::move(*node), covered, {made.inputs[0], made.inputs[1]});
    return true;
  }

  // Products that stay floats, where B is constant: packing it pays.
  bool to_floats(size_t i) {
    const ir::Node& made = index_.node(i);
    auto node = product(made);
    if (!node || index_.constant(node->inputs[QuantizedMatMul::b]) == nullptr) return false;
    size_t last = i;
    std::vector<size_t> covered;
    if (!ir::has_input(*node, QuantizedMatMul::bias)) {
      const size_t user = index_.only_user(made.outputs[0]);
      if (user != index_.size() && is_op(&index_.node(user), "Add")) {
        const ir::Node& add = index_.node(user);
        const std::string& other = add.inputs[add.inputs[0] == made.outputs[0] ? 1 : 0];
        if (other != made.outputs[0] && graph_.is_column_vector(other, add.outputs[0]) &&
            index_.same_shape(add.outputs[0], made.outputs[0])) {
          ir::set_input(*node, QuantizedMatMul::bias, other);
          last = user;
          covered.push_back(i);
        }
      }
    }
    node->outputs = index_.node(last).outputs;
    graph_.replace(last, std::move(*node), covered, {made.inputs[0], made.inputs[1]});
    return true;
  }

  // MatMul with a constant matrix that has scales block by block along its rows: its elements stay
  // as few bits as they are.
  bool by_blocks(size_t i) {
    const ir::Node& made = index_.node(i);
    const ir::Node* source = is_op(&made, "MatMul") ? index_.producer(made.inputs[1]) : nullptr;
    if (!is_op(source, "DequantizeLinear")) return false;
    BlockedMatrix b;
    b.block = attr_int(*source, "block_size", 0);
    b.values = index_.constant(source->inputs[0]);
    b.scales = index_.constant(source->inputs[1]);
    const std::string zeros = input(*source, 2);
    b.zeros = zeros.empty() ? nullptr : index_.constant(zeros);
    const auto axis = attr_int(*source, "axis", 1);
    if (b.values == nullptr || b.scales == nullptr || b.values->rank() != 2 ||
        (axis != 0 && axis != -2) || (!zeros.empty() && b.zeros == nullptr) || !fits_blocks(b) ||
        b.scales->element_type() != graph_.element(made.inputs[0]) ||
        graph_.element(made.outputs[0]) != graph_.element(made.inputs[0]) ||
        graph_.rank(made.inputs[0]).value_or(0) == 0)
      return false;
    ir::Node node;
    node.domain = "com.microsoft";
    node.op_type = "MatMulNBits";
    node.attributes = {ops::int_attribute("K", b.rows()), ops::int_attribute("N", b.columns()),
                       ops::int_attribute("bits", bit_width(b.values->element_type())),
                       ops::int_attribute("block_size", b.block)};
    node.inputs = {made.inputs[0], index_.add_initializer(columns_of_bits(b), "bits"),
                   index_.add_initializer(columns_of_scales(b), "scales")};
    if (b.zeros != nullptr || !is_signed_integer(b.values->element_type()))
      node.inputs.push_back(index_.add_initializer(columns_of_zeros(b), "zeros"));
    node.outputs = made.outputs;
    graph_.replace(i, std::move(node), {}, {made.inputs[1]});
    return true;
  }

  // MatMulInteger, Cast to float, Mul by the scales, and perhaps Add of a bias.
  bool scaled_integers(size_t i) {
    const ir::Node& sums = index_.node(i);
    if (!is_op(&sums, "MatMulInteger") ||
        !(input(sums, 2).empty() || graph_.is_one(sums.inputs[2])))
      return false;
    const Tensor* b = index_.constant(sums.inputs[1]);
    if (b == nullptr || b->rank() != 2) return false;
    const int64_t columns = b->shape()[1];
    const std::string b_zero = input(sums, 3);
    if (!b_zero.empty() && !graph_.is_one(b_zero) && graph_.count(b_zero) != columns) return false;
    const size_t cast = index_.only_user(sums.outputs[0]);
    if (cast == index_.size() || !is_op(&index_.node(cast), "Cast") ||
        graph_.element(index_.node(cast).outputs[0]) != ElementType::float32)
      return false;
    const std::string& floats = index_.node(cast).outputs[0];
    const size_t mul = index_.only_user(floats);
    if (mul == index_.size() || !is_op(&index_.node(mul), "Mul")) return false;
    const ir::Node& scaled = index_.node(mul);
    const std::string& scale = scaled.inputs[scaled.inputs[0] == floats ? 1 : 0];
    if (scale == floats) return false;
    const auto scales = split_scale(scale, columns);
    if (!scales) return false;
    ir::Node node = ops::internal::to_node(QuantizedMatMul{}, {},
                                           {{QuantizedMatMul::a, sums.inputs[0]},
                                            {QuantizedMatMul::a_scale, scales->one},
                                            {QuantizedMatMul::a_zero, input(sums, 2)},
                                            {QuantizedMatMul::b, sums.inputs[1]},
                                            {QuantizedMatMul::b_scale, scales->each},
                                            {QuantizedMatMul::b_zero, b_zero}},
                                           {});
    std::vector<size_t> covered{cast};
    size_t last = mul;
    const size_t add = index_.only_user(scaled.outputs[0]);
    if (add != index_.size() && is_op(&index_.node(add), "Add")) {
      const ir::Node& added = index_.node(add);
      const std::string& bias = added.inputs[added.inputs[0] == scaled.outputs[0] ? 1 : 0];
      if (bias != scaled.outputs[0] && graph_.is_column_vector(bias, added.outputs[0]) &&
          index_.same_shape(added.outputs[0], scaled.outputs[0])) {
        ir::set_input(node, QuantizedMatMul::bias, bias);
        covered.push_back(mul);
        last = add;
      }
    }
    node.outputs = index_.node(last).outputs;
    covered.push_back(i);  // which gives the name
    const bool is_split = scales->each != scale;
    graph_.replace(last, std::move(node), covered, {is_split ? scale : std::string()});
    return true;
  }

  // QLinearMatMul with one scale for A and one for Y.
  bool scaled_product(size_t i) {
    const ir::Node& old = index_.node(i);
    if (!is_op(&old, "QLinearMatMul") || old.inputs.size() != 8) return false;
    const Tensor* b = index_.constant(old.inputs[3]);
    if (b == nullptr || b->rank() != 2 || !is_byte(graph_.element(old.inputs[0])) ||
        !is_byte(b->element_type()) || !is_byte(graph_.element(old.outputs[0])))
      return false;
    for (const size_t one : {1, 2, 6, 7}) {
      if (!graph_.is_one(old.inputs[one])) return false;
    }
    for (const size_t scale : {1, 4, 6}) {
      if (graph_.element(old.inputs[scale]) != ElementType::float32 ||
          !graph_.is_ordinary(old.inputs[scale]))
        return false;
    }
    for (const size_t column : {4, 5}) {
      if (!graph_.is_one(old.inputs[column]) && graph_.count(old.inputs[column]) != b->shape()[1])
        return false;
    }
    graph_.replace(i,
                   ops::internal::to_node(QuantizedMatMul{}, {},
                                          {{QuantizedMatMul::a, old.inputs[0]},
                                           {QuantizedMatMul::a_scale, old.inputs[1]},
                                           {QuantizedMatMul::a_zero, old.inputs[2]},
                                           {QuantizedMatMul::b, old.inputs[3]},
                                           {QuantizedMatMul::b_scale, old.inputs[4]},
                                           {QuantizedMatMul::b_zero, old.inputs[5]},
                                           {QuantizedMatMul::y_scale, old.inputs[6]},
                                           {QuantizedMatMul::y_zero, old.inputs[7]}},
                                          old.outputs),
                   {});
    return true;
  }

 private:
  // A product of two dequantised matrices, as far as QuantizedMatMul does it: the node without its
  // outputs, or nothing.
  std::optional<ir::Node> product(const ir::Node& made) {
    const bool gemm = is_op(&made, "Gemm");
    if (!gemm && !is_op(&made, "MatMul")) return std::nullopt;
    const auto a = graph_.dequantized_by_one(made.inputs[0]);
    const auto b = graph_.dequantized(made.inputs[1]);
    if (!a || !b) return std::nullopt;
    const bool transposed = gemm && attr_int(made, "transB", 0) != 0;
    if (gemm && (attr_int(made, "transA", 0) != 0 || attr_float(made, "alpha", 1) != 1 ||
                 attr_float(made, "beta", 1) != 1))
      return std::nullopt;
    const auto dims = graph_.rank(b->value);
    if (!dims || *dims < 2) return std::nullopt;
    const int64_t columns_axis = transposed ? 0 : static_cast<int64_t>(*dims) - 1;
    if (!graph_.is_one(b->scale) && (b->axis != columns_axis || *dims != 2)) return std::nullopt;
    const ir::Dims* factors = index_.shape_of(a->value);
    const auto terms = factors && !factors->empty() ? factors->back().value() : std::nullopt;
    const ir::Dims* matrix = index_.shape_of(b->value);
    const auto own = matrix ? (*matrix)[*dims - (transposed ? 1 : 2)].value() : std::nullopt;
    const auto count = own ? own : terms;
    if (!count || !graph_.sums_fit(*count, b->value, b->zero)) return std::nullopt;
    const std::string bias = gemm ? input(made, 2) : std::string();
    if (!bias.empty() && !graph_.is_column_vector(bias, made.outputs[0])) return std::nullopt;
    return ops::internal::to_node(QuantizedMatMul{transposed}, {},
                                  {{QuantizedMatMul::a, a->value},
                                   {QuantizedMatMul::a_scale, a->scale},
                                   {QuantizedMatMul::a_zero, a->zero},
                                   {QuantizedMatMul::b, b->value},
                                   {QuantizedMatMul::b_scale, b->scale},
                                   {QuantizedMatMul::b_zero, b->zero},
                                   {QuantizedMatMul::bias, bias}},
                                  {});
  }

  // MatMul with the Add of a bias after it. `at` becomes the last node that is covered.
  std::optional<ir::Node> product_with_bias(size_t& at, std::vector<size_t>& covered) {
    const ir::Node& last = index_.node(at);
    if (!is_op(&last, "Add")) return product(last);
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const size_t before = graph_.sole_producer(last.inputs[side]);
      if (before == index_.size() || !is_op(&index_.node(before), "MatMul")) continue;
      if (!graph_.is_column_vector(last.inputs[1 - side], last.outputs[0])) continue;
      auto node = product(index_.node(before));
      if (!node) return std::nullopt;
      ir::set_input(*node, QuantizedMatMul::bias, last.inputs[1 - side]);
      covered.push_back(at);
      at = before;
      return node;
    }
    return std::nullopt;
  }

  // The scale of the sums as one number times one for each column.
  struct Scales {
    std::string one, each;
  };
  std::optional<Scales> split_scale(const std::string& scale, int64_t columns) {
    const auto fits = [&](const std::string& value) {
      const auto dims = graph_.rank(value);
      return graph_.element(value) == ElementType::float32 && dims && *dims <= 1 &&
             (graph_.is_one(value) || graph_.count(value) == columns);
    };
    const ir::Node* made = index_.producer(scale);
    if (is_op(made, "Mul")) {
      for (const size_t side : {size_t{0}, size_t{1}}) {
        if (!fits(made->inputs[side]) || !graph_.is_one(made->inputs[side]) ||
            !fits(made->inputs[1 - side]))
          continue;
        return Scales{made->inputs[side], made->inputs[1 - side]};
      }
    }
    if (!fits(scale)) return std::nullopt;
    Tensor one(ElementType::float32, {});
    one.mutable_elements<float>()[0] = 1;
    return Scales{index_.add_initializer(one, "one"), scale};
  }

  QuantizedGraph& graph_;
  GraphIndex& index_;
};

}  // namespace

bool quantize_product_to_bytes(QuantizedGraph& graph, size_t i) {
  return Products(graph).to_bytes(i);
}

bool quantize_product(QuantizedGraph& graph, size_t i) {
  Products products(graph);
  return products.to_floats(i) || products.by_blocks(i) || products.scaled_integers(i) ||
         products.scaled_product(i);
}

}  // namespace sardonyx::passes
