// Matrix multiplication of two operands that are known only when it runs, alone and in batches.
#include "kernels/gemm/gemm.h"

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/gemm/block.h"
#include "kernels/gemm/narrow.h"
#include "kernels/gemm/pack.h"
#include "kernels/gemm/packed_gemm.h"
#include "kernels/gemm/tiles.h"

namespace sardonyx::kernels {
namespace {

// How a product is computed.
enum class Way {
  dot,     // rows of A against columns of B, both contiguous in memory: few rows or few columns
  wide,    // few rows, B by rows: several rows of B at a time, a wide range of columns
  panels,  // panels of B, packed as they are needed where they do not lie ready
  packed,  // all of B packed first, since several blocks of A would pack it again and again
};

struct Gemm {
  Gemm(const TileKernels& kernels, const GemmBatch& batch, int64_t M, int64_t N, int64_t K,
       const StridedMatrix& a, const StridedMatrix& b);

  const TileKernels& kernels;
  const GemmBatch& batch;
  int64_t M, N, K;
  StridedMatrix a, b;
  Strips strips;
  Panels panels;
  Chunks chunks;
  Way way = Way::panels;
  bool narrow = false;   // a `dot` of many rows and very few columns, each in one piece
  bool packs_a = false;  // into strips; otherwise, into rows
  bool packs_b = false;  // every panel, not just a last one that is not whole
  int64_t block = 1;     // most strips in one, with `panels`; otherwise, rows
  int64_t blocks = 1;
  int64_t group = 1;  // panels in one, with `panels`; otherwise, columns
  int64_t groups = 1;

  int64_t tasks() const { return batch.count() * blocks * groups; }
  bool in_panels() const { return way == Way::panels; }
  int64_t block_rows() const {
    return in_panels() ? std::min(M, block * kernels.tile_rows) : block;
  }
  int64_t grain() const {
    const int64_t columns = in_panels() ? group * panels.width : group;
    return divide_up(task_work, std::max<int64_t>(1, block_rows() * columns * K));
  }
  int64_t a_floats() const {
    if (!packs_a) return 0;
    return round_up(in_panels() ? block * K * kernels.strip_width : block * K, 16);
  }
  int64_t b_floats() const {
    if (way == Way::dot) return packs_b ? round_up(group * K, 16) : 0;
    const bool ragged = N % panels.width != 0;
    const int64_t terms = way == Way::wide ? wide_terms : chunks.size();
    return packs_b || ragged ? round_up(std::min(K, terms) * panels.width, 16) : 0;
  }
  int64_t sums_floats() const {
    if (way == Way::wide) return M * round_up(group, max_wide_columns);
    return in_panels() ? round_up(partial_floats(chunks, block, kernels), 16) : 0;
  }
  int64_t worker_floats() const { return a_floats() + b_floats() + sums_floats(); }
  // Columns of B that are packed together: no more than the second-level cache holds.
  int64_t slice() const {
    constexpr int64_t near_bytes = 1 << 20;
    const int64_t slices = divide_up(packed_b_size(K, N), near_bytes);
    return std::min(N, round_up(divide_up(N, slices), panels.width));
  }
  int64_t packed_bytes() const { return round_up(packed_b_size(K, slice()), scratch_alignment); }
  int64_t scratch_bytes(int threads) const {
    if (way == Way::packed) {
      // The last slice may have other blocks.
      const int64_t last = N - (divide_up(N, slice()) - 1) * slice();
      return packed_bytes() + std::max(packed_scratch_bytes(M, slice(), K, a, threads),
                                       packed_scratch_bytes(M, last, K, a, threads));
    }
    return threads * (scratch_alignment + worker_floats() * int64_t{sizeof(float)});
  }

