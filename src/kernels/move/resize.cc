#include "kernels/move/resize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "kernels/convert/cast.h"
#include "kernels/elementwise/walk.h"
#include "kernels/move/by_cell.h"
#include "kernels/move/transpose_block.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t largest_table = int64_t{1} << 30;

// Where output position `o` lies on the input's axis, in the precision of T.
template <class T>
T source_of(CoordinateMode mode, const ResizeAxis& a, int64_t o) {
  constexpr T half = T(0.5);
  const auto in = static_cast<T>(a.in), scale = static_cast<T>(a.scale), at = static_cast<T>(o);
  // The formulas use the output's size with the fraction that some scales make; none are those that
  // rounding of the scale makes.
  const T scaled = scale * in * static_cast<T>(a.extent), out = static_cast<T>(a.out);
  const T width = std::fabs(scaled - out) <= out * T(1e-5) ? out : scaled;
  switch (mode) {
    case CoordinateMode::align_corners: return width == 1 ? 0 : at * (in - 1) / (width - 1);
    case CoordinateMode::asymmetric: return at / scale;
    case CoordinateMode::tf_half_pixel_for_nn: return (at + half) / scale;
    case CoordinateMode::pytorch_half_pixel: return a.out > 1 ? (at + half) / scale - half : 0;
    case CoordinateMode::half_pixel_symmetric: {
      const T adjustment = out / width;
      return in / 2 * (1 - adjustment) + (at + half) / scale - half;
    }
    case CoordinateMode::tf_crop_and_resize: {
      const auto start = static_cast<T>(a.roi_start);
      const T extent = (static_cast<T>(a.roi_end) - start) * (in - 1);
      return start * (in - 1) + (width == 1 ? extent / 2 : at * extent / (width - 1));
    }
    default: return (at + half) / scale - half;
  }
}

// Scales are float32. The nearest element depends on how quotients are rounded that are whole
// numbers but for the scale's own rounding, 17 / 1.7 being 10; frameworks and ONNX Runtime compute
// them in float32.
double nearest_source_of(CoordinateMode mode, const ResizeAxis& a, int64_t o) {
  constexpr int64_t precise = 1 << 22;  // positions of which float32 tells halves apart
  if (std::max(a.in, a.out) > precise) return source_of<double>(mode, a, o);
  return static_cast<double>(source_of<float>(mode, a, o));
}

double nearest_of(NearestMode mode, double x) {
  const double middle = std::floor(x) + 0.5;  // where the scale's rounding would decide
  const bool rounds = mode != NearestMode::floor && mode != NearestMode::ceil;
  if (rounds && std::fabs(x - middle) <= 0x1p-22 * std::max(1.0, std::fabs(x))) x = middle;
  switch (mode) {
    case NearestMode::floor: return std::floor(x);
    case NearestMode::ceil: return std::ceil(x);
    case NearestMode::round_prefer_ceil: return std::floor(x + 0.5);
    default: return std::ceil(x - 0.5);
  }
}

