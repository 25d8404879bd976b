#include "kernels/pool/lines.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pool/lines.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;
using Mask = hn::Mask<Floats>;

struct Total {
  static constexpr bool must_see_numbers = false;
  static HWY_INLINE Vector Nothing(Floats d) { return hn::Zero(d); }
  HWY_INLINE Vector operator()(Vector a, Vector b) const { return hn::Add(a, b); }
};
// Of numbers; the first of equals.
struct Largest {
  static constexpr bool must_see_numbers = true;
  static HWY_INLINE Vector Nothing(Floats d) { return hn::Neg(hn::Inf(d)); }
  HWY_INLINE Vector operator()(Vector a, Vector b) const { return hn::Max(b, a); }
};
// NaN wins.
struct LargestOfAll : Largest {
  static constexpr bool must_see_numbers = false;
  HWY_INLINE Vector operator()(Vector a, Vector b) const {
    return hn::IfThenElse(hn::Or(hn::IsNaN(b), hn::Gt(b, a)), b, a);
  }
};

// `V` vectors of lines that are joined, the last masked. The sum tells of what is no number, and of
// infinities of both signs.
template <int V, class Op>
struct Joined {
  HWY_INLINE void Take(const float* x) {
    for (int j = 0; j < V; ++j) {
      sum[j] = v[j] = Load(x, j);
    }
  }
  HWY_INLINE void Add(const Op& op, const float* x) {
    for (int j = 0; j < V; ++j) {
      const auto next = Load(x, j);
      v[j] = op(v[j], next);
      if constexpr (Op::must_see_numbers) sum[j] = hn::Add(sum[j], next);
    }
  }
  HWY_INLINE void AddLines(const Op& op, const float* x, int64_t lines, int64_t step) {
    for (; lines > 0; --lines, x += step) Add(op, x);
  }
  HWY_INLINE void Store(float* to) const {
    const Floats d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int j = 0; j < V - 1; ++j) hn::Store(v[j], d, to + j * lanes);
    hn::Store(hn::IfThenElse(last, v[V - 1], Op::Nothing(d)), d, to + (V - 1) * lanes);
  }
  HWY_INLINE Vector Sum() const {
    auto all = sum[0];
    for (int j = 1; j < V; ++j) all = hn::Add(all, sum[j]);
    return all;
  }
  HWY_INLINE Vector Load(const float* x, int j) const {
    const Floats d;
    x += j * static_cast<int64_t>(hn::Lanes(d));
    return j < V - 1 ? hn::LoadU(d, x) : masked::Load(last, d, x);
  }

  Mask last;
  Vector v[V], sum[V];
};

// body(first float, mask of the last vector, number of vectors) for n floats, up to four vectors at
// once.
template <class Body>
HWY_INLINE void Groups(int64_t n, const Body& body) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto all = hn::FirstN(d, hn::Lanes(d));
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) body(i, all, std::integral_constant<int, 4>());
  if (i == n) return;
  const int64_t vectors = (n - i + lanes - 1) / lanes;
  const auto last = hn::FirstN(d, static_cast<size_t>(n - i - (vectors - 1) * lanes));
  switch (vectors) {
    case 1: return body(i, last, std::integral_constant<int, 1>());
    case 2: return body(i, last, std::integral_constant<int, 2>());
    case 3: return body(i, last, std::integral_constant<int, 3>());
    default: return body(i, last, std::integral_constant<int, 4>());
  }
}

// The lines that one output line joins.
struct Lattice {
  const float* first;
  int64_t slices, slice_step, rows, row_step;
};

template <class Op>
HWY_INLINE void JoinLine(const Op& op, const Lattice& l, int64_t n, float* to, Mask& nan) {
  Groups(n, [&](int64_t i, Mask last, auto vectors) HWY_ATTR {
    Joined<vectors, Op> joined;
    joined.last = last;
    joined.Take(l.first + i);
    joined.AddLines(op, l.first + l.row_step + i, l.rows - 1, l.row_step);
    for (int64_t s = 1; s < l.slices; ++s)
      joined.AddLines(op, l.first + s * l.slice_step + i, l.rows, l.row_step);
    joined.Store(to + i);
    if constexpr (Op::must_see_numbers) nan = hn::Or(nan, hn::IsNaN(joined.Sum()));
  });
}

