// Matrix multiplication with a B that was packed beforehand.
//
// A packed B is its panels one after the other, each term after term: whole panels two vectors
// wide, the last as wide as its columns rounded up to vectors, filled up with zeros. Those of
// halves are read as they are by few rows and by the matrix tiles; other products make floats of a
// panel before they multiply with it.
#include "kernels/gemm/packed_gemm.h"

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/convert/cast.h"
#include "kernels/gemm/bf16x3_block.h"
#include "kernels/gemm/block.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/narrow.h"
#include "kernels/gemm/pack.h"
#include "kernels/gemm/tiles.h"

namespace sardonyx::kernels {
namespace {

Panels panels_of(const TileKernels& kernels, int64_t N) {
  return {N, kernels.panel_columns, kernels.lanes};
}

// The shape of one call, and how it is cut.
struct PackedGemm {
  PackedGemm(const TileKernels& kernels, int64_t M, int64_t N, int64_t K, const StridedMatrix& a,
             ElementType type, int threads)
      : kernels(kernels),
        type(type),
        M(M),
        N(N),
        K(K),
        a(K > 0 ? a : StridedMatrix{a.data, 0, 1}),
        narrow(this->a.column_stride == 1 && type == ElementType::float32 &&
               narrow_pays(M, N, K, kernels.lanes)),
        splits(!narrow && this->a.column_stride == 1 && bf16x3_pays(kernels.lanes, M, N, K)),
        tile_rows(splits         ? bf16x3_size
                  : reads_once() ? std::min(kernels.tile_rows, low_tile_rows)
                                 : kernels.tile_rows),
        strips(M, tile_rows, splits ? bf16x3_thin : tile_rows),
        panels(panels_of(kernels, N)),
        chunks(splits ? split_chunks(K) : Chunks{K, widens() ? widened_terms : Chunks().most}),
        blocks(splits ? bf16x3_blocks(strips.count(), chunks, threads)
                      : strip_blocks(strips.count(), tile_rows, K, N)),
        block(divide_up(strips.count(), blocks)),
        group(splits ? 1
                     : panels_per_task(panels.count(), blocks, std::min(M, block * tile_rows), K,
                                       panels.width)),
        groups(divide_up(panels.count(), group)),
        packs_a(!splits && ((a.column_stride != 1 && K > 1) ||
                            (panels.count() > 1 &&
                             rows_collide(a.row_stride, std::min<int64_t>(M, tile_rows))))) {}

  static constexpr int64_t widened_terms = 1024;  // at once

  const TileKernels& kernels;
  ElementType type;
  int64_t M, N, K;
  StridedMatrix a;
  bool narrow;  // dot products do
  bool splits;  // the products go through matrix tiles
  int64_t tile_rows;
  Strips strips;
  Panels panels;
  Chunks chunks;
  int64_t blocks;
  int64_t block;  // most strips in one
  int64_t group;  // panels in one
  int64_t groups;
  bool packs_a;

