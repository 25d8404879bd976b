// A block of strips of A times panels of a packed B, through matrix tiles. Internal to kernels/gemm
// and kernels/conv.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/convert/cast.h"
#include "kernels/gemm/bf16x3.h"
#include "kernels/gemm/block.h"
#include "kernels/gemm/blocking.h"
#include "kernels/gemm/tiles.h"

namespace sardonyx::kernels {

// Where the sums are cut: whole steps, whose panels leave room in the second-level cache.
inline Chunks split_chunks(int64_t k) { return {k, bf16x3_chunk, bf16x3_terms}; }

// Blocks of strips, an even number: every one splits its panels anew, which is hidden behind its
// products if there are enough of them. One thread needs no more blocks than the cache does.
inline int64_t bf16x3_blocks(int64_t strips, const Chunks& chunks, int threads) {
  constexpr int64_t bytes = 3 << 19, wanted_blocks = 4;
  const int64_t min_strips = threads == 1 ? 8 : 4;
  const int64_t fit = bytes / std::max<int64_t>(1, bf16x3_floats(chunks.size()) * 4);
  const int64_t even = std::max(min_strips, divide_up(strips, wanted_blocks));
  return even_parts(strips, std::max<int64_t>(1, std::min(fit, even)));
}

// Into how many claims, of nearly equal size, such tasks are cut: within a claim the next panel is
// split for nothing, and each claim splits chunks of A anew.
inline int64_t split_claims(int64_t tasks, int threads, const Chunks& chunks) {
  constexpr int64_t most = 2, enough_panels = 8;  // of each thread
  if (threads == 1) return 1;
  const int64_t each = tasks / threads / enough_panels;
  return std::min(tasks, threads * std::clamp<int64_t>(each, 1, chunks.count() > 1 ? 1 : most));
}

// Most panels that a block is multiplied with at a time: between chunks the sums of all are kept.
inline int64_t bf16x3_panels_at_once(int64_t strips, const Chunks& chunks, const Panels& panels) {
  constexpr int64_t sums = 192 << 10;  // floats
  if (chunks.count() == 1) return std::max<int64_t>(1, panels.count());
  return std::clamp<int64_t>(sums / (strips * bf16x3_size * bf16x3_size), 1, panels.count());
}

// The memory of one worker, aligned to 64 bytes: a chunk of the block's split strips with their
// largest magnitudes, two panels, and sums between chunks.
class SplitSpace {
 public:
  SplitSpace(float* space, int64_t strips, const Chunks& chunks)
      : strips_(strips),
        distance_(bf16x3_floats(chunks.size())),
        parts_(space),
        magnitudes_(parts_ + strips * distance_),
        panels_(magnitudes_ + round_up(strips, 16)),
        sums_(panels_ + 2 * distance_) {}

  static int64_t floats(int64_t strips, const Chunks& chunks, const Panels& panels) {
    const int64_t sums = chunks.count() == 1 ? 0 : bf16x3_panels_at_once(strips, chunks, panels);
    return (strips + 2) * bf16x3_floats(chunks.size()) + round_up(strips, 16) +
           sums * strips * bf16x3_size * bf16x3_size;
  }

  // Splits these terms of a strip, whose rows begin at `a`, for such a B.
  void fill(int64_t index, const float* a, int64_t stride, int64_t rows, const Terms& terms,
            Bf16x3From b) const {
    magnitudes_[index] = bf16x3_strip(a + terms.begin, stride, rows, terms.size, bf16x3_parts_a(b),
                                      parts_ + index * distance_);
  }

  const float* strip(int64_t index) const { return parts_ + index * distance_; }
  float magnitude(int64_t index) const { return magnitudes_[index]; }
  float* panel(int64_t turn) const { return panels_ + turn % 2 * distance_; }
  float* sums(int64_t panel, int64_t strip) const {
    return sums_ + (panel * strips_ + strip) * bf16x3_size * bf16x3_size;
  }

