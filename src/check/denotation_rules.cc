// Rules of denotations: operators that reorder, drop or create axes carry what the axes mean along,
// and those that expect a layout are given it.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>

#include "check/context.h"
#include "check/operator_groups.h"
#include "check/scopes.h"

namespace sardonyx::check {
namespace {

// What each axis of a value means; "" where nothing says so.
using Layout = std::vector<std::string_view>;

// The outputs have the axes of the first input.
constexpr auto like_first = std::to_array<std::string_view>({"Abs",
                                                             "Acos",
                                                             "Acosh",
                                                             "Asin",
                                                             "Asinh",
                                                             "Atan",
                                                             "Atanh",
                                                             "BatchNormalization",
                                                             "Bernoulli",
                                                             "BitCast",
                                                             "BitwiseNot",
                                                             "Cast",
                                                             "CastLike",
                                                             "Ceil",
                                                             "Celu",
                                                             "Clip",
                                                             "Concat",
                                                             "Cos",
                                                             "Cosh",
                                                             "CumProd",
                                                             "CumSum",
                                                             "DequantizeLinear",
                                                             "Dropout",
                                                             "Elu",
                                                             "Erf",
                                                             "Exp",
                                                             "Floor",
                                                             "Gelu",
                                                             "GroupNormalization",
                                                             "HardSigmoid",
                                                             "HardSwish",
                                                             "Hardmax",
                                                             "Identity",
                                                             "InstanceNormalization",
                                                             "IsInf",
                                                             "IsNaN",
                                                             "LRN",
                                                             "LayerNormalization",
                                                             "LeakyRelu",
                                                             "Log",
                                                             "LogSoftmax",
                                                             "LpNormalization",
                                                             "MeanVarianceNormalization",
                                                             "Mish",
                                                             "Neg",
                                                             "Not",
                                                             "Pad",
                                                             "QuantizeLinear",
                                                             "RMSNormalization",
                                                             "Reciprocal",
                                                             "Relu",
                                                             "Resize",
                                                             "ReverseSequence",
                                                             "Round",
                                                             "ScatterElements",
                                                             "ScatterND",
                                                             "Selu",
                                                             "Shrink",
                                                             "Sigmoid",
                                                             "Sign",
                                                             "Sin",
                                                             "Sinh",
                                                             "Slice",
                                                             "Softmax",
                                                             "Softplus",
                                                             "Softsign",
                                                             "Split",
                                                             "Sqrt",
                                                             "Swish",
                                                             "Tan",
                                                             "Tanh",
                                                             "ThresholdedRelu",
                                                             "Tile",
                                                             "TopK",
                                                             "Trilu",
                                                             "Upsample"});

// The first input is batch, channel, and then axes in space or time; the output is, too.
constexpr auto image_shaped = std::to_array<std::string_view>(
    {"AveragePool", "BatchNormalization", "Conv", "ConvInteger", "ConvTranspose", "DeformConv",
     "DepthToSpace", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "GridSample",
     "GroupNormalization", "InstanceNormalization", "LRN", "LpPool", "MaxPool", "MaxUnpool",
     "QLinearConv", "SpaceToDepth"});

constexpr auto arg_reductions = std::to_array<std::string_view>({"ArgMax", "ArgMin"});

// The index of the filter among the inputs.
std::optional<size_t> filter_input(std::string_view op_type) {
  if (op_type == "Conv" || op_type == "ConvInteger" || op_type == "ConvTranspose" ||
      op_type == "DeformConv") {
    return 1;
  }
  if (op_type == "QLinearConv") return 3;
  return std::nullopt;
}

bool is_reduction(std::string_view op_type) {
  return op_type.starts_with("Reduce") || is_one_of(op_type, arg_reductions);
}

// The elements of a constant of int64; nothing where they are elsewhere.
std::optional<std::vector<int64_t>> integers_of(const ir::TensorProto& tensor) {
  if (tensor.element_type() != ElementType::int64 || tensor.is_external()) return std::nullopt;
  if (!tensor.has_raw_data) return tensor.int64_data;
  const auto bytes = tensor.raw_data.text();
  std::vector<int64_t> values(bytes.size() / sizeof(int64_t));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(int64_t));
  return values;
}

int64_t int_attribute(const ir::Node& node, std::string_view name, int64_t otherwise) {
  const ir::Attribute* attribute = node.find(name);
  return attribute && attribute->i ? *attribute->i : otherwise;
}

bool says_something(const Layout& layout) {
  return std::ranges::any_of(layout, [](std::string_view text) { return !text.empty(); });
}

class DenotationPass {
 public:
  explicit DenotationPass(Context& context) : context_(context) {}

