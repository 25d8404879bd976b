// GridSample and DeformConv as reads of rows of channels: what flows back is added to those rows.
#include "autodiff/sampling.h"

#include <numeric>

#include "base/fail.h"

namespace sardonyx::autodiff {

using ops::int_attribute;

std::string Sampling::pixel_rows(const std::string& x, int64_t rank) {
  std::vector<int64_t> order{0};
  for (int64_t d = 2; d < rank; ++d) order.push_back(d);
  order.push_back(1);
  const std::string channels =
      op("Shape", {x}, {int_attribute("start", 1), int_attribute("end", 2)});
  return shaped(transposed(x, order), joined({w_.ints({-1}), channels}, 0));
}

Sampling::Taps Sampling::product(const std::vector<AxisTaps>& axes, const Names& sizes) {
  Names rows = axes[0].index, weights = axes[0].weight;
  for (size_t d = 1; d < axes.size(); ++d) {
    Names next_rows, next_weights;
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::string first = mul(rows[i], sizes[d]);
      for (size_t j = 0; j < axes[d].index.size(); ++j) {
        next_rows.push_back(add(first, axes[d].index[j]));
        next_weights.push_back(mul(weights[i], axes[d].weight[j]));
      }
    }
    rows = std::move(next_rows), weights = std::move(next_weights);
  }
  for (std::string& row : rows) row = wider(row, {-1});
  for (std::string& weight : weights) weight = wider(weight, {-1});
  return {joined(rows, -1), joined(weights, -1)};
}

std::string Sampling::weighted_rows(const std::string& rows, const Taps& taps) {
  const std::string values = op("Gather", {rows, taps.row}, {int_attribute("axis", 0)});
  return mul(values, wider(like(taps.weight, rows), {-1}));
}

namespace {

// --- GridSample ---------------------------------------------------------------------------------

class GridAxis {
 public:
  GridAxis(Sampling& s, const ops::NodeView& view, const std::string& size, const std::string& like)
      : s_(s),
        mode_(view.attr_string("mode", "linear")),
        padding_(view.attr_string("padding_mode", "zeros")),
        corners_(view.attr_int("align_corners", 0) != 0) {
    size_ = s.like(size, like);
    last_ = s.plus(size_, -1);
    low_ = s.number(corners_ ? 0 : -0.5, like);
    high_ = corners_ ? last_ : s.plus(size_, -0.5);
  }

  AxisTaps taps(const std::string& position) {
    std::string x = place(position);
    if (mode_ == "nearest") return {{element(x)}, {inside(x)}};
    const std::string first = s_.op("Floor", {x}), part = s_.sub(x, first);
    AxisTaps taps;
    const int before = mode_ == "cubic" ? 1 : 0;
    const Names weights = mode_ == "cubic" ? cubic(part) : Names{one_less(part), part};
    for (size_t i = 0; i < weights.size(); ++i) {
      const std::string at = s_.plus(first, static_cast<double>(i) - before);
      taps.index.push_back(element(at));
      taps.weight.push_back(s_.mul(weights[i], inside(at)));
    }
    return taps;
  }

 private:
  // In elements; as far outside as the padding lets it be.
  std::string place(const std::string& position) {
    const std::string up = s_.plus(position, 1);
    std::string x =
        corners_ ? s_.mul(s_.times(up, 0.5), last_) : s_.times(s_.plus(s_.mul(up, size_), -1), 0.5);
    const std::string zero = s_.number(0, x);
    x = s_.where(s_.op("IsNaN", {x}), zero, x);
    if (mode_ == "nearest") x = s_.op("Round", {x});
    const std::string out = s_.op("Or", {s_.op("Less", {x, low_}), s_.op("Greater", {x, high_})});
    if (padding_ == "border") x = s_.where(out, s_.clip(x, zero, last_), x);
    if (padding_ == "reflection") x = s_.where(out, reflected(x), x);
    return s_.clip(x, s_.number(-4, x), s_.plus(size_, 4));
  }

