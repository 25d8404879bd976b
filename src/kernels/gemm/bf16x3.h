// Products of floats on the matrix tiles of AMX, which multiply bfloat16. Internal to kernels/gemm
// and kernels/conv.
//
// A float is the sum of three bfloat16 values: the nearest one, the nearest to what is left, and
// the rest. a * b is the sum of nine products of such parts, each exact in float32; the three
// smallest, below 2^-25 of a * b, are left out. What results is as precise as a sum of float32
// products, at up to three times their speed.
//
// A B of float16 has two parts, one of bfloat16 one. Its products are as precise as its type: of
// A's parts two count, and of the products those above 2^-16.
//
// Parts fall below what bfloat16 tells from zero where magnitudes are extreme, and infinities have
// no remainder: bf16x3_suits says which operands may be multiplied so.
#pragma once

#include <cstdint>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/tiles.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

// Rows of a strip of A and columns of a panel of B: two tiles each.
constexpr int64_t bf16x3_size = 32;
// Fewer rows at the end are shared out among the strips: one tile costs the same for any number.
constexpr int64_t bf16x3_thin = 4;
// Terms of one step. Strips and panels are filled up with zeros to whole steps.
constexpr int64_t bf16x3_terms = 32;
// Most terms of a panel that is split at once.
constexpr int64_t bf16x3_chunk = 768;

// Floats of memory that the parts of a strip or panel take: 6 bytes for each value.
constexpr int64_t bf16x3_floats(int64_t terms) {
  return (terms + bf16x3_terms - 1) / bf16x3_terms * (bf16x3_terms * bf16x3_size * 6 / 4);
}

// Whether a product of M rows, N columns and K terms is faster so, and the tiles stand beside
// vectors of `lanes` floats.
bool bf16x3_pays(int64_t lanes, int64_t M, int64_t N, int64_t K);
// What it takes then, in cycles. Coarse: as Bf16x3From says.
double bf16x3_cycles(int64_t M, int64_t N, int64_t K, bool coarse);

// What a packed B holds. Coarse: float32 values that are multiplied as precisely as float16.
enum class Bf16x3From : uint8_t { float32, coarse, float16, bfloat16 };

inline Bf16x3From bf16x3_from(const PackedMatrix& b) {
  if (b.type == ElementType::float16) return Bf16x3From::float16;
  if (b.type == ElementType::bfloat16) return Bf16x3From::bfloat16;
  return b.coarse ? Bf16x3From::coarse : Bf16x3From::float32;
}
// The parts of A that count.
constexpr int bf16x3_parts_a(Bf16x3From b) { return b == Bf16x3From::float32 ? 3 : 2; }

// Products of tiles in a step.
constexpr int bf16x3_products(Bf16x3From b) {
  return b == Bf16x3From::float32 ? 6 : b == Bf16x3From::bfloat16 ? 2 : 3;
}

// Splits `rows` (1 to 32) rows of A, `stride` floats apart. `parts`: 64-byte aligned, of
// bf16x3_floats(terms); rows beyond the last are zeros. `count`: the parts that
// are wanted. Returns the largest magnitude, infinity where an element is no number.
float bf16x3_strip(const float* a, int64_t stride, int64_t rows, int64_t terms, int count,
                   float* parts);

// A panel of B that is being split, a few terms at a time: `vectors` (1 or 2) times 16 columns,
// term after term.
struct Bf16x3Panel {
  PackedMatrix from;   // at its first term
  int64_t stride = 0;  // elements
  int vectors = 2;
  int64_t terms = 0;
  float* parts = nullptr;  // 64-byte aligned, of bf16x3_floats(terms)
  int64_t done = 0;        // pairs of terms, of 16 in a step
  alignas(64) uint32_t most[16] = {};

  int64_t pairs() const { return (terms + bf16x3_terms - 1) / bf16x3_terms * 16; }
};
void bf16x3_pairs(Bf16x3Panel& panel, int64_t count);
// Of a panel that is done: as bf16x3_strip.
float bf16x3_magnitude(const Bf16x3Panel& panel);

// Whether a strip and a panel of those largest magnitudes keep their precision.
bool bf16x3_suits(float strip, float panel);

// Tiles must be set up before bf16x3_product runs on a thread, and given back afterwards.
class Bf16x3Tiles {
 public:
  Bf16x3Tiles();
  ~Bf16x3Tiles();
  Bf16x3Tiles(const Bf16x3Tiles&) = delete;
  Bf16x3Tiles& operator=(const Bf16x3Tiles&) = delete;
};

struct Bf16x3Job {
  Bf16x3From from = Bf16x3From::float32;
  int64_t terms = 0;
  const float* strip = nullptr;
  const float* panel = nullptr;
  int64_t rows = 0;
  int vectors = 0;
  bool resume = false;    // `sums` holds sums to be continued
  float* sums = nullptr;  // rows rounded up to 16, 16 * vectors floats each
  // What is split meanwhile, so many pairs in every step: the arithmetic hides behind the tiles'.
  Bf16x3Panel* next = nullptr;
  int64_t next_pairs = 0;
  // A tile whose product came before, or null: so many rows of it are finished and stored with
  // every product of tiles, hidden likewise. Written before that product was: what was written just
  // before would be waited for. `sums` is not its.
  const TileStore* before = nullptr;
  int64_t before_rows = 0;
  TileStoreKernel store = nullptr;
  // What is split after that: this many lines are brought near with every product of tiles.
  const char* ahead = nullptr;
  int64_t ahead_lines = 0;
};
void bf16x3_product(const Bf16x3Job& job);

}  // namespace sardonyx::kernels
