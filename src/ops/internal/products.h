// The internal forms of convolutions and matrix products: with a bias, a sum and an activation
// behind them, and images with channels last.
#pragma once

#include <variant>

#include "ops/internal/activation.h"
#include "ops/internal/takes.h"
#include "ops/internal/window_fields.h"
#include "ops/node_view.h"

namespace sardonyx::ops::internal {

using namespace std::string_view_literals;

struct Conv {
  static constexpr std::string_view name = "Conv";
  static constexpr std::array inputs = {"X"sv,         "W"sv,        "B?"sv,
                                        "residual?"sv, "factors?"sv, "input_factors?"sv};
  static constexpr std::array takes = {Takes::floats, Takes::first,  Takes::first,
                                       Takes::first,  Takes::floats, Takes::float32};
  static constexpr std::array outputs = {"Y"sv, "means?"sv};
  enum Input {
    x,
    w,
    bias,
    residual,       // of Y's shape
    factors,        // constant: one for the weights of each output channel
    input_factors,  // of X's channels for each image, its spatial axes 1; pointwise only
  };
  enum Output {
    y,
    means,  // of Y's images, their spatial axes 1; depthwise only
  };
  static constexpr size_t output_axis = 0;  // of W: output channels
  static constexpr bool takes_residual = true;

  Window window;
  int64_t group = 1;
  bool nhwc = false;        // X, Y and the residual are N x spatial x C
  bool nchw_input = false;  // but X is N x C x spatial (float32, constant weights)
  // n: the channels are those of X seen as [n, C / n], transposed (pointwise, channels last).
  int64_t input_shuffle = 1;
  // The channels of Y are the first of each group, then the second of each, and so on.
  bool shuffles_output = false;
  FusedActivation activation;
  bool residual_last = false;  // the residual is added behind the activation

  kernels::Epilogue epilogue() const {
    kernels::Epilogue made = activation.epilogue();
    made.residual_last = residual_last;
    return made;
  }

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    window_fields(visit, self.window...);
    visit("group", self.group...);
    visit("nhwc", self.nhwc...);
    visit("nchw_input", self.nchw_input...);
    visit("input_shuffle", self.input_shuffle...);
    visit("shuffles_output", self.shuffles_output...);
    FusedActivation::fields(visit, self.activation...);
    visit("residual_last", self.residual_last...);
  }
  bool operator==(const Conv&) const = default;
};

// For what runs as convolutions, or is depthwise with channels last and nothing behind it
// (ops/shared/conv_transpose.h).
struct ConvTranspose {
  static constexpr std::string_view name = "ConvTranspose";
  static constexpr std::array inputs = {"X"sv, "W"sv, "B?"sv, "unused?"sv, "factors?"sv};
  static constexpr std::array takes = {Takes::floats, Takes::first, Takes::first, Takes::anything,
                                       Takes::floats};
  static constexpr std::array outputs = {"Y"sv};
  enum Input {
    x,
    w,
    bias,
    factors = 4,  // as Conv's
  };
  static constexpr size_t output_axis = 1;
  static constexpr bool takes_residual = false;

  Window window;
  int64_t group = 1;
  std::vector<int64_t> output_padding, output_shape;
  bool nhwc = false;  // X and Y are N x spatial x C
  FusedActivation activation;

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    window_fields(visit, self.window...);
    visit("group", self.group...);
    visit("output_padding", self.output_padding...);
    visit("output_shape", self.output_shape...);
    visit("nhwc", self.nhwc...);
    FusedActivation::fields(visit, self.activation...);
  }
  bool operator==(const ConvTranspose&) const = default;
};

struct MatMul {
  static constexpr std::string_view name = "MatMul";
  static constexpr std::array inputs = {"A"sv, "B"sv, "bias?"sv, "residual?"sv};
  static constexpr std::array takes = {Takes::anything, Takes::first};
  static constexpr std::array outputs = {"Y"sv};
  enum Input {
    a,
    b,
    bias,      // one for each column
    residual,  // of Y's shape
  };
  static constexpr bool takes_residual = true;

  // A and B are Transposes of what comes in, unless they are empty.
  std::vector<int64_t> perm_a, perm_b;
  float alpha = 1;  // times the product, before all else
  FusedActivation activation;
  bool residual_last = false;

  kernels::Epilogue epilogue() const {
    kernels::Epilogue made = activation.epilogue();
    made.alpha = alpha;
    made.residual_last = residual_last;
    return made;
  }

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    visit("perm_a", self.perm_a...);
    visit("perm_b", self.perm_b...);
    visit("alpha", self.alpha...);
    FusedActivation::fields(visit, self.activation...);
    visit("residual_last", self.residual_last...);
  }
  bool operator==(const MatMul&) const = default;
};

struct Gemm {
  static constexpr std::string_view name = "Gemm";
  static constexpr std::array inputs = {"A"sv, "B"sv, "C?"sv};
  static constexpr std::array takes = {Takes::anything, Takes::first};
  static constexpr std::array outputs = {"Y"sv};
  enum Input { a, b, c };
  static constexpr bool takes_residual = false;

  float alpha = 1, beta = 1;
  bool trans_a = false, trans_b = false;
  FusedActivation activation;

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    visit("alpha", self.alpha...);
    visit("beta", self.beta...);
    visit("transA", self.trans_a...);
    visit("transB", self.trans_b...);
    FusedActivation::fields(visit, self.activation...);
  }
  bool operator==(const Gemm&) const = default;
};

// What a node says, whether it is the operator of the standard or its internal form. Throw Error
// where an attribute of the standard's is invalid.
Conv conv_of(const NodeView& node);
ConvTranspose conv_transpose_of(const NodeView& node);
MatMul matmul_of(const NodeView& node);
Gemm gemm_of(const NodeView& node);

using Product = std::variant<Conv, ConvTranspose, MatMul, Gemm>;
// The same of whichever of these a node is; nullopt for other operators.
std::optional<Product> product_of(const ir::Node& node);
// Makes the node one of the internal form.
void write(const Product& product, ir::Node& node);
const FusedActivation& activation_of(const Product& product);

}  // namespace sardonyx::ops::internal
