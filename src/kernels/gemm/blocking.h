// How a product is cut into strips, blocks and tasks. Internal to kernels/gemm and kernels/conv.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sardonyx::kernels {

inline int64_t divide_up(int64_t value, int64_t by) { return (value + by - 1) / by; }
inline int64_t round_up(int64_t value, int64_t to) { return divide_up(value, to) * to; }

// How many parts of about `size` each: an even number, so that two threads have the same share and
// the same half of what one step leaves to the next.
inline int64_t even_parts(int64_t count, int64_t size) {
  if (count <= size) return 1;  // nothing, too, where the size is nothing
  return std::min(round_up(divide_up(count, size), 2), count);
}

// Rows cut into strips of at most `most`: full ones and a rest, or, where the rest would be thinner
// than `thin`, strips of nearly equal height. Those keep the multipliers busy and give threads
// equal shares.
class Strips {
 public:
  Strips(int64_t rows, int64_t most) : Strips(rows, most, most) {}
  Strips(int64_t rows, int64_t most, int64_t thin) : rows_(rows), count_(divide_up(rows, most)) {
    const int64_t rest = rows % most;
    if (count_ <= 1 || rest == 0 || rest >= thin) {
      height_ = most;
      taller_ = count_;
    } else {
      height_ = rows / count_ + 1;
      taller_ = rows % count_;
    }
  }

  int64_t count() const { return count_; }
  // First row of strip i; begin(count()) is the number of rows.
  int64_t begin(int64_t i) const {
    return std::min(rows_, i * height_ - std::max<int64_t>(0, i - taller_));
  }
  int64_t height(int64_t i) const { return begin(i + 1) - begin(i); }

 private:
  int64_t rows_;
  int64_t count_;
  int64_t height_ = 0;
  int64_t taller_ = 0;  // strips of height_; those after them have one row less
};

// Columns cut into panels of `width`; the last may be half as wide.
struct Panels {
  int64_t columns;
  int64_t width;
  int64_t lanes;

  int64_t count() const { return divide_up(columns, width); }
  int64_t used(int64_t panel) const { return std::min(width, columns - panel * width); }
  int64_t stored(int64_t panel) const { return round_up(used(panel), lanes); }
  int vectors(int64_t panel) const { return static_cast<int>(stored(panel) / lanes); }
  // Whether the upper half of its last vector holds none.
  bool ends_half(int64_t panel) const { return used(panel) <= stored(panel) - lanes / 2; }
  // All columns as they are stored, side by side.
  int64_t stored_columns() const { return round_up(columns, lanes); }
};

// Long sums are cut so that a panel's part stays in the second-level cache.
struct Chunks {
  int64_t k;
  int64_t most = 4096;
  int64_t granule = 1;  // all but the last are a multiple of it
  int64_t count() const { return std::max<int64_t>(1, divide_up(k, most)); }
  int64_t size() const { return round_up(divide_up(k, count()), granule); }
};

// Multiply-adds worth handing to another thread, about three microseconds.
constexpr int64_t task_work = 128'000;
// What of the second-level cache a block of A may take; and below which size all of B stays there.
constexpr int64_t block_bytes = 768 << 10;
constexpr int64_t small_b_bytes = 512 << 10;
// B that stays there while several blocks are multiplied with it, and a block of A beside it.
constexpr int64_t near_b_bytes = 1 << 20;
constexpr int64_t near_block_bytes = 128 << 10;

constexpr int64_t scratch_alignment = 64;

// Blocks of strips: as thick as the caches hold beside B, an even number.
inline int64_t strip_blocks(int64_t strips, int64_t tile_rows, int64_t k, int64_t b_columns) {
  const int64_t strip_bytes = std::max<int64_t>(1, tile_rows * k * 4);
  const bool near_b = k * b_columns * 4 <= near_b_bytes;
  const int64_t fit = (near_b ? near_block_bytes : block_bytes) / strip_bytes;
  // Blocks rather than panels are shared out among threads: rows stay where they were made.
  constexpr int64_t wanted_blocks = 4, min_strips = 2;
  const int64_t even = near_b ? std::max(min_strips, divide_up(strips, wanted_blocks)) : strips;
  return even_parts(strips, std::max<int64_t>(1, std::min(fit, even)));
}

// Where part i of `count` begins; parts differ by one at most.
inline int64_t part_begin(int64_t count, int64_t parts, int64_t i) { return count * i / parts; }

// Panels in one task, for blocks of `rows` rows: all of them if there are blocks enough for any
// number of threads, since whoever takes a block has to prepare it.
inline int64_t panels_per_task(int64_t panels, int64_t blocks, int64_t rows, int64_t k,
                               int64_t width) {
  constexpr int64_t enough_tasks = 32;
  // Few rows wait for memory, not for the multipliers.
  const int64_t panel_work = std::max<int64_t>(1, std::max<int64_t>(rows, 8) * k * width);
  const int64_t groups = divide_up(enough_tasks, std::max<int64_t>(blocks, 1));
  const int64_t wanted = std::max(divide_up(task_work, panel_work), divide_up(panels, groups));
  return std::clamp<int64_t>(wanted, 1, std::max<int64_t>(panels, 1));
}

}  // namespace sardonyx::kernels
