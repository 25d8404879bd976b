#include "kernels/conv/transposed.h"

#include <algorithm>
#include <cstring>

#include "base/counted.h"
#include "base/thread_pool.h"
#include "kernels/conv/column_row.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t row_tile_floats = int64_t{1} << 18;  // made at a time, with channels last
constexpr int64_t alignment = 64;

int64_t aligned(int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }
int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }
int64_t product(const int64_t (&n)[3]) { return n[0] * n[1] * n[2]; }

// Phases with equally many taps, along one axis.
struct Phases {
  int64_t first = 0, count = 1, taps = 1;
};

// One axis of the operator; the phase of output o is (o + pad) % stride.
struct Axis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, pad = 0;
  Phases phases[2];
  int kinds = 1;
  // Windows of X that outputs come from, counted as if Y began with phase 0 of window 0.
  int64_t window = 0, windows = 1;

  Axis() = default;
  Axis(const ConvParams& shape, size_t i)
      : in(shape.in[i]),
        out(shape.out[i]),
        kernel(shape.kernel[i]),
        stride(shape.stride[i]),
        pad(shape.pad_begin[i]),
        window(floor_div(pad, stride)),
        windows(floor_div(pad + out + stride - 1, stride) - window) {
    const int64_t rest = kernel % stride;
    if (rest == 0) {
      phases[0] = {0, stride, kernel / stride};
    } else {
      phases[0] = {0, rest, kernel / stride + 1};
      phases[1] = {rest, stride - rest, kernel / stride};
      kinds = 2;
    }
  }
};

// A convolution that makes all phases of a kind on each axis. Its output channels are
// [phase, phase, phase, out_channels].
struct Part {
  ConvParams conv;
  const Phases* phases[3];
  int64_t counts[3];  // of phases
};

struct Plan {
  explicit Plan(const ConvParams& given) : shape(given) {
    for (size_t i = 0; i < static_cast<size_t>(shape.rank); ++i) axes[lead() + i] = Axis(shape, i);
    for (int a = 0; a < axes[0].kinds; ++a) {
      for (int b = 0; b < axes[1].kinds; ++b) {
        for (int c = 0; c < axes[2].kinds; ++c) parts[part_count++] = part(a, b, c);
      }
    }
  }

  Plan(const Plan&) = delete;  // parts name phases of its axes
  Plan& operator=(const Plan&) = delete;

  // Axes that the operator does not have stand in front.
  size_t lead() const { return 3 - static_cast<size_t>(shape.rank); }
  // All outputs are of one phase: the convolution makes Y itself.
  bool is_plain() const { return axes[0].stride * axes[1].stride * axes[2].stride == 1; }

  Part part(int a, int b, int c) const {
    Part made{shape, {&axes[0].phases[a], &axes[1].phases[b], &axes[2].phases[c]}, {}};
    for (size_t i = 0; i < 3; ++i) made.counts[i] = made.phases[i]->count;
    made.conv.out_channels = product(made.counts) * shape.out_channels;
    for (size_t i = 0; i < static_cast<size_t>(shape.rank); ++i) {
      made.conv.kernel[i] = made.phases[lead() + i]->taps;
      made.conv.stride[i] = made.conv.dilation[i] = 1;
      const Axis& axis = axes[lead() + i];
      see(made.conv, i, axis.window, axis.windows);
    }
    return made;
  }

  // Has a convolution make these windows along spatial axis i.
  void see(ConvParams& conv, size_t i, int64_t window, int64_t windows) const {
    conv.in[i] = shape.in[i];
    conv.out[i] = windows;
    conv.pad_begin[i] = conv.kernel[i] - 1 - window;
    conv.pad_end[i] = windows - conv.in[i] - conv.pad_begin[i] + conv.kernel[i] - 1;
  }

  // Has it make a tile of rows of windows of one image: those along the outermost axis. With
  // channels last it is given the lines of X that they read; returns the first of those.
  int64_t see_row_tile(ConvParams& conv, int64_t window, int64_t windows) const {
    conv.batch = 1;
    see(conv, 0, window, windows);
    if (!shape.nhwc) return 0;
    const int64_t from = -conv.pad_begin[0], to = from + windows + conv.kernel[0] - 1;
    const int64_t first = std::clamp<int64_t>(from, 0, std::max<int64_t>(0, shape.in[0] - 1));
    const int64_t last = std::clamp(to, std::min(first + 1, shape.in[0]), shape.in[0]);
    conv.in[0] = last - first;
    conv.pad_begin[0] = first - from;
    conv.pad_end[0] = to - last;
    return first;
  }