  std::string reflected(const std::string& x) {
    const std::string range = s_.sub(high_, low_), twice = s_.times(range, 2);
    const std::string some = s_.op("Greater", {range, s_.number(0, range)});
    const std::string period = s_.where(some, twice, s_.number(1, range));
    const std::string away =
        s_.op("Mod", {s_.op("Abs", {s_.sub(x, low_)}), period}, {int_attribute("fmod", 1)});
    const std::string back = s_.where(s_.op("Greater", {away, range}), s_.sub(twice, away), away);
    return s_.where(some, s_.add(low_, back), low_);
  }

  std::string element(const std::string& at) {
    const std::string i =
        padding_ == "reflection" ? s_.op("Floor", {s_.plus(reflected(at), 0.25)}) : at;
    return s_.whole(s_.clip(i, s_.number(0, i), last_));
  }

  std::string inside(const std::string& at) {
    if (padding_ != "zeros") return s_.plus(s_.times(at, 0), 1);
    const std::string in = s_.op("And", {s_.op("GreaterOrEqual", {at, s_.number(0, at)}),
                                         s_.op("LessOrEqual", {at, last_})});
    return s_.like(in, at);
  }

  std::string one_less(const std::string& value) { return s_.sub(s_.number(1, value), value); }

  // Keys' cubic convolution, a = -3/4, for taps at -1, 0, 1, 2.
  Names cubic(const std::string& x) {
    constexpr double a = -0.75;
    const auto polynomial = [&](const std::string& d, double c3, double c2, double c1, double c0) {
      std::string value = s_.plus(s_.times(d, c3), c2);
      for (const double c : {c1, c0}) value = s_.plus(s_.mul(value, d), c);
      return value;
    };
    const auto near = [&](const std::string& d) { return polynomial(d, a + 2, -(a + 3), 0, 1); };
    const auto far = [&](const std::string& d) { return polynomial(d, a, -5 * a, 8 * a, -4 * a); };
    const std::string rest = one_less(x);
    return {far(s_.plus(x, 1)), near(x), near(rest), far(s_.plus(rest, 1))};
  }

  Sampling& s_;
  std::string mode_, padding_;
  bool corners_;
  std::string size_, last_, low_, high_;
};

}  // namespace

std::vector<ir::Node> grid_sample_body(const ir::Node& node, GradientEmitter& e) {
  const ops::NodeView view(node, schema::newest(node.domain, node.op_type));
  const std::string &x = node.inputs[0], &grid = node.inputs[1];
  const auto rank = e.rank(x);
  if (!rank || *rank < 3)
    view.fail(ErrorCode::unsupported, "has no gradient where the rank of X is open");
  const int64_t axes = *rank - 2;
  if (axes > 4) view.fail(ErrorCode::unsupported, "has no gradient beyond four dimensions");
  Sampling s(e);
  std::vector<AxisTaps> taps;
  Names sizes;
  for (int64_t d = 0; d < axes; ++d) {
    sizes.push_back(s.size(x, d + 2));
    const std::string positions =
        s.op("Gather", {grid, s.writer().constant(Tensor::scalar<int64_t>(axes - 1 - d))},
             {int_attribute("axis", -1)});
    taps.push_back(GridAxis(s, view, sizes.back(), grid).taps(positions));
  }
  Sampling::Taps all = s.product(taps, sizes);
  std::string pixels = sizes[0];
  for (size_t d = 1; d < sizes.size(); ++d) pixels = s.mul(pixels, sizes[d]);
  std::vector<int64_t> behind(static_cast<size_t>(axes) + 1), order{0, axes + 1};
  std::iota(behind.begin(), behind.end(), int64_t{1});
  for (int64_t d = 1; d <= axes; ++d) order.push_back(d);
  const std::string image = s.mul(s.counted(s.size(x, 0)), pixels);
  all.row = s.add(all.row, s.wider(image, behind));
  const std::string values = s.weighted_rows(s.pixel_rows(x, *rank), all);
  s.writer().add_to({node.outputs[0]}, "Transpose", {s.summed(values, {-2})},
                    {ops::ints_attribute("perm", order)});
  return s.writer().take();
}

