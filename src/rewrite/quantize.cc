#include "rewrite/quantize.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/tensor.h"
#include "ops/upgrade_context.h"
#include "rewrite/blocked_matrix.h"
#include "rewrite/graph_index.h"

namespace sardonyx::rewrite {
namespace {

int64_t attr_int(const ir::Node& node, std::string_view name, int64_t fallback) {
  const ir::Attribute* a = node.find(name);
  return a && a->i ? *a->i : fallback;
}

float attr_float(const ir::Node& node, std::string_view name, float fallback) {
  const ir::Attribute* a = node.find(name);
  return a && a->f ? *a->f : fallback;
}

bool is_byte(ElementType type) { return type == ElementType::int8 || type == ElementType::uint8; }

// A value of bytes with its scale and zero point ("": 0).
struct Quantized {
  std::string value, scale, zero;
  ElementType type = ElementType::undefined;
  int64_t axis = 0;
};

class Quantizer {
 public:
  Quantizer(ir::Graph& graph, const infer::Scope& scope) : index_(graph, scope) {}

  void run() {
    for (size_t i = 0; i < index_.size(); ++i) {
      if (!index_.is_dead(i)) pass_through(i);
    }
    for (size_t i = 0; i < index_.size(); ++i) {
      if (!index_.is_dead(i)) conv(i) || product_to_bytes(i);
    }
    for (size_t i = 0; i < index_.size(); ++i) {
      if (index_.is_dead(i)) continue;
      product_to_floats(i) || block_product(i) || scaled_integers(i) || scaled_product(i);
    }
    index_.compact();
  }

 private:
  // --- what is known of values

  ElementType element(const std::string& value) const {
    const infer::Known* known = index_.known(value);
    return known && known->type.is_tensor() ? known->type.element : ElementType::undefined;
  }
  std::optional<int64_t> count(const std::string& value) const {
    const infer::Known* known = index_.known(value);
    const auto shape = known ? known->type.concrete_shape() : std::nullopt;
    if (!shape) return std::nullopt;
    int64_t product = 1;
    for (const int64_t dim : *shape) {
      if (__builtin_mul_overflow(product, dim, &product)) return std::nullopt;
    }
    return product;
  }
  std::optional<size_t> rank(const std::string& value) const {
    const infer::Known* known = index_.known(value);
    if (known == nullptr || !known->type.shape) return std::nullopt;
    return known->type.shape->size();
  }
  bool is_one(const std::string& value) const { return count(value) == 1; }

  static std::string input(const ir::Node& node, size_t i) {
    return i < node.inputs.size() ? node.inputs[i] : std::string();
  }

  // What DequantizeLinear made this value from: bytes, by one scale or one along an axis.
  std::optional<Quantized> dequantized(const std::string& value) const {
    const ir::Node* node = index_.producer(value);
    if (!is_op(node, "DequantizeLinear") || attr_int(*node, "block_size", 0) != 0)
      return std::nullopt;
    Quantized q{node->inputs[0], node->inputs[1], input(*node, 2), element(node->inputs[0]),
                attr_int(*node, "axis", 1)};
    if (!is_byte(q.type) || element(q.scale) != ElementType::float32 ||
        element(value) != ElementType::float32)
      return std::nullopt;
    const auto dims = rank(q.value);
    if (!dims || !count(q.scale)) return std::nullopt;
    if (q.axis < 0) q.axis += static_cast<int64_t>(*dims);
    return q;
  }
  std::optional<Quantized> dequantized_by_one(const std::string& value) const {
    const auto q = dequantized(value);
    return q && is_one(q->scale) ? q : std::nullopt;
  }

  // What QuantizeLinear makes of its input, where that is bytes by one scale.
  std::optional<Quantized> quantized(const ir::Node& node) const {
    if (!is_op(&node, "QuantizeLinear") || attr_int(node, "block_size", 0) != 0)
      return std::nullopt;
    Quantized q{node.inputs[0], node.inputs[1], input(node, 2), element(node.outputs[0]), 0};
    if (!is_byte(q.type) || !is_one(q.scale) || element(q.scale) != ElementType::float32 ||
        element(q.value) != ElementType::float32)
      return std::nullopt;
    return q;
  }

  std::optional<int32_t> zero_point(const std::string& value) const {
    return value.empty() ? 0 : index_.byte(value);
  }