  static constexpr int64_t wide_terms = 16;  // rows of B at a time
};

constexpr int64_t few = 4;  // rows or columns that `dot` takes
constexpr int64_t dot_rows = 32;
constexpr int64_t dot_columns = 32;
constexpr int64_t wide_columns = 2048;
constexpr int64_t small_packing = 64 << 10;  // bytes that may be packed again and again

Gemm::Gemm(const TileKernels& kernels, const GemmBatch& batch, int64_t M, int64_t N, int64_t K,
           const StridedMatrix& a_given, const StridedMatrix& b_given)
    : kernels(kernels),
      batch(batch),
      M(M),
      N(N),
      K(K),
      a(a_given),
      b(b_given),
      strips(M, kernels.tile_rows),
      panels{N, kernels.panel_columns, kernels.lanes},
      chunks{K} {
  if (K <= 0) a.row_stride = a.column_stride = b.row_stride = b.column_stride = 0;
  const bool a_by_rows = a.column_stride == 1 || K <= 1;
  const bool b_by_columns = b.row_stride == 1 || K <= 1;
  const bool b_by_rows = b.column_stride == 1 || N == 1;
  if (K > 0 && ((M <= few && b_by_columns) || (N <= few && (a_by_rows || M <= few)))) {
    way = Way::dot;
    packs_a = !a_by_rows;
    packs_b = !b_by_columns;
    constexpr int64_t many_rows = 8;
    narrow = N <= max_narrow && M >= many_rows && (N == 1 || packs_b || b.column_stride == K);
    block = std::min(M, narrow ? narrow_rows : dot_rows);
    blocks = divide_up(M, block);
    group = std::min(N, dot_columns);
    groups = divide_up(N, group);
    return;
  }
  if (K > 0 && a_by_rows && b_by_rows && N > 1 && M <= max_wide_rows &&
      kernels.wide[M] != nullptr) {
    way = Way::wide;
    block = M;
    // Neither more than the first-level cache holds, nor so few that threads are left idle.
    group = std::clamp(round_up(divide_up(N, 8), max_wide_columns), int64_t{max_wide_columns},
                       wide_columns);
    groups = divide_up(N, group);
    return;
  }
  const bool few_strips = strips.count() <= 2;
  // A matrix of one panel lies in memory as packing would leave it.
  const bool is_panel = b_by_rows && N == panels.width && b.row_stride == panels.width;
  packs_b = !is_panel && !(b_by_rows && few_strips && (M <= few || b.row_stride % 1024 != 0));
  const bool a_by_terms = a.row_stride == 1;
  packs_a = a_by_rows ? rows_collide(a.row_stride, std::min<int64_t>(M, kernels.tile_rows)) &&
                            panels.count() > 1
                      : !(a_by_terms && panels.count() <= 2);
  const int64_t fit = block_bytes / std::max<int64_t>(1, kernels.tile_rows * K * 4);
  block = std::clamp<int64_t>(fit, 1, std::max<int64_t>(strips.count(), 1));
  // Enough blocks for several threads where the panels alone are too few, but no thin ones: each
  // block packs its panels again.
  const int64_t thick = divide_up(96, kernels.tile_rows);
  const int64_t wanted = divide_up(8, std::max<int64_t>(1, panels.count() * batch.count()));
  block = std::min(block, std::max(thick, divide_up(strips.count(), wanted)));
  block = divide_up(strips.count(), std::max<int64_t>(1, divide_up(strips.count(), block)));
  blocks = divide_up(strips.count(), block);
  group = panels_per_task(panels.count(), blocks * batch.count(), block_rows(), K, panels.width);
  groups = divide_up(panels.count(), group);
  if (packs_b && batch.count() == 1 && blocks > 1 && K * N * 4 > small_packing) way = Way::packed;
}

// One product of the batch.
struct Operands {
  const float* a;
  const float* b;
  float* c;
  Epilogue epilogue;
};

Operands operands_of(const Gemm& g, int64_t index, float* c, const Epilogue& epilogue) {
  Operands at{g.a.data, g.b.data, c, epilogue};
  for (int i = g.batch.rank - 1; i >= 0; --i) {
    const int64_t position = index % g.batch.size[i];
    index /= g.batch.size[i];
    if (g.K > 0) {
      at.a += position * g.batch.a_stride[i];
      at.b += position * g.batch.b_stride[i];
    }
    at.c += position * g.batch.c_stride[i];
    if (at.epilogue.residual != nullptr) at.epilogue.residual += position * g.batch.c_stride[i];
  }
  return at;
}

// Rows of `in` as dense rows of k floats.
const float* dense_rows(const float* in, int64_t row_stride, int64_t column_stride, int64_t rows,
                        int64_t k, float* out) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t t = 0; t < k; ++t) out[i * k + t] = in[i * row_stride + t * column_stride];
  }
  return out;
}