double cubic_weight(double a, double distance) {
  const double x = std::fabs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// The kernel's shape: weight at a distance, and how far it reaches.
struct Kernel {
  ResizeMode mode;
  double a;
  double squeeze;  // below 1 where antialiasing widens the kernel

  double weight(double distance) const {
    if (mode == ResizeMode::cubic) return cubic_weight(a, distance * squeeze);
    return std::max(0.0, 1 - std::fabs(distance * squeeze));
  }
  // Taps go from floor(x) + first() on.
  double first() const { return std::floor((mode == ResizeMode::cubic ? -2 : -1) / squeeze) + 1; }
};

void fill_weights(const Kernel& kernel, const ResizeOptions& options, int64_t in, double x,
                  int64_t first, int64_t taps, int32_t* index, double* weight) {
  const double base = std::floor(x);
  double sum = 0;
  for (int64_t t = 0; t < taps; ++t) {
    const double at = base + static_cast<double>(first + t);
    weight[t] = kernel.weight(at - x);
    if (options.exclude_outside && (at < 0 || at >= static_cast<double>(in))) weight[t] = 0;
    index[t] = static_cast<int32_t>(std::clamp(at, 0.0, static_cast<double>(in - 1)));
    sum += weight[t];
  }
  if (!options.exclude_outside && !options.antialias) return;
  for (int64_t t = 0; t < taps && sum != 0; ++t) weight[t] /= sum;
}

// The numbers that an element consists of.
struct Parts {
  ElementType type;
  int64_t count;
};
Parts parts_of(ElementType type) {
  if (type == ElementType::complex64) return {ElementType::float32, 2};
  if (type == ElementType::complex128) return {ElementType::float64, 2};
  return {type, 1};
}

bool takes_double(ElementType type) {
  return type == ElementType::float64 || (is_integer(type) && bit_width(type) >= 32);
}

// y[i] = Σ weights[t] * x[index[t] * inner + i].
template <class A>
void weighted_rows(const int32_t* index, const double* weight, int64_t taps, int64_t inner,
                   const A* x, A* y) {
  if constexpr (std::is_same_v<A, float>) return sum_lines(x, inner, index, weight, taps, inner, y);
  for (int64_t t = 0; t < taps; ++t) {
    const auto w = static_cast<A>(weight[t]);
    const A* from = x + index[t] * inner;
    if (t == 0) {
      for (int64_t i = 0; i < inner; ++i) y[i] = w * from[i];
    } else if (w != A{0}) {
      for (int64_t i = 0; i < inner; ++i) y[i] += w * from[i];
    }
  }
}

template <class A>
void weighted_row(const int32_t* index, const double* weight, int64_t taps, int64_t out, const A* x,
                  A* y) {
  for (int64_t o = 0; o < out; ++o, index += taps, weight += taps) {
    A sum = static_cast<A>(weight[0]) * x[index[0]];
    for (int64_t t = 1; t < taps; ++t) sum += static_cast<A>(weight[t]) * x[index[t]];
    y[o] = sum;
  }
}

// Integers are held at their bounds, and cut off towards zero.
template <class A>
void bound_for(ElementType type, A* values, int64_t n) {
  if (is_floating(type) || bit_width(type) >= 32) return;
  const int bits = bit_width(type);
  const bool with_sign = is_signed_integer(type);
  const auto high = static_cast<A>((1 << (bits - (with_sign ? 1 : 0))) - 1);
  const A low = with_sign ? -high - 1 : A{0};
  for (int64_t i = 0; i < n; ++i) values[i] = std::clamp(values[i], low, high);
}

}  // namespace

Resize::Table Resize::make_table(const ResizeOptions& options, const ResizeAxis& axis) {
  if (!(axis.scale > 0) || axis.in < 0 || axis.out < 0 || (axis.in == 0 && axis.out > 0) ||
      axis.in > std::numeric_limits<int32_t>::max()) {
    fail(ErrorCode::bad_input, "resizing an axis from {} to {} elements by scale {}", axis.in,
         axis.out, axis.scale);
  }
  Table table{axis.in, axis.out, 1, axis.in == axis.out, {}, {}, {}};
  const bool nearest = options.mode == ResizeMode::nearest;
  const double squeeze = options.antialias ? std::min(axis.scale, 1.0) : 1.0;
  const Kernel kernel{options.mode, options.cubic_a, squeeze};
  const double first = nearest ? 0 : kernel.first();
  if (!nearest) {
    const double taps = 2 - 2 * first;
    const double entries = taps * static_cast<double>(axis.out);
    if (!(entries <= static_cast<double>(largest_table))) {
      fail(ErrorCode::bad_input, "resizing to {} elements by scale {} needs too large a table",
           axis.out, axis.scale);
    }
    table.taps = static_cast<int64_t>(taps);
    table.weight.resize(static_cast<size_t>(table.taps * axis.out));
  }
  if (axis.out > largest_table) {
    fail(ErrorCode::bad_input, "resizing an axis to {} elements is too much", axis.out);
  }
  table.index.resize(static_cast<size_t>(table.taps * axis.out));
  const bool crops = options.coordinates == CoordinateMode::tf_crop_and_resize;
  if (crops) table.outside.resize(static_cast<size_t>(axis.out));
  bool any_outside = false;
  for (int64_t o = 0; o < axis.out; ++o) {
    const double x = nearest ? nearest_source_of(options.coordinates, axis, o)
                             : source_of<double>(options.coordinates, axis, o);
    if (!std::isfinite(x)) {
      fail(ErrorCode::bad_input,
           "resizing an axis of {} elements by scale {}: position {} has no "
           "source",
           axis.in, axis.scale, o);
    }
    table.identity = table.identity && x == static_cast<double>(o);
    if (crops) {
      const bool outside = x < 0 || x > static_cast<double>(axis.in - 1);
      table.outside[static_cast<size_t>(o)] = outside;
      any_outside = any_outside || outside;
    }
    int32_t* index = table.index.data() + o * table.taps;
    if (nearest) {
      const double last = static_cast<double>(axis.in - 1);
      *index = static_cast<int32_t>(std::clamp(nearest_of(options.nearest, x), 0.0, last));
    } else {
      fill_weights(kernel, options, axis.in, x, static_cast<int64_t>(first), table.taps, index,
                   table.weight.data() + o * table.taps);
    }
  }
  if (!any_outside) table.outside.clear();
  return table;
}

