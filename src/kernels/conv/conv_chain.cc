// Lines of the image before the depthwise convolution are computed into a ring, in blocks, each
// once for each run of neighbouring tasks of a thread, and none behind those that the thread's
// share needs; the depthwise convolution takes its windows from there, a few lines of output at a
// time, which the pointwise convolution behind it takes at once.
#include "kernels/conv/conv_chain.h"

#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "kernels/conv/depthwise_nhwc.h"
#include "kernels/conv/path.h"
#include "kernels/gemm/blocking.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t min_pixels = 112;        // of one product: eight strips of fourteen
constexpr int64_t max_pixels = 448;        // more take no less time to begin with
constexpr int64_t cached_bytes = 1 << 20;  // what a second-level cache is taken to hold

// The same convolution of some lines of one image's output, from `line` on.
ConvParams lines_of(const ConvParams& whole, int64_t line, int64_t count) {
  ConvParams s = whole;
  s.batch = 1;
  s.out[0] = count;
  if (choose_conv(whole).path == ConvPath::pointwise_nhwc) {
    s.in[0] = count;
  } else {
    s.pad_begin[0] -= line * s.stride[0];
    s.pad_end[0] = 0;  // `out` says how many there are
  }
  return s;
}

// So many lines where no window reaches beyond the image, or where one does: convolutions copy
// lines with zeros around them only where they have to, at the first lines of an image, or the
// last.
ConvParams lines_anywhere(const ConvParams& whole, int64_t count, bool reach_beyond) {
  ConvParams s = lines_of(whole, 0, count);
  s.in[0] = (count - 1) * s.stride[0] + (s.kernel[0] - 1) * s.dilation[0] + 2;
  s.pad_begin[0] = reach_beyond ? 1 : 0;
  return s;
}

int64_t image_floats(const ConvParams& s) { return s.in[0] * s.in[1] * s.in_channels; }

// A chain and its tiles of rows.
struct ChainTiles : ChainCut {
  ChainTiles(const FusedConvChain& chain, const ChainCut& cut)
      : ChainCut(cut),
        chain(chain),
        middle(chain.parts[chain.depthwise]),
        g(middle, false),
        before(chain.depthwise > 0 ? &chain.parts[0] : nullptr),
        behind(chain.depthwise + 1 < chain.count ? &chain.parts[chain.count - 1] : nullptr) {}

  // Lines of the input under so many neighbouring windows.
  int64_t window(int64_t lines) const {
    return (lines - 1) * middle.stride[0] + (middle.kernel[0] - 1) * middle.dilation[0] + 1;
  }
  // The lines of the input that the windows of output lines [row, row + lines) need.
  int64_t first_line(int64_t row) const {
    return std::clamp<int64_t>(row * middle.stride[0] - middle.pad_begin[0], 0, middle.in[0]);
  }
  int64_t end_line(int64_t row, int64_t lines) const {
    return std::clamp<int64_t>(row * middle.stride[0] - middle.pad_begin[0] + window(lines), 0,
                               middle.in[0]);
  }

  // The first line of output of an image's task.
  int64_t task_row(int64_t task) const { return middle.out[0] * task / tasks_per_image; }

  // The end of the lines that an image's tasks before `task` need.
  int64_t last_line(int64_t task) const {
    if (whole_blocks || task >= tasks_per_image) return middle.in[0];
    return end_line(task_row(task) - 1, 1);
  }

  int64_t line_floats() const { return middle.in[1] * middle.in_channels; }
  int64_t ring_floats() const { return before == nullptr ? 0 : round_up(held * line_floats(), 16); }
  int64_t between_floats() const {
    return behind == nullptr ? 0 : round_up(step * middle.out[1] * middle.out_channels, 16);
  }
  bool stays_near() const { return (ring_floats() + between_floats()) * 4 <= cached_bytes; }
  // Behind the workers' memory.
  int64_t sums_floats() const {
    return middle.means ? middle.batch * tasks_per_image * middle.out_channels : 0;
  }
  int64_t worker_floats() const {
    return ring_floats() + between_floats() + round_up(depthwise_nhwc_worker_floats(g), 16) +
           round_up(before_bytes / 4, 16) + round_up(behind_bytes / 4, 16);
  }
  bool is_empty() const {
    const ConvParams& last = chain.parts[chain.count - 1];
    return last.batch <= 0 || last.out_channels <= 0 || last.out[0] <= 0 || last.out[1] <= 0;
  }

  const FusedConvChain& chain;
  const ConvParams& middle;
  ConvGeometry g;
  const ConvParams *before, *behind;
};