  ir::WalkCallbacks callbacks() {
    return {[this](const ir::WalkPlace& place) { return enter(place); },
            [this](const ir::WalkPlace&) { leave(); },
            [this](const ir::WalkPlace& place, const ir::Node& node, size_t index) {
              this->node({.graph = &place, .node = &node, .node_index = index});
            }};
  }

 private:
  bool enter(const ir::WalkPlace& place);
  void leave();
  void node(const Where& where);

  void declare(const ir::ValueInfo& info);
  void give(const Where& where, const std::string& name, const Layout& given);
  const Layout* input(const ir::Node& node, size_t index) const;
  // Constant axes: an attribute or the input with this index; nothing where they are not known.
  std::optional<std::vector<int64_t>> axes_of(const ir::Node& node, size_t index) const;

  void expect(const Where& where, const std::string& name, const Layout& found,
              const Layout& expected, bool time_is_feature);
  void expect_layouts(const Where& where);

  std::optional<Layout> result(const Where& where);
  std::optional<Layout> of_broadcast(const Where& where);
  std::optional<Layout> of_transpose(const ir::Node& node, const Layout& from) const;
  std::optional<Layout> of_reduction(const ir::Node& node, const Layout& from) const;
  std::optional<Layout> of_squeeze(const ir::Node& node, const Layout& from) const;
  std::optional<Layout> of_unsqueeze(const ir::Node& node, const Layout& from) const;
  std::optional<Layout> of_convolution(const Layout& from) const;
  std::optional<Layout> of_product(const ir::Node& node) const;

  Context& context_;
  Scopes<Layout> layouts_;
  Scopes<std::vector<int64_t>> constants_;
  std::unordered_map<const ir::Graph*, int> visits_;
};

void DenotationPass::declare(const ir::ValueInfo& info) {
  if (!info.type || !info.type->shape) return;
  Layout layout;
  for (const ir::Dimension& dim : info.type->shape->dims) layout.push_back(dim.denotation);
  layouts_.add(info.name, std::move(layout));
}

bool DenotationPass::enter(const ir::WalkPlace& place) {
  if (place.depth > max_graph_depth || (place.graph && ++visits_[place.graph] > max_visits))
    return false;
  layouts_.enter();
  constants_.enter();
  const auto all = [&](const std::vector<ir::ValueInfo>& infos) {
    for (const ir::ValueInfo& info : infos) declare(info);
  };
  if (place.graph) {
    all(place.graph->inputs);
    all(place.graph->outputs);
    all(place.graph->value_info);
    for (const ir::TensorProto& tensor : place.graph->initializers) {
      if (tensor.dims.size() <= 64) layouts_.add(tensor.name, Layout(tensor.dims.size()));
      if (tensor.dims.size() > 1 || tensor.raw_data.size() > 1024) continue;
      if (auto values = integers_of(tensor)) constants_.add(tensor.name, std::move(*values));
    }
  } else {
    all(place.function->value_info);
  }
  return true;
}

void DenotationPass::leave() {
  layouts_.leave();
  constants_.leave();
}

const Layout* DenotationPass::input(const ir::Node& node, size_t index) const {
  return index < node.inputs.size() ? layouts_.find(node.inputs[index]) : nullptr;
}

std::optional<std::vector<int64_t>> DenotationPass::axes_of(const ir::Node& node,
                                                            size_t index) const {
  if (const ir::Attribute* axes = node.find("axes")) {
    if (!axes->ref_attr_name.empty()) return std::nullopt;
    return axes->ints;
  }
  if (index >= node.inputs.size() || node.inputs[index].empty()) return std::vector<int64_t>();
  const std::vector<int64_t>* found = constants_.find(node.inputs[index]);
  return found ? std::optional(*found) : std::nullopt;
}

// ---- what operators expect

void DenotationPass::expect(const Where& where, const std::string& name, const Layout& found,
                            const Layout& expected, bool time_is_feature) {
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    if (found[i].empty() || expected[i].empty() || found[i] == expected[i]) continue;
    if (time_is_feature && expected[i] == "DATA_FEATURE" && found[i] == "DATA_TIME") continue;
    context_.report("SH-15", where.in(fmt::format("input '{}'", name)),
                    "transpose it, or correct the denotation",
                    "{} expects {} as dimension {}; found {}", where.node->op_type, expected[i], i,
                    found[i]);
  }
}

