#include "ops/traits.h"

#include <algorithm>
#include <string_view>

namespace sardonyx::ops {
namespace {

struct Entry {
  std::string_view name;
  Traits traits;
};

// By name.
constexpr Entry entries[] = {
    {"Abs", unary | half_through_float32},
    {"Add", broadcasts | half_through_float32},
    {"Attention", half_through_float32},
    {"AveragePool", half_through_float32},
    {"BatchNormalization", half_through_float32},
    {"Bernoulli", no_gradient},
    {"Ceil", unary},
    {"Celu", unary},
    {"Clip", unary | half_through_float32},
    {"Concat", hands_on},
    {"Conv", half_through_float32 | packs_weights},
    {"ConvTranspose", half_through_float32},
    {"Cos", half_through_float32},
    {"DepthToSpace", hands_on},
    {"Div", broadcasts | half_through_float32},
    {"Elu", unary | half_through_float32},
    {"Erf", unary | half_through_float32},
    {"Exp", unary | half_through_float32},
    {"Expand", hands_on | keeps_quantization},
    {"EyeLike", no_gradient},
    {"Flatten", hands_on | keeps_quantization},
    {"Floor", unary},
    {"GRU", half_through_float32},
    {"Gather", hands_on | keeps_quantization},
    {"Gelu", unary | half_through_float32},
    {"Gemm", half_through_float32 | packs_weights},
    {"GlobalAveragePool", half_through_float32},
    {"GlobalMaxPool", half_through_float32},
    {"GroupNormalization", half_through_float32},
    {"HardSigmoid", unary | half_through_float32},
    {"HardSwish", unary | half_through_float32},
    {"Hardmax", no_gradient},
    {"Identity", unary | hands_on},
    {"InstanceNormalization", half_through_float32},
    {"LRN", half_through_float32},
    {"LSTM", half_through_float32},
    {"LayerNormalization", half_through_float32},
    {"LeakyRelu", unary | half_through_float32},
    {"Log", unary | half_through_float32},
    {"LogSoftmax", half_through_float32},
    {"MatMul", half_through_float32 | packs_weights},
    {"Max", broadcasts | half_through_float32},
    {"MaxPool", half_through_float32 | keeps_quantization},
    {"Mean", broadcasts},
    {"Min", broadcasts | half_through_float32},
    {"Mish", unary},
    {"Mul", broadcasts | half_through_float32},
    {"Neg", unary | half_through_float32},
    {"PRelu", broadcasts | half_through_float32},
    {"Pad", hands_on},
    {"Pow", broadcasts | half_through_float32},
    {"RMSNormalization", half_through_float32},
    {"RNN", half_through_float32},
    {"RandomNormalLike", no_gradient},
    {"RandomUniformLike", no_gradient},
    {"Reciprocal", unary | half_through_float32},
    {"ReduceL1", reduces},
    {"ReduceL2", reduces | half_through_float32},
    {"ReduceMax", reduces | half_through_float32},
    {"ReduceMean", reduces | half_through_float32},
    {"ReduceMin", reduces | half_through_float32},
    {"ReduceSum", reduces | half_through_float32},
    {"ReduceSumSquare", reduces | half_through_float32},
    {"Relu", unary | half_through_float32},
    {"Reshape", hands_on | keeps_quantization},
    {"Resize", hands_on},
    {"RotaryEmbedding", half_through_float32},
    {"Round", unary},
    {"Selu", unary | half_through_float32},
    {"Sigmoid", unary | half_through_float32},
    {"Sign", unary},
    {"Sin", half_through_float32},
    {"Slice", hands_on | keeps_quantization},
    {"Softmax", half_through_float32},
    {"Softplus", unary | half_through_float32},
    {"Softsign", unary},
    {"SpaceToDepth", hands_on},
    {"Split", hands_on},
    {"Sqrt", unary | half_through_float32},
    {"Squeeze", hands_on | keeps_quantization},
    {"Sub", broadcasts | half_through_float32},
    {"Sum", broadcasts | half_through_float32},
    {"Swish", unary | half_through_float32},
    {"Tanh", unary | half_through_float32},
    {"ThresholdedRelu", unary},
    {"Transpose", hands_on | keeps_quantization},
    {"Unsqueeze", hands_on | keeps_quantization},
    {"Where", hands_on},
};

static_assert(std::ranges::is_sorted(entries, {}, &Entry::name));

}  // namespace

Traits traits_of(const ir::Node& node) {
  if (!node.domain.empty()) return 0;
  const auto found =
      std::ranges::lower_bound(entries, std::string_view(node.op_type), {}, &Entry::name);
  return found != std::end(entries) && found->name == node.op_type ? found->traits : 0;
}

}  // namespace sardonyx::ops