  // Windows along the outermost axis that are made at a time.
  int64_t row_tile() const {
    const Axis& outer = axes[lead()];
    if (!shape.nhwc) return outer.windows;
    int64_t line = shape.out_channels;
    for (size_t i = 0; i < 3; ++i) line *= axes[i].stride * (i == lead() ? 1 : axes[i].windows);
    return std::clamp<int64_t>(row_tile_floats / std::max<int64_t>(1, line), 1,
                               std::max<int64_t>(1, outer.windows));
  }

  // Floats that a part makes of one image, in a tile of rows of so many windows.
  int64_t floats(const Part& part, int64_t row_tile) const {
    int64_t n = part.conv.out_channels * row_tile;
    for (size_t i = 1; i < static_cast<size_t>(shape.rank); ++i) n *= part.conv.out[i];
    return n;
  }

  const ConvParams shape;
  Axis axes[3];
  Part parts[8];
  int part_count = 0;
};

// Where everything of a run lies in its scratch memory; behind it, that of the convolutions.
struct Room {
  explicit Room(const Plan& plan) {
    if (plan.is_plain()) return;
    const int64_t row_tile = plan.row_tile();
    for (int k = 0; k < plan.part_count; ++k) {
      bias[k] = take(plan.parts[k].conv.out_channels);
      made[k] = take(plan.floats(plan.parts[k], row_tile));
    }
  }

  int64_t take(int64_t floats) {
    const int64_t at = bytes;
    bytes += aligned(floats * static_cast<int64_t>(sizeof(float)));
    return at;
  }

  int64_t bias[8] = {}, made[8] = {}, bytes = 0;
};

// --- Putting phases together ---------------------------------------------------------------------

// What the parts made of one image: windows [window, window + windows) along each axis.
struct Made {
  const Plan& plan;
  const float* floats[8];
  int64_t window[3], windows[3];

  struct Place {
    int kind;
    int64_t phase, window;  // of its kind; of those made
  };
  Place place(size_t axis, int64_t out) const {
    const Axis& a = plan.axes[axis];
    const int64_t at = out + a.pad, phase = at - floor_div(at, a.stride) * a.stride;
    const int kind = a.kinds == 2 && phase >= a.phases[1].first;
    return {kind, phase - a.phases[kind].first, floor_div(at, a.stride) - window[axis]};
  }
  // The outputs along an axis that all of their windows have been made of.
  int64_t first_output(size_t axis) const {
    const Axis& a = plan.axes[axis];
    return std::max<int64_t>(0, window[axis] * a.stride - a.pad);
  }
  int64_t end_output(size_t axis) const {
    const Axis& a = plan.axes[axis];
    return std::min(a.out, (window[axis] + windows[axis]) * a.stride - a.pad);
  }
  int index(const Place& d, const Place& h, int kind) const {
    return (d.kind * plan.axes[1].kinds + h.kind) * plan.axes[2].kinds + kind;
  }
};

// Row (d, h) of an image with channels last: blocks of all channels of neighbouring phases.
void join_pixels(const Made& made, int64_t d, int64_t h, float* row) {
  const Plan& plan = made.plan;
  const int64_t channels = plan.shape.out_channels;
  const auto at_d = made.place(0, d), at_h = made.place(1, h);
  const Axis& axis = plan.axes[2];
  const int64_t begin = made.first_output(2), end = made.end_output(2);
  for (int kind = 0; kind < axis.kinds; ++kind) {
    const int k = made.index(at_d, at_h, kind);
    const Part& part = plan.parts[k];
    const int64_t count = part.counts[2], pixel = part.conv.out_channels;
    const float* from = made.floats[k] +
                        (at_d.window * made.windows[1] + at_h.window) * made.windows[2] * pixel +
                        (at_d.phase * part.counts[1] + at_h.phase) * count * channels;
    int64_t out = made.window[2] * axis.stride + part.phases[2]->first - axis.pad;
    for (int64_t w = 0; w < made.windows[2]; ++w, out += axis.stride, from += pixel) {
      const int64_t first = std::max(out, begin), last = std::min(out + count, end);
      if (first >= last) continue;
      const float* block = from + (first - out) * channels;
      float* to = row + first * channels;
      const int64_t n = (last - first) * channels;
      constexpr int64_t few = 16;
      if (n < few) {
        for (int64_t i = 0; i < n; ++i) to[i] = block[i];
      } else {
        std::memcpy(to, block, static_cast<size_t>(n) * sizeof(float));
      }
    }
  }
}

