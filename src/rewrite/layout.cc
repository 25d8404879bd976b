#include "rewrite/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/origin.h"
#include "ir/tensor.h"
#include "ir/walk.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/conv_bytes_last.h"
#include "kernels/elementwise/region.h"
#include "ops/families/conv_transpose.h"
#include "ops/node_view.h"
#include "ops/upgrade_context.h"
#include "rewrite/running_statistics.h"

namespace sardonyx::rewrite {
namespace {

// One input, one output of its shape; other inputs are scalars.
const std::set<std::string_view> unary_operators{
    "Abs",   "Celu",     "Ceil",      "Clip",        "Elu",      "Erf",       "Exp",
    "Floor", "Gelu",     "HardSwish", "HardSigmoid", "Identity", "LeakyRelu", "Log",
    "Mish",  "Neg",      "Relu",      "Reciprocal",  "Round",    "Selu",      "Sigmoid",
    "Sign",  "Softplus", "Softsign",  "Sqrt",        "Swish",    "Tanh",      "ThresholdedRelu"};
// Inputs broadcast against each other.
const std::set<std::string_view> broadcasting_operators{"Add", "Div", "Max",   "Mean", "Min",
                                                        "Mul", "Pow", "PRelu", "Sub",  "Sum"};
const std::set<std::string_view> reductions{
    "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "ReduceL1", "ReduceL2", "ReduceSumSquare"};

bool is_byte(ElementType type) { return type == ElementType::int8 || type == ElementType::uint8; }

// What weights are packed from.
bool is_narrow_or_float(ElementType type) {
  return type == ElementType::float32 || type == ElementType::float16 ||
         type == ElementType::bfloat16;
}

constexpr int64_t largest_turned_constant = 1 << 20;  // elements

class Layout {
 public:
  Layout(ir::Graph& graph, const infer::Scope& scope) : graph_(graph), scope_(scope) {}

  void run() {
    count_uses();
    find_wanted();
    std::vector<ir::Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (size_t i = 0; i < nodes.size(); ++i) {
      ir::Node& node = nodes[i];
      if (size_t used = shuffle(nodes, i); used > 0) {
        i += used - 1;
      } else if (!convert(node)) {
        keep(std::move(node));
      }
    }
    for (const ir::ValueInfo& output : graph_.outputs) need_first(output.name);
  }

 private:
  // --- What is known --------------------------------------------------------------------------

  const ir::Dims* shape_of(const std::string& value) const {
    const infer::Known* known = value.empty() ? nullptr : scope_.find(value);
    return known && known->type.is_tensor() && known->type.shape ? &*known->type.shape : nullptr;
  }
  int64_t rank_of(const std::string& value) const {
    const auto* shape = shape_of(value);
    return shape ? static_cast<int64_t>(shape->size()) : -1;
  }
  bool is_image(const std::string& value) const {
    const infer::Known* known = value.empty() ? nullptr : scope_.find(value);
    const int64_t rank = rank_of(value);
    return known && (known->type.element == ElementType::float32 || is_byte(known->type.element)) &&
           rank >= 3 && rank <= 5;
  }
  bool is_float_image(const std::string& value) const {
    return is_image(value) && !is_byte(scope_.find(value)->type.element);
  }
  const Tensor* constant(const std::string& value) const {
    const infer::Known* known = value.empty() ? nullptr : scope_.find(value);
    return known ? known->constant.get() : nullptr;
  }
  std::optional<std::vector<int64_t>> integers(const std::string& value) const {
    const Tensor* tensor = constant(value);
    if (tensor == nullptr || tensor->element_type() != ElementType::int64) return std::nullopt;
    const Tensor held = ir::aligned(*tensor);
    const auto list = held.elements<int64_t>();
    return std::vector<int64_t>(list.begin(), list.end());
  }
  // Made in a region and nowhere else.
  bool is_last(const std::string& value) const { return only_last_.contains(value); }

  void count_uses() {
    const auto use = [&](const std::string& name) { ++uses_[name]; };
    for (const ir::Node& node : graph_.nodes) {
      for (const std::string& input : node.inputs) use(input);
      for_captured(node, use);
    }
    for (const ir::ValueInfo& output : graph_.outputs) use(output.name);
  }
  template <class F>
  static void for_captured(const ir::Node& node, F&& f) {
    ir::for_each_subgraph(node, [&](const ir::Graph& graph, const ir::Attribute&, int) {
      for (const std::string& name : infer::captured_names(graph)) f(name);
    });
  }

  // Whether a node takes images with channels last, or hands on those that something wants so.
  bool wants_last(const ir::Node& node) const {
    const std::string& op = node.op_type;
    if (op == "QLinearConv" || op == "Transpose") return true;
    if (op == "Conv") {
      const Tensor* w = node.inputs.size() > 1 ? constant(node.inputs[1]) : nullptr;
      if (w != nullptr && w->rank() > 1 && w->shape()[1] != 1) return true;
    }
    if (op == "ConvTranspose" && transposed_weights(node) != nullptr) return true;
    return std::ranges::any_of(node.outputs,
                               [&](const std::string& y) { return wanted_last_.contains(y); });
  }
  // From the end on.
  void find_wanted() {
    for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
      if (wants_last(*node)) wanted_last_.insert(node->inputs.begin(), node->inputs.end());
    }
  }

  // --- Values in both layouts -----------------------------------------------------------------

  // Where an axis of the standard's layout lies with channels last.
  static int64_t moved(int64_t axis, int64_t rank) {
    return axis == 0 ? 0 : axis == 1 ? rank - 1 : axis - 1;
  }

  std::string new_name(std::string_view value, std::string_view mark) {
    for (;;) {
      std::string name = fmt::format("{}__{}_{}", value, mark, counter_++);
      if (scope_.find(name) == nullptr) return name;
    }
  }

  void transpose(const std::string& from, std::string to, std::vector<int64_t> perm) {
    ir::Node node;
    node.op_type = "Transpose";
    node.name = to;
    node.origin = "from layout";
    node.is_helper = true;
    node.inputs = {from};
    node.outputs = {std::move(to)};
    node.attributes = {ops::ints_attribute("perm", std::move(perm))};
    graph_.nodes.push_back(std::move(node));
  }

  void need_first(const std::string& value) {
    if (only_last_.erase(value) == 0) return;
    transpose(last_.at(value), value, to_channels_first(rank_of(value)));
  }

  // The name of a value's twin with channels last, made here if need be.
  std::string as_last(const std::string& value) {
    if (const auto found = last_.find(value); found != last_.end()) return found->second;
    if (const Tensor* tensor = constant(value); tensor && tensor->size() == 1) return value;
    std::string twin = new_name(value, "last");
    transpose(value, twin, to_channels_last(rank_of(value)));
    last_[value] = twin;
    return twin;
  }

  // Gives the output of a converted node its twin's name.
  void make_last(std::string& output) {
    if (output.empty()) return;
    std::string twin = new_name(output, "last");
    last_[output] = twin;
    only_last_.insert(output);
    output = std::move(twin);
  }

  std::string add_constant(const Tensor& tensor, std::string_view hint) {
    std::string name = new_name(hint, "layout");
    graph_.initializers.push_back(ir::to_proto(tensor, name));
    return name;
  }
  std::string add_integers(const std::vector<int64_t>& values, std::string_view hint) {
    Tensor tensor(ElementType::int64, {static_cast<int64_t>(values.size())});
    std::ranges::copy(values, tensor.mutable_elements<int64_t>().begin());
    return add_constant(tensor, hint);
  }

  void emit(ir::Node node) {
    if (node.name.empty()) ir::keep_source(node);
    for (std::string& output : node.outputs) make_last(output);
    graph_.nodes.push_back(std::move(node));
  }

  void keep(ir::Node node) {
    for (const std::string& input : node.inputs) need_first(input);
    for_captured(node, [&](const std::string& name) { need_first(name); });
    graph_.nodes.push_back(std::move(node));
  }

  // --- Operators ------------------------------------------------------------------------------

  bool convert(ir::Node& node) {
    if (node.inputs.empty() || node.outputs.empty()) return false;
    const std::string& op = node.op_type;
    const bool standard = node.domain.empty();
    if (op == "Conv" && (standard || node.domain == "sardonyx")) return conv(node);
    if (op == "ConvTranspose" && (standard || node.domain == "sardonyx"))
      return conv_transpose(node);
    if (op == "QLinearConv" && standard) return conv_bytes(node);
    if (op == "Region" && node.domain == "sardonyx") return is_any_last(node) && region(node);
    if (!standard) return false;
    if (op == "Transpose") return turned(node);
    if (!is_any_last(node)) return false;
    if (unary_operators.contains(op)) return unary(node);
    if (op == "QuantizeLinear" || op == "DequantizeLinear") return scaling(node);
    if (broadcasting_operators.contains(op)) return broadcasting(node);
    if (!is_image(node.inputs[0])) return false;
    if (op == "MaxPool" || op == "AveragePool") return pool(node);
    if (op == "GlobalAveragePool") return global_pool(node, "ReduceMean");
    if (op == "GlobalMaxPool") return global_pool(node, "ReduceMax");
    if (op == "LRN") return is_float_image(node.inputs[0]) && internal(node);
    if (op == "InstanceNormalization" || op == "GroupNormalization")
      return is_float_image(node.inputs[0]) && internal(node);
    if (op == "BatchNormalization")
      return is_float_image(node.inputs[0]) && batch_normalization(node);
    if (op == "Concat") return concat(node);
    if (op == "Split" || op == "Softmax" || op == "LogSoftmax") return along_axis(node);
    if (op == "Slice") return slice(node);
    if (op == "Pad") return pad(node);
    if (op == "Resize") return resize(node);
    if (op == "SpaceToDepth") return internal(node);
    if (op == "DepthToSpace") return depth_to_space(node);
    if (reductions.contains(op)) return reduction(node);
    return false;
  }

  bool is_any_last(const ir::Node& node) const {
    return std::ranges::any_of(node.inputs, [&](const std::string& i) { return is_last(i); });
  }

  static int64_t attr_int(const ir::Node& node, std::string_view name, int64_t fallback) {
    const ir::Attribute* a = node.find(name);
    return a && a->i ? *a->i : fallback;
  }

  bool conv(ir::Node& node) {
    const std::string x = node.inputs[0];
    const Tensor* w = node.inputs.size() > 1 ? constant(node.inputs[1]) : nullptr;
    if (!is_float_image(x) || w == nullptr || !is_narrow_or_float(w->element_type()) ||
        w->rank() != rank_of(x) || w->size() == 0 || node.find("channels_last") != nullptr ||
        !(pays(x, w->shape()[0]) || dots(node, *w)) || (!is_last(x) && stays_alone(node, *w)))
      return false;
    const bool residual = node.inputs.size() > 3 && !node.inputs[3].empty();
    if (residual && !is_float_image(node.inputs[3])) return false;
    if (goes_before_resize(node, *w)) return true;
    node.inputs[0] = as_last(x);
    if (residual) node.inputs[3] = as_last(node.inputs[3]);
    return internal_form(node);
  }

  // The constant weights of a ConvTranspose that has a form with channels last.
  const Tensor* transposed_weights(const ir::Node& node) const {
    const Tensor* w = node.inputs.size() > 1 ? constant(node.inputs[1]) : nullptr;
    const ops::NodeView view(node, nullptr);
    const bool any =
        ops::refuses_phases(view, w).empty() || ops::refuses_depthwise(view, w).empty();
    return any ? w : nullptr;
  }

  bool conv_transpose(ir::Node& node) {
    const std::string& x = node.inputs[0];
    const Tensor* w = transposed_weights(node);
    if (!is_float_image(x) || w == nullptr || !is_narrow_or_float(w->element_type()) ||
        w->rank() != rank_of(x) || !pays(x, w->shape()[1] * attr_int(node, "group", 1)))
      return false;
    return internal(node);
  }

  // A border costs two passes over the images: few output channels would not pay for it.
  bool pays(const std::string& x, int64_t channels) const {
    constexpr int64_t least = 8;
    return is_last(x) || channels >= least;
  }

  // Whether it becomes dot products with channels last.
  bool dots(const ir::Node& node, const Tensor& weights) const {
    kernels::ConvShape shape = shape_of_weights(node, weights);
    shape.channels_last = true;
    return kernels::choose_conv(shape).path == kernels::ConvPath::dots_last;
  }

  // Channels, group, kernel, strides and dilations.
  static kernels::ConvShape shape_of_weights(const ir::Node& node, const Tensor& weights) {
    kernels::ConvShape shape;
    shape.rank = static_cast<int>(weights.rank()) - 2;
    shape.group = attr_int(node, "group", 1);
    shape.in_channels = weights.shape()[1] * shape.group;
    shape.out_channels = weights.shape()[0];
    std::copy(weights.shape().begin() + 2, weights.shape().end(), shape.kernel.begin());
    const auto take = [&](std::string_view name, kernels::ConvShape::Dims& to) {
      const ir::Attribute* a = node.find(name);
      if (a != nullptr && a->ints.size() == static_cast<size_t>(shape.rank))
        std::ranges::copy(a->ints, to.begin());
    };
    take("strides", shape.stride);
    take("dilations", shape.dilation);
    return shape;
  }

  // Whether it is a depthwise convolution between planes that planes are as good for: then turning
  // them takes longer than all else.
  bool stays_alone(const ir::Node& node, const Tensor& weights) const {
    const ir::Dims* out = shape_of(node.outputs[0]);
    if (wanted_last_.contains(node.outputs[0]) || weights.rank() != 4 || out == nullptr)
      return false;
    constexpr int64_t wide = 32;  // rows that fill vectors
    const auto width = out->back().value();
    if (!width || *width < wide) return false;
    return kernels::choose_conv(shape_of_weights(node, weights)).path ==
           kernels::ConvPath::depthwise_rows;
  }

  // Of bytes: one group, or one input channel for each output channel.
  bool conv_bytes(ir::Node& node) {
    if (node.inputs.size() < 8) return false;
    const std::string x = node.inputs[0];
    const Tensor *w = constant(node.inputs[3]), *zero = constant(node.inputs[5]);
    if (!is_image(x) || w == nullptr || zero == nullptr || w->rank() != rank_of(x) ||
        w->size() == 0 || (zero->size() != 1 && zero->size() != w->shape()[0]) ||
        !pays(x, w->shape()[0]))
      return false;
    kernels::ConvShape shape;
    shape.rank = static_cast<int>(w->rank()) - 2;
    shape.group = attr_int(node, "group", 1);
    shape.out_channels = w->shape()[0];
    shape.in_channels = w->shape()[1] * shape.group;
    std::copy(w->shape().begin() + 2, w->shape().end(), shape.kernel.begin());
    if (!kernels::conv_bytes_last_applies(shape)) return false;
    return internal(node);
  }

  bool internal_form(ir::Node& node) {
    node.domain = "sardonyx";
    node.attributes.push_back(ops::int_attribute("channels_last", 1));
    emit(std::move(node));
    return true;
  }
  bool internal(ir::Node& node) {
    node.inputs[0] = as_last(node.inputs[0]);
    return internal_form(node);
  }

  bool pool(ir::Node& node) {
    if (node.outputs.size() > 1 && !node.outputs[1].empty()) return false;
    node.outputs.resize(1);
    return internal(node);
  }

  bool global_pool(ir::Node& node, std::string_view reduce) {
    const int64_t rank = rank_of(node.inputs[0]);
    std::vector<int64_t> axes(static_cast<size_t>(rank - 2));
    std::iota(axes.begin(), axes.end(), int64_t{1});
    ir::keep_source(node);
    node.op_type = reduce;
    node.inputs = {as_last(node.inputs[0]), add_integers(axes, "axes")};
    node.attributes = {ops::int_attribute("keepdims", 1)};
    emit(std::move(node));
    return true;
  }

  bool unary(ir::Node& node) {
    if (!is_last(node.inputs[0])) return false;
    if (joins_scale_shift(node)) return true;
    node.inputs[0] = as_last(node.inputs[0]);
    emit(std::move(node));
    return true;
  }

  // Quantised or back, by one scale.
  bool scaling(ir::Node& node) {
    if (!is_last(node.inputs[0]) || node.inputs.size() < 2 || attr_int(node, "block_size", 0) != 0)
      return false;
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      if (!node.inputs[i].empty() && rank_of(node.inputs[i]) != 0) return false;
    }
    node.inputs[0] = as_last(node.inputs[0]);
    emit(std::move(node));
    return true;
  }

