#include "kernels/gemm/pack.h"

#include <algorithm>
#include <cstring>

namespace sardonyx::kernels {
namespace {

float load_float(const float* at) {
  float value;
  std::memcpy(&value, static_cast<const void*>(at), sizeof value);
  return value;
}

void pack_any(const float* in, int64_t item_stride, int64_t term_stride, int64_t count, int64_t k,
              float* out, int64_t width) {
  for (int64_t t = 0; t < k; ++t) {
    for (int64_t i = 0; i < width; ++i) {
      out[t * width + i] = i < count ? load_float(in + i * item_stride + t * term_stride) : 0.0f;
    }
  }
}

}  // namespace

bool rows_collide(int64_t stride, int64_t rows) { return stride % 1024 == 0 && rows > 8; }

void pack_panel(const TileKernels& kernels, const float* b, int64_t row_stride,
                int64_t column_stride, int64_t k, int64_t columns, float* out, int64_t width) {
  if (column_stride == 1 || columns == 1) {
    kernels.copy_k_major(b, row_stride, static_cast<int>(columns), k, out, static_cast<int>(width));
  } else if (row_stride == 1 || k == 1) {
    for (int64_t j = 0; j < width; j += kernels.lanes) {
      const int64_t count = std::clamp<int64_t>(columns - j, 0, kernels.lanes);
      kernels.transpose_k_major(b + j * column_stride, column_stride, static_cast<int>(count), k,
                                out + j, width);
    }
  } else {
    pack_any(b, column_stride, row_stride, columns, k, out, width);
  }
}

void pack_float16(const void* b, int64_t row_stride, int64_t column_stride, int64_t k,
                  int64_t columns, uint16_t* out, int64_t width) {
  const auto* in = static_cast<const char*>(b);
  if (column_stride == 1) {
    for (int64_t t = 0; t < k; ++t, out += width) {
      std::memcpy(out, in + 2 * t * row_stride, static_cast<size_t>(2 * columns));
      std::fill(out + columns, out + width, uint16_t{0});
    }
    return;
  }
  // As many terms as a line of memory holds, column after column.
  constexpr int64_t terms = 32;
  for (int64_t begin = 0; begin < k; begin += terms) {
    const int64_t end = std::min(k, begin + terms);
    for (int64_t j = 0; j < width; ++j) {
      for (int64_t t = begin; t < end; ++t) {
        uint16_t value = 0;
        if (j < columns) std::memcpy(&value, in + 2 * (j * column_stride + t * row_stride), 2);
        out[t * width + j] = value;
      }
    }
  }
}

void pack_strips(const TileKernels& kernels, const Strips& strips, int64_t first, int64_t last,
                 const float* a, int64_t row_stride, int64_t column_stride, int64_t k, float* out) {
  for (int64_t s = first; s < last; ++s) {
    pack_panel(kernels, a + strips.begin(s) * row_stride, column_stride, row_stride, k,
               strips.height(s), out + (s - first) * k * kernels.strip_width, kernels.strip_width);
  }
}

}  // namespace sardonyx::kernels
