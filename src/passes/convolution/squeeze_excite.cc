#include "passes/convolution/squeeze_excite.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "ir/node_values.h"
#include "ir/tensor.h"
#include "passes/convolution/nhwc_conv.h"
#include "passes/graph_index.h"

namespace sardonyx::passes {
namespace {

using ops::internal::Conv;

class SqueezeExcitation {
 public:
  explicit SqueezeExcitation(GraphIndex& index) : index_(index) {}

  void run() {
    for (size_t i = 0; i < index_.size(); ++i) {
      if (!index_.is_dead(i) && !mean(i)) factor(i);
    }
  }

 private:
  // All axes between the first and the last, which stay as 1.
  bool reduces_image(const ir::Node& node) const {
    if (!node.domain.empty() || node.op_type != "ReduceMean" || node.inputs.size() < 2)
      return false;
    const ir::Attribute* keeps = node.find("keepdims");
    const auto* shape = index_.shape_of(node.inputs[0]);
    const Tensor* axes = index_.constant(node.inputs[1]);
    if (shape == nullptr || axes == nullptr || (keeps != nullptr && keeps->i == 0) ||
        axes->size() != static_cast<int64_t>(shape->size()) - 2)
      return false;
    const Tensor held = ir::aligned(*axes);
    std::vector<int64_t> given(held.elements<int64_t>().begin(), held.elements<int64_t>().end());
    for (int64_t& axis : given) axis += axis < 0 ? static_cast<int64_t>(shape->size()) : 0;
    std::ranges::sort(given);
    std::vector<int64_t> spatial(given.size());
    std::iota(spatial.begin(), spatial.end(), int64_t{1});
    return given == spatial;
  }

  bool mean(size_t i) {
    const ir::Node& reduce = index_.node(i);
    if (!reduces_image(reduce)) return false;
    const size_t c = index_.producer_index(reduce.inputs[0]);
    if (c == index_.size() || index_.node(c).outputs.size() != 1 ||
        !index_.is_float32(reduce.inputs[0]))
      return false;
    const auto conv = nhwc_conv(index_, c);
    if (!conv || !conv->depthwise()) return false;
    ir::Node fused = index_.node(c);
    ir::set_output(fused, Conv::means, reduce.outputs[0]);
    index_.replace(c, std::move(fused), {{i}});
    return true;
  }

  // Whether `gate` has one value for each channel of each image of `x`.
  bool is_factor_of(const std::string& gate, const std::string& x) const {
    const auto *g = index_.shape_of(gate), *shape = index_.shape_of(x);
    return g != nullptr && shape != nullptr && g->size() == shape->size() && g->size() >= 3 &&
           g->front() == shape->front() && g->back() == shape->back() &&
           std::all_of(g->begin() + 1, g->end() - 1, [](const ir::Dim& dim) { return dim == 1; });
  }

  // Whether multiplying the weights of the convolution is much less than a pass over its images.
  bool factor_pays(const std::string& x, int64_t out_channels) const {
    constexpr int64_t less = 4;
    const auto* shape = index_.shape_of(x);
    int64_t pixels = 1;
    for (size_t k = 1; shape != nullptr && k + 1 < shape->size(); ++k)
      pixels *= (*shape)[k].value().value_or(0);
    return shape != nullptr && pixels >= less * out_channels;
  }

  bool factor(size_t i) {
    const auto conv = nhwc_conv(index_, i);
    if (!conv || !conv->pointwise() || !kernels::takes_input_factors(conv->shape) ||
        ir::has_input(index_.node(i), Conv::input_factors))
      return false;
    const std::string product = index_.node(i).inputs[Conv::x];
    if (!factor_pays(product, conv->shape.out_channels)) return false;
    const size_t m = index_.producer_index(product);
    if (m == index_.size() || index_.only_user(product) != i || !index_.is_float32(product))
      return false;
    const ir::Node& mul = index_.node(m);
    if (!mul.domain.empty() || mul.op_type != "Mul") return false;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const std::string &x = mul.inputs[side], &gate = mul.inputs[1 - side];
      if (!index_.same_shape(x, product) || !is_factor_of(gate, x)) continue;
      ir::Node fused = index_.node(i);
      fused.inputs[Conv::x] = x;
      ir::set_input(fused, Conv::input_factors, gate);
      index_.replace(i, std::move(fused));
      return true;
    }
    return false;
  }

  GraphIndex& index_;
};

}  // namespace

void fuse_squeeze_excite(GraphIndex& index) { SqueezeExcitation(index).run(); }

}  // namespace sardonyx::passes
