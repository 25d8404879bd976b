#include "kernels/conv/depthwise_bytes.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/depthwise_bytes.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/conv/depthwise_last.h"
#include "kernels/convert/byte_scale.h"
#include "kernels/gemm/blocking.h"
#include "kernels/gemm/pack.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The sums of so many pixels, which are whole numbers, as bytes. Behind the last there is room to
// read for a vector.
template <class Y>
void SumsToBytes(const ConvBytes& job, const float* sums, int64_t pixels, int64_t channels,
                 Y* out) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<Y, decltype(d)> dy;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto low = hn::Set(d, -1e9f), high = hn::Set(d, 1e9f);
  const auto zero = hn::Set(di, job.zero);
  const auto vector = [&](const float* from, const int32_t* bias, const float* scale) HWY_ATTR {
    auto total = hn::ConvertTo(di, hn::LoadU(d, from));
    if (bias != nullptr) total = hn::Add(total, hn::LoadU(di, bias));
    const auto value = hn::Mul(hn::ConvertTo(d, total), hn::LoadU(d, scale));
    return hn::DemoteTo(dy, hn::Add(hn::NearestInt(hn::Min(high, hn::Max(low, value))), zero));
  };
  // Of the channels that fill no vector. What is computed beyond them is the next pixel's, which
  // writes its own there; nothing is written behind the last one.
  const int64_t whole = channels / lanes * lanes, rest = channels - whole;
  HWY_ALIGN float rest_scale[hn::MaxLanes(d)] = {};
  HWY_ALIGN int32_t rest_bias[hn::MaxLanes(d)] = {};
  std::copy_n(job.scale + whole, rest, rest_scale);
  if (job.bias != nullptr) std::copy_n(job.bias + whole, rest, rest_bias);
  for (int64_t i = 0; i < pixels; ++i, sums += channels, out += channels) {
    for (int64_t c = 0; c < whole; c += lanes) {
      const int32_t* bias = job.bias == nullptr ? nullptr : job.bias + c;
      hn::StoreU(vector(sums + c, bias, job.scale + c), dy, out + c);
    }
    if (rest == 0) continue;
    const auto last = vector(sums + whole, rest_bias, rest_scale);
    if ((pixels - i - 1) * channels >= lanes) {
      hn::StoreU(last, dy, out + whole);
    } else {
      HWY_ALIGN Y bytes[hn::MaxLanes(d)];
      hn::StoreU(last, dy, bytes);
      std::copy_n(bytes, rest, out + whole);
    }
  }
}