Resize::Resize(const ResizeOptions& options, std::span<const ResizeAxis> axes) : options_(options) {
  std::vector<int64_t> in, out;
  for (const ResizeAxis& axis : axes) {
    in.push_back(axis.in);
    out.push_back(axis.out);
    tables_.push_back(make_table(options, axis));
  }
  const auto in_count = checked_count(in);
  const auto out_count = checked_count(out);
  if (!in_count || !out_count) fail(ErrorCode::bad_input, "Resize: too many elements");
  in_count_ = *in_count;
  out_count_ = *out_count;
  largest_step();
  if (out_count_ == 0) return;
  for (size_t d = 0; d < tables_.size(); ++d) {
    if (tables_[d].identity) continue;
    ++active_;
    last_ = d;
  }
  for (size_t d = last_ + 1; d < tables_.size(); ++d) pixel_ *= tables_[d].out;
  if (options.mode == ResizeMode::nearest || active_ == 0 || active_ > 2) return;
  const Table& last = tables_[last_];
  const Table* other = across().table;
  const int64_t taps = other == nullptr ? 1 : other->taps;
  if (pixel_ > 1)
    sums_ = last.taps <= max_pixel_terms && taps <= max_pixel_terms / last.taps;
  else if (last.in <= resize_line_floats)
    along_.emplace(last.index, last.weight, last.out, last.taps);
}

Resize::Across Resize::across() const {
  int64_t passed = 1;
  for (size_t d = last_; d-- > 0; passed *= tables_[d].out)
    if (!tables_[d].identity) return {&tables_[d], passed};
  return {};
}

// Elements of the largest tensor between two axes.
int64_t Resize::largest_step() const {
  int64_t count = in_count_, most = std::max(in_count_, out_count_);
  if (out_count_ == 0) return 0;
  for (size_t d = tables_.size(); d-- > 0;) {
    const auto grown = checked_mul(count / tables_[d].in, tables_[d].out);
    if (!grown) fail(ErrorCode::bad_input, "Resize: too many elements");
    count = *grown;
    most = std::max(most, count);
  }
  return most;
}

int64_t Resize::scratch_bytes(ElementType type) const {
  if (options_.mode == ResizeMode::nearest) return 0;
  if (type == ElementType::float32 && (along_ || sums_)) return 0;
  const Parts parts = parts_of(type);
  const auto width =
      static_cast<int64_t>(takes_double(parts.type) ? sizeof(double) : sizeof(float));
  const auto bytes = checked_mul(largest_step(), 2 * parts.count * width);
  if (!bytes) fail(ErrorCode::out_of_memory, "Resize: scratch memory beyond 2^63 bytes");
  return *bytes;
}

bool Resize::supports(ElementType type) const {
  if (options_.mode == ResizeMode::nearest) {
    return type == ElementType::string || bit_width(type) >= 8;
  }
  return (is_floating(type) || is_integer(type) || parts_of(type).count > 1) &&
         bit_width(type) >= 8;
}