// One thread's part of a run.
class ChainWorker {
 public:
  ChainWorker(const ChainTiles& row_tiles, const float* x, std::span<const ChainPart> parts,
              float* y, float* space)
      : b_(row_tiles), x_(x), parts_(parts), y_(y), ring_(space) {
    between_ = ring_ + b_.ring_floats();
    piece_ = between_ + b_.between_floats();
    before_space_ = piece_ + round_up(depthwise_nhwc_worker_floats(b_.g), 16);
    behind_space_ = before_space_ + round_up(b_.before_bytes / 4, 16);
  }

  // `done`: the ring holds the lines before that one, as the task before this one left it; 0 where
  // it did not. No line is computed from `last` on. `sums`: those of the task, or null. Returns
  // what is done for the next task.
  int64_t run(int64_t task, int64_t done, int64_t last, float* sums) {
    done_ = done;
    last_ = last;
    sums_ = sums;
    if (sums != nullptr) std::fill_n(sums, b_.middle.out_channels, 0.0f);
    const int64_t image = task / b_.tasks_per_image;
    const int64_t row = b_.task_row(task % b_.tasks_per_image);
    const int64_t end = b_.task_row(task % b_.tasks_per_image + 1);
    for (int64_t at = row; at < end; at += b_.step) lines(image, at, std::min(b_.step, end - at));
    return done_;
  }

 private:
  void lines(int64_t image, int64_t row, int64_t count) {
    const ConvParams& middle = b_.middle;
    if (b_.before != nullptr) fill(image, b_.first_line(row), b_.end_line(row, count));
    const int64_t pixel = (image * middle.out[0] + row) * middle.out[1];
    const auto index = static_cast<size_t>(b_.chain.depthwise);
    Call call{b_.g, nullptr, static_cast<const float*>(parts_[index].packed),
              b_.behind != nullptr ? between_ : y_, parts_[index].epilogue};
    call.epilogue.bias_axis = call.epilogue.bias != nullptr ? BiasAxis::column : BiasAxis::none;
    const int64_t at_once = depthwise_channels_at_once(b_.g);
    for (int64_t c = 0; c < middle.out_channels; c += at_once) {
      DepthwiseNhwcJob job;
      job.geometry = &b_.g;
      job.image = b_.before != nullptr ? ring_ : x_ + image * image_floats(middle);
      job.held = b_.before != nullptr ? b_.held : 0;
      job.weights = call.weights;
      job.row = row;
      job.lines = count;
      job.first_channel = c;
      job.end_channel = std::min(c + at_once, middle.out_channels);
      job.sums = sums_;
      depthwise_lines_to(call, b_.behind != nullptr ? 0 : pixel, job, piece_);
    }
    if (b_.behind == nullptr) return;
    const ChainPart& last = parts_.back();
    Epilogue epilogue = last.epilogue;
    const int64_t at = pixel * b_.behind->out_channels;
    if (epilogue.residual != nullptr) epilogue.residual += at;
    conv_run(lines_of(*b_.behind, 0, count), between_, last.packed, y_ + at, epilogue,
             behind_space_, ThreadPool::single());
  }

  // Computes the lines [first, end) into the ring, and some behind them, as far as they are not
  // done.
  void fill(int64_t image, int64_t first, int64_t end) {
    const ConvParams& before = *b_.before;
    const bool pointwise = choose_conv(before).path == ConvPath::pointwise_nhwc;
    if (done_ < first) done_ = b_.whole_blocks ? first / b_.block * b_.block : first;
    while (done_ < end) {
      const int64_t line = done_, place = line % b_.held;
      const int64_t count = std::min({b_.block, last_ - line, b_.held - place});
      const float* x = x_ + image * image_floats(before);
      if (pointwise) x += line * before.in[1] * before.in_channels;
      conv_run(lines_of(before, line, count), x, parts_.front().packed,
               ring_ + place * b_.line_floats(), parts_.front().epilogue, before_space_,
               ThreadPool::single());
      done_ += count;
    }
  }

  const ChainTiles& b_;
  const float* x_;
  std::span<const ChainPart> parts_;
  float* y_;
  float* ring_;
  float *between_, *piece_, *before_space_, *behind_space_;
  float* sums_ = nullptr;
  int64_t done_ = 0, last_ = 0;
};

}  // namespace

bool is_sound(const FusedConvChain& chain) {
  const int behind = chain.count - 1 - chain.depthwise;
  if (chain.depthwise < 0 || chain.depthwise > 1 || behind < 0 || behind > 1) return false;
  for (const ConvParams& s : chain.shapes()) {
    if (s.rank != 2 || !s.nhwc || s.nchw_input || s.winograd != 0 || !has_weights(s) ||
        !takes_shuffles(s))
      return false;
    for (size_t i = 0; i < 2; ++i)
      if (s.pad_begin[i] < 0 || s.pad_end[i] < 0) return false;
  }
  if (choose_conv(chain.parts[chain.depthwise]).path != ConvPath::depthwise_nhwc) return false;
  if (behind == 0) return true;
  const ConvPath last = choose_conv(chain.parts[chain.count - 1]).path;
  return last == ConvPath::pointwise_nhwc || last == ConvPath::interleaved_nhwc;
}