void run_dot(const Gemm& g, const Operands& at, int64_t row, int64_t column, float* c, int64_t ldc,
             float* space) {
  const int64_t rows = std::min(g.block, g.M - row);
  const int64_t columns = std::min(g.group, g.N - column);
  const float* a = at.a + row * g.a.row_stride;
  const float* b = at.b + column * g.b.column_stride;
  int64_t a_stride = g.a.row_stride;
  int64_t b_stride = g.b.column_stride;
  if (g.packs_a) {
    a = dense_rows(a, g.a.row_stride, g.a.column_stride, rows, g.K, space);
    a_stride = g.K;
  }
  if (g.packs_b) {
    b = dense_rows(b, g.b.column_stride, g.b.row_stride, columns, g.K, space + g.a_floats());
    b_stride = g.K;
  }
  if (g.narrow) {
    return narrow_block(g.kernels, a, a_stride, b, g.K, at.epilogue, c, ldc, row, column, rows,
                        columns);
  }
  alignas(64) float sums[dot_rows * dot_columns];
  TileStore store = store_at(at.epilogue, c, ldc, row, column, rows, columns);
  store.sums = sums;
  const bool cold = !g.packs_b && g.N * g.K * static_cast<int64_t>(sizeof(float)) > near_b_bytes;
  g.kernels.dot(g.K, a, a_stride, static_cast<int>(rows), b, b_stride, static_cast<int>(columns),
                cold ? g.N - column : 0, sums, dot_columns);
  store.sums_stride = dot_columns;
  g.kernels.store(store);
}

// Columns [column, column + group): the sums of all rows grow by a few terms at a time, so that B
// is read in long pieces.
void run_wide(const Gemm& g, const Operands& at, int64_t column, float* c, int64_t ldc,
              float* space) {
  const int64_t end = std::min(column + g.group, g.N);
  float* ragged = space;
  float* sums = space + g.b_floats();
  const int64_t step = g.kernels.wide_panels[g.M] * g.panels.width;
  // Calls f(first column, columns, where the sums are) for pieces that one kernel takes.
  const auto for_pieces = [&](auto&& f) {
    for (int64_t j = column; j < end;) {
      const int64_t left = end - j;
      const int64_t count = left >= step ? step : std::min(left, g.panels.width);
      f(j, count, sums + (j - column) * g.M);
      j += count;
    }
  };
  for (int64_t k = 0; k < g.K; k += Gemm::wide_terms) {
    TileJob job;
    job.k = std::min(Gemm::wide_terms, g.K - k);
    job.a = at.a + k;
    job.a_stride = g.a.row_stride;
    job.resume = k > 0;
    for_pieces([&](int64_t j, int64_t count, float* piece_sums) {
      const float* piece = at.b + k * g.b.row_stride + j;
      job.b = piece;
      job.b_stride = g.b.row_stride;
      job.panel_distance = g.panels.width;
      job.sums = piece_sums;
      if (count == step && step > g.panels.width) return g.kernels.wide[g.M](job);
      const int64_t width = round_up(count, g.kernels.lanes);
      if (count < g.panels.width) {
        pack_panel(g.kernels, piece, g.b.row_stride, 1, job.k, count, ragged, width);
        job.b = ragged;
        job.b_stride = width;
      }
      g.kernels.tiles[g.M][width / g.kernels.lanes](job);
    });
  }
  for_pieces([&](int64_t j, int64_t count, float* piece_sums) {
    TileStore store = store_at(at.epilogue, c, ldc, 0, j, g.M, count);
    store.sums = piece_sums;
    store.sums_stride = round_up(count, g.kernels.lanes);
    g.kernels.store(store);
  });
}

