#include "passes/fusion/epilogues.h"

#include <algorithm>
#include <optional>

#include "ir/tensor.h"
#include "ops/upgrade_context.h"
#include "passes/attributes.h"
#include "passes/fusion/products.h"

namespace sardonyx::passes {
namespace {

class Epilogues {
 public:
  explicit Epilogues(GraphIndex& index) : index_(index) {}

  // What follows Conv, MatMul or Gemm and can be done before its results are stored.
  bool epilogue(size_t i) {
    const ir::Node& first = index_.node(i);
    const bool folded = first.domain == "sardonyx" && first.op_type == "Conv";
    const bool transposed = is_transposed(first);
    const bool conv = folded || is_op(&first, "Conv") || transposed,
               matmul = is_product(first, "MatMul"), gemm = is_product(first, "Gemm");
    if (!(conv || matmul || gemm) || !index_.is_float32(first.outputs[0])) return false;
    if (matmul) {
      const Tensor* b = index_.constant(first.inputs[1]);
      if (b == nullptr || b->rank() != 2) return false;
    }
    ir::Node fused = first;
    fused.domain = "sardonyx";
    size_t last = i;
    // The node may have been here before.
    bool activated = first.find("activation") != nullptr,
         residual = first.inputs.size() > 3 && !first.inputs[3].empty();
    while (!(activated && residual)) {
      const std::string value = fused.outputs[0];
      const size_t user = index_.only_user(value);
      if (user == index_.size()) break;
      const ir::Node& next = index_.node(user);
      bool taken = false;
      if (is_op(&next, "Add") || (is_op(&next, "Sum") && next.inputs.size() == 2)) {
        const std::string* term = other_input(next, value);
        if (term != nullptr && index_.same_shape(next.outputs[0], value)) {
          if (!activated && !residual && !gemm && take_bias(fused, *term, conv)) {
            taken = true;
          } else if (!gemm && !transposed && !residual && index_.same_shape(*term, value) &&
                     index_.constant(*term) == nullptr) {
            fused.inputs.resize(std::max<size_t>(fused.inputs.size(), 4));
            fused.inputs[3] = *term;
            if (activated) fused.attributes.push_back(ops::int_attribute("residual_last", 1));
            residual = taken = true;
          }
        }
      } else if (!activated && !(residual && fused.find("residual_last"))) {
        taken = activated = take_activation(fused, next, value, gemm);
      }
      if (!taken) break;
      fused.outputs = {next.outputs[0]};
      last = user;
    }
    if (last == i) return false;
    // The fused node stands where the last one stood: all its inputs are made by then.
    index_.replace(last, std::move(fused));
    return true;
  }

 private:
  bool is_transposed(const ir::Node& node) const {
    return node.op_type == "ConvTranspose" &&
           (node.domain == "sardonyx" ||
            (node.domain.empty() && conv_weights(index_, node) != nullptr));
  }

  bool take_bias(ir::Node& fused, const std::string& term, bool conv) {
    if (fused.inputs.size() > 2 && !fused.inputs[2].empty()) return false;
    const Tensor* bias = index_.constant(term);
    if (bias == nullptr || bias->element_type() != ElementType::float32) return false;
    const auto& shape = *index_.known(fused.outputs[0])->type.shape;
    const size_t along = conv ? 1 : shape.size() - 1;
    const int64_t rank = static_cast<int64_t>(shape.size());
    if (!(shape[along] == bias->size()) || bias->rank() > rank) return false;
    // Every dimension but the one along the channels must be 1.
    const int64_t at = bias->rank() - (rank - static_cast<int64_t>(along));
    if (at < 0 || bias->shape()[static_cast<size_t>(at)] != bias->size()) return false;
    fused.inputs.resize(std::max<size_t>(fused.inputs.size(), 3));
    fused.inputs[2] = bias->rank() == 1 ? term
                                        : index_.add_initializer(
                                              ir::aligned(*bias).reshaped({bias->size()}), "bias");
    return true;
  }

  bool take_activation(ir::Node& fused, const ir::Node& next, const std::string& value, bool gemm) {
    if (!next.domain.empty() || next.inputs[0] != value) return false;
    std::string word;
    std::optional<float> alpha, beta;
    const std::string& op = next.op_type;
    if (op == "Relu") word = "relu";
    if (op == "Sigmoid") word = "sigmoid";
    if (op == "Tanh") word = "tanh";
    if (op == "HardSwish") word = "hard_swish";
    if (op == "Swish" && attr_float(next, "alpha", 1) == 1) word = "silu";
    if (op == "Gelu") {
      const ir::Attribute* approximate = next.find("approximate");
      word = approximate && approximate->s == "tanh" ? "gelu_tanh" : "gelu_erf";
    }
    if (op == "LeakyRelu") {
      word = "leaky_relu";
      alpha = attr_float(next, "alpha", 0.01f);
    }
    if (op == "HardSigmoid") {
      word = "hard_sigmoid";
      alpha = attr_float(next, "alpha", 0.2f);
      beta = attr_float(next, "beta", 0.5f);
    }
    if (op == "Clip" && next.inputs.size() == 3) {
      const auto low = index_.scalar(next.inputs[1]), high = index_.scalar(next.inputs[2]);
      if (!low || !high) return false;
      word = "clip";
      alpha = static_cast<float>(*low);
      beta = static_cast<float>(*high);
    }
    if (word.empty()) return false;
    fused.attributes.push_back(ops::string_attribute("activation", word));
    if (alpha)
      fused.attributes.push_back(ops::float_attribute(gemm ? "activation_alpha" : "alpha", *alpha));
    if (beta)
      fused.attributes.push_back(ops::float_attribute(gemm ? "activation_beta" : "beta", *beta));
    return true;
  }

  GraphIndex& index_;
};

}  // namespace

void fuse_epilogues(GraphIndex& index) {
  Epilogues found(index);
  index.for_each([&](size_t i) { found.epilogue(i); });
}

}  // namespace sardonyx::passes