 private:
  int64_t strips_;
  int64_t distance_;  // floats between strips, and between panels
  float* parts_;
  float* magnitudes_;
  float* panels_;
  float* sums_;
};

// The rows of a block: rows(strip) is where those of a strip begin, wanted when it is split and,
// rarely, later.
template <class Rows>
struct SplitRows {
  const Strips& strips;
  int64_t first, last;  // of the block's strips
  Rows rows;
  int64_t stride;           // floats between rows
  const SplitSpace& space;  // where they lie split
};
template <class Rows>
SplitRows(const Strips&, int64_t, int64_t, Rows, int64_t, const SplitSpace&) -> SplitRows<Rows>;

// What a packed B holds, and the panels of it that are wanted.
struct SplitColumns {
  const Panels& panels;
  int64_t begin, end;
  PackedMatrix packed;
};

// The sums of a strip that cannot be split, in the strip's shape.
inline void multiply_whole(const TileKernels& kernels, const float* a, int64_t stride, int64_t rows,
                           const Bf16x3Panel& b, bool resume, float* sums) {
  constexpr int64_t most = 64;  // terms at once, where B is made floats first
  alignas(64) float widened[most * bf16x3_size];
  const bool widens = b.from.type != ElementType::float32;
  const int64_t step = widens ? most : b.terms;
  for (int64_t k = 0; k < b.terms; k += step) {
    TileJob job;
    job.k = std::min(step, b.terms - k);
    job.a_stride = stride;
    job.b = b.from.data;
    job.b_stride = b.stride;
    job.resume = resume || k > 0;
    if (widens) {
      to_floats(b.from.type, static_cast<const uint16_t*>(b.from.data) + k * b.stride, widened,
                job.k * b.stride);
      job.b = widened;
    }
    for (int64_t row = 0; row < rows; row += kernels.tile_rows) {
      job.a = a + row * stride + k;
      job.sums = sums + row * b.stride;
      kernels.tiles[std::min<int64_t>(kernels.tile_rows, rows - row)][b.vectors](job);
    }
  }
}

// All products of those rows and columns, no more than bf16x3_panels_at_once. place(panel, strip)
// says where a tile's sums go (its sums and sums_stride are filled in here). `filled`: the space
// holds these rows already, where there is but one chunk. While a panel is multiplied the next is
// split, and where finishing a tile takes long, that is done while the next one is multiplied.
template <class Rows, class Place>
void multiply_bf16x3(const TileKernels& kernels, const SplitRows<Rows>& a, const SplitColumns& b,
                     const Chunks& chunks, bool filled, Place&& place) {
  alignas(64) float near_sums[2][bf16x3_size * bf16x3_size];
  const int64_t panels = b.end - b.begin, strips = a.last - a.first;
  const int64_t count = panels * chunks.count();
  const int64_t element_bytes = b.packed.type == ElementType::float32 ? 4 : 2;
  const auto panel_at = [&](int64_t index) {
    const int64_t p = b.begin + index % panels;
    const Terms terms = chunk_terms(chunks, index / panels);
    Bf16x3Panel panel;
    panel.stride = b.panels.stored(p);
    const int64_t element = p * b.panels.width * chunks.k + terms.begin * panel.stride;
    panel.from = b.packed;
    panel.from.data = static_cast<const char*>(b.packed.data) + element * element_bytes;
    panel.vectors = b.panels.vectors(p);
    panel.terms = terms.size;
    panel.parts = a.space.panel(index);
    return panel;
  };
  const bool chunked = chunks.count() > 1;
  const Bf16x3From from = bf16x3_from(b.packed);
  const Bf16x3Tiles tiles;
  Bf16x3Panel panel = panel_at(0);
  TileStore stores[2];  // of this tile and, if it has rows, of the one before
  int64_t turn = 0;
  for (int64_t index = 0; index < count; ++index) {
    const int64_t p = index % panels;
    const Terms terms = chunk_terms(chunks, index / panels);
    if (p == 0 && (chunked || !filled)) {
      for (int64_t s = 0; s < strips; ++s) {
        a.space.fill(s, a.rows(a.first + s), a.stride, a.strips.height(a.first + s), terms, from);
      }
    }
    bf16x3_pairs(panel, panel.pairs());
    const float magnitude = bf16x3_magnitude(panel);
    Bf16x3Panel next;
    Bf16x3Job job;
    job.from = from;
    job.terms = panel.terms;
    job.panel = panel.parts;
    job.vectors = panel.vectors;
    job.resume = !terms.first;
    const int64_t steps = divide_up(terms.size, bf16x3_terms);
    // Beside long sums it hardly counts.
    const bool short_sums = steps <= 8;
    job.before_rows = round_up(divide_up(bf16x3_size, steps * bf16x3_products(from)), 2);
    job.store = kernels.store;
    if (index + 1 < count) {
      next = panel_at(index + 1);
      job.next = &next;
      job.next_pairs = divide_up(next.pairs(), steps * strips);
    }
    if (index + 2 < count) {
      job.ahead = static_cast<const char*>(panel_at(index + 2).from.data);
      job.ahead_lines = divide_up(next.terms * next.stride * element_bytes / 64,
                                  bf16x3_products(from) * steps * strips);
    }
    for (int64_t s = 0; s < strips; ++s, ++turn) {
      job.rows = a.strips.height(a.first + s);
      job.sums = chunked ? a.space.sums(p, s) : near_sums[turn % 2];
      TileStore& store = stores[turn % 2];
      store.rows = 0;
      if (terms.last) {
        store = place(b.begin + p, a.first + s);
        store.sums = job.sums;
        store.sums_stride = panel.stride;
      }
      const TileStore& before = stores[(turn + 1) % 2];
      job.before = before.rows > 0 ? &before : nullptr;
      if (bf16x3_suits(a.space.magnitude(s), magnitude)) {
        job.strip = a.space.strip(s);
        bf16x3_product(job);
        job.ahead += steps * bf16x3_products(from) * job.ahead_lines * 64;
      } else {
        if (job.before != nullptr) kernels.store(before);
        multiply_whole(kernels, a.rows(a.first + s) + terms.begin, a.stride, job.rows, panel,
                       job.resume, job.sums);
      }
      if (!terms.last || (short_sums && takes_long(store.epilogue->activation))) continue;
      kernels.store(store);
      store.rows = 0;
    }
    panel = next;
  }
  if (const TileStore& last = stores[(turn + 1) % 2]; last.rows > 0) kernels.store(last);
}

}  // namespace sardonyx::kernels