void FinishPixels(const ConvBytes& job, const float* sums, int64_t pixels, int64_t channels,
                  uint8_t* out) {
  if (job.y_type == ElementType::int8)
    return SumsToBytes(job, sums, pixels, channels, reinterpret_cast<int8_t*>(out));
  SumsToBytes(job, sums, pixels, channels, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {
namespace {

HWY_EXPORT(FinishPixels);

// How an image is cut: into bands of lines, of which a task computes a few at a time. Where windows
// have two dimensions, only the lines under those few are there as floats, in a ring; else, all.
struct Bands {
  Bands(const ConvGeometry& g, int threads)
      : g(g),
        flat(g.kernel[0] == 1 && g.in[0] == 1 && g.out[0] == 1 && g.pad[0] == 0),
        step(flat && g.stride[1] == 1 ? std::min<int64_t>(2, g.out[1]) : 1),
        held(flat ? std::min(window(step), g.in[1]) : 0) {
    constexpr int64_t per_thread = 4;
    const int64_t wanted = threads == 1 ? 1 : divide_up(per_thread * threads, g.batch);
    bands = std::min(wanted, divide_up(g.out[1], step));
  }

  // Lines of the input under so many neighbouring windows.
  int64_t window(int64_t lines) const {
    return (lines - 1) * g.stride[1] + (g.kernel[1] - 1) * g.dilation[1] + 1;
  }
  int64_t row(int64_t band) const { return g.out[1] * band / bands; }
  int64_t line() const { return g.in[2] * g.group; }       // floats of the input
  int64_t out_line() const { return g.out[2] * g.group; }  // and of the output
  int64_t worker_floats() const {
    return round_up(held * line(), 16) + round_up(step * out_line(), 16) + max_lanes;
  }
  int64_t image_floats() const { return flat ? 0 : round_up(g.in_pixels * g.group, 16); }

  const ConvGeometry& g;
  bool flat;
  int64_t step;  // lines computed at a time
  int64_t held;  // of the input
  int64_t bands = 1;
};

void to_floats(const ConvBytes& job, const uint8_t* from, int64_t count, float* to) {
  bytes_to_floats({job.x_type, 1, job.x_zero}, from, to, count);
}

// The output lines [row, end) of a plane. `image`: bytes where the ring holds floats of some of its
// lines, else all as `floats`.
class Band {
 public:
  Band(const Bands& bands, const ConvBytes& job, const uint8_t* image, const float* floats,
       float* space)
      : b_(bands), g_(bands.g), job_(job), image_(image), floats_(floats), ring_(space) {
    sums_ = space + round_up(b_.held * b_.line(), 16);
  }

  void run(int64_t depth, int64_t row, int64_t end, uint8_t* out) {
    for (; row < end; row += b_.step) {
      const int64_t count = std::min(b_.step, end - row);
      if (b_.flat) fill(row * g_.stride[1] - g_.pad[1], b_.window(count));
      DepthwiseLastJob lines;
      lines.geometry = &g_;
      lines.image = b_.flat ? ring_ : floats_;
      lines.held = b_.held;
      lines.weights = reinterpret_cast<const float*>(job_.weights);
      lines.depth = depth, lines.row = row, lines.lines = count;
      lines.low = -std::numeric_limits<float>::infinity();
      lines.high = std::numeric_limits<float>::infinity();
      lines.out = sums_;
      const int64_t at_once = depthwise_channels_at_once(g_);
      for (int64_t c = 0; c < g_.group; c += at_once) {
        lines.first_channel = c;
        lines.end_channel = std::min(c + at_once, g_.group);
        depthwise_last_lines(lines);
      }
      HWY_DYNAMIC_DISPATCH(FinishPixels)(job_, sums_, count * g_.out[2], g_.group, out);
      out += count * b_.out_line();
    }
  }

 private:
  // Turns those of `count` lines from `top` on into floats that are inside and not there yet.
  void fill(int64_t top, int64_t count) {
    const int64_t end = std::min(top + count, g_.in[1]);
    for (done_ = std::max({done_, top, int64_t{0}}); done_ < end; ++done_)
      to_floats(job_, image_ + done_ * b_.line(), b_.line(), ring_ + done_ % b_.held * b_.line());
  }

  const Bands& b_;
  const ConvGeometry& g_;
  const ConvBytes& job_;
  const uint8_t* image_;
  const float* floats_;
  float *ring_, *sums_;
  int64_t done_ = 0;  // lines before this one are floats, as far as they are still needed
};

}  // namespace

int64_t depthwise_bytes_scratch(const ConvGeometry& g, int threads) {
  return most_scratch(threads, [&](int count) {
    const Bands bands(g, count);
    return count * (scratch_alignment + bands.worker_floats() * int64_t{sizeof(float)}) +
           bands.image_floats() * int64_t{sizeof(float)};
  });
}

void depthwise_bytes(const ConvGeometry& g, const ConvBytes& job, void* scratch, ThreadPool& pool) {
  const Bands bands(g, pool.threads());
  const PackedBlocks spaces(scratch, pool.threads(), bands.worker_floats());
  const auto* images = static_cast<const uint8_t*>(job.x);
  auto* out = static_cast<uint8_t*>(job.y);
  const int64_t image = g.in_pixels * g.group, plane = g.out[1] * bands.out_line();
  float* floats = spaces.space(pool.threads());  // behind the workers'
  // Images whose floats are all there take turns.
  const int64_t together = bands.flat ? g.batch : 1;
  for (int64_t first = 0; first < g.batch; first += together) {
    if (!bands.flat) {
      pool.parallel_for(image, int64_t{1} << 16, [&](int64_t begin, int64_t end, int) {
        to_floats(job, images + first * image + begin, end - begin, floats + begin);
      });
    }
    const int64_t planes = together * g.out[0];
    const int64_t work = divide_up(g.out[1], bands.bands) * bands.out_line() * g.taps;
    pool.parallel_for(
        planes * bands.bands, divide_up(task_work, std::max<int64_t>(1, work)),
        [&](int64_t begin, int64_t end, int worker) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t at = first * g.out[0] + i / bands.bands;  // of all planes
            const int64_t row = bands.row(i % bands.bands), stop = bands.row(i % bands.bands + 1);
            Band(bands, job, images + at / g.out[0] * image, floats, spaces.space(worker))
                .run(at % g.out[0], row, stop, out + at * plane + row * bands.out_line());
          }
        });
  }
}

}  // namespace sardonyx::kernels
#endif