void DenotationPass::expect_layouts(const Where& where) {
  const ir::Node& node = *where.node;
  const Layout* first = input(node, 0);
  if (is_one_of(node.op_type, image_shaped)) {
    if (first) {
      Layout expected(first->size(), "DATA_FEATURE");
      if (!expected.empty()) expected[0] = "DATA_BATCH";
      if (expected.size() > 1) expected[1] = "DATA_CHANNEL";
      expect(where, node.inputs[0], *first, expected, true);
    }
    const auto index = filter_input(node.op_type);
    const Layout* filter = index ? input(node, *index) : nullptr;
    if (filter && filter->size() >= 2) {
      Layout expected(filter->size(), "FILTER_SPATIAL");
      const bool transposed = node.op_type == "ConvTranspose";
      expected[transposed ? 1 : 0] = "FILTER_OUT_CHANNEL";
      expected[transposed ? 0 : 1] = "FILTER_IN_CHANNEL";
      expect(where, node.inputs[*index], *filter, expected, false);
    }
  } else if (node.op_type == "LSTM" || node.op_type == "GRU" || node.op_type == "RNN") {
    const bool batch_first = int_attribute(node, "layout", 0) == 1;
    Layout expected = {"DATA_TIME", "DATA_BATCH", "DATA_FEATURE"};
    if (batch_first) std::swap(expected[0], expected[1]);
    if (first && first->size() == 3) expect(where, node.inputs[0], *first, expected, false);
  }
}

// ---- what operators give

std::optional<Layout> DenotationPass::of_broadcast(const Where& where) {
  const ir::Node& node = *where.node;
  Layout common;  // from the last axis to the first
  std::vector<size_t> origin;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Layout* own = input(node, i);
    if (!own) return std::nullopt;
    for (size_t k = 0; k < own->size(); ++k) {
      const std::string_view text = (*own)[own->size() - 1 - k];
      if (k == common.size()) {
        common.push_back(text);
        origin.push_back(i);
      } else if (common[k].empty()) {
        common[k] = text;
        origin[k] = i;
      } else if (!text.empty() && text != common[k]) {
        context_.report("SH-15", where.in(fmt::format("input '{}'", node.inputs[i])),
                        "transpose one of them, or correct the denotations",
                        "dimension {} is {}; the dimension of '{}' it meets is {}",
                        own->size() - 1 - k, text, node.inputs[origin[k]], common[k]);
      }
    }
  }
  std::ranges::reverse(common);
  return common;
}

std::optional<Layout> DenotationPass::of_transpose(const ir::Node& node, const Layout& from) const {
  const ir::Attribute* perm = node.find("perm");
  if (!perm || (perm->ints.empty() && perm->ref_attr_name.empty())) {
    return Layout(from.rbegin(), from.rend());
  }
  if (perm->ints.size() != from.size()) return std::nullopt;
  Layout to;
  for (const int64_t axis : perm->ints) {
    if (axis < 0 || axis >= static_cast<int64_t>(from.size())) return std::nullopt;
    to.push_back(from[static_cast<size_t>(axis)]);
  }
  return to;
}

// `axes` as marks on a list of `rank` axes; nothing where one lies outside.
std::optional<std::vector<bool>> marked(const std::vector<int64_t>& axes, size_t rank) {
  std::vector<bool> marks(rank);
  const auto size = static_cast<int64_t>(rank);
  for (const int64_t axis : axes) {
    if (axis < -size || axis >= size) return std::nullopt;
    marks[static_cast<size_t>(axis < 0 ? axis + size : axis)] = true;
  }
  return marks;
}

Layout without(const Layout& from, const std::vector<bool>& marks) {
  Layout to;
  for (size_t i = 0; i < from.size(); ++i) {
    if (!marks[i]) to.push_back(from[i]);
  }
  return to;
}

std::optional<Layout> DenotationPass::of_reduction(const ir::Node& node, const Layout& from) const {
  if (int_attribute(node, "keepdims", 1) != 0) return from;
  std::optional<std::vector<int64_t>> axes;
  if (is_one_of(node.op_type, arg_reductions)) {
    axes = {int_attribute(node, "axis", 0)};
  } else {
    axes = axes_of(node, 1);
  }
  if (!axes) return std::nullopt;
  if (axes->empty()) return int_attribute(node, "noop_with_empty_axes", 0) != 0 ? from : Layout();
  const auto marks = marked(*axes, from.size());
  return marks ? std::optional(without(from, *marks)) : std::nullopt;
}