namespace {

// x[0] so many times, then x[1], for elements of 32 bits and 2 to 4 times; others: false.
template <class T>
bool repeat(const T* x, int64_t n, int64_t times, T* y) {
  if constexpr (std::is_same_v<T, uint32_t>) {
    interleave_columns(x, 0, y, n, times);
    return true;
  } else {
    return (void)x, (void)n, (void)times, (void)y, false;
  }
}

}  // namespace

int64_t Resize::repeats(const Table& table) {
  const int64_t times = table.in == 0 ? 0 : table.out / table.in;
  if (times < 2 || times > 4 || times * table.in != table.out) return 0;
  for (int64_t o = 0; o < table.out; ++o)
    if (table.index[static_cast<size_t>(o)] != o / times) return 0;
  return times;
}

template <class Body>
void Resize::for_pixels(int64_t terms, ThreadPool& pool, Body&& body) const {
  const int64_t width = tables_[last_].out, pixels = out_count_ / pixel_;
  const int64_t grain = std::max<int64_t>(1, 2 * element_grain / (pixel_ * terms));
  const auto run = [&](int64_t begin, int64_t end, int) {
    while (begin < end) {
      const int64_t line = begin / width, from = begin % width;
      const int64_t to = std::min(width, from + end - begin);
      body(line, from, to);
      begin += to - from;
    }
  };
  if (pixels <= grain) return run(0, pixels, 0);
  pool.parallel_for(pixels, grain, run);
}

// Nearest; `width`: bytes of an element.
void Resize::pick(int64_t width, const void* x, void* y, ThreadPool& pool) const {
  const Table& last = tables_[last_];
  const int64_t bytes = pixel_ * width;
  for_pixels(1, pool, [&](int64_t line, int64_t begin, int64_t end) {
    int64_t rest = line, source = 0, stride = 1;
    for (size_t d = last_; d-- > 0; stride *= tables_[d].in, rest /= tables_[d].out)
      source += tables_[d].index[static_cast<size_t>(rest % tables_[d].out)] * stride;
    pick_pixels(
        static_cast<const std::byte*>(x) + source * last.in * bytes,
        std::span(last.index).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
        bytes, static_cast<std::byte*>(y) + (line * last.out + begin) * bytes);
  });
}

void Resize::sum(const float* x, float* y, ThreadPool& pool) const {
  const Table& last = tables_[last_];
  const Across other = across();
  const Table* table = other.table;
  const int64_t taps = table == nullptr ? 1 : table->taps;
  const int64_t line_floats = last.in * pixel_;
  for_pixels(last.taps * taps / 2, pool, [&](int64_t line, int64_t begin, int64_t end) {
    PixelTerm terms[max_pixel_terms] = {{0, 1}};
    int64_t used = 1, first = line;  // the first line of the input
    if (table != nullptr) {
      const int64_t at = line / other.between % table->out * taps;
      first = line / other.between / table->out * table->in * other.between + line % other.between;
      used = 0;
      for (int64_t t = 0; t < taps; ++t) {
        const auto i = static_cast<size_t>(at + t);
        if (table->weight[i] == 0) continue;
        terms[used++] = {table->index[i] * other.between * line_floats, table->weight[i]};
      }
    }
    const auto from = static_cast<size_t>(begin * last.taps);
    const auto count = static_cast<size_t>((end - begin) * last.taps);
    sum_pixels(x + first * line_floats, {terms, static_cast<size_t>(used)},
               std::span(last.index).subspan(from, count), last.weight.data() + from, last.taps,
               pixel_, y + (line * last.out + begin) * pixel_);
  });
}

