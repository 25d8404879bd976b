#include "kernels/elementwise/expanded.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

#include "kernels/move/small_copy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/expanded.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {

template <int64_t n>
using Count = std::integral_constant<int64_t, n>;

// Calls body with n, as a constant where rows that short are common.
template <class Body>
void with_count(int64_t n, Body&& body) {
  switch (n) {
    case 2: return body(Count<2>());
    case 3: return body(Count<3>());
    case 4: return body(Count<4>());
    default: return body(n);
  }
}

// Copies forward in whole steps: up to a step more is read and written. What is written may be what
// a later step reads.
constexpr size_t copy_step = 32;
void copy_ahead(const void* from, void* to, size_t bytes) {
  const auto* in = static_cast<const char*>(from);
  auto* out = static_cast<char*>(to);
  for (size_t i = 0; i < bytes; i += copy_step) {
    char step[copy_step];
    std::memcpy(step, in + i, copy_step);
    std::memcpy(out + i, step, copy_step);
  }
}

// `rows` rows of n elements, so far apart.
template <class T>
T* spell_rows(const T* from, int64_t rows, int64_t row_stride, int64_t n, int64_t stride, T* to) {
  with_count(n, [&](auto count) {
    if (stride == 0) {
      for (int64_t r = 0; r < rows; ++r, from += row_stride) {
        std::fill_n(to, static_cast<int64_t>(count), *from);
        to += count;
      }
    } else if (stride == 1) {
      for (int64_t r = 0; r < rows; ++r, from += row_stride, to += count) {
        if constexpr (std::is_same_v<decltype(count), int64_t>) {
          copy_few(from, to, static_cast<size_t>(count) * sizeof(T));
        } else {
          for (int64_t i = 0; i < count; ++i) to[i] = from[i];
        }
      }
    } else {
      for (int64_t r = 0; r < rows; ++r, from += row_stride) {
        for (int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
        to += count;
      }
    }
  });
  return to;
}

// Writes what the nested loops of dims and strides read of one input, and up to a step of copying
// beyond it.
template <class T>
T* spell(const T* from, std::span<const int64_t> dims, const int64_t* strides, T* to) {
  if (dims.size() == 1) return spell_rows(from, 1, 0, dims[0], strides[0], to);
  if (strides[0] == 0) {
    T* const end = spell(from, dims.subspan(1), strides + 1, to);
    const int64_t once = end - to, all = once * dims[0];
    for (int64_t have = once; have < all;) {
      const int64_t some = std::min(have, all - have);
      copy_ahead(to, to + have, static_cast<size_t>(some) * sizeof(T));
      have += some;
    }
    return to + all;
  }
  if (dims.size() == 2) return spell_rows(from, dims[0], strides[0], dims[1], strides[1], to);
  for (int64_t i = 0; i < dims[0]; ++i)
    to = spell(from + i * strides[0], dims.subspan(1), strides + 1, to);
  return to;
}

template <class T>
void spell_as(const Repeating& from, int64_t offset, std::span<const int64_t> dims,
              const int64_t* strides, void* to) {
  spell(static_cast<const T*>(from.data) + offset, dims, strides, static_cast<T*>(to));
}

void SpellOut(const Repeating& from, int64_t offset, std::span<const int64_t> dims,
              const int64_t* strides, void* to) {
  switch (from.width) {
    case 1: return spell_as<uint8_t>(from, offset, dims, strides, to);
    case 2: return spell_as<uint16_t>(from, offset, dims, strides, to);
    case 4: return spell_as<uint32_t>(from, offset, dims, strides, to);
    default: return spell_as<uint64_t>(from, offset, dims, strides, to);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(SpellOut);

OutputTiles::OutputTiles(const BroadcastPlan& p) : plan(p) {
  if (p.rank == 0) return;
  split = p.rank - 1;
  while (split > 0 && behind * p.dims[split] <= most) behind *= p.dims[split--];
  positions = std::clamp<int64_t>(most / behind, 1, p.dims[split]);
  in_line = (p.dims[split] + positions - 1) / positions;
  count = in_line;
  for (int d = 0; d < split; ++d) count *= p.dims[d];
}

OutputTile tile_at(const OutputTiles& tiles, int64_t index) {
  OutputTile tile;
  tile.elements = tile.positions = 1;
  const BroadcastPlan& plan = tiles.plan;
  if (plan.rank == 0) return tile;
  const int64_t begin = index % tiles.in_line * tiles.positions;
  tile.positions = std::min(tiles.positions, plan.dims[tiles.split] - begin);
  tile.elements = tile.positions * tiles.behind;
  int64_t rest = index / tiles.in_line;
  tile.first = (rest * plan.dims[tiles.split] + begin) * tiles.behind;
  for (int i = 0; i < plan.inputs; ++i) tile.offsets[i] = begin * plan.strides[i][tiles.split];
  for (int d = tiles.split; d-- > 0; rest /= plan.dims[d]) {
    const int64_t at = rest % plan.dims[d];
    for (int i = 0; i < plan.inputs; ++i) tile.offsets[i] += at * plan.strides[i][d];
  }
  return tile;
}

bool same_for_all(const OutputTiles& tiles, int input) {
  const int64_t* strides = tiles.plan.strides[input];
  const int inside = tiles.in_line == 1 ? tiles.split : tiles.split + 1;
  return std::all_of(strides, strides + inside, [](int64_t stride) { return stride == 0; });
}

const void* spell_out(const OutputTiles& tiles, const OutputTile& tile, int input,
                      const Repeating& from, void* space, bool again) {
  if (again) return space;
  const BroadcastPlan& plan = tiles.plan;
  const int64_t* strides = plan.strides[input] + tiles.split;
  const int64_t offset = tile.offsets[input];
  const int rank = plan.rank - tiles.split;
  int64_t dims[BroadcastPlan::max_rank] = {1};
  bool dense = true;
  int64_t expected = 1;
  for (int d = rank; d-- > 0; expected *= dims[d]) {
    dims[d] = d == 0 ? tile.positions : plan.dims[tiles.split + d];
    dense = dense && (dims[d] == 1 || strides[d] == expected);
  }
  if (dense) return static_cast<const char*>(from.data) + offset * from.width;
  const std::span<const int64_t> loops(dims, static_cast<size_t>(rank));
  HWY_DYNAMIC_DISPATCH(SpellOut)(from, offset, loops, strides, space);
  return space;
}

}  // namespace sardonyx::kernels
#endif
