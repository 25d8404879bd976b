// Gradients of operators that are linear in their input, by applying the operator to what stands
// for the identity, and of others that depend on ranks.
#include <algorithm>
#include <map>
#include <numeric>

#include "autodiff/rules.h"
#include "base/fail.h"
#include "ops/shared/einsum_equation.h"
#include "ops/upgrade_context.h"

namespace sardonyx::autodiff {

using ops::float_attribute;
using ops::int_attribute;
using ops::ints_attribute;

namespace {

std::string entry(GradientEmitter& e, const std::string& list, int64_t at) {
  return e.emit("Gather", {list, e.ints({at})}, {int_attribute("axis", 0)});
}

std::string joined(GradientEmitter& e, std::vector<std::string> parts) {
  return e.emit("Concat", std::move(parts), {int_attribute("axis", 0)});
}

std::string shaped(GradientEmitter& e, const std::string& value, const std::string& shape) {
  return e.emit("Reshape", {value, shape}, {int_attribute("allowzero", 1)});
}

// The matrix of the identity, `count` a list of its one size.
std::string identity(GradientEmitter& e, const std::string& count, const std::string& like) {
  const std::string zero = e.emit("Squeeze", {e.ints({0})}), one = e.emit("Squeeze", {e.ints({1})});
  const std::string numbers = e.emit("Range", {zero, e.emit("Squeeze", {count, e.ints({0})}), one});
  const std::string same = e.emit("Equal", {e.emit("Unsqueeze", {numbers, e.ints({1})}),
                                            e.emit("Unsqueeze", {numbers, e.ints({0})})});
  return e.emit("CastLike", {same, like});
}

std::vector<int64_t> exchanged(int64_t rank, int64_t a, int64_t b) {
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::swap(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
  return order;
}

// The attributes of these names that the node has.
std::vector<ir::Attribute> kept(const GradientCall& call,
                                std::initializer_list<std::string_view> names) {
  std::vector<ir::Attribute> attributes;
  for (const std::string_view name : names) {
    if (const ir::Attribute* given = call.node.find(name)) attributes.push_back(*given);
  }
  return attributes;
}

bool is_empty(const GradientEmitter& e, const std::string& value) {
  const infer::ValueFacts* known = e.services().known(value);
  const auto count = known == nullptr ? std::nullopt : known->type.element_count();
  return count && *count == 0;
}

// The product of one axis with a matrix.
std::string along(GradientEmitter& e, const std::string& value, const std::string& weights,
                  int64_t rank, int64_t axis) {
  const auto order = exchanged(rank, axis, rank - 1);
  const std::string last = e.emit("Transpose", {value}, {ints_attribute("perm", order)});
  return e.emit("Transpose", {e.emit("MatMul", {last, weights})}, {ints_attribute("perm", order)});
}

// The size that decides the scale of all axes, and what it becomes, in lowest terms.
struct SharedScale {
  int64_t from = 1, to = 1;
};

SharedScale shared_scale(const GradientCall& call, const GradientEmitter& e,
                         const std::vector<int64_t>& axes, const std::string& policy) {
  const ops::NodeView view = view_of(call);
  const auto from = e.sizes(call.node.inputs[0]);
  const infer::ValueFacts* known = e.services().known(call.node.inputs[3]);
  ops::MadeConstants made;
  const Tensor* sizes = known == nullptr ? nullptr : made.of(*known);
  const bool open = !from || std::ranges::any_of(axes, [&](int64_t axis) {
    return (*from)[static_cast<size_t>(
               view.normalized_axis(axis, static_cast<int64_t>(from->size()), "axes"))] < 0;
  });
  if (open || sizes == nullptr || sizes->element_type() != ElementType::int64 ||
      sizes->size() != static_cast<int64_t>(axes.size())) {
    view.fail(ErrorCode::unsupported,
              "has no gradient with keep_aspect_ratio_policy {} where sizes are open; give the "
              "graph's inputs their sizes",
              policy);
  }
  SharedScale chosen;
  double best = 0;
  const auto rank = static_cast<int64_t>(from->size());
  for (size_t k = 0; k < axes.size(); ++k) {
    const int64_t in = (*from)[static_cast<size_t>(view.normalized_axis(axes[k], rank, "axes"))],
                  out = sizes->elements<int64_t>()[k];
    if (in <= 0 || out <= 0)
      view.fail(ErrorCode::unsupported, "has no gradient where it resizes nothing");
    const double scale = static_cast<double>(out) / static_cast<double>(in);
    if (k > 0 && (policy == "not_larger" ? scale >= best : scale <= best)) continue;
    const int64_t common = std::gcd(in, out);
    best = scale, chosen = {in / common, out / common};
  }
  return chosen;
}

// The weights of one axis by a scale that another one decides: that one is resized beside it, its
// elements all alike.
std::string shared_weights(GradientEmitter& e, const SharedScale& scale, int64_t size,
                           std::vector<ir::Attribute> attributes, const std::string& like) {
  std::erase_if(attributes, [](const ir::Attribute& a) { return a.name == "axes"; });
  attributes.push_back(ints_attribute("axes", {0, 1}));
  // The first size is asked for in vain: larger than what the shared scale gives it, or smaller.
  const bool down = std::any_of(attributes.begin(), attributes.end(), [](const ir::Attribute& a) {
    return a.name == "keep_aspect_ratio_policy" && a.s == "not_larger";
  });
  const int64_t vain = down ? (size * scale.to) / scale.from + 1
                            : std::max<int64_t>(1, (size * scale.to) / scale.from);
  const std::string wide = e.emit("Unsqueeze", {identity(e, e.ints({size}), like), e.ints({1})});
  const std::string alike = e.emit("Expand", {wide, e.ints({size, scale.from, size})});
  const std::string resized =
      e.emit("Resize", {alike, "", "", e.ints({vain, scale.to})}, attributes);
  return e.emit("Gather", {resized, e.emit("Squeeze", {e.ints({0})})}, {int_attribute("axis", 1)});
}

}  // namespace

// Each axis is a matrix of weights, which Resize makes of the identity; the gradient takes it the
// other way.
void resize_gradient(const GradientCall& call, GradientEmitter& e) {
  const ops::NodeView view = view_of(call);
  const int64_t rank = e.required_rank(call, 0);
  const std::string& x = call.node.inputs[0];
  std::vector<int64_t> axes = view.attr_ints("axes").value_or(std::vector<int64_t>());
  if (!view.has_attribute("axes")) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), int64_t{0});
  }
  const bool by_sizes = view.has_input(3) && !is_empty(e, call.node.inputs[3]);
  const std::string& targets = call.node.inputs[by_sizes ? 3 : 2];
  const bool crops =
      view.attr_string("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize";
  const auto count = static_cast<int64_t>(axes.size());
  const auto from = e.sizes(x), to = e.sizes(call.node.outputs[0]);
  const std::string policy = view.attr_string("keep_aspect_ratio_policy", "stretch");
  std::optional<SharedScale> shared;
  if (by_sizes && policy != "stretch") shared = shared_scale(call, e, axes, policy);
  std::string slope = flow(call);
  for (int64_t k = 0; k < count; ++k) {
    const int64_t axis = view.normalized_axis(axes[static_cast<size_t>(k)], rank, "axes");
    const auto at = static_cast<size_t>(axis);
    if (from && to && !crops && (*from)[at] == 1 && (*to)[at] == 1) continue;
    std::string roi;
    if (crops) {
      const std::string& all = call.node.inputs[1];
      roi = joined(e, {entry(e, all, k), entry(e, all, k + count)});
    }
    const std::string size = entry(e, e.emit("Shape", {x}), axis);
    auto attributes =
        kept(call, {"antialias", "coordinate_transformation_mode", "cubic_coeff_a",
                    "exclude_outside", "keep_aspect_ratio_policy", "mode", "nearest_mode"});
    attributes.push_back(ints_attribute("axes", {0}));
    if (shared) {
      const std::string weights = shared_weights(e, *shared, (*from)[at], attributes, slope);
      slope = along(e, slope, weights, rank, axis);
      continue;
    }
    const std::string target = entry(e, targets, k);
    const std::string weights = e.emit(
        "Resize", {identity(e, size, slope), roi, by_sizes ? "" : target, by_sizes ? target : ""},
        attributes);
    slope = along(e, slope, weights, rank, axis);
  }
  call.of_inputs[0] = slope;
}

