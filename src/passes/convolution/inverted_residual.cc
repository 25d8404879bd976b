#include "passes/convolution/inverted_residual.h"

#include "ir/node_values.h"
#include "kernels/conv/conv_chain.h"
#include "ops/internal/conv_chain.h"
#include "ops/shared/guessed_sizes.h"
#include "passes/convolution/nhwc_conv.h"
#include "passes/graph_index.h"

namespace sardonyx::passes {
namespace {

using kernels::ConvParams;
using kernels::FusedConvChain;
using ops::internal::Conv;

class InvertedResiduals {
 public:
  explicit InvertedResiduals(GraphIndex& index) : index_(index) {}

  void run() {
    for (size_t i = 0; i < index_.size(); ++i) {
      if (!index_.is_dead(i)) form(i);
    }
  }

 private:
  bool has_input(size_t i, size_t k) const { return ir::has_input(index_.node(i), k); }

  // A convolution that may be part of a chain, with the sizes that are expected.
  std::optional<ConvParams> part(size_t i) const {
    const auto conv = nhwc_conv(index_, i);
    if (!conv || conv->shape.rank != 2 || has_input(i, Conv::input_factors) ||
        !index_.is_float32(index_.node(i).inputs[Conv::x]) ||
        !index_.is_float32(index_.node(i).inputs[Conv::w]) ||
        (conv->op.input_shuffle != 1 && !conv->op.shuffles_output))
      return std::nullopt;
    ConvParams shape = conv->shape;
    shape.shuffle = conv->op.input_shuffle;
    shape.shuffles_output = conv->op.shuffles_output;
    const infer::ValueFacts *x = index_.known(index_.node(i).inputs[Conv::x]),
                            *y = index_.known(index_.node(i).outputs[Conv::y]);
    if (!x || !y || !x->type.shape || !y->type.shape || x->type.shape->size() != 4)
      return std::nullopt;
    const auto size = [&](const infer::ValueFacts& known, size_t axis) {
      return (*known.type.shape)[axis].value();
    };
    for (size_t k = 0; k < 2; ++k) {
      const auto in = size(*x, k + 1), out = size(*y, k + 1);
      shape.in[k] = in.value_or(ops::guessed_first_image_size);
      shape.out[k] = out.value_or(divide(shape.in[k], shape.stride[k]));
      shape.pad_begin[k] = conv->padded ? (shape.kernel[k] - 1) / 2 : 0;
    }
    return shape;
  }
  static int64_t divide(int64_t n, int64_t by) { return (n + by - 1) / by; }

  // A residual is added behind everything; means are those of the depthwise part alone.
  bool may_precede(size_t i) const {
    return !has_input(i, Conv::residual) &&
           index_.only_user(index_.node(i).outputs[0]) != index_.size();
  }

  void form(size_t i) {
    const auto conv = nhwc_conv(index_, i);
    const auto middle = part(i);
    if (!middle || !conv->depthwise()) return;
    std::vector<size_t> nodes{i};
    std::vector<ConvParams> shapes{*middle};
    int depthwise = 0;
    const size_t before = index_.producer_index(index_.node(i).inputs[0]);
    if (before != index_.size() && may_precede(before) && index_.node(before).outputs.size() == 1) {
      if (const auto shape = part(before); shape && !takes_winograd(*shape)) {
        nodes.insert(nodes.begin(), before);
        shapes.insert(shapes.begin(), *shape);
        depthwise = 1;
      }
    }
    const size_t behind = index_.only_user(index_.node(i).outputs[0]);
    if (behind != index_.size() && may_precede(i) && index_.node(i).outputs.size() == 1 &&
        index_.node(behind).inputs[0] == index_.node(i).outputs[0]) {
      const auto next = nhwc_conv(index_, behind);
      if (const auto shape = part(behind); shape && next->pointwise()) {
        nodes.push_back(behind);
        shapes.push_back(*shape);
      }
    }
    if (pays(shapes, depthwise)) replace(nodes, depthwise);
  }

  static bool takes_winograd(const ConvParams& shape) { return kernels::winograd_tile(shape) != 0; }

  static bool pays(const std::vector<ConvParams>& shapes, int depthwise) {
    if (shapes.size() < 2) return false;
    FusedConvChain chain;
    chain.count = static_cast<int>(shapes.size());
    chain.depthwise = depthwise;
    std::copy(shapes.begin(), shapes.end(), chain.parts);
    return kernels::chain_pays(chain);
  }

  // The chain stands where its last part stood.
  void replace(const std::vector<size_t>& nodes, int depthwise) {
    std::vector<const ir::Node*> parts;
    for (const size_t i : nodes) parts.push_back(&index_.node(i));
    ir::Node chain = ops::internal::make_conv_chain(parts, static_cast<size_t>(depthwise));
    index_.replace(nodes.back(), std::move(chain));
  }

  GraphIndex& index_;
};

}  // namespace

void fuse_inverted_residuals(GraphIndex& index) { InvertedResiduals(index).run(); }

}  // namespace sardonyx::passes