std::optional<Layout> DenotationPass::of_squeeze(const ir::Node& node, const Layout& from) const {
  const auto axes = axes_of(node, 1);
  if (!axes || axes->empty()) return std::nullopt;  // all of size 1: sizes are for inference
  const auto marks = marked(*axes, from.size());
  return marks ? std::optional(without(from, *marks)) : std::nullopt;
}

std::optional<Layout> DenotationPass::of_unsqueeze(const ir::Node& node, const Layout& from) const {
  const auto axes = axes_of(node, 1);
  if (!axes || axes->size() > 64) return std::nullopt;
  const auto marks = marked(*axes, from.size() + axes->size());
  if (!marks || static_cast<size_t>(std::ranges::count(*marks, true)) != axes->size()) {
    return std::nullopt;
  }
  Layout to(marks->size());
  for (size_t i = 0, next = 0; i < to.size(); ++i) {
    if (!(*marks)[i]) to[i] = from[next++];
  }
  return to;
}

std::optional<Layout> DenotationPass::of_convolution(const Layout& from) const {
  if (!says_something(from)) return from;
  Layout to = from;
  // The channels that come out are others, and mean the same.
  if (to.size() > 1) to[1] = "DATA_CHANNEL";
  return to;
}

std::optional<Layout> DenotationPass::of_product(const ir::Node& node) const {
  const Layout *a = input(node, 0), *b = input(node, 1);
  if (!a || !b || a->size() < 2 || b->size() != 2) return std::nullopt;
  Layout to = *a;
  to.back() = b->back();
  return to;
}

std::optional<Layout> DenotationPass::result(const Where& where) {
  const ir::Node& node = *where.node;
  if (is_one_of(node.op_type, broadcasting)) return of_broadcast(where);
  if (node.op_type == "MatMul") return of_product(node);
  const Layout* from = input(node, 0);
  if (!from) return std::nullopt;
  if (filter_input(node.op_type)) return of_convolution(*from);
  if (is_one_of(node.op_type, like_first) || is_one_of(node.op_type, image_shaped)) return *from;
  if (node.op_type == "Transpose") return of_transpose(node, *from);
  if (node.op_type == "Squeeze") return of_squeeze(node, *from);
  if (node.op_type == "Unsqueeze") return of_unsqueeze(node, *from);
  if (is_reduction(node.op_type)) return of_reduction(node, *from);
  return std::nullopt;
}

void DenotationPass::node(const Where& where) {
  const ir::Node& node = *where.node;
  if (!ir::canonical_domain(node.domain).empty() || node.outputs.empty()) return;
  if (node.op_type == "Constant") {
    const ir::Attribute* ints = node.find("value_ints");
    const ir::Attribute* value = node.find("value");
    if (ints && ints->ints.size() <= 64) constants_.add(node.outputs[0], ints->ints);
    if (!value || !value->t || value->t->dims.size() > 1) return;
    if (auto values = integers_of(*value->t)) constants_.add(node.outputs[0], std::move(*values));
    return;
  }
  expect_layouts(where);
  const std::optional<Layout> given = result(where);
  if (!given) return;
  const size_t count = node.op_type == "Split" || node.op_type == "TopK" ? node.outputs.size() : 1;
  for (size_t i = 0; i < std::min(count, node.outputs.size()); ++i) {
    give(where, node.outputs[i], *given);
  }
}

void DenotationPass::give(const Where& where, const std::string& name, const Layout& given) {
  const Layout* declared = layouts_.find(name);
  if (!declared) return layouts_.set(name, given);
  if (declared->size() != given.size()) return;  // inference reports ranks
  Layout both = *declared;
  for (size_t k = 0; k < given.size(); ++k) {
    if (both[k].empty()) both[k] = given[k];
    if (given[k].empty() || both[k] == given[k]) continue;
    context_.report("SH-15", where.in(fmt::format("output '{}'", name)), "correct the denotation",
                    "dimension {} is declared as {}; the inputs make it {}", k, both[k], given[k]);
  }
  layouts_.set(name, std::move(both));
}

}  // namespace

void check_denotations(Context& context) {
  if (!context.has_denotations || !context.report.wants("SH-15")) return;
  DenotationPass pass(context);
  ir::walk(context.model, pass.callbacks());
}

}  // namespace sardonyx::check