// Rows of the data are what the axis chooses among: what flows back is added to the rows.
void gather_gradient(const GradientCall& call, GradientEmitter& e) {
  const std::string &data = call.node.inputs[0], &indices = call.node.inputs[1];
  const int64_t axis = view_of(call).attr_int("axis", 0);
  const std::string shape = e.emit("Shape", {data});
  const auto count = [&](const std::string& sizes) {
    return e.emit("ReduceProd", {sizes, e.ints({0})});
  };
  const std::string before = count(e.emit("Shape", {data}, {int_attribute("end", axis)}));
  const std::string behind =
      axis == -1 ? e.ints({1}) : count(e.emit("Shape", {data}, {int_attribute("start", axis + 1)}));
  const std::string wide = e.emit("Cast", {indices}, {int_attribute("to", 7)});
  const std::string chosen = e.emit("Reshape", {wide, e.ints({-1, 1})});
  const std::string number = e.emit("Shape", {chosen}, {int_attribute("end", 1)});
  const std::string order_of = shaped(e, flow(call), joined(e, {before, number, behind}));
  const auto exchange = [&](const std::string& value) {
    return e.emit("Transpose", {value}, {ints_attribute("perm", {1, 0, 2})});
  };
  const std::string rows = joined(e, {entry(e, shape, axis), before, behind});
  const std::string empty = e.emit("Expand", {e.scalar_like(0, flow(call)), rows});
  const std::string sums = e.emit("ScatterND", {empty, chosen, exchange(order_of)},
                                  {ops::string_attribute("reduction", "add")});
  call.of_inputs[0] = shaped(e, exchange(sums), shape);
}

