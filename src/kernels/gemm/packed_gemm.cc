// Matrix multiplication with a B that was packed beforehand.
//
// A packed B is its panels one after the other, each term after term: whole panels two vectors
// wide, the last as wide as its columns rounded up to vectors, filled up with zeros.
#include "kernels/gemm/packed_gemm.h"

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/gemm/block.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/pack.h"
#include "kernels/gemm/tiles.h"

namespace sardonyx::kernels {
namespace {

Panels panels_of(const TileKernels& kernels, int64_t N) {
  return {N, kernels.panel_columns, kernels.lanes};
}

// The shape of one call, and how it is cut.
struct PackedGemm {
  PackedGemm(const TileKernels& kernels, int64_t M, int64_t N, int64_t K, const StridedMatrix& a)
      : kernels(kernels),
        M(M),
        N(N),
        K(K),
        a(K > 0 ? a : StridedMatrix{a.data, 0, 1}),
        strips(M, kernels.tile_rows),
        panels(panels_of(kernels, N)),
        chunks{K},
        block(strips_per_block(strips.count(), kernels.tile_rows, K, N)),
        blocks(divide_up(strips.count(), block)),
        group(panels_per_task(panels.count(), blocks, std::min(M, block * kernels.tile_rows), K,
                              panels.width)),
        groups(divide_up(panels.count(), group)),
        packs_a((a.column_stride != 1 && K > 1) ||
                (panels.count() > 1 &&
                 rows_collide(a.row_stride, std::min<int64_t>(M, kernels.tile_rows)))) {}

  const TileKernels& kernels;
  int64_t M, N, K;
  StridedMatrix a;
  Strips strips;
  Panels panels;
  Chunks chunks;
  int64_t block;  // strips in one
  int64_t blocks;
  int64_t group;  // panels in one
  int64_t groups;
  bool packs_a;

