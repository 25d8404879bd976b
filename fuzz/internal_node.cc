#include "internal_node.h"

#include <algorithm>
#include <concepts>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "choices.h"
#include "ops/internal/all.h"
#include "ops/internal/node.h"
#include "wire/tensor.h"
#include "wire/write.h"

namespace sardonyx::fuzzing {
namespace {

using namespace ops::internal;
using ops::Window;

constexpr ElementType float32 = ElementType::float32, int64 = ElementType::int64;

// How an input is to be.
struct Wanted {
  ElementType type = float32;
  Shape shape;
  bool constant = false;  // an initializer, mostly
  Style style = Style::reals;
};

// --- Fields --------------------------------------------------------------------------------------

// One of the values of an enumeration that says how many there are.
template <class E>
E number(Choices& choices) {
  return static_cast<E>(choices.below(static_cast<size_t>(E::count_)));
}

// Gives fields other values: any where they were drawn to be anything, else some of them.
class Changes {
 public:
  // One field in `rarity` changes.
  Changes(Choices& choices, size_t rarity) : choices_(choices), rarity_(rarity) {}

  template <class T>
  void operator()(std::string_view, T& field) {
    if (choices_.below(rarity_) == 0) set(field);
  }
  template <class T>
  void required(std::string_view name, T& field) {
    (*this)(name, field);
  }
  template <class T>
  void list(std::string_view, std::vector<T>& items) {
    if (choices_.below(rarity_) == 0) items.resize(choices_.below(5));
    for (T& item : items) T::fields(*this, item);
  }

 private:
  void set(bool& field) { field = choices_.one_in(2); }
  template <std::integral T>
  void set(T& field) {
    const int64_t number = choices_.integer();
    field = std::in_range<T>(number) ? static_cast<T>(number) : T{-1};
  }
  void set(float& field) { field = static_cast<float>(choices_.real()); }
  void set(std::string& field) { field = "what"; }
  void set(ElementType& field) {
    constexpr ElementType types[] = {ElementType::uint8, ElementType::int8, ElementType::int4,
                                     float32};
    field = types[choices_.below(std::size(types))];
  }
  void set(ElementwiseOperator& field) {
    using Kind = kernels::ElementwiseStep::Kind;
    field.kind = static_cast<Kind>(choices_.below(4));
    field.unary = number<kernels::UnaryOp>(choices_);
    field.binary = number<kernels::BinaryOp>(choices_);
    set(field.bytes);
  }
  void set(ElementwisePlace& field) {
    using Kind = kernels::ElementwiseOperand::Kind;
    field.kind = static_cast<Kind>(choices_.below(3));
    field.index =
        static_cast<int>(choices_.one_in(8) ? 1 << choices_.below(30) : choices_.below(8));
    if (field.kind == Kind::output) field.index = 0;
  }
  template <NamedEnum E>
  void set(E& field) {
    field = EnumNames<E>::list[choices_.below(std::size(EnumNames<E>::list))].second;
  }
  template <class T>
  void set(std::optional<T>& field) {
    set(field.emplace());
  }
  template <class T>
  void set(std::vector<T>& field) {
    if (field.empty() || choices_.one_in(2)) {
      field.assign(choices_.below(6), T{});
      for (T& value : field) set(value);
    } else {
      set(field[choices_.below(field.size())]);
    }
  }
  template <class T, size_t n>
  void set(std::array<T, n>& field) {
    set(field[choices_.below(n)]);
  }

  Choices& choices_;
  size_t rarity_;
};

// --- What each operator takes --------------------------------------------------------------------

class Drawing {
 public:
  Drawing(const uint8_t* data, size_t size) : choices_(data, size) {}
  InternalNode draw();

 private:
  size_t below(size_t n) { return choices_.below(n); }
  bool one_in(size_t n) { return choices_.one_in(n); }
  // In some draws sizes may be 0, or one of them several times as large.
  int64_t from_one(size_t most) {
    const auto number = static_cast<int64_t>(below(most));
    if (has_empty_ && one_in(8)) return 0;
    if (!is_large_ || !one_in(4)) return 1 + number;
    is_large_ = false;
    return 8 * (1 + number);
  }
  template <class T>
  T any_of(std::initializer_list<T> list) {
    return list.begin()[below(list.size())];
  }

  Wanted& want(int position, Shape shape, bool constant = false, ElementType type = float32) {
    const auto at = static_cast<size_t>(position);
    if (wanted_.size() <= at) wanted_.resize(at + 1);
    return wanted_[at].emplace(Wanted{type, std::move(shape), constant});
  }
  // The float type that this draw computes in, where the operator has several.
  ElementType real() const { return real_; }
  ElementType byte() { return one_in(2) ? ElementType::uint8 : ElementType::int8; }

  Shape shape_of(size_t rank, size_t most);
  void draw_activation(FusedActivation& activation);
  void draw_window(Window& window, const Shape& kernel);
  Shape image(int64_t channels, size_t spatial, bool nhwc);
  // Y's shape of such a window; empty where there is none.
  Shape output_of(const Window& window, const Shape& x, const Shape& kernel, int64_t channels);
  template <class Op>
  void draw_product(Op& op, bool residual);