// Two lines that share `rows` lines of the input: the first takes `above` more, the second `below`.
template <class Op>
HWY_INLINE void JoinTwo(const Op& op, const float* shared, int64_t rows, int64_t above,
                        int64_t below, int64_t step, int64_t n, float* to, int64_t pitch,
                        Mask& nan) {
  Groups(n, [&](int64_t i, Mask last, auto vectors) HWY_ATTR {
    Joined<vectors, Op> a;
    a.last = last;
    a.Take(shared + i);
    a.AddLines(op, shared + step + i, rows - 1, step);
    auto b = a;
    a.AddLines(op, shared - above * step + i, above, step);
    b.AddLines(op, shared + rows * step + i, below, step);
    a.Store(to + i);
    b.Store(to + pitch + i);
    if constexpr (Op::must_see_numbers) nan = hn::Or(nan, hn::IsNaN(hn::Add(a.Sum(), b.Sum())));
  });
}

// Whether nothing but numbers was seen, where that matters.
template <class Op>
HWY_INLINE bool JoinLines(const Op& op, const PoolBlock& b) {
  const Floats d;
  auto nan = hn::FirstN(d, 0);
  float* to = b.lines;
  for (int64_t i = 0; i < b.count; ++i, to += b.pitch) {
    const PoolColumn& column = b.columns[i];
    const float* first = b.plane + column.row * b.row_floats;
    if (column.slices == 1 && b.row_dilation == 1 && i + 1 < b.count && i % 2 == 0) {
      const PoolColumn& next = b.columns[i + 1];
      const int64_t above = next.row - column.row, shared = column.rows - above;
      const int64_t below = next.rows - shared;
      if (next.slices == 1 && above >= 0 && shared > 0 && below >= 0) {
        JoinTwo(op, first + above * b.row_floats, shared, above, below, b.row_floats, b.n, to,
                b.pitch, nan);
        ++i, to += b.pitch;
        continue;
      }
    }
    if (column.slices <= 0 || column.rows <= 0) {
      for (int64_t k = 0; k < b.n; k += static_cast<int64_t>(hn::Lanes(d)))
        hn::Store(Op::Nothing(d), d, to + k);
      continue;
    }
    JoinLine(op,
             {first, column.slices, b.slice_dilation * b.slice_rows * b.row_floats, column.rows,
              b.row_dilation * b.row_floats},
             b.n, to, nan);
  }
  return hn::AllFalse(d, nan);
}

// y[k] = done(window(first float of window k), k) for every output of a line, a vector at a time;
// the last may do some of the one before again.
template <class Window, class Done>
HWY_INLINE void Along(int64_t out, int64_t stride, const float* line, const Window& window,
                      const Done& done, float* y) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (out < lanes)
    return masked::Store(done(window(line), 0), hn::FirstN(d, static_cast<size_t>(out)), d, y);
  for (int64_t k = 0;; k = HWY_MIN(k + lanes, out - lanes)) {
    hn::StoreU(done(window(line + k * stride), k), d, y + k);
    if (k + lanes == out) break;
  }
}

// The stride and the size of the kernel, where not 0, are `stride` and `fixed`.
template <int stride, int fixed, class Op>
struct Windows {
  HWY_INLINE Vector operator()(const float* x) const {
    const Floats d;
    const int64_t taps = fixed != 0 ? fixed : b.kernel;
    if constexpr (stride == 1) {
      const int64_t dilation = fixed != 0 ? 1 : b.dilation;
      auto v = hn::LoadU(d, x);
      for (int64_t j = 1; j < taps; ++j) v = op(v, hn::LoadU(d, x + j * dilation));
      return v;
#if HWY_TARGET != HWY_SCALAR
    } else if constexpr (stride == 2) {
      const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
      auto v = Op::Nothing(d);
      for (int64_t j = 0; j < taps; j += 2) {
        const auto low = hn::LoadU(d, x + j), high = hn::LoadU(d, x + j + lanes);
        v = j == 0 ? hn::ConcatEven(d, high, low) : op(v, hn::ConcatEven(d, high, low));
        if (j + 1 < taps) v = op(v, hn::ConcatOdd(d, high, low));
      }
      return v;
    } else if constexpr (stride == 4) {
      const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
      auto v = Op::Nothing(d);
      for (int64_t j = 0; j < taps; j += 4) {
        const auto a = hn::LoadU(d, x + j), low = hn::LoadU(d, x + j + lanes);
        const auto c = hn::LoadU(d, x + j + 2 * lanes), high = hn::LoadU(d, x + j + 3 * lanes);
        const auto first = hn::ConcatEven(d, low, a), third = hn::ConcatEven(d, high, c);
        v = j == 0 ? hn::ConcatEven(d, third, first) : op(v, hn::ConcatEven(d, third, first));
        const auto second = hn::ConcatOdd(d, low, a), fourth = hn::ConcatOdd(d, high, c);
        if (j + 1 < taps) v = op(v, hn::ConcatEven(d, fourth, second));
        if (j + 2 < taps) v = op(v, hn::ConcatOdd(d, third, first));
        if (j + 3 < taps) v = op(v, hn::ConcatOdd(d, fourth, second));
      }
      return v;
#endif
    } else if constexpr (stride == 3) {
      auto v = Op::Nothing(d);
      for (int64_t j = 0; j < taps; j += 3) {
        Vector a, second, third;
        hn::LoadInterleaved3(d, x + j, a, second, third);
        v = j == 0 ? a : op(v, a);
        if (j + 1 < taps) v = op(v, second);
        if (j + 2 < taps) v = op(v, third);
      }
      return v;
    } else {
      // Lanes without an output read what the last one does.
      const hn::RebindToSigned<Floats> di;
      const auto left = static_cast<int32_t>((end - x) / b.stride);
      const auto at = hn::Mul(hn::Min(hn::Iota(di, 0), hn::Set(di, left)),
                              hn::Set(di, static_cast<int32_t>(b.stride)));
      auto v = hn::GatherIndex(d, x, at);
      for (int64_t j = 1; j < taps; ++j) v = op(v, hn::GatherIndex(d, x + j * b.dilation, at));
      return v;
    }
  }