  // Tasks that one claim takes.
  int64_t grain() const {
    const int64_t rows = std::min(M, block * kernels.tile_rows);
    return divide_up(task_work, std::max<int64_t>(1, rows * group * panels.width * K));
  }
  int64_t packed_floats() const { return packs_a ? block * K * kernels.lanes : 0; }
  int64_t worker_floats() const {
    return round_up(packed_floats() + partial_floats(chunks, block, kernels), 16);
  }
  int64_t scratch_bytes(int threads) const {
    return threads * (scratch_alignment + worker_floats() * int64_t{sizeof(float)});
  }
};

bool takes_wide(const TileKernels& kernels, int64_t M, const StridedMatrix& a) {
  return a.column_stride == 1 && M <= max_wide_rows && kernels.wide[M] != nullptr;
}

// Very few rows: all of B is read once, so several panels at a time keep the sums and the memory
// busy. `begin` and `end` count panels; a narrower last panel is left to the caller.
void run_wide(const PackedGemm& g, int64_t begin, int64_t end, const float* b, float* c,
              int64_t ldc, const Epilogue& epilogue) {
  alignas(64) float sums[max_wide_rows * max_wide_columns];
  const int64_t width = g.panels.width;
  const int rows = static_cast<int>(g.M);
  while (begin < end) {
    int64_t count = g.kernels.wide_panels[rows];
    TileKernel kernel = g.kernels.wide[rows];
    if (end - begin < count || g.panels.stored(begin + count - 1) < width) {
      count = 1;
      kernel = g.kernels.by_rows[rows][g.panels.vectors(begin)];
    }
    TileJob job;
    job.k = g.K;
    job.a = g.a.data;
    job.a_stride = g.a.row_stride;
    job.b = b + begin * width * g.K;
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
void run_wide_backwards(const PackedGemm& g, int64_t step, const float* b, float* c, int64_t ldc,
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
void run_task(const PackedGemm& g, int64_t task, const float* b, float* c, int64_t ldc,
              const Epilogue& epilogue, const PackedBlocks& packed_blocks, int worker) {
  const int64_t first = task / g.groups * g.block;
  const int64_t last = std::min(first + g.block, g.strips.count());
  float* space = packed_blocks.space(worker);
  StripOperand left{g.a.data + g.strips.begin(first) * g.a.row_stride, g.a.row_stride, 0, false};
  if (g.packs_a) {
    left = {space, g.kernels.lanes, g.K * g.kernels.lanes, true};
    if (packed_blocks.changes(worker, first)) {
      pack_strips(g.kernels, g.strips, first, last, g.a.data, g.a.row_stride, g.a.column_stride,
                  g.K, space);
    }
  }
  const int64_t first_panel = task % g.groups * g.group;
  const int64_t end_panel = std::min(first_panel + g.group, g.panels.count());
  for (int64_t p = first_panel; p < end_panel; ++p) {
    const int64_t width = g.panels.stored(p);
    const float* panel = b + p * g.panels.width * g.K;
    for (int64_t i = 0; i < g.chunks.count(); ++i) {
      const Terms terms = chunk_terms(g.chunks, i);
      const PanelOperand right{panel + terms.begin * width, width, g.panels.vectors(p)};
      const Ahead ahead = Ahead::piece(right.data + terms.size * width, terms.size * width);
      multiply_panel<false>(g.kernels, g.strips, first, last, left, right, terms, ahead,
                            space + g.packed_floats(), [&](int64_t strip) {
                              return store_at(epilogue, c, ldc, g.strips.begin(strip),
                                              p * g.panels.width, g.strips.height(strip),
                                              g.panels.used(p));
                            });
    }
  }
}

}  // namespace

int64_t packed_b_size(int64_t K, int64_t N) {
  if (K <= 0 || N <= 0) return 0;
  return K * panels_of(tile_kernels(), N).stored_columns() * int64_t{sizeof(float)};
}

void pack_b(const void* data, int64_t row_stride, int64_t column_stride, int64_t K, int64_t N,
            void* packed, ThreadPool* pool) {
  if (K <= 0 || N <= 0) return;
  const TileKernels& kernels = tile_kernels();
  const Panels panels = panels_of(kernels, N);
  const auto* b = static_cast<const float*>(data);  // read through unaligned loads alone
  const auto pack = [&](int64_t begin, int64_t end, int) {
    for (int64_t p = begin; p < end; ++p) {
      pack_panel(kernels, b + p * panels.width * column_stride, row_stride, column_stride, K,
                 panels.used(p), static_cast<float*>(packed) + p * panels.width * K,
                 panels.stored(p));
    }
  };
  const int64_t grain = std::max<int64_t>(1, (int64_t{64} << 10) / (K * panels.width));
  if (pool != nullptr) {
    pool->parallel_for(panels.count(), grain, pack);
  } else {
    pack(0, panels.count(), 0);
  }
}

int64_t packed_scratch_bytes(int64_t M, int64_t N, int64_t K, const StridedMatrix& a, int threads) {
  const TileKernels& kernels = tile_kernels();
  if (M <= 0 || N <= 0 || takes_wide(kernels, M, a)) return 0;
  return PackedGemm(kernels, M, N, std::max<int64_t>(K, 0), a).scratch_bytes(threads);
}

void run_packed(int64_t M, int64_t N, int64_t K, const StridedMatrix& a, const void* packed_b,
                float* c, int64_t ldc, const Epilogue& epilogue, void* scratch, ThreadPool& pool,
                bool backwards) {
  if (M <= 0 || N <= 0) return;
  const PackedGemm g(tile_kernels(), M, N, std::max<int64_t>(K, 0), a);
  const auto* b = static_cast<const float*>(packed_b);
  if (takes_wide(g.kernels, M, a)) {
    const int64_t step = g.kernels.wide_panels[M], count = g.panels.count();
    if (backwards) return run_wide_backwards(g, step, b, c, ldc, epilogue, pool);
    pool.parallel_for(count, round_up(g.group, step), [&](int64_t begin, int64_t end, int) {
      run_wide(g, begin, end, b, c, ldc, epilogue);
    });
    return;
  }
  const PackedBlocks packed_blocks(scratch, pool.threads(), g.worker_floats());
  pool.parallel_for(g.blocks * g.groups, g.grain(), [&](int64_t begin, int64_t end, int worker) {
    for (int64_t task = begin; task < end; ++task) {
      run_task(g, task, b, c, ldc, epilogue, packed_blocks, worker);
    }
  });
}

int64_t gemm_packed_b_scratch_bytes(int64_t M, int64_t N, int64_t K, int64_t lda, int threads) {
  return packed_scratch_bytes(M, N, K, {nullptr, lda, 1}, threads);
}

void gemm_packed_b(int64_t M, int64_t N, int64_t K, const float* a, int64_t lda,
                   const void* packed_b, float* c, int64_t ldc, const Epilogue& epilogue,
                   void* scratch, ThreadPool& pool, bool backwards) {
  run_packed(M, N, K, {a, lda, 1}, packed_b, c, ldc, epilogue, scratch, pool, backwards);
}

}  // namespace sardonyx::kernels