// Row (d, h) of channel m's plane: elements of the phases in turns.
void join_row(const Made& made, int64_t m, int64_t d, int64_t h, float* row) {
  const Plan& plan = made.plan;
  const auto at_d = made.place(0, d), at_h = made.place(1, h);
  const Axis& axis = plan.axes[2];
  const auto source = [&](int64_t out) {
    const auto at = made.place(2, out);
    const int k = made.index(at_d, at_h, at.kind);
    const int64_t(&counts)[3] = plan.parts[k].counts;
    const int64_t channel =
        ((at_d.phase * counts[1] + at_h.phase) * counts[2] + at.phase) * plan.shape.out_channels +
        m;
    const int64_t line = (channel * made.windows[0] + at_d.window) * made.windows[1] + at_h.window;
    return made.floats[k] + line * made.windows[2] + at.window;
  };
  if (axis.stride == 1) {
    std::memcpy(row, source(0), static_cast<size_t>(axis.out) * sizeof(float));
    return;
  }
  if (axis.stride == 2 && axis.out > 1) {
    const float *even = source(0), *odd = source(1);
    const ColumnTap taps[2] = {{0, (axis.out + 1) / 2, 0}, {odd - even, axis.out / 2, 0}};
    const int64_t ends[2] = {1, 2};
    return sum_columns({&even, 1, taps, ends, 2, axis.out, 0.0f}, row);
  }
  for (int64_t e = 0; e < std::min(axis.stride, axis.out); ++e) {
    const float* from = source(e);
    for (int64_t i = e; i < axis.out; i += axis.stride) row[i] = *from++;
  }
}

void join(const Made& made, float* y, ThreadPool& pool) {
  const Plan& plan = made.plan;
  const int64_t channels = plan.shape.out_channels;
  const int64_t heights = plan.axes[1].out, width = plan.axes[2].out;
  const bool last = plan.shape.nhwc;
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, width * channels));
  const int64_t d0 = made.first_output(0), h0 = made.first_output(1);
  const int64_t rows = std::max<int64_t>(0, made.end_output(1) - h0);
  const int64_t count = std::max<int64_t>(0, made.end_output(0) - d0) * rows;
  if (last) {
    return pool.parallel_for(count, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t d = d0 + i / rows, h = h0 + i % rows;
        join_pixels(made, d, h, y + (d * heights + h) * width * channels);
      }
    });
  }
  const int64_t lines = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, width));
  pool.parallel_for(channels * count, lines, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      join_row(made, i / count, i % count / heights, i % heights, y + i * width);
  });
}

}  // namespace

std::string_view refuses_transposed(const ConvParams& shape) {
  if (shape.group != 1) return "several groups";
  for (size_t i = 0; i < static_cast<size_t>(shape.rank); ++i) {
    if (shape.dilation[i] != 1) return "dilated kernel";
    if (shape.kernel[i] < shape.stride[i]) return "strides longer than the kernel";
  }
  return {};
}

int transposed_winograd_tile(const ConvParams& shape) {
  const Plan plan(shape);
  return plan.is_plain() ? winograd_tile(plan.parts[0].conv) : 0;
}

int64_t transposed_packed_size(const ConvParams& shape) {
  const Plan plan(shape);
  int64_t bytes = 0;
  for (int k = 0; k < plan.part_count; ++k) bytes += aligned(conv_packed_size(plan.parts[k].conv));
  return bytes;
}

void pack_transposed_weights(const ConvParams& shape, const float* weights, const float* factors,
                             void* packed, ThreadPool* pool) {
  const Plan plan(shape);
  const int64_t channels = shape.out_channels;
  int64_t kernel[3], stride[3];
  for (size_t i = 0; i < 3; ++i) kernel[i] = plan.axes[i].kernel, stride[i] = plan.axes[i].stride;
  auto* to = static_cast<std::byte*>(packed);
  for (int k = 0; k < plan.part_count; ++k) {
    const Part& part = plan.parts[k];
    const int64_t taps[3] = {part.phases[0]->taps, part.phases[1]->taps, part.phases[2]->taps};
    const int64_t inputs = shape.in_channels, outputs = part.conv.out_channels;
    CountedVector<float> transposed(static_cast<size_t>(outputs * inputs * product(taps)));
    CountedVector<float> scaled(factors ? static_cast<size_t>(outputs) : 0);
    const auto pack_output = [&](int64_t o, CountedVector<int64_t>& offsets) {
      const int64_t m = o % channels, phases = o / channels;
      if (factors) scaled[static_cast<size_t>(o)] = factors[m];
      const int64_t phase[3] = {part.phases[0]->first + phases / (part.counts[1] * part.counts[2]),
                                part.phases[1]->first + phases / part.counts[2] % part.counts[1],
                                part.phases[2]->first + phases % part.counts[2]};
      // Tap j of a window reads what stands j windows before its last.
      for (int64_t j = 0; j < product(taps); ++j) {
        const int64_t back[3] = {taps[0] - 1 - j / (taps[1] * taps[2]),
                                 taps[1] - 1 - j / taps[2] % taps[1], taps[2] - 1 - j % taps[2]};
        int64_t tap[3];
        for (size_t i = 0; i < 3; ++i) tap[i] = phase[i] + stride[i] * back[i];
        offsets[static_cast<size_t>(j)] = (tap[0] * kernel[1] + tap[1]) * kernel[2] + tap[2];
      }
      float* row = transposed.data() + o * inputs * product(taps);
      const float* from = weights + m * product(kernel);
      for (int64_t c = 0; c < inputs; ++c, from += channels * product(kernel)) {
        for (const int64_t offset : offsets) *row++ = from[offset];
      }
    };
    const auto pack_outputs = [&](int64_t begin, int64_t end, int) {
      CountedVector<int64_t> offsets(static_cast<size_t>(product(taps)));
      for (int64_t o = begin; o < end; ++o) pack_output(o, offsets);
    };
    constexpr int64_t task = 16384;  // elements
    const int64_t grain = std::max<int64_t>(1, task / std::max<int64_t>(1, inputs * product(taps)));
    if (pool != nullptr)
      pool->parallel_for(outputs, grain, pack_outputs);
    else
      pack_outputs(0, outputs, 0);
    pack_conv_weights(part.conv, transposed.data(), factors ? scaled.data() : nullptr, to, pool);
    to += aligned(conv_packed_size(part.conv));
  }
}