// A convolution with a kernel for each position in the block, which picks that element.
void col2im_gradient(const GradientCall& call, GradientEmitter& e) {
  const std::string &x = call.node.inputs[0], &image = call.node.inputs[1],
                    &block = call.node.inputs[2];
  const std::string taps = e.emit("ReduceProd", {block, e.ints({0})});
  const std::string kernels =
      shaped(e, identity(e, taps, x), joined(e, {taps, e.ints({1}), block}));
  const std::string planes = e.emit("Reshape", {flow(call), joined(e, {e.ints({-1, 1}), image})});
  const std::string columns =
      e.emit("Conv", {planes, kernels}, kept(call, {"dilations", "pads", "strides"}));
  call.of_inputs[0] = shaped(e, columns, e.emit("Shape", {x}));
}

void center_crop_pad_gradient(const GradientCall& call, GradientEmitter& e) {
  const std::string shape = e.emit("Shape", {call.node.inputs[0]});
  const auto axes = view_of(call).attr_ints("axes");
  const std::string sizes =
      axes ? e.emit("Gather", {shape, e.ints(*axes)}, {int_attribute("axis", 0)}) : shape;
  call.of_inputs[0] = e.emit("CenterCropPad", {flow(call), sizes}, kept(call, {"axes"}));
}