  // Inputs of one shape, or of one element.
  bool region(ir::Node& node) {
    if (!is_image(node.outputs[0])) return false;
    const int64_t rank = rank_of(node.outputs[0]);
    const std::vector<int64_t>& extents = node.find("extents")->ints;
    constexpr auto whole = static_cast<int64_t>(kernels::RegionExtent::whole);
    constexpr auto single = static_cast<int64_t>(kernels::RegionExtent::single);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (extents[i] != single && (extents[i] != whole || rank_of(node.inputs[i]) != rank))
        return false;
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (extents[i] == whole)
        node.inputs[i] = as_last(node.inputs[i]);
      else
        need_first(node.inputs[i]);
    }
    emit(std::move(node));
    return true;
  }

  // An operand of a broadcast against images of that rank, with channels last; nullopt where that
  // takes too much.
  bool can_broadcast(const std::string& value, int64_t rank) const {
    if (value.empty()) return false;
    const int64_t own = rank_of(value);
    if (own < 0 || own > rank) return false;
    if (own == rank || own == 0) return true;
    const Tensor* tensor = constant(value);
    return tensor != nullptr && tensor->size() <= largest_turned_constant;
  }
  std::string broadcast_operand(const std::string& value, int64_t rank) {
    const Tensor* tensor = constant(value);
    if (rank_of(value) == 0 || (tensor && tensor->size() == 1)) return value;
    if (tensor == nullptr || tensor->size() > largest_turned_constant) return as_last(value);
    if (const auto found = last_.find(value); found != last_.end()) return found->second;
    // A constant of one value for each channel is a vector then; of any other shape it is turned.
    Shape shape(static_cast<size_t>(rank - tensor->rank()), 1);
    shape.insert(shape.end(), tensor->shape().begin(), tensor->shape().end());
    const Tensor held = ir::aligned(*tensor);
    if (shape[1] == tensor->size()) {
      return last_[value] = add_constant(held.reshaped({tensor->size()}), value);
    }
    const std::string full = add_constant(held.reshaped(shape), value);
    std::string twin = new_name(value, "last");
    transpose(full, twin, to_channels_last(rank));
    return last_[value] = twin;
  }