  bool same_parameters(const Quantized& a, const Quantized& b) const {
    if (a.type != b.type) return false;
    const auto scale_a = index_.scalar(a.scale), scale_b = index_.scalar(b.scale);
    if (a.scale != b.scale && (!scale_a || scale_a != scale_b)) return false;
    const auto zero_a = zero_point(a.zero), zero_b = zero_point(b.zero);
    return a.zero == b.zero || (zero_a && zero_a == zero_b);
  }

  // --- rewriting

  std::string zero_of(const Quantized& q) {
    if (!q.zero.empty()) return q.zero;
    Tensor zero(q.type, {});
    *static_cast<uint8_t*>(zero.mutable_data()) = 0;
    return index_.add_initializer(zero, "zero");
  }

  // The node that makes a value that nobody else uses; size() where there is none.
  size_t sole_producer(const std::string& value) const {
    const size_t i = index_.producer_index(value);
    return i != index_.size() && index_.uses(value) == 1 ? i : index_.size();
  }

  // `covered`: what else it does the work of, and what makes `dequantized`; the last of the first
  // gives the name.
  void replace(size_t at, ir::Node node, std::vector<size_t> covered,
               const std::vector<std::string>& dequantized = {}) {
    node.name = index_.node(covered.empty() ? at : covered.back()).name;
    for (const std::string& value : dequantized) {
      const size_t maker = index_.producer_index(value);
      if (maker != index_.size()) covered.push_back(maker);
    }
    index_.replace(at, std::move(node), covered);
  }

  // Operators that move bytes, or pick the largest, give the same before and after scaling.
  bool pass_through(size_t i) {
    const auto to = quantized(index_.node(i));
    if (!to) return false;
    const size_t at = sole_producer(to->value);
    if (at == index_.size()) return false;
    const ir::Node& moved = index_.node(at);
    static constexpr std::string_view movers[] = {"Reshape", "Transpose", "Flatten",
                                                  "Squeeze", "Unsqueeze", "Slice",
                                                  "Gather",  "MaxPool",   "Expand"};
    if (!moved.domain.empty() || std::ranges::find(movers, moved.op_type) == std::end(movers) ||
        moved.outputs.size() != 1)
      return false;
    const auto from = dequantized_by_one(moved.inputs[0]);
    if (!from || !same_parameters(*from, *to)) return false;
    ir::Node node = moved;
    node.inputs[0] = from->value;
    node.outputs = index_.node(i).outputs;
    replace(i, std::move(node), {at}, {moved.inputs[0]});
    return true;
  }

  // Relu before QuantizeLinear changes nothing where 0 is the least byte. Returns the value before.
  std::string before_relu(const Quantized& to, std::vector<size_t>& covered) {
    const size_t at = sole_producer(to.value);
    if (at == index_.size() || !is_op(&index_.node(at), "Relu")) return to.value;
    const auto zero = zero_point(to.zero);
    if (!zero || *zero != (to.type == ElementType::int8 ? -128 : 0)) return to.value;
    covered.push_back(at);
    return index_.node(at).inputs[0];
  }

  // A bias in steps of x's scale times w's; nullopt where it cannot be had.
  std::optional<std::string> integer_bias(const std::string& value, const Quantized& x,
                                          const Quantized& w, int64_t channels) {
    if (value.empty()) return std::string();
    const Tensor *x_scale = index_.constant(x.scale), *w_scale = index_.constant(w.scale);
    if (x_scale == nullptr || w_scale == nullptr) return std::nullopt;
    const Tensor xs = ir::aligned(*x_scale), ws = ir::aligned(*w_scale);
    const auto step = [&](int64_t m) {
      return static_cast<double>(xs.elements<float>()[0]) *
             ws.elements<float>()[static_cast<size_t>(ws.size() == 1 ? 0 : m)];
    };
    const ir::Node* made = index_.producer(value);
    std::vector<double> numbers;
    if (is_op(made, "DequantizeLinear") && element(made->inputs[0]) == ElementType::int32) {
      const Tensor *bytes = index_.constant(made->inputs[0]),
                   *scale = index_.constant(made->inputs[1]);
      if (bytes == nullptr || scale == nullptr || bytes->size() != channels ||
          scale->element_type() != ElementType::float32 ||
          (scale->size() != 1 && scale->size() != channels) || !is_zero(input(*made, 2)))
        return std::nullopt;
      const Tensor held = ir::aligned(*bytes), steps = ir::aligned(*scale);
      for (int64_t m = 0; m < channels; ++m)
        numbers.push_back(static_cast<double>(held.elements<int32_t>()[static_cast<size_t>(m)]) *
                          steps.elements<float>()[static_cast<size_t>(steps.size() == 1 ? 0 : m)]);
    } else if (const Tensor* floats = index_.constant(value);
               floats && floats->element_type() == ElementType::float32 &&
               floats->size() == channels) {
      const Tensor held = ir::aligned(*floats);
      for (const float number : held.elements<float>()) numbers.push_back(number);
    } else {
      return std::nullopt;
    }
    Tensor bias(ElementType::int32, {channels});
    const auto to = bias.mutable_elements<int32_t>();
    for (int64_t m = 0; m < channels; ++m) {
      const double whole = std::nearbyint(numbers[static_cast<size_t>(m)] / step(m));
      if (!(std::abs(whole) < 1 << 30)) return std::nullopt;
      to[static_cast<size_t>(m)] = static_cast<int32_t>(whole);
    }
    return index_.add_initializer(bias, "bias");
  }