// The memory of a panel of B, to be fetched ahead of its packing.
Ahead panel_memory(const Gemm& g, const float* b, int64_t panel, const Terms& terms) {
  if (!g.packs_b || panel >= g.panels.count()) return {};
  const float* at = b + panel * g.panels.width * g.b.column_stride + terms.begin * g.b.row_stride;
  if (g.b.column_stride == 1) return {at, g.b.row_stride, terms.size, g.panels.width / 16 + 1};
  if (g.b.row_stride == 1) {
    return {at, g.b.column_stride, g.panels.used(panel), divide_up(terms.size, 16)};
  }
  return {};
}

// A panel's terms: where they lie, if they can be used so, or packed into `space`.
PanelOperand panel_of(const Gemm& g, const float* b, int64_t panel, const Terms& terms,
                      float* space) {
  const float* at = b + panel * g.panels.width * g.b.column_stride + terms.begin * g.b.row_stride;
  if (!g.packs_b && g.panels.used(panel) == g.panels.width) {
    return {at, g.b.row_stride, 2};
  }
  const int64_t width = g.panels.stored(panel);
  pack_panel(g.kernels, at, g.b.row_stride, g.b.column_stride, terms.size, g.panels.used(panel),
             space, width);
  return {space, width, g.panels.vectors(panel)};
}

void run_panels(const Gemm& g, const Operands& at, int64_t block, int64_t group, int64_t ldc,
                bool fresh, float* space) {
  const int64_t first = part_begin(g.strips.count(), g.blocks, block);
  const int64_t last = part_begin(g.strips.count(), g.blocks, block + 1);
  StripOperand left{at.a + g.strips.begin(first) * g.a.row_stride, g.a.row_stride, 0, false};
  if (g.packs_a) {
    left = {space, g.kernels.strip_width, g.K * g.kernels.strip_width, true};
    if (fresh) {
      pack_strips(g.kernels, g.strips, first, last, at.a, g.a.row_stride, g.a.column_stride, g.K,
                  space);
    }
  } else if (g.a.column_stride != 1 && g.K > 1) {
    left.stride = g.a.column_stride;
    left.k_major = true;
  }
  float* panel_space = space + g.a_floats();
  float* partial = panel_space + g.b_floats();
  const int64_t end = std::min((group + 1) * g.group, g.panels.count());
  for (int64_t p = group * g.group; p < end; ++p) {
    for (int64_t i = 0; i < g.chunks.count(); ++i) {
      const Terms terms = chunk_terms(g.chunks, i);
      const PanelOperand right = panel_of(g, at.b, p, terms, panel_space);
      const bool last_chunk = i + 1 == g.chunks.count();
      const Ahead ahead = panel_memory(g, at.b, last_chunk ? p + 1 : p,
                                       chunk_terms(g.chunks, last_chunk ? 0 : i + 1));
      multiply_panel<false>(
          g.kernels, g.strips, first, last, left, right, terms, ahead, partial, [&](int64_t strip) {
            return store_at(at.epilogue, at.c, ldc, g.strips.begin(strip), p * g.panels.width,
                            g.strips.height(strip), g.panels.used(p));
          });
    }
  }
}

