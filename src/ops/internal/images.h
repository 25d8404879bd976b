// Internal operators on images with channels last: N x spatial x C. Conv and ConvTranspose are in
// ops/internal/products.h.
#pragma once

#include "ops/internal/activation.h"
#include "ops/internal/takes.h"
#include "ops/internal/window_fields.h"
#include "ops/node_view.h"

namespace sardonyx::ops::internal {

using namespace std::string_view_literals;

struct AveragePool {
  static constexpr std::string_view name = "AveragePool";
  static constexpr std::array inputs = {"X"sv};
  static constexpr std::array takes = {Takes::float32};
  static constexpr std::array outputs = {"Y"sv};

  Window window = pool_window();
  bool count_include_pad = false;

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    window_fields(visit, self.window...);
    visit("ceil_mode", self.window.ceil_mode...);
    visit("count_include_pad", self.count_include_pad...);
  }
  bool operator==(const AveragePool&) const = default;
};

struct MaxPool {
  static constexpr std::string_view name = "MaxPool";
  static constexpr std::array inputs = {"X"sv};
  static constexpr std::array takes = {Takes::float32_or_bytes};
  static constexpr std::array outputs = {"Y"sv};

  Window window = pool_window();

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    window_fields(visit, self.window...);
    visit("ceil_mode", self.window.ceil_mode...);
  }
  bool operator==(const MaxPool&) const = default;
};

// X times a factor plus a term for each channel, then an activation.
struct ScaleShift {
  static constexpr std::string_view name = "ScaleShift";
  static constexpr std::array inputs = {"X"sv, "factors"sv, "terms"sv};
  static constexpr std::array takes = {Takes::float32};
  static constexpr std::array outputs = {"Y"sv};
  enum Input { x, factors, terms };

  FusedActivation activation;

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    FusedActivation::fields(visit, self.activation...);
  }
  bool operator==(const ScaleShift&) const = default;
};

struct InstanceNormalization {
  static constexpr std::string_view name = "InstanceNormalization";
  static constexpr std::array inputs = {"X"sv, "scale"sv, "B"sv};
  static constexpr std::array takes = {Takes::float32};
  static constexpr std::array outputs = {"Y"sv};
  enum Input { x, scale, bias };

  float epsilon = 1e-5f;
  FusedActivation activation;

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    visit("epsilon", self.epsilon...);
    FusedActivation::fields(visit, self.activation...);
  }
  bool operator==(const InstanceNormalization&) const = default;
};

struct GroupNormalization {
  static constexpr std::string_view name = "GroupNormalization";
  static constexpr std::array inputs = {"X"sv, "scale"sv, "bias"sv};
  static constexpr std::array takes = {Takes::float32};
  static constexpr std::array outputs = {"Y"sv};
  enum Input { x, scale, bias };

  int64_t num_groups = 0;
  float epsilon = 1e-5f;
  FusedActivation activation;

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    visit.required("num_groups", self.num_groups...);
    visit("epsilon", self.epsilon...);
    FusedActivation::fields(visit, self.activation...);
  }
  bool operator==(const GroupNormalization&) const = default;
};

struct LRN {
  static constexpr std::string_view name = "LRN";
  static constexpr std::array inputs = {"X"sv};
  static constexpr std::array takes = {Takes::float32};
  static constexpr std::array outputs = {"Y"sv};

  int64_t size = 0;
  float alpha = 1e-4f, beta = 0.75f, bias = 1;

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    visit.required("size", self.size...);
    visit("alpha", self.alpha...);
    visit("beta", self.beta...);
    visit("bias", self.bias...);
  }
  bool operator==(const LRN&) const = default;
};

// How channels are counted that become a block of pixels: blocks first or channels first.
enum class DepthMode { DCR, CRD };
template <>
struct EnumNames<DepthMode> {
  static constexpr std::pair<std::string_view, DepthMode> list[] = {{"DCR", DepthMode::DCR},
                                                                    {"CRD", DepthMode::CRD}};
};

struct DepthToSpace {
  static constexpr std::string_view name = "DepthToSpace";
  static constexpr std::array inputs = {"input"sv};
  static constexpr std::array takes = {Takes::anything};
  static constexpr std::array outputs = {"output"sv};

  int64_t blocksize = 0;
  DepthMode mode = DepthMode::DCR;

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    visit.required("blocksize", self.blocksize...);
    visit("mode", self.mode...);
  }
  bool operator==(const DepthToSpace&) const = default;
};

struct SpaceToDepth {
  static constexpr std::string_view name = "SpaceToDepth";
  static constexpr std::array inputs = {"input"sv};
  static constexpr std::array takes = {Takes::anything};
  static constexpr std::array outputs = {"output"sv};

  int64_t blocksize = 0;
  DepthMode mode = DepthMode::DCR;

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    visit.required("blocksize", self.blocksize...);
    visit("mode", self.mode...);
  }
  bool operator==(const SpaceToDepth&) const = default;
};

// float32 images joined along their channels, which are then interleaved: seen as
// [groups, C / groups], transposed.
struct InterleavedConcat {
  static constexpr std::string_view name = "InterleavedConcat";
  static constexpr std::array inputs = {"images..."sv};
  static constexpr std::array takes = {Takes::float32};
  static constexpr std::array outputs = {"Y"sv};
  static constexpr size_t max_images = 16;

  int64_t groups = 0;  // 2, 4 or 8
  bool relu = false;   // follows

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    visit.required("groups", self.groups...);
    visit("relu", self.relu...);
  }
  bool operator==(const InterleavedConcat&) const = default;
};

// What a node says, whether it is the operator of the standard or its internal form. Throw Error
// where an attribute of the standard's is invalid.
AveragePool average_pool_of(const NodeView& node);
MaxPool max_pool_of(const NodeView& node);
InstanceNormalization instance_normalization_of(const NodeView& node);
GroupNormalization group_normalization_of(const NodeView& node);
LRN lrn_of(const NodeView& node);
DepthToSpace depth_to_space_of(const NodeView& node);
SpaceToDepth space_to_depth_of(const NodeView& node);

// Makes a node of the standard one of the internal form of its operator, which works on images with
// channels last; its inputs stay. False, and nothing done, where there is no such form in this
// header.
bool make_nhwc_form(ir::Node& node);

// The activation of an internal node that scales channels: ScaleShift, InstanceNormalization or
// GroupNormalization; nullopt for others. And the node with that activation.
std::optional<FusedActivation> activation_after_scaling(const ir::Node& node);
void set_activation_after_scaling(ir::Node& node, const FusedActivation& activation);

}  // namespace sardonyx::ops::internal