void compress_gradient(const GradientCall& call, GradientEmitter& e) {
  const ops::NodeView view = view_of(call);
  const std::string &x = call.node.inputs[0], &dy = flow(call);
  const std::string chosen = e.emit("NonZero", {call.node.inputs[1]});  // [1, n]
  // Zeros of the type of what flows, which is not that of quantised values.
  const auto zeros = [&](const std::string& like) {
    const std::string zero = e.scalar_like(0, dy);
    return e.emit("Expand", {zero, e.emit("Shape", {like})});
  };
  if (!view.has_attribute("axis")) {
    const std::string flat = e.emit("Reshape", {x, e.ints({-1})});
    const std::string filled =
        e.emit("ScatterElements", {zeros(flat), e.emit("Squeeze", {chosen, e.ints({0})}), dy});
    call.of_inputs[0] = shaped(e, filled, e.emit("Shape", {x}));
    return;
  }
  const int64_t rank = e.required_rank(call, 0);
  const int64_t axis = view.normalized_axis(view.attr_int("axis"), rank, "axis");
  std::vector<int64_t> sizes(static_cast<size_t>(rank), 1);
  sizes[static_cast<size_t>(axis)] = -1;
  const std::string along = e.emit("Reshape", {chosen, e.ints(sizes)});
  const std::string indices = e.emit("Expand", {along, e.emit("Shape", {dy})});
  call.of_inputs[0] =
      e.emit("ScatterElements", {zeros(x), indices, dy}, {int_attribute("axis", axis)});
}

// The determinants of what is left without each row and column, with alternating signs.
void det_gradient(const GradientCall& call, GradientEmitter& e) {
  const std::string& x = call.node.inputs[0];
  const int64_t rank = e.required_rank(call, 0);
  const infer::ValueFacts* known = e.services().known(x);
  const auto size = known->type.shape->back().value();
  if (!size || *size > 64) {
    view_of(call).fail(ErrorCode::unsupported,
                       "has a gradient where the matrix has a known size of at most 64");
  }
  const int64_t n = *size;
  std::vector<int64_t> others;
  std::vector<float> signs;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      if (j != i) others.push_back(j);
      signs.push_back((i + j) % 2 == 0 ? 1.0f : -1.0f);
    }
  }
  const auto constant = [&](const Tensor& tensor) {
    return e.emit("Constant", {}, {ops::tensor_attribute("value", tensor)});
  };
  const std::string index = constant(Tensor::of<int64_t>(others, {n, n - 1}));
  // [.., i, rows, n], then [.., i, rows, j, columns].
  const std::string rows = e.emit("Gather", {x, index}, {int_attribute("axis", rank - 2)});
  const std::string both = e.emit("Gather", {rows, index}, {int_attribute("axis", rank)});
  const std::string minors = e.emit(
      "Det",
      {e.emit("Transpose", {both}, {ints_attribute("perm", exchanged(rank + 2, rank - 1, rank))})});
  const std::string sign = e.emit("CastLike", {constant(Tensor::of<float>(signs, {n, n})), x});
  const std::string slope = e.emit("Unsqueeze", {flow(call), e.ints({-2, -1})});
  call.of_inputs[0] = e.emit("Mul", {e.emit("Mul", {minors, sign}), slope});
}

// The window's sum along the channels is a convolution with ones.
void lrn_gradient(const GradientCall& call, GradientEmitter& e) {
  const ops::NodeView view = view_of(call);
  const int64_t size = view.attr_int("size");
  const float alpha = view.attr_float("alpha", 1e-4f) / static_cast<float>(size),
              beta = view.attr_float("beta", 0.75f);
  const std::string& x = call.node.inputs[0];
  const std::string flat = e.ints({0, 0, -1}), one = e.ints({1});
  const std::string ones = e.emit("Expand", {e.scalar_like(1, x), e.ints({1, 1, size, 1})});
  const auto planes = [&](const std::string& value) {
    return e.emit("Unsqueeze", {e.emit("Reshape", {value, flat}), one});
  };
  const auto summed = [&](const std::string& value, int64_t before, int64_t behind) {
    return e.emit("Conv", {value, ones}, {ints_attribute("pads", {before, 0, behind, 0})});
  };
  const int64_t low = (size - 1) / 2, high = size / 2;
  const std::string rows = planes(x), dy = planes(flow(call));
  const std::string squares = summed(e.emit("Mul", {rows, rows}), low, high);
  const std::string base = e.emit("Add", {e.emit("Mul", {squares, e.scalar_like(alpha, x)}),
                                          e.scalar_like(view.attr_float("bias", 1), x)});
  const std::string scaled = e.emit("Mul", {dy, e.emit("Pow", {base, e.scalar_like(-beta, x)})});
  const std::string along = e.emit("Div", {e.emit("Mul", {scaled, rows}), base});
  const std::string back = e.emit("Mul", {rows, summed(along, high, low)});
  const std::string taken = e.emit("Mul", {back, e.scalar_like(2 * alpha * beta, x)});
  call.of_inputs[0] = shaped(e, e.emit("Sub", {scaled, taken}), e.emit("Shape", {x}));
}