  void take(AdamW&);
  void take(Attention&);
  void take(AveragePool& op) { take_pool(op.window); }
  void take(BatchNormalizationGradient&);
  void take(Conv&);
  void take(ConvTranspose&);
  void take(ConvWeightGradient&);
  void take(DepthToSpace&);
  void take(FusedConvChain&);
  void take(FusedElementwise&);
  void take(Gemm&);
  void take(GroupNormalization&);
  void take(InRange&);
  void take(InstanceNormalization&);
  void take(InterleavedConcat&);
  void take(LRN&);
  void take(LSTMRecurrence&);
  void take(LSTMRecurrenceGradient&);
  void take(LayerNormalizationGradient&);
  void take(LookupTable&);
  void take(MatMul&);
  void take(MaxPool&);
  void take(MaxPoolGradient&);
  void take(QLinearConv&);
  void take(QuantizedConv&);
  void take(QuantizedMatMul&);
  void take(ScaleShift&);
  void take(SpaceToDepth&);
  void take(SumLike&);
  Shape take_pool(Window&);
  void draw_masks(Attention& op, int64_t batch, int64_t heads, int64_t q, int64_t k,
                  bool has_heads);

  template <class Op>
  void draw_node();
  void change_inputs();
  Value value_of(const Wanted& wanted);
  void add_input(size_t position);
  std::string behind_another(size_t position, const Wanted& wanted, std::string name);
  void declare(const std::string& name, Value value);

