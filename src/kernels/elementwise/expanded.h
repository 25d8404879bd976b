// Element-wise loops over inputs that repeat: what repeats is expanded, a tile at a time, so
// that short rows share one call and every loop meets dense elements.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/elementwise/broadcast.h"
#include "kernels/elementwise/walk.h"

namespace sardonyx::kernels {

// An input of a broadcast plan: its elements are `width` bytes, 1, 2, 4 or 8.
struct Repeating {
  const void* data = nullptr;
  int64_t width = 0;
};

// How the output of a plan is cut into tiles of at most `most` elements: some positions of one
// dimension, `split`, by all of the dimensions behind it. Trivially copyable.
struct OutputTiles {
  static constexpr int64_t most = 1024;

  explicit OutputTiles(const BroadcastPlan& p);

  const BroadcastPlan& plan;
  int split = 0;          // 0 where the plan has no dimension
  int64_t behind = 1;     // elements behind one position of `split`
  int64_t positions = 1;  // of `split` that a tile has, the last fewer
  int64_t in_line = 1;    // tiles along `split`
  int64_t count = 1;      // of all tiles
};

struct OutputTile {
  int64_t first = 0, elements = 0;  // of the output
  int64_t positions = 0;            // of the dimension that is split
  int64_t offsets[BroadcastPlan::max_inputs] = {};
};
OutputTile tile_at(const OutputTiles& tiles, int64_t index);

// Elements of one input as a tile needs them: where they stand, if they are dense there, else
// copied to `space`, of OutputTiles::most elements and 64 bytes. `again` says that `space` holds
// the whole tile of another position.
const void* spell_out(const OutputTiles& tiles, const OutputTile& tile, int input,
                      const Repeating& from, void* space, bool again);

// Whether all tiles read the same elements of the input.
bool same_for_all(const OutputTiles& tiles, int input);

// Whether a call for each row would cost more than what it does there.
inline bool has_short_rows(const BroadcastPlan& plan) {
  constexpr int64_t shortest = 32;
  return plan.rank > 1 && plan.dims[plan.rank - 1] < shortest;
}

// Calls run(const void* const* inputs, first, n) for parts of the output, on several threads.
template <int N, class Run>
void for_expanded(const BroadcastPlan& plan, const Repeating (&inputs)[N], ThreadPool& pool,
                  Run&& run) {
  if (plan.count == 0) return;
  const OutputTiles tiles(plan);
  const auto body = [&](int64_t begin, int64_t end) {
    alignas(64) char space[N][OutputTiles::most * 8 + 64];
    bool filled[N] = {};  // by a tile of full size that serves the others, too
    for (int64_t t = begin; t < end; ++t) {
      const OutputTile tile = tile_at(tiles, t);
      const void* rows[N];
      for (int i = 0; i < N; ++i) {
        rows[i] = spell_out(tiles, tile, i, inputs[i], space[i], filled[i]);
        filled[i] =
            rows[i] == space[i] && tile.positions == tiles.positions && same_for_all(tiles, i);
      }
      run(rows, tile.first, tile.elements);
    }
  };
  if (stays_alone(plan.count, pool)) return body(0, tiles.count);
  const int64_t grain = std::max<int64_t>(1, element_grain / (tiles.positions * tiles.behind));
  pool.parallel_for(tiles.count, grain, [&](int64_t begin, int64_t end, int) { body(begin, end); });
}

}  // namespace sardonyx::kernels