ChainCut cut_chain(const FusedConvChain& chain) {
  const ConvParams& middle = chain.parts[chain.depthwise];
  ChainCut cut;
  cut.step = std::max<int64_t>(4, divide_up(min_pixels, std::max<int64_t>(1, middle.out[1])));
  cut.tasks_per_image = even_parts(middle.out[0], round_up(divide_up(middle.out[0], 16), cut.step));
  // As many lines as make it worth to begin a product, fewer where the ring would not stay near.
  const int64_t line = std::max<int64_t>(1, middle.in[1]), least = divide_up(min_pixels, line);
  cut.block = std::max(least, std::min(divide_up(max_pixels, line), middle.in[0]));
  const auto stays_near = [&] {
    const ChainTiles row_tiles(chain, cut);
    cut.held = round_up(row_tiles.window(cut.step) + 2 * (cut.block - 1), cut.block);
    return ChainTiles(chain, cut).stays_near();
  };
  while (!stays_near() && cut.block > least) --cut.block;
  const ChainTiles row_tiles(chain, cut);
  if (row_tiles.is_empty()) return cut;
  const auto take = [](int64_t& bytes, const ConvParams& shape) {
    bytes = std::max(bytes, conv_scratch_bytes(shape, 1));
  };
  const int64_t max_lines = std::min(cut.block, middle.in[0]);
  for (int64_t lines = 1; row_tiles.before != nullptr && lines <= max_lines; ++lines) {
    const ConvParams some = lines_of(*row_tiles.before, 0, lines);
    take(cut.before_bytes, some);
    if (choose_conv(*row_tiles.before).path != ConvPath::pointwise_nhwc) {
      take(cut.before_bytes, lines_anywhere(*row_tiles.before, lines, false));
      take(cut.before_bytes, lines_anywhere(*row_tiles.before, lines, true));
    }
    cut.whole_blocks |= !same_way(some, lines_of(*row_tiles.before, 0, cut.block));
  }
  for (int64_t lines = 1; row_tiles.behind != nullptr && lines <= cut.step; ++lines)
    take(cut.behind_bytes, lines_of(*row_tiles.behind, 0, lines));
  return cut;
}

bool chain_pays(const FusedConvChain& chain) {
  const ChainTiles row_tiles(chain, cut_chain(chain));
  if (row_tiles.is_empty()) return false;
  const int64_t expanded = row_tiles.before != nullptr ? image_floats(row_tiles.middle) * 4 : 0;
  const int64_t between = row_tiles.behind != nullptr ? image_floats(*row_tiles.behind) * 4 : 0;
  return std::max(expanded, between) > cached_bytes && row_tiles.stays_near();
}

int64_t chain_scratch_bytes(const FusedConvChain& chain, const ChainCut& cut, int threads) {
  ThreadPool::single();  // not made while running
  const ChainTiles row_tiles(chain, cut);
  if (row_tiles.is_empty()) return 0;
  return threads * (scratch_alignment + row_tiles.worker_floats() * int64_t{sizeof(float)}) +
         row_tiles.sums_floats() * int64_t{sizeof(float)};
}

void chain_run(const FusedConvChain& chain, const ChainCut& cut, const float* x,
               std::span<const ChainPart> parts, float* y, float* means, void* scratch,
               ThreadPool& pool) {
  const ChainTiles row_tiles(chain, cut);
  const ConvParams& middle = row_tiles.middle;
  if (row_tiles.is_empty()) {
    if (means != nullptr)
      std::fill_n(means, std::max<int64_t>(0, middle.batch * middle.out_channels), NAN);
    return;
  }
  const PackedBlocks spaces(scratch, pool.threads(), row_tiles.worker_floats());
  const int64_t tasks = middle.batch * row_tiles.tasks_per_image;
  float* sums = means != nullptr ? spaces.space(pool.threads()) : nullptr;
  for_tasks(pool, tasks, 1, [&](int64_t task, int worker) {
    const int64_t row_tile = task % row_tiles.tasks_per_image, end = pool.share_end(tasks, task);
    const bool continues = !spaces.changes(worker, task - 1) && row_tile != 0;
    spaces.changes(worker, task);
    int64_t& done = spaces.left(worker);
    done = ChainWorker(row_tiles, x, parts, y, spaces.space(worker))
               .run(task, continues ? done : 0, row_tiles.last_line(row_tile + end - task),
                    sums != nullptr ? sums + task * middle.out_channels : nullptr);
  });
  if (means != nullptr) means_of_bands(row_tiles.g, row_tiles.tasks_per_image, sums, means);
}

}  // namespace sardonyx::kernels