namespace {

// Letters for the labels of one equation.
class Letters {
 public:
  std::string of(const ops::EinsumTerm& term) {
    std::string text;
    for (const int label : term) text += letter(label);
    return text;
  }

 private:
  char letter(int label) {
    const auto [found, fresh] = letters_.emplace(label, static_cast<int>(letters_.size()));
    const int i = found->second;
    if (i >= 52) fail(ErrorCode::unsupported, "Einsum has no gradient with more than 52 labels");
    return static_cast<char>(i < 26 ? 'a' + i : 'A' + i - 26);
  }

  std::map<int, int> letters_;
};

}  // namespace

// The equation with the output in the operand's place. A label that only the operand has gets ones,
// one that stands twice in it the identity.
void einsum_gradient(const GradientCall& call, GradientEmitter& e) {
  const ops::NodeView view = view_of(call);
  const ops::EinsumEquation equation = ops::read_equation(view);
  std::vector<size_t> ranks;
  for (size_t i = 0; i < call.node.inputs.size(); ++i)
    ranks.push_back(static_cast<size_t>(e.required_rank(call, i)));
  const std::vector<ops::EinsumTerm> terms = equation.expand(view, ranks);
  const ops::EinsumTerm output = equation.expand_output(terms);
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!call.wanted[i]) continue;
    const std::string& x = call.node.inputs[i];
    const std::string shape = e.emit("Shape", {x});
    Letters letters;
    std::vector<std::string> operands{flow(call)};
    std::string left = letters.of(output);
    std::vector<int> known(output.begin(), output.end());
    for (size_t k = 0; k < terms.size(); ++k) {
      if (k == i) continue;
      operands.push_back(call.node.inputs[k]);
      left += "," + letters.of(terms[k]);
      known.insert(known.end(), terms[k].begin(), terms[k].end());
    }
    ops::EinsumTerm wanted;
    int fresh = 100000;  // labels that no equation has
    for (size_t d = 0; d < terms[i].size(); ++d) {
      const int label = terms[i][d];
      const std::string size = entry(e, shape, static_cast<int64_t>(d));
      if (std::find(wanted.begin(), wanted.end(), label) != wanted.end()) {
        operands.push_back(identity(e, size, x));
        wanted.push_back(fresh++);
        left += "," + letters.of(ops::EinsumTerm{label, wanted.back()});
        continue;
      }
      wanted.push_back(label);
      if (std::find(known.begin(), known.end(), label) != known.end()) continue;
      operands.push_back(e.emit("Expand", {e.scalar_like(1, x), size}));
      left += "," + letters.of(ops::EinsumTerm{label});
    }
    const std::string product = e.emit(
        "Einsum", operands, {ops::string_attribute("equation", left + "->" + letters.of(wanted))});
    // A dimension of size 1 stands for all of the others' with its label, and the reverse.
    call.of_inputs[i] = e.sum_like(e.emit("Expand", {product, shape}), x);
  }
}

}  // namespace sardonyx::autodiff