  bool is_zero(const std::string& value) const {
    if (value.empty()) return true;
    const Tensor* tensor = index_.constant(value);
    if (tensor == nullptr) return false;
    const auto* bytes = static_cast<const uint8_t*>(tensor->data());
    return std::all_of(bytes, bytes + tensor->byte_size(), [](uint8_t b) { return b == 0; });
  }

  bool conv(size_t i) {
    const auto to = quantized(index_.node(i));
    if (!to) return false;
    std::vector<size_t> covered;
    const size_t at = sole_producer(before_relu(*to, covered));
    if (at == index_.size() || !is_op(&index_.node(at), "Conv")) return false;
    const ir::Node& conv = index_.node(at);
    const auto x = dequantized_by_one(conv.inputs[0]);
    const auto w = dequantized(conv.inputs[1]);
    if (!x || !w) return false;
    const Tensor* weights = index_.constant(w->value);
    if (weights == nullptr || weights->rank() < 3) return false;
    const int64_t channels = weights->shape()[0];
    if (!is_one(w->scale) && (w->axis != 0 || count(w->scale) != channels)) return false;
    const auto bias = integer_bias(input(conv, 2), *x, *w, channels);
    if (!bias) return false;
    ir::Node node;
    node.op_type = "QLinearConv";
    node.attributes = conv.attributes;
    node.inputs = {x->value, x->scale,        zero_of(*x), w->value,
                   w->scale, weight_zero(*w), to->scale,   zero_of(*to)};
    if (!bias->empty()) node.inputs.push_back(*bias);
    node.outputs = index_.node(i).outputs;
    covered.push_back(at);
    replace(i, std::move(node), covered, {conv.inputs[0], conv.inputs[1], input(conv, 2)});
    return true;
  }

  // A zero point for each scale.
  std::string weight_zero(const Quantized& w) {
    if (!w.zero.empty()) return w.zero;
    Tensor zero(w.type, is_one(w.scale) ? Shape{} : Shape{*count(w.scale)});
    std::fill_n(static_cast<uint8_t*>(zero.mutable_data()), zero.size(), uint8_t{0});
    return index_.add_initializer(zero, "zero");
  }

  // A product of two dequantised matrices, as far as QuantizedMatMul does it: the node without its
  // outputs, or nothing.
  std::optional<ir::Node> product(const ir::Node& made) {
    const bool gemm = is_op(&made, "Gemm");
    if (!gemm && !is_op(&made, "MatMul")) return std::nullopt;
    const auto a = dequantized_by_one(made.inputs[0]);
    const auto b = dequantized(made.inputs[1]);
    if (!a || !b) return std::nullopt;
    const bool turned = gemm && attr_int(made, "transB", 0) != 0;
    if (gemm && (attr_int(made, "transA", 0) != 0 || attr_float(made, "alpha", 1) != 1 ||
                 attr_float(made, "beta", 1) != 1))
      return std::nullopt;
    const auto dims = rank(b->value);
    if (!dims || *dims < 2) return std::nullopt;
    const int64_t columns_axis = turned ? 0 : static_cast<int64_t>(*dims) - 1;
    if (!is_one(b->scale) && (b->axis != columns_axis || *dims != 2)) return std::nullopt;
    ir::Node node;
    node.domain = "sardonyx";
    node.op_type = "QuantizedMatMul";
    if (turned) node.attributes.push_back(ops::int_attribute("transB", 1));
    node.inputs = {a->value, a->scale, a->zero, b->value, b->scale, b->zero, "", "", ""};
    if (const std::string c = gemm ? input(made, 2) : std::string(); !c.empty()) {
      if (!is_column_vector(c, made.outputs[0])) return std::nullopt;
      node.inputs[6] = c;
    }
    return node;
  }