void Resize::run_nearest(ElementType type, const void* x, void* y, ThreadPool& pool) const {
  if (pixel_ > 1 && active_ > 0 && type != ElementType::string)
    return pick(cell_bytes(cell_of(type)), x, y, pool);
  by_cell(cell_of(type), [&](const auto& zero) {
    using T = std::remove_cvref_t<decltype(zero)>;
    const auto* from = static_cast<const T*>(x);
    auto* to = static_cast<T*>(y);
    if (tables_.empty()) {
      *to = *from;
      return;
    }
    const Table& last = tables_.back();
    const int64_t rows = out_count_ / last.out;
    const int64_t times = repeats(last);
    const auto run = [&](int64_t begin, int64_t end, int) {
      int64_t before = -1;  // the source of the row before
      for (int64_t row = begin; row < end; ++row) {
        int64_t rest = row, source = 0, stride = last.in;
        for (size_t d = tables_.size() - 1; d-- > 0;) {
          source += tables_[d].index[static_cast<size_t>(rest % tables_[d].out)] * stride;
          rest /= tables_[d].out;
          stride *= tables_[d].in;
        }
        T* out = to + row * last.out;
        if (source == std::exchange(before, source)) {
          std::copy_n(out - last.out, last.out, out);
        } else if (last.identity) {
          std::copy_n(from + source, last.out, out);
        } else if (times > 0 && repeat(from + source, last.in, times, out)) {
        } else {
          const int32_t* index = last.index.data();
          for (int64_t i = 0; i < last.out; ++i) out[i] = from[source + index[i]];
        }
      }
    };
    const int64_t grain = std::max<int64_t>(1, element_grain / last.out);
    if (rows <= grain) return run(0, rows, 0);
    pool.parallel_for(rows, grain, run);
  });
}

void Resize::run_lines(const float* x, float* y, ThreadPool& pool) const {
  const Table& last = tables_[last_];
  const Across other = across();
  const Table* table = other.table;
  const int64_t between = other.between;
  const int64_t rows = out_count_ / last.out;
  const int64_t taps = table == nullptr ? 1 : table->taps;
  const auto run = [&](int64_t begin, int64_t end, int) {
    alignas(64) float line[resize_line_floats + resize_line_room];
    std::fill_n(line + last.in, resize_line_room, 0.0f);
    for (int64_t row = begin; row < end; ++row) {
      if (table == nullptr) {
        std::copy_n(x + row * last.in, last.in, line);
      } else {
        const int64_t outer = row / between / table->out, middle = row % between;
        const int64_t at = row / between % table->out * taps;
        sum_lines(x + (outer * table->in * between + middle) * last.in, between * last.in,
                  table->index.data() + at, table->weight.data() + at, taps, last.in, line);
      }
      along_->run(line, y + row * last.out);
    }
  };
  const int64_t cost = (last.in * taps + last.out * last.taps) / 4;
  const int64_t grain = std::max<int64_t>(1, element_grain / std::max<int64_t>(cost, 1));
  if (rows <= grain) return run(0, rows, 0);
  pool.parallel_for(rows, grain, run);
}

template <class A>
void Resize::run_axis(const Table& table, int64_t outer, int64_t inner, const A* x, A* y,
                      ThreadPool& pool) {
  const auto chunks = [&](int64_t count, int64_t cost, auto&& body) {
    const int64_t grain = std::max<int64_t>(1, element_grain / std::max<int64_t>(cost, 1));
    if (count <= grain) return body(int64_t{0}, count, 0);
    pool.parallel_for(count, grain, body);
  };
  if (inner == 1) {
    return chunks(outer, table.out * table.taps, [&](int64_t begin, int64_t end, int) {
      for (int64_t o = begin; o < end; ++o) {
        weighted_row(table.index.data(), table.weight.data(), table.taps, table.out,
                     x + o * table.in, y + o * table.out);
      }
    });
  }
  chunks(outer * table.out, inner * table.taps, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t o = row / table.out, at = row % table.out * table.taps;
      weighted_rows(table.index.data() + at, table.weight.data() + at, table.taps, inner,
                    x + o * table.in * inner, y + row * inner);
    }
  });
}