  Choices choices_;
  ElementType real_ = float32;
  std::vector<std::optional<Wanted>> wanted_;  // by position
  bool only_first_output_ = false;
  bool has_empty_ = false, is_large_ = false;
  InternalNode made_;
};

Shape Drawing::shape_of(size_t rank, size_t most) {
  Shape shape;
  for (size_t i = 0; i < rank; ++i) shape.push_back(from_one(most));
  return shape;
}

void Drawing::draw_activation(FusedActivation& activation) {
  if (one_in(2)) return;
  const auto& list = EnumNames<kernels::Activation>::list;
  activation.function = list[below(std::size(list))].second;
  activation.alpha = static_cast<float>(below(8)) / 8;
  activation.beta = static_cast<float>(below(8));
}

void Drawing::draw_window(Window& window, const Shape& kernel) {
  const size_t rank = kernel.size();
  if (one_in(2)) window.strides = shape_of(rank, 3);
  if (one_in(4)) window.dilations = shape_of(rank, 2);
  if (one_in(4)) window.auto_pad = static_cast<Window::AutoPad>(below(4));
  if (window.auto_pad == Window::AutoPad::none && one_in(2)) {
    window.pads.assign(rank * 2, 0);
    for (size_t i = 0; i < rank * 2; ++i)
      window.pads[i] = static_cast<int64_t>(below(static_cast<size_t>(kernel[i % rank])));
  }
}

Shape Drawing::image(int64_t channels, size_t spatial, bool nhwc) {
  Shape shape{from_one(3)};
  if (!nhwc) shape.push_back(channels);
  for (size_t i = 0; i < spatial; ++i) shape.push_back(2 + static_cast<int64_t>(below(11)));
  if (nhwc) shape.push_back(channels);
  return shape;
}

Shape Drawing::output_of(const Window& window, const Shape& x, const Shape& kernel,
                         int64_t channels) {
  Shape y{x[0]};
  for (size_t i = 0; i < kernel.size(); ++i) {
    const auto size = ops::window_output(window, i, ir::Dim(x[i + 1]), ir::Dim(kernel[i])).value();
    y.push_back(std::clamp<int64_t>(size.value_or(0), 0, 64));
  }
  y.push_back(channels);
  return y;
}

void Drawing::take(Conv& op) {
  const size_t spatial = one_in(3) ? 1 + below(3) : 2;
  op.nhwc = !one_in(4);
  const bool depthwise = one_in(3), pointwise = one_in(3);
  op.group = depthwise ? from_one(24) : one_in(3) ? from_one(4) : 1;
  const int64_t each = depthwise ? 1 : from_one(one_in(3) ? 40 : 8);
  const int64_t channels = op.group * each, out = op.group * from_one(depthwise ? 2 : 12);
  const Shape kernel = pointwise ? Shape(spatial, 1) : shape_of(spatial, 4);
  draw_window(op.window, kernel);
  draw_activation(op.activation);
  if (op.nhwc && one_in(6)) op.nchw_input = true;
  if (pointwise && op.nhwc && one_in(4))
    op.input_shuffle = channels % 2 == 0 ? 2 : any_of<int64_t>({1, 3});
  op.shuffles_output = op.group > 1 && op.nhwc && one_in(3);
  const bool takes_factors = pointwise && op.nhwc && one_in(3);
  only_first_output_ = !depthwise || one_in(2);
  if (op.nchw_input || takes_factors || !only_first_output_) real_ = float32;
  if (real_ == ElementType::float64 && !one_in(8)) real_ = ElementType::float16;
  const Shape x = image(channels, spatial, op.nhwc && !op.nchw_input);
  Shape w{out, each};
  w.insert(w.end(), kernel.begin(), kernel.end());
  want(Conv::x, x, false, real());
  want(Conv::w, w, takes_factors || !one_in(4), real());
  if (one_in(2)) want(Conv::bias, {out}, one_in(2), real());
  if (one_in(4)) want(Conv::factors, {out}, true, real());
  if (takes_factors) {
    Shape factors(spatial + 2, 1);
    factors.front() = x.front(), factors.back() = channels;
    want(Conv::input_factors, factors);
  }
  if (one_in(3) && op.nhwc && !op.nchw_input) {
    want(Conv::residual, output_of(op.window, x, kernel, out), false, real());
    op.residual_last = one_in(2);
  }
}

void Drawing::take(FusedConvChain& op) {
  const size_t count = 1 + below(3);
  op.depthwise = static_cast<int64_t>(below(count));
  int64_t channels = from_one(16);
  Shape x = image(channels, 2, true);
  want(FusedConvChain::x, x);
  for (size_t i = 0; i < count; ++i) {
    const bool depthwise = std::cmp_equal(i, op.depthwise);
    FusedConvChain::Part& part = op.parts.emplace_back();
    const Shape kernel = depthwise            ? Shape{3, 3}
                         : one_in(2) || i > 0 ? Shape{1, 1}
                                              : shape_of(2, 3);
    if (depthwise || one_in(3)) {
      part.pads = {kernel[0] / 2, kernel[1] / 2, kernel[0] / 2, kernel[1] / 2};
      if (one_in(3)) part.strides = {2, 2};
    }
    part.group = depthwise ? channels : 1;
    const int64_t out = depthwise ? channels : from_one(24), each = depthwise ? 1 : channels;
    draw_activation(part.activation);
    want(FusedConvChain::weights(i), {out, each, kernel[0], kernel[1]}, true);
    if (one_in(2)) want(FusedConvChain::bias(i), {out}, one_in(2));
    if (one_in(3)) want(FusedConvChain::factors(i), {out}, true);
    x = output_of(part.window(), x, kernel, out);
    channels = out;
  }
  if (one_in(3)) want(op.residual(), x);
  if (op.parts.empty()) return;
  op.parts.back().residual_last = one_in(2);
  only_first_output_ = one_in(2);
}

void Drawing::take(ConvTranspose& op) {
  const size_t spatial = one_in(3) ? 1 + below(3) : 2;
  op.nhwc = one_in(2);
  const bool depthwise = op.nhwc && one_in(3);
  op.group = depthwise ? from_one(12) : 1;
  const int64_t channels = depthwise ? op.group : from_one(8);
  const Shape kernel = shape_of(spatial, 4);
  draw_window(op.window, kernel);
  if (!one_in(4)) op.window.dilations.clear();
  for (size_t i = 0; i < op.window.strides.size(); ++i)
    op.window.strides[i] = std::min(op.window.strides[i], kernel[i]);
  if (one_in(4)) op.output_padding = shape_of(spatial, 2);
  if (one_in(6)) op.output_shape = shape_of(spatial, 12);
  if (!depthwise) draw_activation(op.activation);
  Shape w{channels, depthwise ? 1 : from_one(8)};
  const int64_t out = w[1] * op.group;
  w.insert(w.end(), kernel.begin(), kernel.end());
  if (real_ == ElementType::float64 && !one_in(8)) real_ = ElementType::float16;
  want(ConvTranspose::x, image(channels, spatial, op.nhwc), false, real());
  want(ConvTranspose::w, w, !one_in(8), real());
  if (one_in(2)) want(ConvTranspose::bias, {out}, one_in(2), real());
  if (!depthwise && one_in(4)) want(ConvTranspose::factors, {out}, true, real());
}

void Drawing::take(QLinearConv& op) {
  const size_t spatial = one_in(4) ? 1 + below(3) : 2;
  const bool depthwise = one_in(3);
  op.group = depthwise ? from_one(40) : one_in(4) ? from_one(3) : 1;
  const int64_t each = depthwise ? 1 : from_one(20), channels = op.group * each,
                out = op.group * from_one(depthwise ? 1 : 20);
  const Shape kernel = one_in(3) ? Shape(spatial, 1) : shape_of(spatial, 4);
  draw_window(op.window, kernel);
  const Shape x = image(channels, spatial, true);
  Shape w{out, each};
  w.insert(w.end(), kernel.begin(), kernel.end());
  const ElementType of_x = byte(), of_w = byte(), of_y = byte();
  want(QLinearConv::x, x, false, of_x);
  want(QLinearConv::x_scale, {}, one_in(2));
  want(QLinearConv::x_zero, {}, one_in(2), of_x);
  want(QLinearConv::w, w, true, of_w);
  want(QLinearConv::w_scale, one_in(2) ? Shape{out} : Shape{}, one_in(2));
  want(QLinearConv::w_zero, one_in(2) ? Shape{out} : Shape{}, true, of_w);
  want(QLinearConv::y_scale, {}, one_in(2));
  want(QLinearConv::y_zero, {}, one_in(2), of_y);
  if (one_in(2)) want(QLinearConv::bias, {out}, one_in(2), ElementType::int32);
  if (!one_in(3)) return;
  want(QLinearConv::addend, output_of(op.window, x, kernel, out), false, byte());
  for (int i = 0; i < 3; ++i)
    op.scales.push_back({static_cast<float>(from_one(9)) / 8, static_cast<int32_t>(below(200))});
  op.relu = one_in(2);
}

void Drawing::take(QuantizedConv& op) {
  const size_t spatial = one_in(4) ? 1 + below(3) : 2;
  const bool depthwise = one_in(3);
  op.nhwc = !one_in(3);
  op.group = depthwise ? from_one(40) : one_in(4) ? from_one(3) : 1;
  const int64_t each = depthwise ? 1 : from_one(20), channels = op.group * each,
                out = op.group * from_one(depthwise && op.nhwc ? 1 : 20);
  const Shape kernel = one_in(3) ? Shape(spatial, 1) : shape_of(spatial, 4);
  draw_window(op.window, kernel);
  Shape w{out, each};
  w.insert(w.end(), kernel.begin(), kernel.end());
  const ElementType of_x = byte(), of_w = byte();
  draw_activation(op.activation);
  if (!QuantizedConv::takes_activation(op.activation.function)) op.activation = {};
  want(QuantizedConv::x, image(channels, spatial, op.nhwc), false, of_x);
  want(QuantizedConv::x_scale, {}, one_in(2));
  if (one_in(2)) want(QuantizedConv::x_zero, {}, one_in(2), of_x);
  want(QuantizedConv::w, w, true, of_w);
  want(QuantizedConv::w_scale, one_in(2) ? Shape{out} : Shape{}, one_in(2));
  if (one_in(2)) want(QuantizedConv::w_zero, one_in(2) ? Shape{out} : Shape{}, true, of_w);
  if (one_in(2)) want(QuantizedConv::bias, {out}, one_in(2));
}

void Drawing::take(QuantizedMatMul& op) {
  const int64_t M = from_one(9), K = from_one(70), N = from_one(40);
  op.trans_b = one_in(3);
  Shape a = shape_of(below(3), 3), b = op.trans_b || one_in(2) ? Shape{} : a;
  a.push_back(M), a.push_back(K);
  b.push_back(op.trans_b ? N : K), b.push_back(op.trans_b ? K : N);
  const ElementType of_a = byte(), of_b = byte();
  want(QuantizedMatMul::a, a, false, of_a);
  want(QuantizedMatMul::a_scale, {}, one_in(2));
  if (one_in(2)) want(QuantizedMatMul::a_zero, {}, one_in(2), of_a);
  want(QuantizedMatMul::b, b, !one_in(3), of_b);
  want(QuantizedMatMul::b_scale, one_in(2) ? Shape{N} : Shape{}, one_in(2));
  if (one_in(2)) want(QuantizedMatMul::b_zero, one_in(2) ? Shape{N} : Shape{}, one_in(2), of_b);
  if (one_in(2)) want(QuantizedMatMul::bias, one_in(2) ? Shape{N} : Shape{}, one_in(2));
  if (one_in(2)) return;
  want(QuantizedMatMul::y_scale, {}, one_in(2));
  if (one_in(2)) want(QuantizedMatMul::y_zero, {}, one_in(2), byte());
}

void Drawing::take(MatMul& op) {
  const int64_t M = from_one(9), K = from_one(40), N = from_one(40);
  Shape a = shape_of(below(3), 3), b = one_in(2) ? Shape{} : a;
  for (int64_t& size : b) size = one_in(3) ? 1 : size;
  Shape y = a;
  a.push_back(M), a.push_back(K), b.push_back(K), b.push_back(N), y.push_back(M), y.push_back(N);
  if (one_in(8)) a = {K}, y = b, y.erase(y.end() - 2);
  want(MatMul::a, a, one_in(8), real());
  want(MatMul::b, b, one_in(2), real());
  if (one_in(2)) want(MatMul::bias, {N}, one_in(2), real());
  if (one_in(3)) want(MatMul::residual, y, false, real());
  draw_activation(op.activation);
  op.residual_last = one_in(2);
}

void Drawing::take(Gemm& op) {
  const int64_t M = from_one(9), K = from_one(40), N = from_one(40);
  op.trans_a = one_in(4), op.trans_b = one_in(2);
  op.alpha = static_cast<float>(below(4)), op.beta = static_cast<float>(below(4));
  if (one_in(4)) real_ = ElementType::int32;
  want(Gemm::a, op.trans_a ? Shape{K, M} : Shape{M, K}, one_in(8), real());
  want(Gemm::b, op.trans_b ? Shape{N, K} : Shape{K, N}, one_in(2), real());
  if (one_in(2)) {
    const Shape c[] = {{N}, {M, N}, {M, 1}, {1, N}, {}, {1}};
    want(Gemm::c, c[below(std::size(c))], one_in(2), real());
  }
  if (real_ == float32) draw_activation(op.activation);
}

void Drawing::draw_masks(Attention& op, int64_t batch, int64_t heads, int64_t q, int64_t k,
                         bool has_heads) {
  const auto mask = [&] {
    Shape shape{batch};
    if (has_heads) shape.push_back(heads);
    shape.push_back(q), shape.push_back(k);
    for (int64_t& size : shape) size = one_in(3) ? 1 : size;
    shape.erase(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(below(shape.size())));
    return shape;
  };
  if (one_in(2))
    want(Attention::mask, mask(), one_in(3), one_in(2) ? ElementType::boolean : real());
  if (one_in(3)) want(Attention::second_mask, mask(), one_in(3));
  if (one_in(4)) {
    op.inner.push_back(batch);
    for (const int i : {Attention::mask, Attention::second_mask}) {
      if (static_cast<size_t>(i) >= wanted_.size() || !wanted_[static_cast<size_t>(i)]) continue;
      Shape& shape = wanted_[static_cast<size_t>(i)]->shape;
      if (shape.size() == (has_heads ? 4u : 3u)) shape.insert(shape.begin(), 1);
    }
    if (one_in(2)) op.inner.push_back(one_in(2) ? batch : 1);
  }
  if (one_in(4)) op.masked = static_cast<float>(choices_.real());
}

void Drawing::take(Attention& op) {
  const bool has_heads = one_in(2);
  const int64_t batch = from_one(3), kv = from_one(3), heads = has_heads ? kv * from_one(2) : 1,
                length = from_one(9), keys = from_one(20), size = from_one(20),
                v_size = one_in(2) ? size : from_one(20);
  if (!has_heads) op.q_num_heads = op.kv_num_heads = 1;
  for (bool& each : op.transposed) each = one_in(4);
  const auto put = [&](int i, int64_t count, int64_t rows, int64_t columns) {
    const bool is_transposed = op.transposed[static_cast<size_t>(i)];
    Shape shape = has_heads ? Shape{batch, count, rows, columns} : Shape{batch, rows, columns};
    if (is_transposed) std::swap(shape[has_heads ? 1 : 0], shape[has_heads ? 2 : 1]);
    want(i, shape, false, real());
  };
  put(Attention::q, heads, length, size);
  put(Attention::k, kv, keys, size);
  put(Attention::v, kv, keys, v_size);
  if (one_in(2)) op.scale = 0.5f;
  draw_masks(op, batch, heads, length, keys, has_heads);
  if (one_in(16)) {
    want(Attention::past_key, {batch, kv, 3, size}, false, real());
    want(Attention::past_value, {batch, kv, 3, v_size}, false, real());
  } else if (one_in(16)) {
    want(Attention::lengths, {batch}, false, int64).style = Style::anything;
  }
}

void Drawing::take(FusedElementwise& op) {
  using Extent = kernels::ElementwiseExtent;
  using Place = kernels::ElementwiseOperand;
  using Step = kernels::ElementwiseStep;
  const Shape shape = shape_of(below(5), 6);
  const size_t inputs = 1 + below(4), steps = 1 + below(5);
  const bool takes_bytes = one_in(3), gives_bytes = one_in(4);
  for (size_t i = 0; i < inputs; ++i) {
    const auto extent = i == 0 ? Extent::whole : static_cast<Extent>(below(3));
    op.extents.push_back(extent);
    const Shape row = shape.empty() ? Shape{} : Shape{shape.back()};
    want(static_cast<int>(i),
         extent == Extent::whole ? shape
         : extent == Extent::row ? row
                                 : (one_in(2) ? Shape{} : Shape{1}),
         i > 0 && one_in(2), i == 0 && takes_bytes ? ElementType::uint8 : float32);
  }
  const auto add = [&](Step::Kind kind, Place a, Place b, bool last) {
    FusedElementwise::Step& step = op.steps.emplace_back();
    step.op.kind = kind;
    constexpr auto both = kernels::Sides::both;
    do {
      step.op.unary = number<kernels::UnaryOp>(choices_);
    } while (kernels::unary_tile(step.op.unary) == nullptr && !one_in(32));
    do {
      step.op.binary = number<kernels::BinaryOp>(choices_);
    } while (kernels::binary_tile(step.op.binary, both) == nullptr && !one_in(32));
    if (kind == Step::Kind::binary) step.b = {b};
    step.a = {a};
    step.to = {last ? Place{Place::Kind::output, 0} : Place{Place::Kind::tile, 0}};
    step.alpha = 0.5f, step.beta = 2;
    step.op.bytes = ElementType::uint8;
  };
  Place value{Place::Kind::input, 0};
  const Place tile{Place::Kind::tile, 0};
  if (takes_bytes) add(Step::Kind::from_bytes, value, {}, false), value = tile;
  for (size_t i = 0; i < steps; ++i) {
    const bool binary = one_in(2), last = i + 1 == steps && !gives_bytes;
    size_t other = below(inputs);
    if (takes_bytes && other == 0) other = inputs - 1;
    Place b{Place::Kind::input, static_cast<int>(other)};
    if (takes_bytes && other == 0) b = value;
    add(binary ? Step::Kind::binary : Step::Kind::unary, value, b, last);
    value = tile;
  }
  if (gives_bytes) add(Step::Kind::to_bytes, value, {}, true);
}

void Drawing::take(ScaleShift& op) {
  const Shape x = shape_of(2 + below(3), 12);
  draw_activation(op.activation);
  want(ScaleShift::x, x);
  want(ScaleShift::factors, {x.back()}, one_in(2));
  want(ScaleShift::terms, {x.back()}, one_in(2));
}

void Drawing::take(LookupTable&) {
  want(LookupTable::x, shape_of(below(5), 9), false, byte());
  want(LookupTable::table, {256}, !one_in(8), byte()).style = Style::counted;
}

Shape Drawing::take_pool(Window& window) {
  const size_t spatial = one_in(3) ? 1 + below(3) : 2;
  const Shape kernel = shape_of(spatial, 4);
  draw_window(window, kernel);
  window.kernel = kernel;
  window.ceil_mode = one_in(3);
  const Shape x = image(from_one(20), spatial, true);
  want(0, x);
  return x;
}

void Drawing::take(MaxPool& op) {
  take_pool(op.window);
  if (one_in(2)) wanted_[0]->type = any_of({ElementType::uint8, ElementType::int8, real_});
}

void Drawing::take(MaxPoolGradient& op) {
  Shape x = take_pool(op.window);
  Shape y = output_of(op.window, x, op.window.kernel, x.back());
  for (Shape* shape : {&x, &y}) std::rotate(shape->begin() + 1, shape->end() - 1, shape->end());
  want(MaxPoolGradient::x, x, false, real());
  want(MaxPoolGradient::dy, y, false, real());
}

void Drawing::take(InstanceNormalization& op) {
  const Shape x = image(from_one(20), 1 + below(3), true);
  draw_activation(op.activation);
  want(InstanceNormalization::x, x);
  want(InstanceNormalization::scale, {x.back()}, one_in(2));
  want(InstanceNormalization::bias, {x.back()}, one_in(2));
}

void Drawing::take(GroupNormalization& op) {
  op.num_groups = from_one(5);
  const Shape x = image(op.num_groups * from_one(6), 1 + below(3), true);
  draw_activation(op.activation);
  want(GroupNormalization::x, x);
  want(GroupNormalization::scale, {x.back()}, one_in(2));
  want(GroupNormalization::bias, {x.back()}, one_in(2));
}

void Drawing::take(LRN& op) {
  op.size = from_one(7);
  want(0, image(from_one(20), 1 + below(3), true));
}

void Drawing::take(DepthToSpace& op) {
  op.blocksize = from_one(3);
  op.mode = one_in(2) ? DepthMode::CRD : DepthMode::DCR;
  want(0, image(op.blocksize * op.blocksize * from_one(4), 2, true), false,
       any_of({float32, real_, ElementType::uint8}));
}

void Drawing::take(SpaceToDepth& op) {
  op.blocksize = from_one(3);
  op.mode = one_in(2) ? DepthMode::CRD : DepthMode::DCR;
  want(0, {from_one(3), op.blocksize * from_one(4), op.blocksize * from_one(4), from_one(9)}, false,
       any_of({float32, real_, ElementType::uint8}));
}

void Drawing::take(InterleavedConcat& op) {
  op.groups = any_of<int64_t>({2, 4, 8});
  op.relu = one_in(2);
  const Shape x = image(op.groups * from_one(3), 2, true);
  const size_t count = 1 + below(4);
  for (size_t i = 0; i < count; ++i) {
    Shape one = x;
    one.back() = op.groups * from_one(3);
    want(static_cast<int>(i), one);
  }
}

void Drawing::take(InRange& op) {
  const ElementType type = one_in(2) ? int64 : ElementType::int32;
  op.low = one_in(2) ? INT32_MIN : 0;
  want(InRange::x, shape_of(below(3), 5), one_in(4), type).style = Style::indices;
  want(InRange::high, one_in(2) ? Shape{} : Shape{1}, one_in(2), int64).style = Style::anything;
}

void Drawing::take(SumLike&) {
  const Shape x = shape_of(1 + below(4), 6);
  Shape like = x;
  for (int64_t& size : like) size = one_in(3) ? 1 : size;
  like.erase(like.begin(), like.begin() + static_cast<std::ptrdiff_t>(below(like.size() + 1)));
  want(SumLike::x, x, false, real());
  want(SumLike::like, like, false, real());
}

void Drawing::take(AdamW&) {
  const Shape x = shape_of(below(4), 9);
  if (one_in(2)) real_ = float32;
  want(AdamW::rate, {}, one_in(2), real());
  for (const int i : {AdamW::x, AdamW::g, AdamW::v, AdamW::h}) want(i, x, false, real());
  if (one_in(2)) want(AdamW::share, {}, false, real());
  if (one_in(2)) want(AdamW::spread, {}, false, real());
}

void Drawing::take(BatchNormalizationGradient&) {
  const Shape x = image(from_one(9), below(3), false);
  want(BatchNormalizationGradient::x, x, false, real());
  want(BatchNormalizationGradient::scale, {x[1]}, false, real());
  want(BatchNormalizationGradient::dy, x, false, real());
}

void Drawing::take(LayerNormalizationGradient& op) {
  const Shape x = shape_of(1 + below(4), 6);
  op.axis = -1 - static_cast<int64_t>(below(x.size()));
  Shape scale(x.end() + op.axis, x.end());
  for (int64_t& size : scale) size = one_in(4) ? 1 : size;
  want(LayerNormalizationGradient::x, x, false, real());
  want(LayerNormalizationGradient::scale, scale, false, real());
  want(LayerNormalizationGradient::dy, x, false, real());
}

void Drawing::take(ConvWeightGradient& op) {
  const size_t spatial = one_in(3) ? 1 + below(3) : 2;
  op.group = one_in(3) ? from_one(4) : 1;
  const Shape kernel = shape_of(spatial, 3);
  draw_window(op.window, kernel);
  op.window.auto_pad = Window::AutoPad::none;
  const int64_t each = from_one(6), out = op.group * from_one(6);
  Shape x = image(op.group * each, spatial, true);
  Shape y = output_of(op.window, x, kernel, out);
  for (Shape* shape : {&x, &y}) std::rotate(shape->begin() + 1, shape->end() - 1, shape->end());
  op.weights_shape = {out, each};
  op.weights_shape.insert(op.weights_shape.end(), kernel.begin(), kernel.end());
  want(ConvWeightGradient::x, x, false, real());
  want(ConvWeightGradient::dy, y, false, real());
}

void Drawing::take(LSTMRecurrence& op) {
  const int64_t steps = from_one(4), batch = from_one(3), hidden = from_one(20);
  want(LSTMRecurrence::sums, {steps, batch, 4 * hidden}, false, real());
  want(LSTMRecurrence::r, {4 * hidden, hidden}, one_in(2), real());
  want(LSTMRecurrence::initial_h, {batch, hidden}, false, real());
  want(LSTMRecurrence::initial_c, {batch, hidden}, false, real());
  if (one_in(3))
    want(LSTMRecurrence::lengths, {batch}, one_in(2), int64).style =
        one_in(2) ? Style::anything : Style::counted;
  else
    op.reverse = one_in(2);
}

void Drawing::take(LSTMRecurrenceGradient& op) {
  using Op = LSTMRecurrenceGradient;
  const int64_t steps = from_one(4), batch = from_one(3), hidden = from_one(20);
  const Shape state{batch, hidden}, states{steps, batch, hidden}, gates{steps, batch, 4 * hidden};
  want(Op::r, {4 * hidden, hidden}, one_in(2), real());
  want(Op::gates, gates, false, real());
  want(Op::cells, states, false, real());
  want(Op::initial_c, state, false, real());
  if (one_in(3))
    want(Op::lengths, {batch}, one_in(2), int64).style =
        one_in(2) ? Style::anything : Style::counted;
  else
    op.reverse = one_in(2);
  if (!one_in(4)) want(Op::dy, states, false, real());
  if (one_in(2)) want(Op::dy_h, state, false, real());
  if (one_in(2)) want(Op::dy_c, state, false, real());
  if (one_in(3)) want(Op::dgates, gates, false, real());
  if (one_in(3)) want(Op::dcells, states, false, real());
}

// --- The graph -----------------------------------------------------------------------------------

template <class Op>
void Drawing::draw_node() {
  Op op;
  take(op);
  const size_t how = below(8);  // 0 to 3: as it should be
  if (how == 4 || how == 5) {
    Changes changes(choices_, how == 4 ? 8 : 3);
    Op::fields(changes, op);
  }
  write(op, made_.node);
  made_.node.name = "made";
  if (how >= 6 || one_in(12)) change_inputs();
  for (size_t i = 0; i < Op::outputs.size(); ++i) {
    const bool optional = Op::outputs[i].ends_with('?');
    if (i > 0 && optional && (only_first_output_ || one_in(3))) {
      made_.node.outputs.emplace_back();
    } else {
      made_.node.outputs.push_back("y" + std::to_string(i));
    }
  }
  while (!made_.node.outputs.empty() && made_.node.outputs.back().empty())
    made_.node.outputs.pop_back();
}

// One or two inputs other than they should be.
void Drawing::change_inputs() {
  for (size_t left = 1 + below(2); left > 0; --left) {
    const size_t at = below(wanted_.size() + 1);
    if (at == wanted_.size() || !wanted_[at]) {
      if (at == wanted_.size()) wanted_.emplace_back();
      wanted_[at].emplace();
      if (at > 0 && wanted_[0]) wanted_[at] = wanted_[0];
      continue;
    }
    Wanted& wanted = *wanted_[at];
    Shape& shape = wanted.shape;
    constexpr ElementType types[] = {float32,
                                     ElementType::uint8,
                                     ElementType::int8,
                                     ElementType::float16,
                                     ElementType::bfloat16,
                                     ElementType::int32,
                                     int64,
                                     ElementType::float64,
                                     ElementType::boolean,
                                     ElementType::int16,
                                     ElementType::int4,
                                     ElementType::string};
    switch (below(8)) {
      case 0: wanted.type = types[below(std::size(types))]; break;
      case 1: wanted.constant = !wanted.constant; break;
      case 2: shape.insert(shape.begin(), from_one(3)); break;
      case 3:
        if (!shape.empty()) shape.pop_back();
        break;
      case 4: shape = shape_of(below(7), 4); break;
      case 5: wanted_[at].reset(); break;
      default:
        if (!shape.empty()) shape[below(shape.size())] = static_cast<int64_t>(below(20));
        break;
    }
  }
}

Value Drawing::value_of(const Wanted& wanted) {
  Tensor tensor(wanted.type, wanted.shape);
  if (wanted.type != ElementType::string)
    draw_elements(choices_, one_in(16) ? Style::anything : wanted.style, tensor);
  return tensor;
}

void Drawing::declare(const std::string& name, Value value) {
  ir::ValueInfo info;
  info.name = name;
  info.type = wire::type_of(value);
  if (info.type->shape) {
    const size_t how = below(8);  // 0 to 2: as numbers
    if (how == 7) info.type->shape.reset();
    for (size_t i = 0; how >= 3 && how < 7 && i < info.type->shape->dims.size(); ++i) {
      ir::Dimension& dimension = info.type->shape->dims[i];
      const int64_t size = dimension.value.value_or(0);
      if (how == 6 && one_in(2)) continue;
      dimension = {};
      // Sizes that are the same have one name, or each its own, or none.
      if (how == 3) dimension.param = "size" + std::to_string(size);
      if (how == 4 || how == 6) dimension.param = name + "_" + std::to_string(i);
    }
  }
  made_.graph.inputs.push_back(std::move(info));
  made_.inputs.push_back(std::move(value));
}

// Behind a step that makes it, it may be computed in place, or its sizes be known late.
std::string Drawing::behind_another(size_t position, const Wanted& wanted, std::string name) {
  ir::Node& node = made_.graph.nodes.emplace_back();
  node.inputs = {std::move(name)};
  node.outputs = {"made" + std::to_string(position)};
  const bool late = one_in(3);
  if (late) {
    node.op_type = "Reshape";
    node.inputs.push_back("shape" + std::to_string(position));
    Tensor sizes(int64, {static_cast<int64_t>(wanted.shape.size())});
    std::ranges::copy(wanted.shape, sizes.mutable_elements<int64_t>().begin());
    ir::Attribute& attribute = node.attributes.emplace_back();
    attribute.name = "allowzero", attribute.kind = ir::AttributeKind::int_, attribute.i = 1;
    declare(node.inputs.back(), std::move(sizes));
  } else {
    node.op_type = wanted.type == ElementType::boolean ? "Not" : "Abs";
  }
  return node.outputs.front();
}

void Drawing::add_input(size_t position) {
  const Wanted& wanted = *wanted_[position];
  std::string name = "x" + std::to_string(position);
  const Value value = value_of(wanted);
  const bool constant = one_in(16) ? !wanted.constant : wanted.constant;
  if (constant) {
    made_.graph.initializers.push_back(wire::to_proto(value.tensor(), name));
  } else if (one_in(64)) {
    Sequence sequence;
    sequence.items.push_back(value);
    declare(name, Value(std::move(sequence)));
  } else {
    declare(name, value);
    if (wanted.type != ElementType::string && one_in(3))
      name = behind_another(position, wanted, std::move(name));
  }
  made_.node.inputs[position] = std::move(name);
}

InternalNode Drawing::draw() {
  if (one_in(3))
    real_ = any_of({ElementType::float16, ElementType::bfloat16, ElementType::float64});
  has_empty_ = one_in(16), is_large_ = one_in(6);
  size_t count = 0, at = 0;
  AllOperators::any([&]<class Op>(std::type_identity<Op>) { return ++count, false; });
  const size_t chosen = below(count);
  AllOperators::any([&]<class Op>(std::type_identity<Op>) {
    if (at++ != chosen) return false;
    draw_node<Op>();
    return true;
  });
  made_.node.inputs.resize(wanted_.size());
  for (size_t i = 0; i < wanted_.size(); ++i) {
    if (wanted_[i]) add_input(i);
  }
  while (!made_.node.inputs.empty() && made_.node.inputs.back().empty())
    made_.node.inputs.pop_back();
  if (!made_.node.inputs.empty() && one_in(32))
    made_.node.inputs[below(made_.node.inputs.size())] = made_.node.inputs.front();
  made_.graph.name = "single";
  made_.graph.nodes.push_back(made_.node);
  for (const std::string& output : made_.node.outputs) {
    if (!output.empty()) made_.graph.outputs.emplace_back().name = output;
  }
  return std::move(made_);
}

}  // namespace

InternalNode draw_internal_node(const uint8_t* data, size_t size) {
  return Drawing(data, size).draw();
}

}  // namespace sardonyx::fuzzing