int64_t transposed_scratch_bytes(const ConvParams& shape, int threads) {
  const Plan plan(shape);
  if (plan.is_plain()) return conv_scratch_bytes(plan.parts[0].conv, threads);
  const Axis& outer = plan.axes[plan.lead()];
  int64_t most = 0;
  for (int64_t at = 0, row_tile = plan.row_tile(); at < outer.windows; at += row_tile) {
    for (int k = 0; k < plan.part_count; ++k) {
      ConvParams conv = plan.parts[k].conv;
      plan.see_row_tile(conv, outer.window + at, std::min(row_tile, outer.windows - at));
      most = std::max(most, conv_scratch_bytes(conv, threads));
    }
  }
  return Room(plan).bytes + most;
}

void transposed_run(const ConvParams& shape, const float* x, const void* packed, float* y,
                    const Epilogue& epilogue, void* scratch, ThreadPool& pool) {
  const Plan plan(shape);
  if (plan.is_plain()) return conv_run(plan.parts[0].conv, x, packed, y, epilogue, scratch, pool);
  const Room room(plan);
  auto* memory = static_cast<std::byte*>(scratch);
  const std::byte* weights[8];
  Epilogue epilogues[8];
  const auto* next = static_cast<const std::byte*>(packed);
  for (int k = 0; k < plan.part_count; ++k) {
    weights[k] = next;
    next += aligned(conv_packed_size(plan.parts[k].conv));
    epilogues[k] = epilogue;
    if (epilogue.bias == nullptr) continue;
    auto* repeated = reinterpret_cast<float*>(memory + room.bias[k]);
    for (int64_t o = 0; o < plan.parts[k].conv.out_channels; o += shape.out_channels)
      std::copy_n(epilogue.bias, shape.out_channels, repeated + o);
    epilogues[k].bias = repeated;
  }
  int64_t image_in = shape.in_channels, image_out = shape.out_channels, line = shape.in_channels;
  for (size_t i = 0; i < 3; ++i) {
    image_in *= plan.axes[i].in, image_out *= plan.axes[i].out;
    if (i > plan.lead()) line *= plan.axes[i].in;
  }
  const Axis& outer = plan.axes[plan.lead()];
  for (int64_t n = 0; n < shape.batch; ++n) {
    for (int64_t at = 0, row_tile = plan.row_tile(); at < outer.windows; at += row_tile) {
      Made made{plan, {}, {}, {}};
      for (size_t i = 0; i < 3; ++i)
        made.window[i] = plan.axes[i].window, made.windows[i] = plan.axes[i].windows;
      const int64_t windows = std::min(row_tile, outer.windows - at);
      made.window[plan.lead()] += at;
      made.windows[plan.lead()] = windows;
      for (int k = 0; k < plan.part_count; ++k) {
        ConvParams conv = plan.parts[k].conv;
        const int64_t first = plan.see_row_tile(conv, outer.window + at, windows);
        auto* to = reinterpret_cast<float*>(memory + room.made[k]);
        conv_run(conv, x + n * image_in + first * line, weights[k], to, epilogues[k],
                 memory + room.bytes, pool);
        made.floats[k] = to;
      }
      join(made, y + n * image_out, pool);
    }
  }
}

}  // namespace sardonyx::kernels