// Hands on what was computed, whose values may be changed where they lie. Integers that are sums of
// more than their neighbours are rounded, as in other engines; the others are cut off. What lies
// just below a byte, where rounding of float32 left it, counts as that byte: images of one colour
// keep it.
template <class A>
void Resize::give(ElementType type, A* values, int64_t n, void* y, ThreadPool& pool) const {
  if (values == y) return;
  constexpr ElementType own =
      sizeof(A) == sizeof(float) ? ElementType::float32 : ElementType::float64;
  if (type != own) {
    const bool integers = !is_floating(type);
    const bool rounds = integers && (options_.antialias || options_.mode == ResizeMode::cubic);
    const bool lifts = integers && !rounds && bit_width(type) == 8;
    constexpr A rounding = A{1} / 4096;
    for_chunks(n, pool, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; rounds && i < end; ++i) values[i] = std::nearbyint(values[i]);
      for (int64_t i = begin; lifts && i < end; ++i)
        values[i] += std::copysign(rounding, values[i]);
      bound_for(type, values + begin, end - begin);
    });
  }
  cast(own, type, values, y, n, {}, pool);
}

template <class A>
void Resize::run_axes(ElementType type, int64_t parts, const void* x, void* y, A* scratch,
                      ThreadPool& pool) const {
  constexpr ElementType own =
      sizeof(A) == sizeof(float) ? ElementType::float32 : ElementType::float64;
  A* buffers[2] = {scratch, scratch == nullptr ? nullptr : scratch + largest_step() * parts};
  const A* current = static_cast<const A*>(x);
  int next = 0;
  if (type != own) {
    cast(type, own, x, buffers[0], in_count_ * parts, {}, pool);
    current = buffers[0];
    next = 1;
  }
  size_t active = active_;
  if constexpr (std::is_same_v<A, float>) {
    if (parts == 1 && (along_ || sums_)) {
      A* to = type == own ? static_cast<A*>(y) : buffers[next];
      if (sums_)
        sum(current, to, pool);
      else
        run_lines(current, to, pool);
      return give(type, to, out_count_, y, pool);
    }
  }
  int64_t count = in_count_ * parts, inner = parts;
  for (size_t d = tables_.size(); d-- > 0;) {
    const Table& table = tables_[d];
    if (!table.identity) {
      A* to = --active == 0 && type == own ? static_cast<A*>(y) : buffers[next];
      const int64_t outer = count / (table.in * inner);
      run_axis(table, outer, inner, current, to, pool);
      count = outer * table.out * inner;
      current = to;
      next = 1 - next;
    }
    inner *= table.out;
  }
  // Only ever scratch memory is written to: the input was converted into it.
  give(type, const_cast<A*>(current), count, y, pool);
}

void Resize::extrapolate(ElementType type, void* y, ThreadPool&) const {
  bool any = false;
  for (const Table& table : tables_) any = any || !table.outside.empty();
  if (!any) return;
  alignas(16) uint8_t value[16] = {};
  // The real part, where there are two.
  cast_row(ElementType::float64, parts_of(type).type, &options_.extrapolation_value, value, 1);
  const int64_t width = cell_bytes(cell_of(type));
  for (int64_t i = 0; i < out_count_; ++i) {
    int64_t rest = i;
    bool outside = false;
    for (size_t d = tables_.size(); d-- > 0;) {
      const Table& table = tables_[d];
      const auto at = static_cast<size_t>(rest % table.out);
      outside = outside || (!table.outside.empty() && table.outside[at] != 0);
      rest /= table.out;
    }
    if (outside) std::copy_n(value, width, static_cast<uint8_t*>(y) + i * width);
  }
}

void Resize::run(ElementType type, const void* x, void* y, void* scratch, ThreadPool& pool) const {
  if (!supports(type)) fail(ErrorCode::unsupported, "Resize does not take {}", name_of(type));
  if (out_count_ == 0) return;
  if (options_.mode == ResizeMode::nearest) {
    run_nearest(type, x, y, pool);
  } else {
    const Parts parts = parts_of(type);
    if (takes_double(parts.type))
      run_axes(parts.type, parts.count, x, y, static_cast<double*>(scratch), pool);
    else
      run_axes(parts.type, parts.count, x, y, static_cast<float*>(scratch), pool);
  }
  if (type != ElementType::string) extrapolate(type, y, pool);
}

}  // namespace sardonyx::kernels
