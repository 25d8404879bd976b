// Convolutions with channels last that follow each other, as one node.
#pragma once

#include "ir/dim.h"
#include "ops/internal/activation.h"
#include "ops/internal/takes.h"
#include "ops/internal/window_fields.h"

namespace sardonyx::ops::internal {

struct Conv;
using namespace std::string_view_literals;

// Float32 convolutions over two dimensions, their weights constant, one of which is depthwise.
struct FusedConvChain {
  static constexpr std::string_view name = "FusedConvChain";
  // Of each part: weights, bias?, factors of the weights?; behind them a residual of Y's shape?.
  static constexpr std::array inputs = {"X"sv, "parts..."sv};
  static constexpr std::array takes = {Takes::float32};
  static constexpr std::array outputs = {"Y"sv, "means?"sv};
  enum Input { x };
  enum Output {
    y,
    means,  // of what the depthwise part makes, its spatial axes 1
  };
  static int weights(size_t part) { return 1 + inputs_of_part * static_cast<int>(part); }
  static int bias(size_t part) { return weights(part) + 1; }
  static int factors(size_t part) { return weights(part) + 2; }
  int residual() const { return weights(parts.size()); }

  // A Conv as part of a chain.
  struct Part {
    Window::AutoPad auto_pad = Window::AutoPad::none;
    std::array<int64_t, 2> strides{1, 1}, dilations{1, 1};
    std::array<int64_t, 4> pads{};
    int64_t group = 1;
    int64_t input_shuffle = 1;
    bool shuffles_output = false;
    FusedActivation activation;
    bool residual_last = false;

    Window window() const;
    kernels::Epilogue epilogue() const;
    // The sizes of its output from those of its input, channels last, and of its weights.
    ir::Dims output(const ir::Dims& x, const ir::Dims& w) const;

    template <class Visit, class... Self>
    static void fields(Visit&& visit, Self&... self) {
      visit("auto_pad", self.auto_pad...);
      visit("strides", self.strides...);
      visit("dilations", self.dilations...);
      visit("pads", self.pads...);
      visit("group", self.group...);
      visit("input_shuffle", self.input_shuffle...);
      visit("shuffles_output", self.shuffles_output...);
      FusedActivation::fields(visit, self.activation...);
      visit("residual_last", self.residual_last...);
    }
    bool operator==(const Part&) const = default;
  };

  std::vector<Part> parts;
  int64_t depthwise = 0;  // the part that is

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    visit.list("parts", self.parts...);
    visit.required("depthwise", self.depthwise...);
  }
  bool operator==(const FusedConvChain&) const = default;

 private:
  static constexpr int inputs_of_part = 3;
};

// Nodes of the internal Conv over two dimensions with channels last, each of which alone reads what
// the one before makes, as a chain; the residual is the last one's.
ir::Node make_conv_chain(const std::vector<const ir::Node*>& convolutions, size_t depthwise);

}  // namespace sardonyx::ops::internal