  bool broadcasting(ir::Node& node) {
    const int64_t rank = rank_of(node.outputs[0]);
    if (!is_image(node.outputs[0])) return false;
    for (const std::string& input : node.inputs) {
      if (!can_broadcast(input, rank)) return false;
    }
    for (std::string& input : node.inputs) input = broadcast_operand(input, rank);
    emit(std::move(node));
    return true;
  }

  // Normalisation by running statistics is a factor and a term for each channel.
  bool batch_normalization(ir::Node& node) {
    const auto channels =
        running_statistics(node, [&](const std::string& name) { return constant(name); });
    if (!channels) return false;
    ir::keep_source(node);
    node.op_type = "ScaleShift";
    node.domain = "sardonyx";
    node.inputs = {as_last(node.inputs[0]), add_constant(channels->factors, "factors"),
                   add_constant(channels->terms, "terms")};
    node.outputs.resize(1);
    node.attributes.clear();
    emit(std::move(node));
    return true;
  }

  // An activation right after what scales channels, of which nothing else reads the output.
  bool joins_scale_shift(ir::Node& node) {
    const bool silu = node.op_type == "Swish" && node.find("alpha") == nullptr;
    if (node.op_type != "Relu" && !silu) return false;
    ir::Node& before = graph_.nodes.back();
    const std::string& x = node.inputs[0];
    const bool scales = before.domain == "sardonyx" && (before.op_type == "ScaleShift" ||
                                                        before.op_type == "InstanceNormalization" ||
                                                        before.op_type == "GroupNormalization");
    if (!scales || uses_[x] != 1 || before.outputs[0] != last_.at(x) ||
        before.find("activation") != nullptr)
      return false;
    only_last_.erase(x);
    before.attributes.push_back(ops::string_attribute("activation", silu ? "silu" : "relu"));
    before.outputs[0] = node.outputs[0];
    make_last(before.outputs[0]);
    const ir::Node scale_shift = before;
    ir::set_sources(before, std::array{&scale_shift, &std::as_const(node)});
    return true;
  }

