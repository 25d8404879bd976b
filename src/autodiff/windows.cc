// Gradients of convolutions and averages over windows.
#include <algorithm>
#include <numeric>

#include "autodiff/rules.h"
#include "base/fail.h"
#include "ops/internal/gradients.h"
#include "ops/internal/node.h"
#include "ops/upgrade_context.h"

namespace sardonyx::autodiff {

using ops::int_attribute;
using ops::ints_attribute;
using ops::internal::ConvWeightGradient;

namespace {

struct Window {
  std::vector<int64_t> kernel, strides, dilations, begins, ends;
  int64_t groups = 1;
};

Window window_of(const GradientCall& call, const Shape& x, std::vector<int64_t> kernel) {
  const ops::NodeView view = view_of(call);
  const size_t rank = x.size() - 2;
  Window window;
  window.kernel = std::move(kernel);
  const auto list = [&](std::string_view name, int64_t fallback, size_t count) {
    auto values = view.attr_ints(name).value_or(std::vector<int64_t>());
    if (values.empty()) values.assign(count, fallback);
    if (values.size() != count) view.fail("{} must have {} entries", name, count);
    return values;
  };
  window.strides = list("strides", 1, rank), window.dilations = list("dilations", 1, rank);
  const auto pads = list("pads", 0, 2 * rank);
  window.groups = view.has_attribute("group") ? view.attr_int("group") : 1;
  const std::string automatic = view.attr_string("auto_pad", "NOTSET");
  for (size_t d = 0; d < rank; ++d) {
    int64_t begin = pads[d], end = pads[rank + d];
    if (automatic != "NOTSET") {
      const int64_t span = (window.kernel[d] - 1) * window.dilations[d] + 1,
                    outputs = (x[d + 2] + window.strides[d] - 1) /
                              std::max<int64_t>(1, window.strides[d]);
      const int64_t total =
          std::max<int64_t>(0, (outputs - 1) * window.strides[d] + span - x[d + 2]);
      begin = automatic == "VALID" ? 0 : automatic == "SAME_LOWER" ? (total + 1) / 2 : total / 2;
      end = automatic == "VALID" ? 0 : total - begin;
    }
    window.begins.push_back(begin), window.ends.push_back(end);
  }
  return window;
}

// The convolution the other way; what the strides left over at the end gets no gradient.
std::string conv_input(GradientEmitter& e, const std::string& dy, const std::string& kernel,
                       const Window& w, const Shape& x, const Shape& y) {
  std::vector<int64_t> rest, pads = w.begins;
  for (size_t d = 0; d < w.kernel.size(); ++d) {
    const int64_t covered = (y[d + 2] - 1) * w.strides[d] + (w.kernel[d] - 1) * w.dilations[d] + 1;
    // The transposed convolution gives covered - begin - end + rest elements.
    const int64_t end = std::max<int64_t>(0, covered - w.begins[d] - x[d + 2]);
    pads.push_back(end);
    rest.push_back(x[d + 2] - (covered - w.begins[d] - end));
  }
  const auto simple = [&](size_t d) { return rest[d] < std::max(w.strides[d], w.dilations[d]); };
  bool all_simple = true;
  for (size_t d = 0; d < rest.size(); ++d) all_simple = all_simple && simple(d);
  std::vector<ir::Attribute> attributes{
      ints_attribute("strides", w.strides), ints_attribute("dilations", w.dilations),
      ints_attribute("pads", pads), ints_attribute("kernel_shape", w.kernel),
      int_attribute("group", w.groups)};
  if (all_simple) {
    attributes.push_back(ints_attribute("output_padding", rest));
    return e.emit("ConvTranspose", {dy, kernel}, attributes);
  }
  const std::string inner = e.emit("ConvTranspose", {dy, kernel}, attributes);
  std::vector<int64_t> wider(2 * x.size(), 0);
  std::copy(rest.begin(), rest.end(), wider.begin() + static_cast<std::ptrdiff_t>(x.size() + 2));
  return e.emit("Pad", {inner, e.ints(wider)});
}

// The same where sizes are open, so that a run must find what is left over.
std::string conv_input_open(GradientEmitter& e, const std::string& dy, const std::string& kernel,
                            const Window& w, const std::string& x) {
  const size_t rank = w.kernel.size();
  const bool jumps = std::ranges::any_of(w.strides, [](int64_t stride) { return stride != 1; });
  std::vector<int64_t> pads = w.begins;
  if (jumps)
    pads.resize(2 * rank, 0);
  else
    pads.insert(pads.end(), w.ends.begin(), w.ends.end());
  const std::string inner =
      e.emit("ConvTranspose", {dy, kernel},
             {ints_attribute("strides", w.strides), ints_attribute("dilations", w.dilations),
              ints_attribute("pads", pads), ints_attribute("kernel_shape", w.kernel),
              int_attribute("group", w.groups)});
  if (!jumps) return inner;
  const auto places = [&](const std::string& value) {
    return e.emit("Shape", {value}, {int_attribute("start", 2)});
  };
  const std::string rest = e.emit("Sub", {places(x), places(inner)});
  const std::string before = e.ints(std::vector<int64_t>(rank + 4, 0));
  return e.emit("Pad", {inner, e.emit("Concat", {before, rest}, {int_attribute("axis", 0)})});
}

std::vector<int64_t> pads_of(const Window& w) {
  std::vector<int64_t> pads = w.begins;
  pads.insert(pads.end(), w.ends.begin(), w.ends.end());
  return pads;
}

// The sums over the batch and all places of what the weights multiply.
std::string conv_weights(GradientEmitter& e, const std::string& input, const std::string& dy,
                         const Window& w, const Shape& weights) {
  ConvWeightGradient made;
  made.window.strides = w.strides, made.window.dilations = w.dilations;
  made.window.pads = pads_of(w);
  made.group = w.groups;
  made.weights_shape = {weights.begin(), weights.end()};
  ir::Node node;
  ops::internal::write(made, node);
  return e.emit(node.op_type, {input, dy}, std::move(node.attributes), node.domain);
}

// The convolution itself.
std::string conv_whole(GradientEmitter& e, const std::string& x, const std::string& kernel,
                       const Window& w) {
  return e.emit("Conv", {x, kernel},
                {ints_attribute("strides", w.strides), ints_attribute("dilations", w.dilations),
                 ints_attribute("pads", pads_of(w)), int_attribute("group", w.groups)});
}
// Cropped to the sizes of `y`: padding at the end may leave room for more.
std::string conv_output(GradientEmitter& e, const std::string& x, const std::string& kernel,
                        const Window& w, const Shape& y) {
  const std::string whole = conv_whole(e, x, kernel, w);
  std::vector<int64_t> axes(w.kernel.size());
  std::iota(axes.begin(), axes.end(), int64_t{2});
  return e.emit("Slice", {whole, e.ints(std::vector<int64_t>(axes.size(), 0)),
                          e.ints({y.begin() + 2, y.end()}), e.ints(axes)});
}

void conv_bias(const GradientCall& call, GradientEmitter& e) {
  if (call.wanted.size() < 3 || !call.wanted[2]) return;
  const int64_t rank = e.required_rank(call, 0);
  std::vector<int64_t> axes{0};
  for (int64_t d = 2; d < rank; ++d) axes.push_back(d);
  call.of_inputs[2] =
      e.emit("ReduceSum", {flow(call), e.ints(axes)}, {int_attribute("keepdims", 0)});
}

[[noreturn]] void open_sizes(const GradientCall& call) {
  view_of(call).fail(
      ErrorCode::unsupported,
      "has no gradient where sizes other than the batch are open; give the graph's inputs "
      "their sizes");
}

// Of an image whose sizes are open. Padding that depends on them is known where windows go by one.
Window open_window_of(const GradientCall& call, std::vector<int64_t> kernel) {
  const Shape any(kernel.size() + 2, int64_t{1} << 20);
  Window window = window_of(call, any, std::move(kernel));
  const bool is_same = view_of(call).attr_string("auto_pad", "NOTSET").starts_with("SAME");
  if (is_same && std::ranges::any_of(window.strides, [](int64_t one) { return one != 1; }))
    open_sizes(call);
  return window;
}

}  // namespace

void conv_gradient(const GradientCall& call, GradientEmitter& e) {
  const auto x = e.image(call.node.inputs[0]), w = e.shape(call.node.inputs[1]),
             y = e.image(call.node.outputs[0]);
  conv_bias(call, e);
  if (!call.wanted[0] && !call.wanted[1]) return;
  if (!w || w->size() < 3) open_sizes(call);
  const bool known = x && y;
  const std::vector<int64_t> kernel(w->begin() + 2, w->end());
  const Window window = known ? window_of(call, *x, kernel) : open_window_of(call, kernel);
  if (call.wanted[0])
    call.of_inputs[0] =
        known ? conv_input(e, flow(call), call.node.inputs[1], window, *x, *y)
              : conv_input_open(e, flow(call), call.node.inputs[1], window, call.node.inputs[0]);
  if (call.wanted[1])
    call.of_inputs[1] = conv_weights(e, call.node.inputs[0], flow(call), window, *w);
}

namespace {

// With sizes that are open: what the transposed convolution leaves out at its ends, the
// convolution pads with.
void open_conv_transpose_gradient(const GradientCall& call, GradientEmitter& e,
                                  const Shape& weights) {
  const ops::NodeView view = view_of(call);
  Window window = open_window_of(call, {weights.begin() + 2, weights.end()});
  const size_t rank = window.kernel.size();
  const auto extra = view.attr_ints("output_padding").value_or(std::vector<int64_t>(rank, 0));
  if (view.has_attribute("output_shape") || extra.size() != rank ||
      view.attr_string("auto_pad", "NOTSET").starts_with("SAME"))
    open_sizes(call);
  for (size_t d = 0; d < rank; ++d) {
    if (extra[d] - window.ends[d] >= window.strides[d]) open_sizes(call);
    window.ends[d] = std::max<int64_t>(0, window.ends[d] - extra[d]);
  }
  if (call.wanted[0]) call.of_inputs[0] = conv_whole(e, flow(call), call.node.inputs[1], window);
  if (call.wanted[1])
    call.of_inputs[1] = conv_weights(e, flow(call), call.node.inputs[0], window, weights);
}

}  // namespace

// The convolution whose transpose it is; of the weights, with input and output exchanged.
void conv_transpose_gradient(const GradientCall& call, GradientEmitter& e) {
  const auto x = e.image(call.node.inputs[0]), w = e.shape(call.node.inputs[1]),
             y = e.image(call.node.outputs[0]);
  conv_bias(call, e);
  if (!call.wanted[0] && !call.wanted[1]) return;
  if (!w || w->size() < 3) open_sizes(call);
  if (!x || !y) return open_conv_transpose_gradient(call, e, *w);
  const ops::NodeView view = view_of(call);
  Window window = window_of(call, *x, {w->begin() + 2, w->end()});
  const size_t rank = window.kernel.size();
  const auto extra = view.attr_ints("output_padding").value_or(std::vector<int64_t>(rank, 0));
  const std::string automatic = view.attr_string("auto_pad", "NOTSET");
  const bool asked = view.has_attribute("output_shape") || automatic.starts_with("SAME");
  for (size_t d = 0; d < rank; ++d) {
    const int64_t in = (*x)[d + 2], out = (*y)[d + 2];
    const int64_t covered =
        (in - 1) * window.strides[d] + (window.kernel[d] - 1) * window.dilations[d] + 1;
    if (asked) {
      const int64_t total = std::max<int64_t>(0, covered + extra[d] - out);
      window.begins[d] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
    }
    window.ends[d] = std::max<int64_t>(0, covered - window.begins[d] - out);
  }
  if (call.wanted[0])
    call.of_inputs[0] = conv_output(e, flow(call), call.node.inputs[1], window, *x);
  if (call.wanted[1])
    call.of_inputs[1] = conv_weights(e, flow(call), call.node.inputs[0], window, *w);
}

// Linear in both inputs: what flows back stands where the weights stood.
void conv_weight_gradient_gradient(const GradientCall& call, GradientEmitter& e) {
  const std::string &input = call.node.inputs[ConvWeightGradient::x],
                    &dy = call.node.inputs[ConvWeightGradient::dy];
  const auto x = e.image(input), y = e.image(dy);
  if (!x || !y) open_sizes(call);
  const auto weights = ops::internal::from_node<ConvWeightGradient>(call.node).weights_shape;
  const Window window = window_of(call, *x, {weights.begin() + 2, weights.end()});
  if (call.wanted[0]) call.of_inputs[0] = conv_input(e, dy, flow(call), window, *x, *y);
  if (call.wanted[1]) call.of_inputs[1] = conv_output(e, input, flow(call), window, *y);
}

namespace {

// What is divided by along one axis: how many taps of each window are counted.
std::string tap_counts(GradientEmitter& e, const Window& w, const Shape& x, const Shape& y,
                       size_t d, bool counts_padding, const std::string& like) {
  const int64_t low = counts_padding ? -w.begins[d] : 0,
                high = x[d + 2] + (counts_padding ? w.ends[d] : 0);
  constexpr int64_t most = 1 << 24;
  if (w.kernel[d] > most / std::max<int64_t>(1, y[d + 2]))
    fail(ErrorCode::unsupported,
         "AveragePool has no gradient where windows of {} are taken {} times along an axis",
         w.kernel[d], y[d + 2]);
  std::vector<float> counts;
  for (int64_t o = 0; o < y[d + 2]; ++o) {
    int64_t count = 0;
    for (int64_t k = 0; k < w.kernel[d]; ++k) {
      const int64_t at = o * w.strides[d] - w.begins[d] + k * w.dilations[d];
      count += at >= low && at < high ? 1 : 0;
    }
    counts.push_back(static_cast<float>(std::max<int64_t>(count, 1)));
  }
  Shape shape(w.kernel.size(), 1);
  shape[d] = y[d + 2];
  const std::string plain =
      e.emit("Constant", {},
             {ops::tensor_attribute("value", Tensor::of<float>(counts, std::move(shape)))});
  return e.emit("CastLike", {plain, like});
}

}  // namespace

namespace {

// With sizes that are open: all windows count as many taps where no padding is left out.
void open_average_pool_gradient(const GradientCall& call, GradientEmitter& e, int64_t channels,
                                const std::vector<int64_t>& kernel) {
  const ops::NodeView view = view_of(call);
  Window w = open_window_of(call, kernel);
  w.groups = channels;
  const bool is_padded = std::ranges::any_of(pads_of(w), [](int64_t pad) { return pad != 0; });
  if (view.attr_int("ceil_mode", 0) != 0 ||
      (is_padded && view.attr_int("count_include_pad", 0) == 0))
    open_sizes(call);
  double taps = 1;
  for (const int64_t size : kernel) taps *= static_cast<double>(size);
  Shape ones_shape{w.groups, 1};
  ones_shape.insert(ones_shape.end(), kernel.begin(), kernel.end());
  const std::string& dy = flow(call);
  const std::string share = e.scalar_like(static_cast<float>(1 / taps), dy);
  call.of_inputs[0] =
      conv_input_open(e, dy, e.emit("Expand", {share, e.ints(ones_shape)}), w, call.node.inputs[0]);
}

}  // namespace

// Every output gives each element it averaged the same share.
void average_pool_gradient(const GradientCall& call, GradientEmitter& e) {
  const ops::NodeView view = view_of(call);
  const auto x = e.image(call.node.inputs[0]), y = e.image(call.node.outputs[0]);
  const auto kernel = view.attr_ints("kernel_shape");
  if (const auto open = e.sizes(call.node.inputs[0]);
      (!x || !y) && kernel && open && open->size() == kernel->size() + 2 && (*open)[1] >= 0)
    return open_average_pool_gradient(call, e, (*open)[1], *kernel);
  if (!x || !y || !kernel || x->size() != kernel->size() + 2 || (*x)[1] < 0) open_sizes(call);
  Window w = window_of(call, *x, *kernel);
  const bool counts_padding = view.attr_int("count_include_pad", 0) != 0;
  w.groups = (*x)[1];
  Shape ones_shape{w.groups, 1};
  ones_shape.insert(ones_shape.end(), kernel->begin(), kernel->end());
  const std::string& dy = flow(call);
  const std::string ones = e.emit("Expand", {e.scalar_like(1, dy), e.ints(ones_shape)});
  std::string share = dy;
  for (size_t d = 0; d < kernel->size(); ++d)
    share = e.emit("Div", {share, tap_counts(e, w, *x, *y, d, counts_padding, dy)});
  call.of_inputs[0] = conv_input(e, share, ones, w, *x, *y);
}

// Of the norm of each window: |x|^(p-1) by the sign of x, over the norm's.
void lp_pool_gradient(const GradientCall& call, GradientEmitter& e) {
  const ops::NodeView view = view_of(call);
  const std::string &input = call.node.inputs[0], &output = call.node.outputs[0];
  const auto x = e.image(input), y = e.image(output);
  const auto kernel = view.attr_ints("kernel_shape");
  if (!x || !y || !kernel || x->size() != kernel->size() + 2 || (*x)[1] < 0) open_sizes(call);
  Window w = window_of(call, *x, *kernel);
  w.groups = (*x)[1];
  Shape ones_shape{w.groups, 1};
  ones_shape.insert(ones_shape.end(), kernel->begin(), kernel->end());
  const std::string &dy = flow(call), one = e.scalar_like(1, dy);
  const std::string ones = e.emit("Expand", {one, e.ints(ones_shape)});
  const auto power = static_cast<float>(view.attr_int("p", 2) - 1);
  // A window of zeros has no slope: its elements are multiplied by 0 below.
  const std::string empty = e.emit("Equal", {output, e.scalar_like(0, dy)});
  const std::string norm = e.emit("Where", {empty, one, output});
  const std::string over = e.emit("Pow", {norm, e.scalar_like(-power, dy)});
  const std::string back = conv_input(e, e.emit("Mul", {dy, over}), ones, w, *x, *y);
  const std::string size = e.emit("Pow", {e.emit("Abs", {input}), e.scalar_like(power, dy)});
  call.of_inputs[0] = e.emit("Mul", {back, e.emit("Mul", {size, e.emit("Sign", {input})})});
}

}  // namespace sardonyx::autodiff