// Products of single terms, stored as they are.
bool is_outer(const Gemm& g, const Epilogue& e) {
  return g.K == 1 && g.N >= g.kernels.lanes && g.b.column_stride == 1 && e.alpha == 1 &&
         e.bias == nullptr && e.residual == nullptr && e.activation == Activation::none;
}
void run_outer(const Gemm& g, float* c, int64_t ldc, ThreadPool& pool) {
  constexpr int64_t task = 16384;  // floats
  pool.parallel_for(g.batch.count() * g.M, divide_up(task, g.N),
                    [&](int64_t begin, int64_t end, int) {
                      while (begin < end) {
                        const int64_t row = begin % g.M, rows = std::min(g.M - row, end - begin);
                        const Operands at = operands_of(g, begin / g.M, c, {});
                        outer_product(at.a + row * g.a.row_stride, g.a.row_stride, rows, at.b, g.N,
                                      at.c + row * ldc, ldc);
                        begin += rows;
                      }
                    });
}

}  // namespace

int64_t batched_gemm_scratch_bytes(const GemmBatch& batch, int64_t M, int64_t N, int64_t K,
                                   const StridedMatrix& a, const StridedMatrix& b, int threads) {
  if (M <= 0 || N <= 0 || batch.count() <= 0) return 0;
  return Gemm(tile_kernels(), batch, M, N, std::max<int64_t>(K, 0), a, b).scratch_bytes(threads);
}

void batched_gemm(const GemmBatch& batch, int64_t M, int64_t N, int64_t K, const StridedMatrix& a,
                  const StridedMatrix& b, float* c, int64_t ldc, const Epilogue& epilogue,
                  void* scratch, ThreadPool& pool) {
  if (M <= 0 || N <= 0 || batch.count() <= 0) return;
  const Gemm g(tile_kernels(), batch, M, N, std::max<int64_t>(K, 0), a, b);
  if (is_outer(g, epilogue)) return run_outer(g, c, ldc, pool);
  if (g.way == Way::packed) {
    for (int64_t j = 0; j < N; j += g.slice()) {
      const int64_t columns = std::min(g.slice(), N - j);
      Epilogue finish = epilogue;
      if (finish.bias != nullptr && finish.bias_axis == BiasAxis::column) finish.bias += j;
      if (finish.residual != nullptr) finish.residual += j;
      pack_b(b.data + j * b.column_stride, b.row_stride, b.column_stride, K, columns, scratch,
             &pool);
      run_packed(M, columns, K, a, {scratch}, c + j, ldc, finish,
                 static_cast<char*>(scratch) + g.packed_bytes(), pool);
    }
    return;
  }
  const PackedBlocks spaces(scratch, pool.threads(), g.worker_floats());
  pool.parallel_for(g.tasks(), g.grain(), [&](int64_t begin, int64_t end, int worker) {
    float* space = spaces.space(worker);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t group = task % g.groups;
      const int64_t block = task / g.groups % g.blocks;
      const Operands at = operands_of(g, task / g.groups / g.blocks, c, epilogue);
      if (g.way == Way::dot) {
        run_dot(g, at, block * g.block, group * g.group, at.c, ldc, space);
      } else if (g.way == Way::wide) {
        run_wide(g, at, group * g.group, at.c, ldc, space);
      } else {
        const bool fresh = g.packs_a && spaces.changes(worker, task / g.groups);
        run_panels(g, at, block, group, ldc, fresh, space);
      }
    }
  });
}

int64_t gemm_scratch_bytes(int64_t M, int64_t N, int64_t K, const StridedMatrix& a,
                           const StridedMatrix& b, int threads) {
  return batched_gemm_scratch_bytes(GemmBatch(), M, N, K, a, b, threads);
}

void gemm(int64_t M, int64_t N, int64_t K, const StridedMatrix& a, const StridedMatrix& b, float* c,
          int64_t ldc, const Epilogue& epilogue, void* scratch, ThreadPool& pool) {
  batched_gemm(GemmBatch(), M, N, K, a, b, c, ldc, epilogue, scratch, pool);
}

}  // namespace sardonyx::kernels
