#include "kernels/gemm/amx.h"

#if defined(__x86_64__) && defined(__linux__)
#include <immintrin.h>

#include <algorithm>

#include "kernels/gemm/tile_config.h"

namespace sardonyx::kernels {
namespace {

#define SARDONYX_AMX __attribute__((target("amx-tile,amx-int8")))

// For every number of rows. Tiles 0 to 3 hold sums; of the others, 4 holds rows alone, and what is
// left parts of the panel, or rows where all tiles are whole.
struct TileConfigs {
  TileConfig of[17];
  constexpr TileConfigs() {
    for (int i = 0; i < 17; ++i) of[i] = TileConfig(i);
  }
};
constexpr TileConfigs tile_configs;

constexpr int64_t panel_stride = 256;  // bytes of a group of 64 columns, and of a row of sums

constexpr int64_t each_row = 0;  // the stride of a row that fills a tile

// Tile `to` gets the products of tiles a and b, whose numbers the instruction holds.
#define SARDONYX_ADD_PRODUCTS(to, a, b)              \
  if constexpr (which == SignedBytes::panel) {       \
    _tile_dpbusd(to, a, b);                          \
  } else if constexpr (which == SignedBytes::rows) { \
    _tile_dpbsud(to, a, b);                          \
  } else {                                           \
    _tile_dpbssd(to, a, b);                          \
  }

SARDONYX_AMX inline void zero_sums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

template <SignedBytes which>
SARDONYX_AMX void multiply(const uint8_t* a, int64_t stride, int64_t groups, const uint8_t* panel,
                           const int32_t* start, int32_t* sums) {
  if (start == nullptr) {
    zero_sums();
  } else {
    _tile_loadd(0, start, each_row);
    _tile_loadd(1, start + 16, each_row);
    _tile_loadd(2, start + 32, each_row);
    _tile_loadd(3, start + 48, each_row);
  }
  for (int64_t q = 0; q < groups; q += 16, panel += 16 * panel_stride) {
    _tile_loadd(4, a + 4 * q, stride);
    _tile_loadd(5, panel, panel_stride);
    _tile_loadd(6, panel + 64, panel_stride);
    SARDONYX_ADD_PRODUCTS(0, 4, 5);
    _tile_loadd(7, panel + 128, panel_stride);
    SARDONYX_ADD_PRODUCTS(1, 4, 6);
    _tile_loadd(5, panel + 192, panel_stride);
    SARDONYX_ADD_PRODUCTS(2, 4, 7);
    SARDONYX_ADD_PRODUCTS(3, 4, 5);
  }
  _tile_stored(0, sums, panel_stride);
  _tile_stored(1, sums + 16, panel_stride);
  _tile_stored(2, sums + 32, panel_stride);
  _tile_stored(3, sums + 48, panel_stride);
}

// 32 rows with 32 columns of the panel: half of it stays in the first-level cache. In every step
// `lines` lines from `ahead` on are brought near; returns what follows them.
template <SignedBytes which>
SARDONYX_AMX const char* multiply_square(const uint8_t* a, int64_t stride, int64_t groups,
                                         const uint8_t* panel, const int32_t* start, int32_t* sums,
                                         const char* ahead, int64_t lines) {
  if (start == nullptr) {
    zero_sums();
  } else {
    _tile_loadd(0, start, each_row);
    _tile_loadd(1, start + 16, each_row);
    _tile_loadd(2, start, each_row);
    _tile_loadd(3, start + 16, each_row);
  }
  const uint8_t* below = a + 16 * stride;
  for (int64_t q = 0; q < groups; q += 16, panel += 16 * panel_stride) {
    _tile_loadd(4, a + 4 * q, stride);
    _tile_loadd(6, panel, panel_stride);
    _tile_loadd(7, panel + 64, panel_stride);
    _tile_loadd(5, below + 4 * q, stride);
    for (int64_t line = 0; line < lines; ++line, ahead += 64) __builtin_prefetch(ahead, 0, 2);
    SARDONYX_ADD_PRODUCTS(0, 4, 6);
    SARDONYX_ADD_PRODUCTS(1, 4, 7);
    SARDONYX_ADD_PRODUCTS(2, 5, 6);
    SARDONYX_ADD_PRODUCTS(3, 5, 7);
  }
  _tile_stored(0, sums, panel_stride);
  _tile_stored(1, sums + 16, panel_stride);
  _tile_stored(2, sums + 16 * 64, panel_stride);
  _tile_stored(3, sums + 16 * 64 + 16, panel_stride);
  return ahead;
}

#undef SARDONYX_ADD_PRODUCTS

}  // namespace

SARDONYX_AMX void byte_tiles_product(SignedBytes which, const uint8_t* rows, int64_t row_stride,
                                     int64_t count, int64_t groups, const uint8_t* panel,
                                     int64_t columns, const int32_t* start, int32_t* sums,
                                     BytesAhead ahead) {
  int64_t configured = 0;
  const int64_t pairs = count / 32 * 32;
  if (pairs > 0) {
    _tile_loadconfig(&tile_configs.of[configured = 16]);
    const auto product = which == SignedBytes::panel  ? &multiply_square<SignedBytes::panel>
                         : which == SignedBytes::rows ? &multiply_square<SignedBytes::rows>
                                                      : &multiply_square<SignedBytes::both>;
    const int64_t steps = pairs / 32 * ((columns + 31) / 32) * (groups / 16);
    const int64_t lines = ((ahead.size + 63) / 64 + steps - 1) / steps;
    const char* next = static_cast<const char*>(ahead.data);
    for (int64_t column = 0; column < columns; column += 32) {
      for (int64_t i = 0; i < pairs; i += 32)
        next = product(rows + i * row_stride, row_stride, groups, panel + 4 * column,
                       start == nullptr ? nullptr : start + column, sums + i * 64 + column, next,
                       lines);
    }
  }
  for (int64_t i = pairs; i < count; i += 16) {
    const int64_t some = std::min<int64_t>(16, count - i);
    if (some != configured) {
      _tile_loadconfig(&tile_configs.of[some]);
      configured = some;
    }
    const auto product = which == SignedBytes::panel  ? &multiply<SignedBytes::panel>
                         : which == SignedBytes::rows ? &multiply<SignedBytes::rows>
                                                      : &multiply<SignedBytes::both>;
    product(rows + i * row_stride, row_stride, groups, panel, start, sums + i * 64);
  }
  _tile_release();
}

}  // namespace sardonyx::kernels
#else
namespace sardonyx::kernels {

void byte_tiles_product(SignedBytes, const uint8_t*, int64_t, int64_t, int64_t, const uint8_t*,
                        int64_t, const int32_t*, int32_t*, BytesAhead) {}

}  // namespace sardonyx::kernels
#endif
