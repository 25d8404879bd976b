// A block of strips of A times one panel of B. Internal to kernels/gemm and kernels/conv.
#pragma once

#include <cstdint>

#include "kernels/gemm/blocking.h"
#include "kernels/gemm/tiles.h"

namespace sardonyx::kernels {

// Where the strips of a block are.
struct StripOperand {
  const float* data = nullptr;  // of the block's first strip
  int64_t stride = 0;           // floats between rows, or between terms where k_major
  int64_t strip_distance = 0;   // floats between packed strips; 0 where rows lie as they came
  bool k_major = false;

  const float* at(const Strips& strips, int64_t first, int64_t strip, int64_t k) const {
    if (strip_distance != 0) return data + (strip - first) * strip_distance + k * stride;
    const int64_t rows = strips.begin(strip) - strips.begin(first);
    return k_major ? data + rows + k * stride : data + rows * stride + k;
  }
};

// The terms [begin, begin + size) of a sum.
struct Terms {
  int64_t begin = 0;
  int64_t size = 0;
  bool first = true;  // of the sum's chunks
  bool last = true;
};

inline Terms chunk_terms(const Chunks& chunks, int64_t index) {
  const int64_t begin = std::min(chunks.k, index * chunks.size());
  return {begin, std::min(chunks.size(), chunks.k - begin), index == 0,
          index == chunks.count() - 1};
}

struct PanelOperand {
  const float* data = nullptr;  // at the first of the terms
  int64_t stride = 0;           // floats between terms
  int vectors = 2;
  bool ends_half = false;  // the upper half of the last one holds no columns
};

// Memory to bring near while a panel is multiplied: `columns` lines side by side, each again
// `size` times, `stride` floats apart; or, while each strip is, the rows of the next one.
struct Ahead {
  const float* data = nullptr;
  int64_t stride = 16;
  int64_t size = 0;
  int64_t columns = 0;
  bool next_strip = false;  // whose rows lie one after the other, as do their terms

  // `floats` floats in one piece.
  static Ahead piece(const float* data, int64_t floats) {
    const int64_t lines = floats / 16;
    return {data, 16, divide_up(lines, 4), lines > 0 ? 4 : 0};
  }
  static Ahead next_rows() { return {.next_strip = true}; }
};

// Floats that multiply_panel's `partial` needs for a block of that many strips.
inline int64_t partial_floats(const Chunks& chunks, int64_t strips, const TileKernels& kernels) {
  return chunks.count() > 1 ? strips * max_lanes * kernels.lanes * max_tile_vectors : 0;
}

// What each strip brings near: its share of the columns of `ahead`. Divisions are done once.
class PrefetchPlan {
 public:
  PrefetchPlan(const Ahead& ahead, int64_t strips, int64_t k)
      : ahead_(ahead),
        share_(k < 2 ? 0 : divide_up(ahead.columns, strips)),
        distance_(ahead.stride == 16 ? ahead.size * 16 : 16),
        lines_(share_ == 0 ? 0 : static_cast<int>(divide_up(share_ * ahead.size * 2, k))) {}

  void apply(TileJob& job, int64_t strip) const {
    const int64_t begin = strip * share_;
    job.prefetch_lines = begin < ahead_.columns ? lines_ : 0;
    job.prefetch = ahead_.data + begin * distance_;
    job.prefetch_stride = ahead_.stride;
  }

 private:
  const Ahead& ahead_;
  int64_t share_;  // columns
  int64_t distance_;
  int lines_;
};

// As many rows as the job has, from those behind them on.
inline void bring_next_rows(TileJob& job, int64_t rows) {
  job.prefetch = job.a + rows * job.a_stride;
  job.prefetch_lines = static_cast<int>(divide_up(rows * 2, 16));
}

// Strips [first, last) of A times a panel of B. After the last chunk of terms, each strip's sums go
// where place(strip) says (its sums and sums_stride are filled in here); `transposed`: as their
// transpose.
template <bool transposed, class Place>
void multiply_panel(const TileKernels& kernels, const Strips& strips, int64_t first, int64_t last,
                    const StripOperand& a, const PanelOperand& b, const Terms& terms,
                    const Ahead& ahead, float* partial, Place&& place) {
  alignas(64) float near_sums[max_lanes * max_tile_columns];
  const int64_t width = b.vectors * kernels.lanes;
  const bool chunked = !(terms.first && terms.last);
  TileJob job;
  job.k = terms.size;
  job.a_stride = a.stride;
  job.b = b.data;
  job.b_stride = b.stride;
  job.resume = !terms.first;
  job.form = a.k_major ? TileForm::k_major : TileForm::by_rows;
  job.half_empty = kernels.halves && b.ends_half;
  const PrefetchPlan prefetch(ahead, last - first, job.k);
  for (int64_t s = first; s < last; ++s) {
    const int64_t height = strips.height(s);
    job.a = a.at(strips, first, s, terms.begin);
    if (ahead.next_strip)
      bring_next_rows(job, height);
    else
      prefetch.apply(job, s - first);
    job.sums = chunked ? partial + (s - first) * max_lanes * width : near_sums;
    const TileKernel kernel = kernels.tiles[height][b.vectors];
    if (!terms.last) {
      kernel(job);
      continue;
    }
    // Made where it is read: fields written just before cannot be copied without waiting for them.
    TileStore store = place(s);
    job.store = !transposed && kernels.finishes(*store.epilogue) ? &store : nullptr;
    kernel(job);
    if (job.store != nullptr) continue;
    store.sums = job.sums;
    store.sums_stride = width;
    (transposed ? kernels.store_transposed : kernels.store)(store);
  }
}

// The store of a tile whose corner is C's element (row, column).
inline TileStore store_at(const Epilogue& epilogue, float* c, int64_t ldc, int64_t row,
                          int64_t column, int64_t rows, int64_t columns) {
  TileStore store;
  store.rows = rows;
  store.columns = columns;
  store.epilogue = &epilogue;
  store.c = c + row * ldc + column;
  store.c_stride = ldc;
  if (epilogue.bias != nullptr && epilogue.bias_axis != BiasAxis::none) {
    store.bias = epilogue.bias + (epilogue.bias_axis == BiasAxis::row ? row : column);
  }
  if (epilogue.residual != nullptr) {
    store.residual = epilogue.residual + row * epilogue.residual_stride + column;
    store.residual_stride = epilogue.residual_stride;
  }
  return store;
}

}  // namespace sardonyx::kernels
