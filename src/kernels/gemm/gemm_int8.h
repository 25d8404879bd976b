// Products of bytes, one operand unsigned and the other signed, summed exactly in int32, four terms
// at a time. Operands of the other sign have their sign bit flipped: +128 or -128, which their zero
// points take up.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/thread_pool.h"
#include "kernels/convert/byte_scale.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

inline constexpr int64_t byte_panel_columns = 64;
inline constexpr int64_t byte_group_bytes = 4 * byte_panel_columns;  // four terms of a panel
// Strips of a panel, each packed by one task: the bytes of four terms of them fill a cache line.
inline constexpr int64_t byte_strip_columns = 16,
                         byte_panel_strips = byte_panel_columns / byte_strip_columns;
inline int64_t vnni_groups(int64_t k) { return (k + 3) / 4; }

// What flipping the sign bit of a byte of type `from` for an operand of the other sign does to its
// zero point: 128 (int8 read as unsigned), -128 (uint8 read as signed) or 0.
inline int32_t sign_offset(ElementType from, bool to_signed) {
  if (from == ElementType::int8) return to_signed ? 0 : 128;
  return to_signed ? -128 : 0;
}

// Bytes with their sign bits flipped; `to` may be `from`.
void flip_signs(const uint8_t* from, int64_t count, uint8_t* to);

// The sums of the first `terms` bytes of rows `stride` bytes apart, with the bits of `flipped`
// flipped in each; they wrap.
void sum_byte_rows(const uint8_t* rows, int64_t stride, int64_t count, int64_t terms,
                   uint8_t flipped, int32_t* sums);

// Dense rows [count, k] as unsigned [count, 4 * groups], what is not there 0; sums (may be null) of
// each row.
void pack_byte_rows(ElementType type, const void* a, int64_t count, int64_t k, uint8_t* out,
                    int32_t* sums, ThreadPool& pool);

// Columns of b[t * term_stride + j * column_stride] as signed panels [groups, 64, 4], what is not
// there 0, and the sum of each column. A panel takes byte_panel_bytes: behind its columns stands
// what products on this machine must know of them.
int64_t byte_panel_bytes(int64_t groups);
inline int64_t byte_panels_size(int64_t columns, int64_t k) {
  return (columns + byte_panel_columns - 1) / byte_panel_columns * byte_panel_bytes(vnni_groups(k));
}
void pack_byte_panels(ElementType type, const void* b, int64_t term_stride, int64_t column_stride,
                      int64_t k, int64_t columns, int8_t* out, int32_t* sums, ThreadPool& pool);

// Memory to bring near while something else is multiplied.
struct BytesAhead {
  const void* data = nullptr;
  int64_t size = 0;

  // Part i of n equal ones.
  BytesAhead part(int64_t i, int64_t n) const {
    const int64_t each = (size + n - 1) / n, begin = std::min(size, i * each);
    return {static_cast<const char*>(data) + begin, std::min(each, size - begin)};
  }
};

// sums[i * 64 + j] = row i times column j of one panel, of which only the first `columns` need be
// right. Rows are row_stride bytes apart. Exactly one of rows and panel is signed, and a signed
// panel is one that pack_byte_panels made.
void byte_panel_product(bool panel_signed, const void* rows, int64_t row_stride, int64_t count,
                        int64_t groups, const void* panel, int64_t columns, int32_t* sums,
                        BytesAhead ahead = {});

// What becomes of sums: value = (sum + term - factor * row_sum) * scale + bias; then the value
// within [low, high] (float32), or saturate(round(value) + zero) (uint8, int8). factor has one
// value a column, the other pointers too where `each`, else one for each row; factor and bias may
// be null. Whole vectors are read beyond the last column: the memory must reach to the panel's end.
// Where there is a `sum`, for which bias must be null, those bytes are its first, `addend` its
// second, which lies as y does (and may be y), and y gets its y.
struct ByteFinish {
  const int32_t* term = nullptr;
  const int32_t* factor = nullptr;
  const float* scale = nullptr;
  const float* bias = nullptr;
  bool each = false;
  ElementType type = ElementType::float32;
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
  int32_t zero = 0;
  const ByteSum* sum = nullptr;
  const void* addend = nullptr;
};
// Rows of a panel's sums, and the sum of each row of the first operand, needed where there is a
// factor.
struct ByteSums {
  const int32_t* sums = nullptr;  // [rows, 64]
  const int32_t* row_sums = nullptr;
  int64_t rows = 1;
};
// Rows of y are y_stride elements apart.
void finish_bytes(const ByteFinish& how, const ByteSums& from, int64_t columns, void* y,
                  int64_t y_stride);

// How a product takes rows of int8: not at all, as uint8 (each byte with 128 added, its sign bit
// flipped), or as they are.
enum class SignedRows { no, raised, as_they_are };
// What byte_panel_finish does with rows of so many groups on this machine.
SignedRows signed_rows(int64_t groups);

// Rows of bytes, `stride` bytes apart; signed ones where signed_rows(groups) is not `no`.
struct ByteRowsOf {
  const uint8_t* data = nullptr;
  int64_t stride = 0, count = 0, groups = 0;
  bool is_signed = false;
};
// The products of rows with `columns` columns of a signed panel, and what becomes of them, as
// finish_bytes says; row_sums, of bytes as they are taken, are needed where there is a factor.
void byte_panel_finish(const ByteRowsOf& rows, const int8_t* panel, const ByteFinish& how,
                       const int32_t* row_sums, int64_t columns, void* y, int64_t y_stride,
                       BytesAhead ahead = {});

// y [m, n] of packed rows and panels; how.each. row_sums is needed where how.factor is given.
void byte_product(const uint8_t* rows, const int32_t* row_sums, int64_t m, int64_t n, int64_t k,
                  const int8_t* panels, const ByteFinish& how, void* y, ThreadPool& pool);

}  // namespace sardonyx::kernels