  const PoolBlock& b;
  const Op& op;
  const float* end;  // where the last window begins
};

template <int stride, int fixed, class Op>
HWY_INLINE void AlongLines(const Op& op, const PoolBlock& b) {
  const Floats d;
  for (int64_t i = 0; i < b.count; ++i) {
    const float* line = b.lines + i * b.pitch - b.before;
    const Windows<stride, fixed, Op> window{b, op, line + (b.out - 1) * b.stride};
    float* y = b.y + i * b.y_pitch;
    if (b.kind == PoolKind::max) {
      Along(
          b.out, b.stride, line, window, [](Vector v, int64_t) HWY_ATTR { return v; }, y);
      continue;
    }
    const float inside = b.columns[i].inside;
    if (*b.scales_for != inside) {
      *b.scales_for = inside;
      for (int64_t k = 0; k < b.out; k += static_cast<int64_t>(hn::Lanes(d))) {
        const auto all = hn::Mul(hn::Set(d, inside), hn::LoadU(d, b.columns_inside + k));
        hn::StoreU(hn::Div(hn::Set(d, 1.0f), all), d, b.scales + k);
      }
    }
    const auto scaled = [&](Vector v, int64_t k)
                            HWY_ATTR { return hn::Mul(v, hn::LoadU(d, b.scales + k)); };
    Along(b.out, b.stride, line, window, scaled, y);
  }
}

template <class Op>
HWY_INLINE void AlongAll(const Op& op, const PoolBlock& b) {
  const bool dense = b.dilation == 1 || b.kernel == 1;
  if (b.stride == 1) {
    if (dense && b.kernel == 2) return AlongLines<1, 2>(op, b);
    if (dense && b.kernel == 3) return AlongLines<1, 3>(op, b);
    if (dense && b.kernel == 5) return AlongLines<1, 5>(op, b);
    return AlongLines<1, 0>(op, b);
  }
#if HWY_TARGET != HWY_SCALAR
  if (dense && b.stride == 2) {
    if (b.kernel == 2) return AlongLines<2, 2>(op, b);
    if (b.kernel == 3) return AlongLines<2, 3>(op, b);
    return AlongLines<2, 0>(op, b);
  }
  if (dense && b.stride == 4) return AlongLines<4, 0>(op, b);
#endif
  if (dense && b.stride == 3) return AlongLines<3, 0>(op, b);
  AlongLines<0, 0>(op, b);
}

void PoolLines(const PoolBlock& b) {
  if (b.kind == PoolKind::average) {
    JoinLines(Total(), b);
    AlongAll(Total(), b);
  } else if (HWY_LIKELY(JoinLines(Largest(), b))) {
    AlongAll(Largest(), b);
  } else {
    JoinLines(LargestOfAll(), b);
    AlongAll(LargestOfAll(), b);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(PoolLines);
void pool_lines(const PoolBlock& block) { HWY_DYNAMIC_DISPATCH(PoolLines)(block); }

}  // namespace sardonyx::kernels
#endif