  bool concat(ir::Node& node) {
    const int64_t rank = rank_of(node.outputs[0]);
    for (const std::string& input : node.inputs) {
      if (rank_of(input) != rank || constant(input) != nullptr) return false;
    }
    if (!rename_axis(node, rank)) return false;
    for (std::string& input : node.inputs) input = as_last(input);
    emit(std::move(node));
    return true;
  }

  bool rename_axis(ir::Node& node, int64_t rank) {
    int64_t axis = attr_int(node, "axis", node.op_type == "Split" ? 0 : -1);
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank) return false;
    std::erase_if(node.attributes, [](const ir::Attribute& a) { return a.name == "axis"; });
    node.attributes.push_back(ops::int_attribute("axis", moved(axis, rank)));
    return true;
  }

  bool along_axis(ir::Node& node) {
    if (!rename_axis(node, rank_of(node.inputs[0]))) return false;
    node.inputs[0] = as_last(node.inputs[0]);
    emit(std::move(node));
    return true;
  }

  // The list of axes in an input, moved; nullopt where it is no constant.
  std::optional<std::vector<int64_t>> moved_axes(const ir::Node& node, size_t input, int64_t rank,
                                                 size_t all) const {
    std::vector<int64_t> axes(all);
    if (input < node.inputs.size() && !node.inputs[input].empty()) {
      const auto given = integers(node.inputs[input]);
      if (!given) return std::nullopt;
      axes = *given;
    } else {
      std::iota(axes.begin(), axes.end(), int64_t{0});
    }
    for (int64_t& axis : axes) {
      axis += axis < 0 ? rank : 0;
      if (axis < 0 || axis >= rank) return std::nullopt;
      axis = moved(axis, rank);
    }
    return axes;
  }

  bool slice(ir::Node& node) {
    const int64_t rank = rank_of(node.inputs[0]);
    const auto starts = node.inputs.size() > 2 ? integers(node.inputs[1]) : std::nullopt;
    if (!starts) return false;
    const auto axes = moved_axes(node, 3, rank, starts->size());
    if (!axes) return false;
    node.inputs.resize(std::max<size_t>(node.inputs.size(), 4));
    node.inputs[0] = as_last(node.inputs[0]);
    node.inputs[3] = add_integers(*axes, "axes");
    emit(std::move(node));
    return true;
  }

  bool pad(ir::Node& node) {
    const int64_t rank = rank_of(node.inputs[0]);
    const auto pads = node.inputs.size() > 1 ? integers(node.inputs[1]) : std::nullopt;
    if (!pads) return false;
    const auto axes = moved_axes(node, 3, rank, pads->size() / 2);
    if (!axes) return false;
    node.inputs.resize(4);
    node.inputs[0] = as_last(node.inputs[0]);
    node.inputs[3] = add_integers(*axes, "axes");
    emit(std::move(node));
    return true;
  }

  bool depth_to_space(ir::Node& node) {
    const ir::Attribute* mode = node.find("mode");
    if (mode != nullptr && mode->s && *mode->s == "CRD" && puts_blocks_first(node)) {
      std::erase_if(node.attributes, [](const ir::Attribute& a) { return a.name == "mode"; });
    }
    return internal(node);
  }

  // Reorders the output channels of the convolution right before, of which nothing else reads the
  // output, from [channel, block, block] to [block, block, channel]: pixels then move as a whole.
  bool puts_blocks_first(const ir::Node& node) {
    const std::string& x = node.inputs[0];
    if (!is_last(x) || uses_[x] != 1) return false;
    ir::Node& conv = graph_.nodes.back();
    const auto absent = [&](size_t i) { return conv.inputs.size() <= i || conv.inputs[i].empty(); };
    const Tensor* weights = conv.inputs.size() > 1 ? constant(conv.inputs[1]) : nullptr;
    const Tensor* bias = absent(2) ? nullptr : constant(conv.inputs[2]);
    const int64_t block = attr_int(node, "blocksize", 0);
    if (conv.op_type != "Conv" || conv.domain != "sardonyx" || conv.outputs[0] != last_.at(x) ||
        weights == nullptr || attr_int(conv, "group", 1) != 1 || !(absent(2) || bias != nullptr) ||
        !absent(3) || !absent(4) || block < 2 || block > weights->shape()[0] ||
        weights->shape()[0] % (block * block) != 0)
      return false;
    conv.inputs[1] = add_constant(blocks_first(*weights, block * block), conv.inputs[1]);
    if (bias != nullptr)
      conv.inputs[2] = add_constant(blocks_first(*bias, block * block), conv.inputs[2]);
    return true;
  }

  // Rows [n, blocks] as [blocks, n].
  static Tensor blocks_first(const Tensor& rows, int64_t blocks) {
    const Tensor held = ir::aligned(rows);
    Tensor result(held.element_type(), held.shape());
    const int64_t n = held.shape()[0] / blocks;
    const auto bytes = static_cast<int64_t>(held.byte_size()) / held.shape()[0];
    const auto* from = static_cast<const std::byte*>(held.data());
    auto* to = static_cast<std::byte*>(result.mutable_data());
    for (int64_t block = 0; block < blocks; ++block)
      for (int64_t i = 0; i < n; ++i)
        to = std::copy_n(from + (i * blocks + block) * bytes, bytes, to);
    return result;
  }

  // Of an image that goes on with channels last; another is mostly smaller before it than behind.
  // Its other inputs speak of the axes in the order of the attribute.
  bool resize(ir::Node& node) {
    if (!is_last(node.inputs[0]) || !wanted_last_.contains(node.outputs[0])) return false;
    const int64_t rank = rank_of(node.inputs[0]);
    std::vector<int64_t> axes(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), int64_t{0});
    if (const ir::Attribute* given = node.find("axes"))
      axes.assign(given->ints.begin(), given->ints.end());
    for (int64_t& axis : axes) {
      axis += axis < 0 ? rank : 0;
      if (axis < 0 || axis >= rank) return false;
    }
    if (enlarges_planes(node, axes)) enlarged_.insert(node.outputs[0]);
    for (int64_t& axis : axes) axis = moved(axis, rank);
    std::erase_if(node.attributes, [](const ir::Attribute& a) { return a.name == "axes"; });
    node.attributes.push_back(ops::ints_attribute("axes", std::move(axes)));
    node.inputs[0] = as_last(node.inputs[0]);
    emit(std::move(node));
    return true;
  }

  // Whether constant scales make planes larger, and each pixel of them a mean of pixels. Scales of
  // batches and channels are left out then.
  bool enlarges_planes(ir::Node& node, std::vector<int64_t>& axes) {
    const auto word = [&](std::string_view name, std::string_view fallback) {
      const ir::Attribute* a = node.find(name);
      return a != nullptr && a->s ? std::string_view(*a->s) : fallback;
    };
    const std::string_view mode = word("mode", "nearest");
    const Tensor* given = node.inputs.size() == 3 ? constant(node.inputs[2]) : nullptr;
    if ((mode != "nearest" && mode != "linear") || given == nullptr ||
        word("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize" ||
        given->element_type() != ElementType::float32 || given->rank() != 1 ||
        given->size() != static_cast<int64_t>(axes.size()))
      return false;
    const Tensor held = ir::aligned(*given);
    std::vector<int64_t> planes;
    std::vector<float> scales;
    double growth = 1;
    for (size_t i = 0; i < axes.size(); ++i) {
      const float scale = held.elements<float>()[i];
      if (scale < 1 || (axes[i] < 2 && scale != 1)) return false;
      if (axes[i] < 2) continue;
      planes.push_back(axes[i]), scales.push_back(scale);
      growth *= scale;
    }
    if (!(growth >= 2)) return false;
    axes = std::move(planes);
    node.inputs[1].clear();
    node.inputs[2] = add_constant(Tensor::of<float>(scales, {static_cast<int64_t>(scales.size())}),
                                  node.inputs[2]);
    return true;
  }

  // A pointwise convolution right behind what enlarges planes goes before it, where there are fewer
  // pixels: nearest pixels stay what they are, and means of pixels as long as nothing but the
  // convolution is taken of them.
  bool goes_before_resize(ir::Node& conv, const Tensor& weights) {
    const std::string x = conv.inputs[0];
    if (!enlarged_.contains(x) || !is_last(x) || uses_[x] != 1 || conv.outputs.size() != 1 ||
        graph_.nodes.back().outputs[0] != last_.at(x) || !keeps_pixels(conv, weights))
      return false;
    const ir::Attribute* mode = graph_.nodes.back().find("mode");
    const bool nearest = mode == nullptr || !mode->s || *mode->s == "nearest";
    if (!nearest && conv.find("activation") != nullptr) return false;
    if (conv.name.empty()) ir::keep_source(conv);
    ir::Node resize = std::move(graph_.nodes.back());
    graph_.nodes.pop_back();
    only_last_.erase(x);
    last_.erase(x);
    conv.inputs[0] = resize.inputs[0];
    resize.inputs[0] = new_name(conv.outputs[0], "small");
    resize.outputs[0] = std::exchange(conv.outputs[0], resize.inputs[0]);
    conv.domain = "sardonyx";
    conv.attributes.push_back(ops::int_attribute("channels_last", 1));
    graph_.nodes.push_back(std::move(conv));
    emit(std::move(resize));
    return true;
  }

  // One tap, no strides or pads, and no other image is added.
  static bool keeps_pixels(const ir::Node& conv, const Tensor& weights) {
    const auto all = [&](std::string_view name, int64_t wanted) {
      const ir::Attribute* a = conv.find(name);
      return a == nullptr || std::ranges::all_of(a->ints, [&](int64_t n) { return n == wanted; });
    };
    return std::all_of(weights.shape().begin() + 2, weights.shape().end(),
                       [](int64_t n) { return n == 1; }) &&
           all("strides", 1) && all("pads", 0) &&
           (conv.inputs.size() <= 3 || conv.inputs[3].empty());
  }

  bool reduction(ir::Node& node) {
    const int64_t rank = rank_of(node.inputs[0]);
    if (node.inputs.size() < 2 || node.inputs[1].empty()) return false;
    auto axes = moved_axes(node, 1, rank, 0);
    if (!axes || axes->empty()) return false;
    std::ranges::sort(*axes);
    const bool keeps = attr_int(node, "keepdims", 1) != 0;
    // Without the spatial axes both layouts are one.
    std::vector<int64_t> spatial(static_cast<size_t>(rank - 2));
    std::iota(spatial.begin(), spatial.end(), int64_t{1});
    if (!keeps && *axes != spatial) return false;
    node.inputs[0] = as_last(node.inputs[0]);
    node.inputs[1] = add_integers(*axes, "axes");
    if (keeps) {
      emit(std::move(node));
    } else {
      graph_.nodes.push_back(std::move(node));
    }
    return true;
  }

  // A Transpose of what is in the other layout anyway, or one that makes it.
  bool turned(ir::Node& node) {
    const ir::Attribute* given = node.find("perm");
    const int64_t rank = rank_of(node.inputs[0]);
    if (given == nullptr || rank < 3 || static_cast<int64_t>(given->ints.size()) != rank)
      return false;
    std::vector<int64_t> perm(given->ints.begin(), given->ints.end());
    if (!std::ranges::all_of(perm, [&](int64_t axis) { return axis >= 0 && axis < rank; }))
      return false;
    if (is_last(node.inputs[0])) {
      for (int64_t& axis : perm) axis = moved(axis, rank);
      node.inputs[0] = last_.at(node.inputs[0]);
      if (std::ranges::is_sorted(perm)) {
        ir::keep_source(node);
        node.op_type = "Identity";
        node.attributes.clear();
      } else {
        node.attributes = {ops::ints_attribute("perm", perm)};
      }
      graph_.nodes.push_back(std::move(node));
      return true;
    }
    // What it was made from is its twin.
    if (is_image(node.outputs[0]) && perm == to_channels_first(rank)) {
      need_first(node.inputs[0]);
      last_[node.outputs[0]] = node.inputs[0];
      only_last_.insert(node.outputs[0]);
      return true;
    }
    return false;
  }

  // Channels dealt out anew: Reshape to groups, Transpose of the two, Reshape back. Returns how
  // many nodes it took.
  size_t shuffle(std::vector<ir::Node>& nodes, size_t i) {
    if (i + 2 >= nodes.size() || nodes[i].op_type != "Reshape" || !nodes[i].domain.empty() ||
        !is_last(nodes[i].inputs[0]) || rank_of(nodes[i].inputs[0]) != 4)
      return 0;
    ir::Node &split = nodes[i], &swap = nodes[i + 1], &join = nodes[i + 2];
    const std::string x = split.inputs[0];
    const auto follows = [&](const ir::Node& node, std::string_view op, const ir::Node& before) {
      return node.op_type == op && node.domain.empty() && node.inputs[0] == before.outputs[0] &&
             uses_[before.outputs[0]] == 1;
    };
    if (!follows(swap, "Transpose", split) || !follows(join, "Reshape", swap)) return 0;
    const auto *groups = shape_of(split.outputs[0]), *before = shape_of(x),
               *after = shape_of(join.outputs[0]);
    const ir::Attribute* perm = swap.find("perm");
    if (groups == nullptr || before == nullptr || after == nullptr || groups->size() != 5 ||
        *before != *after || perm == nullptr)
      return 0;
    const std::vector<int64_t> order(perm->ints.begin(), perm->ints.end());
    const auto group = (*groups)[1].value(), each = (*groups)[2].value();
    if (order != std::vector<int64_t>{0, 2, 1, 3, 4} || !group || !each ||
        (*groups)[0] != (*before)[0] || (*groups)[3] != (*before)[2] ||
        (*groups)[4] != (*before)[3])
      return 0;
    split.inputs = {as_last(x), add_integers({0, 0, 0, *group, *each}, "groups")};
    split.attributes.clear();
    swap.attributes = {ops::ints_attribute("perm", {0, 1, 2, 4, 3})};
    join.inputs[1] = add_integers({0, 0, 0, *group * *each}, "channels");
    join.attributes.clear();
    graph_.nodes.push_back(std::move(split));
    graph_.nodes.push_back(std::move(swap));
    emit(std::move(join));
    return 3;
  }

  ir::Graph& graph_;
  const infer::Scope& scope_;
  std::unordered_map<std::string, std::string> last_;  // twins with channels last
  std::set<std::string> only_last_;                    // values of which only the twin exists
  std::set<std::string> wanted_last_;  // what something after it takes with channels last
  std::set<std::string> enlarged_;     // by constant scales of their planes
  std::unordered_map<std::string, int> uses_;
  int64_t counter_ = 0;
};

}  // namespace

std::vector<int64_t> to_channels_last(int64_t rank) {
  std::vector<int64_t> perm{0};
  for (int64_t i = 2; i < rank; ++i) perm.push_back(i);
  perm.push_back(1);
  return perm;
}

std::vector<int64_t> to_channels_first(int64_t rank) {
  std::vector<int64_t> perm{0, rank - 1};
  for (int64_t i = 1; i + 1 < rank; ++i) perm.push_back(i);
  return perm;
}

void lay_out(ir::Graph& graph, const infer::Scope& scope) { Layout(graph, scope).run(); }

}  // namespace sardonyx::rewrite