// --- DeformConv ---------------------------------------------------------------------------------

namespace {

class DeformedConvolution {
 public:
  DeformedConvolution(const ir::Node& node, GradientEmitter& e)
      : node_(node), view_(node, schema::newest(node.domain, node.op_type)), s_(e) {
    const auto x = e.image(node.inputs[0]), w = e.shape(node.inputs[1]);
    const auto offsets = e.image(node.inputs[2]);
    if (!x || !w || !offsets || w->size() != x->size() || offsets->size() != x->size()) {
      view_.fail(ErrorCode::unsupported,
                 "has no gradient where sizes other than the batch are open; give the graph's "
                 "inputs their sizes");
    }
    x_ = *x, w_shape_ = *w, out_.assign(offsets->begin() + 2, offsets->end());
    axes_ = w->size() - 2;
    group_ = view_.attr_int("group", 1), shared_ = view_.attr_int("offset_group", 1);
    taps_ = product_of({w->begin() + 2, w->end()}), points_ = product_of(out_);
    if (axes_ > 4 || group_ < 1 || shared_ < 1 || w_shape_[1] < 1)
      view_.fail(ErrorCode::unsupported,
                 "has a gradient with groups of at least 1 and up to four dimensions only");
  }

  std::vector<ir::Node> make() {
    NodeWriter& w = s_.writer();
    const int64_t channels = w_shape_[1] * group_, each = channels / shared_;
    Names sizes;
    std::vector<AxisTaps> taps;
    int64_t pixels = shared_;
    const std::string offsets = s_.shaped(
        node_.inputs[2], w.ints({0, shared_, taps_, static_cast<int64_t>(axes_), points_}));
    for (size_t d = 0; d < axes_; ++d) {
      sizes.push_back(w.constant(Tensor::scalar<int64_t>(x_[d + 2])));
      pixels *= x_[d + 2];
      taps.push_back(axis(offsets, d));
    }
    Sampling::Taps all = s_.product(taps, sizes);
    std::vector<int64_t> first(static_cast<size_t>(shared_));
    std::iota(first.begin(), first.end(), int64_t{0});
    const std::string factor = w.constant(Tensor::scalar<int64_t>(shared_));
    const std::string image = s_.mul(s_.counted(s_.size(node_.inputs[0], 0)),
                                     w.constant(Tensor::scalar<int64_t>(pixels)));
    all.row = s_.add(s_.mul(all.row, factor),
                     w.constant(Tensor::of<int64_t>(first, {1, shared_, 1, 1, 1})));
    all.row = s_.add(all.row, s_.wider(image, {1, 2, 3, 4}));
    // Each group of channels that shares its offsets is a row.
    const std::string rows = s_.shaped(
        s_.pixel_rows(node_.inputs[0], static_cast<int64_t>(axes_) + 2), w.ints({-1, each}));
    std::string columns =
        s_.summed(s_.weighted_rows(rows, all), {-2});  // [batch, shared, taps, points, each]
    if (view_.has_input(4)) {
      const std::string mask = s_.shaped(node_.inputs[4], w.ints({0, shared_, taps_, points_, 1}));
      columns = s_.mul(columns, mask);
    }
    columns = s_.shaped(s_.transposed(columns, {0, 1, 4, 2, 3}),
                        w.ints({0, group_, channels / group_ * taps_, points_}));
    const int64_t made = w_shape_[0];
    const std::string kernel =
        s_.shaped(node_.inputs[1], w.ints({group_, made / group_, channels / group_ * taps_}));
    std::vector<int64_t> shape{0, made};
    shape.insert(shape.end(), out_.begin(), out_.end());
    std::string y = s_.shaped(s_.op("MatMul", {kernel, columns}), w.ints(shape));
    if (view_.has_input(3)) {
      std::vector<int64_t> behind(axes_);
      std::iota(behind.begin(), behind.end(), int64_t{1});
      y = s_.add(y, s_.wider(node_.inputs[3], behind));
    }
    w.add_to({node_.outputs[0]}, "Identity", {y});
    return w.take();
  }