  // A constant, or a dequantised one, with a value for each column of the product, or one for all.
  bool is_column_vector(const std::string& value, const std::string& product) const {
    const auto dims = rank(value);
    const auto length = count(value);
    const infer::Known* known = index_.known(product);
    if (!dims || !length || *dims > 1 || !known || !known->type.shape ||
        known->type.shape->empty() || element(value) != ElementType::float32)
      return false;
    return *length == 1 || known->type.shape->back() == *length;
  }

  // MatMul with the Add of a bias after it. `at` becomes the last node that is covered.
  std::optional<ir::Node> product_with_bias(size_t& at, std::vector<size_t>& covered) {
    const ir::Node& last = index_.node(at);
    if (!is_op(&last, "Add")) return product(last);
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const size_t before = sole_producer(last.inputs[side]);
      if (before == index_.size() || !is_op(&index_.node(before), "MatMul")) continue;
      if (!is_column_vector(last.inputs[1 - side], last.outputs[0])) continue;
      auto node = product(index_.node(before));
      if (!node) return std::nullopt;
      node->inputs[6] = last.inputs[1 - side];
      covered.push_back(at);
      at = before;
      return node;
    }
    return std::nullopt;
  }

  bool product_to_bytes(size_t i) {
    const auto to = quantized(index_.node(i));
    if (!to) return false;
    std::vector<size_t> covered;
    size_t at = sole_producer(before_relu(*to, covered));
    if (at == index_.size()) return false;
    auto node = product_with_bias(at, covered);
    if (!node) return false;
    node->inputs[7] = to->scale, node->inputs[8] = zero_of(*to);
    node->outputs = index_.node(i).outputs;
    covered.push_back(at);
    const ir::Node& made = index_.node(at);
    replace(i, std::move(*node), covered, {made.inputs[0], made.inputs[1]});
    return true;
  }

  static void trim(ir::Node& node) {
    while (node.inputs.back().empty()) node.inputs.pop_back();
  }

  // Products that stay floats, where B is constant: packing it pays.
  bool product_to_floats(size_t i) {
    const ir::Node& made = index_.node(i);
    auto node = product(made);
    if (!node || index_.constant(node->inputs[3]) == nullptr) return false;
    size_t last = i;
    std::vector<size_t> covered;
    if (node->inputs[6].empty()) {
      const size_t user = index_.only_user(made.outputs[0]);
      if (user != index_.size() && is_op(&index_.node(user), "Add")) {
        const ir::Node& add = index_.node(user);
        const std::string& other = add.inputs[add.inputs[0] == made.outputs[0] ? 1 : 0];
        if (other != made.outputs[0] && is_column_vector(other, add.outputs[0]) &&
            index_.same_shape(add.outputs[0], made.outputs[0])) {
          node->inputs[6] = other;
          last = user;
          covered.push_back(i);
        }
      }
    }
    node->outputs = index_.node(last).outputs;
    trim(*node);
    replace(last, std::move(*node), covered, {made.inputs[0], made.inputs[1]});
    return true;
  }

  // MatMul with a constant matrix that has scales block by block along its rows: its elements stay
  // as few bits as they are.
  bool block_product(size_t i) {
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
        b.scales->element_type() != element(made.inputs[0]) ||
        element(made.outputs[0]) != element(made.inputs[0]) ||
        rank(made.inputs[0]).value_or(0) == 0)
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
    replace(i, std::move(node), {}, {made.inputs[1]});
    return true;
  }