  // Whether all of A is read once, in rows of which only a few find room in the first-level cache.
  bool reads_once() const {
    return N <= kernels.panel_columns && a.column_stride == 1 &&
           rows_collide(a.row_stride, std::min<int64_t>(M, kernels.tile_rows));
  }
  // Whether A's rows come from memory to one panel after the other, B staying near.
  bool brings_rows() const {
    return K * N * 4 <= near_b_bytes && a.row_stride == K && chunks.count() == 1 && !packs_a;
  }
  int64_t first_strip(int64_t i) const { return part_begin(strips.count(), blocks, i); }
  int64_t element_bytes() const { return widens() ? 2 : 4; }
  const void* at(const void* b, int64_t element) const {
    return static_cast<const char*>(b) + element * element_bytes();
  }
  // Tasks that one claim takes.
  int64_t grain() const {
    const int64_t rows = std::min(M, block * tile_rows);
    return divide_up(task_work, std::max<int64_t>(1, rows * group * panels.width * K));
  }
  bool widens() const { return type != ElementType::float32; }
  int64_t widened_floats() const {
    return widens() ? round_up(std::min(K, chunks.size()) * panels.width, 16) : 0;
  }
  int64_t packed_floats() const { return packs_a ? block * K * kernels.strip_width : 0; }
  int64_t worker_floats() const {
    if (splits) return SplitSpace::floats(block, chunks, panels);
    return round_up(packed_floats() + partial_floats(chunks, block, kernels), 16) +
           widened_floats();
  }
  int64_t scratch_bytes(int threads) const {
    if (narrow) return N * K * int64_t{sizeof(float)};
    return threads * (scratch_alignment + worker_floats() * int64_t{sizeof(float)});
  }
};

bool takes_wide(const TileKernels& kernels, int64_t M, const StridedMatrix& a) {
  return a.column_stride == 1 && M <= max_wide_rows && kernels.wide[M] != nullptr;
}

// For several panels, or for one of that many vectors.
TileKernel wide_kernel(const PackedGemm& g, int rows, int vectors) {
  if (!g.widens()) return vectors == 0 ? g.kernels.wide[rows] : g.kernels.tiles[rows][vectors];
  const Float16Tiles& halves =
      g.type == ElementType::float16 ? g.kernels.float16 : g.kernels.bfloat16;
  return vectors == 0 ? halves.wide[rows] : halves.one[rows][vectors];
}

// Very few rows: all of B is read once, so several panels at a time keep the sums and the memory
// busy. `begin` and `end` count panels; a narrower last panel is left to the caller.
void run_wide(const PackedGemm& g, int64_t begin, int64_t end, const void* b, float* c, int64_t ldc,
              const Epilogue& epilogue) {
  alignas(64) float sums[max_wide_rows * max_wide_columns];
  const int64_t width = g.panels.width;
  const int rows = static_cast<int>(g.M);
  while (begin < end) {
    int64_t count = g.kernels.wide_panels[rows];
    const bool one = end - begin < count || g.panels.stored(begin + count - 1) < width;
    if (one) count = 1;
    const TileKernel kernel = wide_kernel(g, rows, one ? g.panels.vectors(begin) : 0);
    TileJob job;
    job.k = g.K;
    job.a = g.a.data;
    job.a_stride = g.a.row_stride;
    job.b = g.at(b, begin * width * g.K);
    job.b_stride = g.panels.stored(begin);
    job.panel_distance = width * g.K;
    job.sums = sums;
    kernel(job);
    TileStore store = store_at(epilogue, c, ldc, 0, begin * width, rows,
                               std::min(g.N - begin * width, count * width));
    store.sums = sums;
    store.sums_stride = count * g.panels.stored(begin);
    g.kernels.store(store);
    begin += count;
  }
}

// Each thread goes through its part of B from the end on.
void run_wide_backwards(const PackedGemm& g, int64_t step, const void* b, float* c, int64_t ldc,
                        const Epilogue& epilogue, ThreadPool& pool) {
  constexpr int64_t pieces = 8;  // of each thread's part
  const int64_t count = g.panels.count(), all = pool.threads() * pieces,
                size = round_up(divide_up(count, all), step);
  pool.parallel_for(all, 1, [&](int64_t first, int64_t last, int) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t piece = i / pieces * pieces + pieces - 1 - i % pieces;
      run_wide(g, std::min(count, piece * size), std::min(count, (piece + 1) * size), b, c, ldc,
               epilogue);
    }
  });
}

// One block of strips times one group of panels.
void run_task(const PackedGemm& g, int64_t task, const void* b, float* c, int64_t ldc,
              const Epilogue& epilogue, const PackedBlocks& packed_blocks, int worker) {
  const int64_t first = g.first_strip(task / g.groups);
  const int64_t last = g.first_strip(task / g.groups + 1);
  float* space = packed_blocks.space(worker);
  StripOperand left{g.a.data + g.strips.begin(first) * g.a.row_stride, g.a.row_stride, 0, false};
  if (g.packs_a) {
    left = {space, g.kernels.strip_width, g.K * g.kernels.strip_width, true};
    if (packed_blocks.changes(worker, first)) {
      pack_strips(g.kernels, g.strips, first, last, g.a.data, g.a.row_stride, g.a.column_stride,
                  g.K, space);
    }
  }
  float* widened = space == nullptr ? nullptr : space + g.worker_floats() - g.widened_floats();
  const int64_t first_panel = task % g.groups * g.group;
  const int64_t end_panel = std::min(first_panel + g.group, g.panels.count());
  for (int64_t p = first_panel; p < end_panel; ++p) {
    const int64_t width = g.panels.stored(p);
    for (int64_t i = 0; i < g.chunks.count(); ++i) {
      const Terms terms = chunk_terms(g.chunks, i);
      const int64_t at = p * g.panels.width * g.K + terms.begin * width, size = terms.size * width;
      const auto* panel = static_cast<const float*>(g.at(b, at));
      if (g.widens()) {
        to_floats(g.type, panel, widened, size);
        panel = widened;
      }
      const PanelOperand right{panel, width, g.panels.vectors(p), g.panels.ends_half(p)};
      const Ahead ahead = p == first_panel && g.brings_rows()
                              ? Ahead::next_rows()
                              : Ahead::piece(static_cast<const float*>(g.at(b, at + size)),
                                             size * g.element_bytes() / 4);
      multiply_panel<false>(g.kernels, g.strips, first, last, left, right, terms, ahead,
                            space + g.packed_floats(), [&](int64_t strip) {
                              return store_at(epilogue, c, ldc, g.strips.begin(strip),
                                              p * g.panels.width, g.strips.height(strip),
                                              g.panels.used(p));
                            });
    }
  }
}

