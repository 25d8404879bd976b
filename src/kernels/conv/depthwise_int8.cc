#include "kernels/conv/depthwise_int8.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/depthwise_int8.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/conv/depthwise_int8_part.h"
#include "kernels/conv/depthwise_nhwc.h"
#include "kernels/convert/bytes-inl.h"
#include "kernels/gemm/pack.h"
#include "kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

namespace bytes = sardonyx::HWY_NAMESPACE::bytes;
namespace math = sardonyx::HWY_NAMESPACE::math;

constexpr int64_t part = depthwise_bytes_part;
using Floats = bytes::Tag;
constexpr auto lanes = static_cast<int64_t>(hn::MaxLanes(Floats()));
constexpr int vectors = part / lanes;  // of a pixel

template <class X>
void Widen(const BytesPart& of, const X* from, int64_t pixels, float* to) {
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  const hn::Rebind<X, Floats> dx;
  const auto zero = hn::Set(d, static_cast<float>(of.x_zero));
  const auto pixel = [&](const X* bytes) HWY_ATTR {
    for (int64_t c = 0; c < part; c += lanes) {
      const auto x = hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(dx, bytes + c)));
      hn::StoreU(hn::Sub(x, zero), d, to + c);
    }
  };
  if (of.count == part) {
    for (int64_t i = 0; i < pixels; ++i, from += of.channels, to += part) pixel(from);
    return;
  }
  X some[part] = {};
  for (int64_t i = 0; i < pixels; ++i, from += of.channels, to += part) {
    std::copy_n(from, of.count, some);
    pixel(some);
  }
}

// Y: float, uint8_t or int8_t.
template <class Y>
void Finish(const BytesPart& of, const float* sums, int64_t pixels, Y* to) {
  constexpr bool is_float = std::is_same_v<Y, float>;
  const Floats d;
  const bytes::IntTag di;
  const bytes::Rounder<std::conditional_t<is_float, uint8_t, Y>> rounder(of.zero);
  hn::Vec<bytes::IntTag> bias[vectors];
  bytes::Vec scale[vectors], shift[vectors];
  for (int v = 0; v < vectors; ++v) {
    bias[v] = hn::LoadU(di, of.bias + v * lanes);
    scale[v] = hn::LoadU(d, of.scale + v * lanes);
    shift[v] = hn::LoadU(d, of.shift + v * lanes);
  }
  const auto pixel = [&](Y* y) HWY_ATTR {
    bytes::Vec values[vectors];
    for (int v = 0; v < vectors; ++v) {
      const auto sum = hn::LoadU(d, sums + v * lanes);
      if constexpr (is_float) {
        const auto raised = math::RaiseTo(d, hn::MulAdd(sum, scale[v], shift[v]), of.low);
        hn::StoreU(math::LowerTo(d, raised, of.high), d, y + v * lanes);
      } else {
        const auto total = hn::Add(hn::ConvertTo(di, sum), bias[v]);
        values[v] = hn::Mul(hn::ConvertTo(d, total), scale[v]);
      }
    }
    if constexpr (!is_float) rounder.template store<vectors>(values, y);
  };
  if (of.count == part) {
    for (int64_t i = 0; i < pixels; ++i, sums += part, to += of.channels) pixel(to);
    return;
  }
  Y some[part];
  for (int64_t i = 0; i < pixels; ++i, sums += part, to += of.channels) {
    pixel(some);
    std::copy_n(some, of.count, to);
  }
}

void WidenPixels(const BytesPart& of, const uint8_t* from, int64_t pixels, float* to) {
  if (of.x_type == ElementType::int8)
    return Widen(of, reinterpret_cast<const int8_t*>(from), pixels, to);
  Widen(of, from, pixels, to);
}

