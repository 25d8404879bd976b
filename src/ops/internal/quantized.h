// Internal operators on quantised values.
#pragma once

#include "ops/internal/activation.h"
#include "ops/internal/takes.h"
#include "ops/internal/window_fields.h"

namespace sardonyx::ops::internal {

using namespace std::string_view_literals;

// Convolution of bytes with channels last and constant weights, to whose bytes others may be added,
// before they are rounded once more.
struct QLinearConv {
  static constexpr std::string_view name = "QLinearConv";
  static constexpr std::array inputs = {
      "x"sv,       "x_scale"sv,      "x_zero_point"sv, "w"sv,      "w_scale"sv, "w_zero_point"sv,
      "y_scale"sv, "y_zero_point"sv, "B?"sv,           "addend?"sv};
  static constexpr std::array takes = {Takes::bytes,   Takes::float32, Takes::bytes,   Takes::bytes,
                                       Takes::float32, Takes::bytes,   Takes::float32, Takes::bytes,
                                       Takes::int32,   Takes::bytes};
  static constexpr std::array outputs = {"y"sv};
  enum Input {
    x,
    x_scale,
    x_zero,
    w,
    w_scale,
    w_zero,
    y_scale,
    y_zero,
    bias,
    addend,  // bytes of y's shape and of the type of what is made of the sum
  };
  // How bytes stand for numbers.
  struct Scale {
    float scale = 1;
    int32_t zero = 0;

    template <class Visit, class... Self>
    static void fields(Visit&& visit, Self&... self) {
      visit("scale", self.scale...);
      visit("zero", self.zero...);
    }
    bool operator==(const Scale&) const = default;
  };
  enum Summand { convolution, added, sum };

  Window window;
  int64_t group = 1;
  std::vector<Scale> scales;  // where there is an addend: by Summand
  bool relu = false;          // of the sum

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    window_fields(visit, self.window...);
    visit("group", self.group...);
    visit.list("summands", self.scales...);
    visit("relu", self.relu...);
  }
  bool operator==(const QLinearConv&) const = default;
};

// The convolution of quantised images with constant weights, and perhaps a bias: float32.
struct QuantizedConv {
  static constexpr std::string_view name = "QuantizedConv";
  static constexpr std::array inputs = {
      "x"sv, "x_scale"sv, "x_zero_point?"sv, "w"sv, "w_scale"sv, "w_zero_point?"sv, "B?"sv};
  static constexpr std::array takes = {Takes::bytes,   Takes::float32, Takes::bytes,  Takes::bytes,
                                       Takes::float32, Takes::bytes,   Takes::float32};
  static constexpr std::array outputs = {"y"sv};
  enum Input {
    x,
    x_scale,
    x_zero,
    w,
    w_scale,  // one, or one for each output channel; as is w_zero
    w_zero,
    bias,  // one for each output channel
  };

  Window window;
  int64_t group = 1;
  bool nhwc = false;           // x and y are N x spatial x C
  FusedActivation activation;  // none, relu or clip

  // Whether the kernel has such an activation.
  static bool takes_activation(kernels::Activation function) {
    using enum kernels::Activation;
    return function == none || function == relu || function == clip;
  }

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    window_fields(visit, self.window...);
    visit("group", self.group...);
    visit("nhwc", self.nhwc...);
    FusedActivation::fields(visit, self.activation...);
  }
  bool operator==(const QuantizedConv&) const = default;
};

// The product of quantised matrices, and perhaps a bias. Float32, where no y_scale quantises it.
struct QuantizedMatMul {
  static constexpr std::string_view name = "QuantizedMatMul";
  static constexpr std::array inputs = {"A"sv,     "a_scale"sv,  "a_zero_point?"sv,
                                        "B"sv,     "b_scale"sv,  "b_zero_point?"sv,
                                        "bias?"sv, "y_scale?"sv, "y_zero_point?"sv};
  static constexpr std::array takes = {Takes::bytes,   Takes::float32, Takes::bytes,
                                       Takes::bytes,   Takes::float32, Takes::bytes,
                                       Takes::float32, Takes::float32, Takes::bytes};
  static constexpr std::array outputs = {"Y"sv};
  enum Input {
    a,
    a_scale,
    a_zero,
    b,
    b_scale,  // one, or one for each column; as are b_zero and bias
    b_zero,
    bias,  // float32
    y_scale,
    y_zero,
  };

  bool trans_b = false;

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    visit("transB", self.trans_b...);
  }
  bool operator==(const QuantizedMatMul&) const = default;
};

}  // namespace sardonyx::ops::internal