// Very few columns, each of which is laid out along its terms first.
void run_narrow(const PackedGemm& g, const float* b, float* c, int64_t ldc,
                const Epilogue& epilogue, float* columns, ThreadPool& pool) {
  const int64_t width = g.panels.stored(0);
  for (int64_t j = 0; j < g.N; ++j) {
    for (int64_t k = 0; k < g.K; ++k) columns[j * g.K + k] = b[k * width + j];
  }
  const int64_t grain = round_up(std::max<int64_t>(1, task_work / (g.N * g.K)), 32);
  pool.parallel_for(g.M, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; row += narrow_rows) {
      narrow_block(g.kernels, g.a.data + row * g.a.row_stride, g.a.row_stride, columns, g.K,
                   epilogue, c, ldc, row, 0, std::min(narrow_rows, end - row), g.N);
    }
  });
}

// Tasks [begin, end), the same through matrix tiles.
void run_split_tasks(const PackedGemm& g, int64_t begin, int64_t end, const PackedMatrix& b,
                     float* c, int64_t ldc, const Epilogue& epilogue, const PackedBlocks& blocks,
                     int worker) {
  const SplitSpace space(blocks.space(worker), g.block, g.chunks);
  const int64_t most = bf16x3_panels_at_once(g.block, g.chunks, g.panels);
  while (begin < end) {
    const int64_t block = begin / g.groups;
    const int64_t stop = std::min({end, (block + 1) * g.groups, begin + most});
    const int64_t first = g.first_strip(block), last = g.first_strip(block + 1);
    const auto rows = [&](int64_t strip) {
      return g.a.data + g.strips.begin(strip) * g.a.row_stride;
    };
    const int64_t panel = begin % g.groups;
    multiply_bf16x3(g.kernels, SplitRows{g.strips, first, last, rows, g.a.row_stride, space},
                    {g.panels, panel, panel + stop - begin, b}, g.chunks,
                    !blocks.changes(worker, block), [&](int64_t p, int64_t strip) {
                      return store_at(epilogue, c, ldc, g.strips.begin(strip), p * g.panels.width,
                                      g.strips.height(strip), g.panels.used(p));
                    });
    begin = stop;
  }
}

}  // namespace

int64_t packed_b_size(int64_t K, int64_t N, ElementType type) {
  if (K <= 0 || N <= 0) return 0;
  return K * panels_of(tile_kernels(), N).stored_columns() *
         (type == ElementType::float32 ? int64_t{4} : int64_t{2});
}