void FinishPixels(const BytesPart& of, const float* sums, int64_t pixels, void* to) {
  switch (of.y_type) {
    case ElementType::float32: return Finish(of, sums, pixels, static_cast<float*>(to));
    case ElementType::int8: return Finish(of, sums, pixels, static_cast<int8_t*>(to));
    default: return Finish(of, sums, pixels, static_cast<uint8_t*>(to));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {
namespace {

HWY_EXPORT(WidenPixels);
HWY_EXPORT(FinishPixels);

constexpr int64_t part = depthwise_bytes_part;

// How images are cut into tasks: some channels of a tile of rows of lines, a few of which are
// computed at a time. Where windows have two dimensions only the lines under those few are there as
// floats, in a ring; else the whole image is.
struct Tasks {
  Tasks(const ConvGeometry& g, int threads)
      : g(g),
        of_part(g),
        flat(g.kernel[0] == 1 && g.in[0] == 1 && g.out[0] == 1 && g.pad[0] == 0),
        step(flat && g.stride[1] == 1 ? std::min<int64_t>(2, g.out[1]) : 1),
        lines(flat ? std::min(window(step), g.in[1]) : g.in[0] * g.in[1]),
        parts(divide_up(g.group, part)) {
    constexpr int64_t per_thread = 4;
    if (flat && threads > 1)
      row_tiles =
          std::min(divide_up(per_thread * threads, g.batch * parts), divide_up(g.out[1], step));
    of_part.group = part;
  }

  // Lines of the input under so many neighbouring windows.
  int64_t window(int64_t count) const {
    return (count - 1) * g.stride[1] + (g.kernel[1] - 1) * g.dilation[1] + 1;
  }
  int64_t row(int64_t row_tile) const { return g.out[1] * row_tile / row_tiles; }
  int64_t count() const { return g.batch * parts * row_tiles; }
  int64_t input_floats() const { return lines * g.in[2] * part; }
  int64_t worker_floats() const { return input_floats() + step * g.out[2] * part; }

  const ConvGeometry& g;
  ConvGeometry of_part;  // of so many channels
  bool flat;
  int64_t step;   // lines computed at a time
  int64_t lines;  // of the input that are floats
  int64_t parts;
  int64_t row_tiles = 1;
};

// Some channels of an image, whose first bytes are at `in` and `out`.
class RowTile {
 public:
  RowTile(const Tasks& tasks, const ConvInt8& job, int64_t index, const uint8_t* in, uint8_t* out,
          float* space)
      : t_(tasks),
        g_(tasks.g),
        of_(job, g_.group, index),
        weights_(reinterpret_cast<const float*>(job.weights) + index * part * g_.taps),
        in_(in + index * part),
        out_(out + byte_size(job.y_type, index * part)),
        input_(space),
        sums_(space + tasks.input_floats()) {}

  void run(int64_t row, int64_t end) {
    if (!t_.flat) widen(0, t_.lines);
    for (int64_t depth = 0; depth < g_.out[0]; ++depth) {
      for (int64_t at = row; at < end; at += t_.step) {
        const int64_t count = std::min(t_.step, end - at);
        if (t_.flat) fill(at * g_.stride[1] - g_.pad[1], t_.window(count));
        DepthwiseNhwcJob lines;
        lines.geometry = &t_.of_part;
        lines.image = input_;
        lines.held = t_.flat ? t_.lines : 0;
        lines.weights = weights_;
        lines.depth = depth, lines.row = at, lines.lines = count;
        lines.end_channel = part;
        lines.low = -std::numeric_limits<float>::infinity();
        lines.high = std::numeric_limits<float>::infinity();
        lines.out = sums_;
        depthwise_nhwc_lines(lines);
        const int64_t pixel = (depth * g_.out[1] + at) * g_.out[2];
        HWY_DYNAMIC_DISPATCH(FinishPixels)
        (of_, sums_, count * g_.out[2], out_ + byte_size(of_.y_type, pixel * g_.group));
      }
    }
  }

 private:
  // Of `count` lines from `top` on, those that are inside and not there yet.
  void fill(int64_t top, int64_t count) {
    const int64_t end = std::min(top + count, g_.in[1]);
    for (done_ = std::max({done_, top, int64_t{0}}); done_ < end; ++done_) widen(done_, 1);
  }
  void widen(int64_t line, int64_t count) {
    HWY_DYNAMIC_DISPATCH(WidenPixels)
    (of_, in_ + line * g_.in[2] * g_.group, count * g_.in[2],
     input_ + line % t_.lines * g_.in[2] * part);
  }

  const Tasks& t_;
  const ConvGeometry& g_;
  const BytesPart of_;
  const float* weights_;
  const uint8_t* in_;
  uint8_t* out_;
  float *input_, *sums_;
  int64_t done_ = 0;  // lines before this one are floats, as far as they are still needed
};

}  // namespace

BytesPart::BytesPart(const ConvInt8& job, int64_t channels, int64_t index)
    : x_type(job.x_type),
      y_type(job.y_type),
      x_zero(job.x_zero),
      zero(job.zero),
      channels(channels),
      count(std::min(part, channels - index * part)),
      low(job.low),
      high(job.high) {
  std::copy_n(job.scale + index * part, count, scale);
  if (job.bias != nullptr) std::copy_n(job.bias + index * part, count, bias);
  if (job.shift != nullptr) std::copy_n(job.shift + index * part, count, shift);
}

int64_t depthwise_bytes_scratch(const ConvGeometry& g, int threads) {
  return max_scratch(threads, [&](int count) {
    return count * (scratch_alignment + Tasks(g, count).worker_floats() * int64_t{sizeof(float)});
  });
}

void depthwise_bytes(const ConvGeometry& g, const ConvInt8& job, void* scratch, ThreadPool& pool) {
  const Tasks tasks(g, pool.threads());
  const PackedBlocks spaces(scratch, pool.threads(), tasks.worker_floats());
  const auto* images = static_cast<const uint8_t*>(job.x);
  auto* out = static_cast<uint8_t*>(job.y);
  const int64_t work = divide_up(g.out[1], tasks.row_tiles) * g.out[0] * g.out[2] * part * g.taps;
  pool.parallel_for(
      tasks.count(), divide_up(task_work, std::max<int64_t>(1, work)),
      [&](int64_t begin, int64_t end, int worker) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t row_tile = i % tasks.row_tiles, index = i / tasks.row_tiles % tasks.parts,
                        image = i / tasks.row_tiles / tasks.parts;
          RowTile(tasks, job, index, images + image * g.in_pixels * g.group,
                  out + byte_size(job.y_type, image * g.out_pixels * g.group), spaces.space(worker))
              .run(tasks.row(row_tile), tasks.row(row_tile + 1));
        }
      });
}

}  // namespace sardonyx::kernels
#endif
