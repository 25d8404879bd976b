// The register tiles under matrix multiplication and convolution, once for each instruction set.
// Internal to kernels/gemm and kernels/conv.
#pragma once

#include <cstdint>

#include "kernels/gemm/epilogue.h"

namespace sardonyx::kernels {

// Where and how the sums of one tile are stored.
struct TileStore {
  const float* sums = nullptr;  // rows x sums_stride
  int64_t sums_stride = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  float* c = nullptr;
  int64_t c_stride = 0;
  const Epilogue* epilogue = nullptr;
  const float* bias = nullptr;      // already at the tile's first row or column
  const float* residual = nullptr;  // already at the tile's corner
  int64_t residual_stride = 0;
};
// Where the terms of a strip's rows are: side by side in each row; k-major, the rows' side by side
// in each term; each term at an offset of its own; or by rows, where 2, 4 or 8 neighbours (no more
// than a vector has lanes) make a term, each for the columns of B that stand at its place among so
// many.
enum class TileForm : uint8_t { by_rows, k_major, by_offsets, by_twos, by_fours, by_eights };
constexpr int group_of(TileForm form) {
  switch (form) {
    case TileForm::by_twos: return 2;
    case TileForm::by_fours: return 4;
    case TileForm::by_eights: return 8;
    default: return 1;
  }
}

// One product of a strip of A (up to `tile_rows` rows) and a panel of B (one or two vectors wide,
// or several panels in the wide kernels), over k terms.
struct TileJob {
  int64_t k = 0;
  const float* a = nullptr;
  int64_t a_stride = 0;  // floats between rows; k-major, between terms
  // By offsets: a term's distance from a row's place; and the place of row 7.
  const int32_t* offsets = nullptr;
  const float* a_high = nullptr;
  const void* b = nullptr;     // floats, or halves in the kernels of Float16Tiles
  int64_t b_stride = 0;        // elements between terms
  int64_t panel_distance = 0;  // elements between panels, for the wide kernels
  // Brought into the second-level cache meanwhile: `prefetch_lines` lines every two terms, that
  // many floats apart.
  const float* prefetch = nullptr;
  int64_t prefetch_stride = 16;
  int prefetch_lines = 0;
  bool resume = false;  // `sums` holds those of earlier terms, to be continued
  TileForm form = TileForm::by_rows;
  bool half_empty = false;  // the upper half of the panel's last vector holds no columns; only with
                            // TileKernels::halves, by rows or by offsets
  float* sums = nullptr;    // rows x tile width, dense, aligned to 64 bytes
  // Instead of leaving them in `sums`, finish and store them (its sums and rows do not count). Only
  // where TileKernels::finishes says so.
  const TileStore* store = nullptr;
  // With `store`: every row's sums begin with this bias, one value for
  // each of the store's columns, and are neither scaled nor given another when they are finished.
  // Where bias_to_start says so.
  const float* start = nullptr;
};
using TileKernel = void (*)(const TileJob&);

using TileStoreKernel = void (*)(const TileStore&);

// The bias that sums, finished by the tile kernels, may begin with; null where it is not so simple.
inline const float* bias_to_start(const TileStore& store) {
  const Epilogue& e = *store.epilogue;
  return e.alpha == 1 && e.beta == 1 && e.bias_axis == BiasAxis::column ? store.bias : nullptr;
}

constexpr int max_tile_rows = 14;
constexpr int low_tile_rows = 7;  // those that lie a stride apart in any case
constexpr int max_tile_vectors = 3;
constexpr int max_tile_columns = 48;
constexpr int max_lanes = 16;
constexpr int max_wide_rows = 4;
constexpr int max_wide_columns = 128;

// The kernels of few rows for panels of float16 or bfloat16, A by rows.
struct Float16Tiles {
  TileKernel wide[max_wide_rows + 1] = {};    // as TileKernels::wide
  TileKernel one[max_wide_rows + 1][3] = {};  // [rows][vectors]: a single panel
};

struct TileKernels {
  int lanes = 0;          // floats in a vector
  int tile_rows = 0;      // most rows of one tile
  int strip_width = 0;    // these in whole vectors: the floats of each term of a packed strip
  int panel_columns = 0;  // two vectors
  int flat_rows = 0;      // most rows of tiles three vectors wide; divides panel_columns
  bool portable = false;  // of the target without vectors: there is less code for it
  bool halves = false;    // jobs may say that they are half empty, and it pays
  // [rows][vectors]; three vectors k-major alone, with no more than flat_rows rows.
  TileKernel tiles[max_tile_rows + 1][max_tile_vectors + 1] = {};
  // [rows]: wide_panels[rows] panels at a time, A by rows.
  TileKernel wide[max_wide_rows + 1] = {};
  int wide_panels[max_wide_rows + 1] = {};
  Float16Tiles float16, bfloat16;
  // Whether the tile kernels know this epilogue themselves.
  bool (*finishes)(const Epilogue& epilogue) = nullptr;
  // Several dot products: c[i][j] = A row i · B row j, for rows of A and of B that are dense.
  // cold_columns: so many rows of B, these and those behind them, come from memory and are fetched
  // ahead; 0 where they are near.
  void (*dot)(int64_t k, const float* a, int64_t a_stride, int rows, const float* b,
              int64_t b_stride, int columns, int64_t cold_columns, float* sums,
              int64_t sums_stride) = nullptr;
  // c = epilogue(sums); and the same with sums read as their transpose (columns x rows; there must
  // be `lanes` rows of memory).
  TileStoreKernel store = nullptr;
  TileStoreKernel store_transposed = nullptr;
  // Operands rewritten term after term, `width` floats each, of which the first `count` come from
  // `in` and the rest are 0. transpose_k_major: out[t * out_stride + i] = in[i * stride + t], width
  // = lanes; copy_k_major: out[t * width + i] = in[t * stride + i], width a multiple of lanes.
  void (*transpose_k_major)(const float* in, int64_t stride, int count, int64_t k, float* out,
                            int64_t out_stride) = nullptr;
  void (*copy_k_major)(const float* in, int64_t stride, int count, int64_t k, float* out,
                       int width) = nullptr;
};

// Those of the instruction set that dispatch chooses now.
const TileKernels& tile_kernels();

}  // namespace sardonyx::kernels