void pack_b(const void* data, int64_t row_stride, int64_t column_stride, int64_t K, int64_t N,
            void* packed, ThreadPool* pool, ElementType type, const PieceDone& done) {
  if (K <= 0 || N <= 0) return;
  const TileKernels& kernels = tile_kernels();
  const Panels panels = panels_of(kernels, N);
  const bool halves = type != ElementType::float32;
  const int64_t element = halves ? 2 : 4;
  const auto* b = static_cast<const char*>(data);
  // Terms [first, last) of a panel.
  const auto pack = [&](int64_t panel, int64_t first, int64_t last) {
    const char* from = b + (panel * panels.width * column_stride + first * row_stride) * element;
    const int64_t width = panels.stored(panel), columns = panels.used(panel);
    char* to = static_cast<char*>(packed) + (panel * panels.width * K + first * width) * element;
    if (halves) {
      pack_float16(from, row_stride, column_stride, last - first, columns,
                   reinterpret_cast<uint16_t*>(to), width);
    } else {
      pack_panel(kernels, reinterpret_cast<const float*>(from), row_stride, column_stride,
                 last - first, columns, reinterpret_cast<float*>(to), width);
    }
  };
  // Panels [begin, end) in parallel.
  const auto pack_panels = [&](int64_t begin, int64_t end, int64_t first, int64_t last) {
    const auto some = [&](int64_t from, int64_t to, int) {
      for (int64_t p = from; p < to; ++p) pack(begin + p, first, last);
    };
    const int64_t grain =
        std::max<int64_t>(1, (int64_t{64} << 10) / ((last - first) * panels.width));
    pool != nullptr ? pool->parallel_for(end - begin, grain, some) : some(0, end - begin, 0);
  };
  constexpr int64_t piece_bytes = 4 << 20;
  const auto heard = [&](int64_t from, int64_t to) {
    if (done)
      done({reinterpret_cast<const std::byte*>(b + from * element),
            static_cast<size_t>((to - from) * element)});
  };
  if (column_stride == 1 && row_stride >= N) {
    const int64_t rows = round_up(std::max<int64_t>(1, piece_bytes / (row_stride * element)), 16);
    for (int64_t first = 0; first < K; first += rows) {
      const int64_t last = std::min(K, first + rows);
      pack_panels(0, panels.count(), first, last);
      heard(first * row_stride, (last - 1) * row_stride + N);
    }
    return;
  }
  const bool by_columns = row_stride == 1 && column_stride >= K;
  const int64_t columns = panels.width * column_stride * element;
  const int64_t some = by_columns ? std::max<int64_t>(1, piece_bytes / columns) : panels.count();
  for (int64_t begin = 0; begin < panels.count(); begin += some) {
    const int64_t end = std::min(panels.count(), begin + some);
    pack_panels(begin, end, 0, K);
    if (by_columns) {
      heard(begin * panels.width * column_stride,
            (std::min(N, end * panels.width) - 1) * column_stride + K);
    }
  }
}

int64_t packed_scratch_bytes(int64_t M, int64_t N, int64_t K, const StridedMatrix& a, int threads,
                             ElementType type) {
  const TileKernels& kernels = tile_kernels();
  if (M <= 0 || N <= 0 || takes_wide(kernels, M, a)) return 0;
  return max_scratch(threads, [&](int count) {
    return PackedGemm(kernels, M, N, std::max<int64_t>(K, 0), a, type, count).scratch_bytes(count);
  });
}

void run_packed(int64_t M, int64_t N, int64_t K, const StridedMatrix& a,
                const PackedMatrix& packed_b, float* c, int64_t ldc, const Epilogue& epilogue,
                void* scratch, ThreadPool& pool, bool backwards) {
  if (M <= 0 || N <= 0) return;
  const PackedGemm g(tile_kernels(), M, N, std::max<int64_t>(K, 0), a, packed_b.type,
                     pool.threads());
  const void* b = packed_b.data;
  if (takes_wide(g.kernels, M, a)) {
    const int64_t step = g.kernels.wide_panels[M], count = g.panels.count();
    if (backwards) return run_wide_backwards(g, step, b, c, ldc, epilogue, pool);
    pool.parallel_for(count, round_up(g.group, step), [&](int64_t begin, int64_t end, int) {
      run_wide(g, begin, end, b, c, ldc, epilogue);
    });
    return;
  }
  if (g.narrow) {
    return run_narrow(g, static_cast<const float*>(b), c, ldc, epilogue,
                      static_cast<float*>(scratch), pool);
  }
  const PackedBlocks packed_blocks(scratch, pool.threads(), g.worker_floats());
  const int64_t tasks = g.blocks * g.groups;
  if (g.splits) {
    const int64_t claims = split_claims(tasks, pool.threads(), g.chunks);
    pool.parallel_for(claims, 1, [&](int64_t begin, int64_t end, int worker) {
      run_split_tasks(g, part_begin(tasks, claims, begin), part_begin(tasks, claims, end), packed_b,
                      c, ldc, epilogue, packed_blocks, worker);
    });
    return;
  }
  pool.parallel_for(tasks, g.grain(), [&](int64_t begin, int64_t end, int worker) {
    for (int64_t task = begin; task < end; ++task) {
      run_task(g, task, b, c, ldc, epilogue, packed_blocks, worker);
    }
  });
}

int64_t gemm_packed_b_scratch_bytes(int64_t M, int64_t N, int64_t K, int64_t lda, int threads,
                                    ElementType type) {
  return packed_scratch_bytes(M, N, K, {nullptr, lda, 1}, threads, type);
}

void gemm_packed_b(int64_t M, int64_t N, int64_t K, const float* a, int64_t lda,
                   const PackedMatrix& packed_b, float* c, int64_t ldc, const Epilogue& epilogue,
                   void* scratch, ThreadPool& pool, bool backwards) {
  run_packed(M, N, K, {a, lda, 1}, packed_b, c, ldc, epilogue, scratch, pool, backwards);
}

}  // namespace sardonyx::kernels