 private:
  // Places are constants of the model: no more than that many.
  int64_t product_of(const Shape& sizes) const {
    constexpr int64_t most = 1 << 24;
    int64_t product = 1;
    for (const int64_t size : sizes) {
      if (size < 0 || (size > 0 && product > most / size))
        view_.fail(ErrorCode::unsupported, "has no gradient with more than {} places", most);
      product *= size;
    }
    return product;
  }
  int64_t entry(std::string_view name, size_t i, int64_t fallback) const {
    const auto list = view_.attr_ints(name);
    return list && i < list->size() ? (*list)[i] : fallback;
  }

  // Where each tap of each output lies before it is moved: [taps, points].
  std::string undeformed(size_t d, const std::string& like) {
    int64_t inner_taps = 1, inner_points = 1;
    for (size_t i = d + 1; i < axes_; ++i) inner_taps *= w_shape_[i + 2], inner_points *= out_[i];
    std::vector<float> tap, point;
    for (int64_t k = 0; k < taps_; ++k)
      tap.push_back(
          static_cast<float>(k / inner_taps % w_shape_[d + 2] * entry("dilations", d, 1)));
    for (int64_t o = 0; o < points_; ++o) {
      point.push_back(static_cast<float>(o / inner_points % out_[d] * entry("strides", d, 1) -
                                         entry("pads", d, 0)));
    }
    NodeWriter& w = s_.writer();
    return s_.add(s_.like(w.constant(Tensor::of<float>(tap, {taps_, 1})), like),
                  s_.like(w.constant(Tensor::of<float>(point, {1, points_})), like));
  }

  AxisTaps axis(const std::string& offsets, size_t d) {
    const std::string at = s_.op(
        "Gather", {offsets, s_.writer().constant(Tensor::scalar<int64_t>(static_cast<int64_t>(d)))},
        {int_attribute("axis", 3)});
    const std::string position = s_.add(at, undeformed(d, at));
    const auto size = static_cast<double>(x_[d + 2]);
    const std::string zero = s_.number(0, at), last = s_.number(size - 1, at);
    const std::string within = s_.op("And", {s_.op("Greater", {position, s_.number(-1, at)}),
                                             s_.op("Less", {position, s_.number(size, at)})});
    // Far away is as far as the nearest place outside.
    const std::string held = s_.where(within, position, s_.number(-1, at));
    const std::string low = s_.op("Floor", {held}), high = s_.plus(low, 1);
    const std::string part = s_.sub(held, low);
    const auto weight = [&](const std::string& index, const std::string& share) {
      const std::string in = s_.op(
          "And", {s_.op("GreaterOrEqual", {index, zero}), s_.op("LessOrEqual", {index, last})});
      return s_.mul(share, s_.like(s_.op("And", {in, within}), at));
    };
    return {{s_.whole(s_.clip(low, zero, last)), s_.whole(s_.clip(high, zero, last))},
            {weight(low, s_.sub(s_.number(1, at), part)), weight(high, part)}};
  }

  const ir::Node& node_;
  ops::NodeView view_;
  Sampling s_;
  Shape x_, w_shape_, out_;
  size_t axes_ = 0;
  int64_t group_ = 1, shared_ = 1, taps_ = 1, points_ = 1;
};

}  // namespace

std::vector<ir::Node> deform_conv_body(const ir::Node& node, GradientEmitter& e) {
  return DeformedConvolution(node, e).make();
}

}  // namespace sardonyx::autodiff
