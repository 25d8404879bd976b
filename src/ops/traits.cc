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
    {"Attention", half_through_float32 | costly},
    {"AveragePool", half_through_float32 | costly},
    {"BatchNormalization", half_through_float32 | costly},
    {"Bernoulli", no_gradient},
    {"CausalConvWithState", costly},
    {"Ceil", unary},
    {"Celu", unary},
    {"Clip", unary | half_through_float32},
    {"Col2Im", costly},
    {"Concat", hands_on},
    {"Conv", half_through_float32 | packs_weights | costly},
    {"ConvInteger", costly},
    {"ConvTranspose", half_through_float32 | costly},
    {"Cos", half_through_float32},
    {"CumProd", costly},
    {"CumSum", costly},
    {"DFT", costly},
    {"DeformConv", costly},
    {"DepthToSpace", hands_on},
    {"Det", costly},
    {"Div", broadcasts | half_through_float32},
    {"Einsum", costly},
    {"Elu", unary | half_through_float32},
    {"Erf", unary | half_through_float32},
    {"Exp", unary | half_through_float32},
    {"Expand", hands_on | keeps_quantization},
    {"EyeLike", no_gradient},
    {"Flatten", hands_on | keeps_quantization},
    {"Floor", unary},
    {"GRU", half_through_float32 | costly},
    {"Gather", hands_on | keeps_quantization},
    {"Gelu", unary | half_through_float32},
    {"Gemm", half_through_float32 | packs_weights | costly},
    {"GlobalAveragePool", half_through_float32},
    {"GlobalLpPool", costly},
    {"GlobalMaxPool", half_through_float32},
    {"GridSample", costly},
    {"GroupNormalization", half_through_float32 | costly},
    {"HardSigmoid", unary | half_through_float32},
    {"HardSwish", unary | half_through_float32},
    {"Hardmax", no_gradient},
    {"Identity", unary | hands_on},
    {"InstanceNormalization", half_through_float32 | costly},
    {"LRN", half_through_float32 | costly},
    {"LSTM", half_through_float32 | costly},
    {"LayerNormalization", half_through_float32 | costly},
    {"LeakyRelu", unary | half_through_float32},
    {"LinearAttention", costly},
    {"Log", unary | half_through_float32},
    {"LogSoftmax", half_through_float32 | costly},
    {"LpNormalization", costly},
    {"LpPool", costly},
    {"MatMul", half_through_float32 | packs_weights | costly},
    {"MatMulInteger", costly},
    {"Max", broadcasts | half_through_float32},
    {"MaxPool", half_through_float32 | keeps_quantization | costly},
    {"MaxRoiPool", costly},
    {"Mean", broadcasts},
    {"MeanVarianceNormalization", costly},
    {"Min", broadcasts | half_through_float32},
    {"Mish", unary},
    {"Mul", broadcasts | half_through_float32},
    {"Multinomial", no_gradient},
    {"Neg", unary | half_through_float32},
    {"NegativeLogLikelihoodLoss", costly},
    {"NonMaxSuppression", no_gradient},
    {"OptionalHasElement", no_gradient},
    {"PRelu", broadcasts | half_through_float32},
    {"Pad", hands_on},
    {"Pow", broadcasts | half_through_float32},
    {"QLinearConv", costly},
    {"QLinearMatMul", costly},
    {"RMSNormalization", half_through_float32 | costly},
    {"RNN", half_through_float32 | costly},
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
    {"Resize", hands_on | costly},
    {"RoiAlign", costly},
    {"RotaryEmbedding", half_through_float32},
    {"Round", unary},
    {"STFT", costly},
    {"Selu", unary | half_through_float32},
    {"SequenceLength", no_gradient},
    {"Sigmoid", unary | half_through_float32},
    {"Sign", unary},
    {"Sin", half_through_float32},
    {"Slice", hands_on | keeps_quantization},
    {"Softmax", half_through_float32 | costly},
    {"SoftmaxCrossEntropyLoss", costly},
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
    {"TopK", costly},
    {"Transpose", hands_on | keeps_quantization},
    {"Unique", costly},
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