  // MatMulInteger, Cast to float, Mul by the scales, and perhaps Add of a bias.
  bool scaled_integers(size_t i) {
    const ir::Node& sums = index_.node(i);
    if (!is_op(&sums, "MatMulInteger") || !(input(sums, 2).empty() || is_one(sums.inputs[2])))
      return false;
    const Tensor* b = index_.constant(sums.inputs[1]);
    if (b == nullptr || b->rank() != 2) return false;
    const int64_t columns = b->shape()[1];
    const std::string b_zero = input(sums, 3);
    if (!b_zero.empty() && !is_one(b_zero) && count(b_zero) != columns) return false;
    const size_t cast = index_.only_user(sums.outputs[0]);
    if (cast == index_.size() || !is_op(&index_.node(cast), "Cast") ||
        element(index_.node(cast).outputs[0]) != ElementType::float32)
      return false;
    const std::string& floats = index_.node(cast).outputs[0];
    const size_t mul = index_.only_user(floats);
    if (mul == index_.size() || !is_op(&index_.node(mul), "Mul")) return false;
    const ir::Node& scaled = index_.node(mul);
    const std::string& scale = scaled.inputs[scaled.inputs[0] == floats ? 1 : 0];
    if (scale == floats) return false;
    ir::Node node;
    node.domain = "sardonyx";
    node.op_type = "QuantizedMatMul";
    node.inputs = {sums.inputs[0], "", input(sums, 2), sums.inputs[1], "", b_zero, ""};
    if (!split_scale(scale, columns, node)) return false;
    std::vector<size_t> covered{i, cast};
    size_t last = mul;
    const size_t add = index_.only_user(scaled.outputs[0]);
    if (add != index_.size() && is_op(&index_.node(add), "Add")) {
      const ir::Node& added = index_.node(add);
      const std::string& bias = added.inputs[added.inputs[0] == scaled.outputs[0] ? 1 : 0];
      if (bias != scaled.outputs[0] && is_column_vector(bias, added.outputs[0]) &&
          index_.same_shape(added.outputs[0], scaled.outputs[0])) {
        node.inputs[6] = bias;
        covered.push_back(mul);
        last = add;
      }
    }
    node.outputs = index_.node(last).outputs;
    trim(node);
    const bool is_split = node.inputs[4] != scale;
    replace(last, std::move(node), covered, {is_split ? scale : std::string()});
    return true;
  }

  // QLinearMatMul with one scale for A and one for Y.
  bool scaled_product(size_t i) {
    const ir::Node& old = index_.node(i);
    if (!is_op(&old, "QLinearMatMul") || old.inputs.size() != 8) return false;
    const Tensor* b = index_.constant(old.inputs[3]);
    if (b == nullptr || b->rank() != 2 || !is_byte(element(old.inputs[0])) ||
        !is_byte(b->element_type()) || !is_byte(element(old.outputs[0])))
      return false;
    for (const size_t one : {1, 2, 6, 7}) {
      if (!is_one(old.inputs[one])) return false;
    }
    for (const size_t scale : {1, 4, 6}) {
      if (element(old.inputs[scale]) != ElementType::float32) return false;
    }
    for (const size_t column : {4, 5}) {
      if (!is_one(old.inputs[column]) && count(old.inputs[column]) != b->shape()[1]) return false;
    }
    ir::Node node;
    node.domain = "sardonyx";
    node.op_type = "QuantizedMatMul";
    node.inputs.assign(old.inputs.begin(), old.inputs.begin() + 6);
    node.inputs.insert(node.inputs.end(), {"", old.inputs[6], old.inputs[7]});
    node.outputs = old.outputs;
    replace(i, std::move(node), {});
    return true;
  }

  // The scale of the sums as one number times one for each column.
  bool split_scale(const std::string& scale, int64_t columns, ir::Node& node) {
    const auto fits = [&](const std::string& value) {
      const auto dims = rank(value);
      return element(value) == ElementType::float32 && dims && *dims <= 1 &&
             (is_one(value) || count(value) == columns);
    };
    const ir::Node* made = index_.producer(scale);
    if (is_op(made, "Mul")) {
      for (const size_t side : {size_t{0}, size_t{1}}) {
        if (!fits(made->inputs[side]) || !is_one(made->inputs[side]) ||
            !fits(made->inputs[1 - side]))
          continue;
        node.inputs[1] = made->inputs[side], node.inputs[4] = made->inputs[1 - side];
        return true;
      }
    }
    if (!fits(scale)) return false;
    Tensor one(ElementType::float32, {});
    one.mutable_elements<float>()[0] = 1;
    node.inputs[1] = index_.add_initializer(one, "one");
    node.inputs[4] = scale;
    return true;
  }

  GraphIndex index_;
};

}  // namespace

bool has_quantized_nodes(const ir::Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const ir::Node& node) {
    return is_op(&node, "DequantizeLinear") || is_op(&node, "MatMulInteger") ||
           is_op(&node, "QLinearMatMul");
  });
}

void quantize(ir::Graph& graph, const infer::Scope& scope) { Quantizer(graph, scope).run(); }

}  // namespace sardonyx::rewrite
