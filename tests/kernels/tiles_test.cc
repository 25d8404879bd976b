// The register tiles of gemm/tiles.h that only some processors choose.
#include "kernels/gemm/tiles.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "gemm_support.h"

namespace sardonyx::kernels::test {
namespace {

// Tiles whose last vector is half empty give the same bits as whole ones, in the columns there are,
// whether or not this processor would take them.
TEST(Tiles, HalfEmptyVectorsGiveTheSame) {
  const TileKernels& kernels = tile_kernels();
  if (kernels.lanes < max_lanes)
    GTEST_SKIP() << "no half vectors with " << kernels.lanes << " lanes";
  for (int vectors = 1; vectors <= 2; ++vectors) {
    const int64_t width = vectors * kernels.lanes, used = width - kernels.lanes / 2;
    for (int rows = 1; rows <= kernels.tile_rows; ++rows) {
      for (const int64_t k : {1, 2, 7, 32}) {
        Guarded a(rows * k), b(k * width);
        fill_random(a.data(), a.size(), 1);
        fill_random(b.data(), b.size(), 2);
        std::vector<int32_t> offsets(static_cast<size_t>(k));
        std::iota(offsets.begin(), offsets.end(), 0);
        const auto sums_of = [&](TileForm form, bool half_empty, bool resume) {
          alignas(64) static float sums[max_tile_rows * max_tile_columns];
          std::fill(std::begin(sums), std::end(sums), 0.5f);
          TileJob job;
          job.k = k;
          job.a = a.data();
          job.a_stride = k;
          job.a_high = a.data() + low_tile_rows * k;
          job.offsets = offsets.data();
          job.b = b.data();
          job.b_stride = width;
          job.resume = resume;
          job.form = form;
          job.half_empty = half_empty;
          job.sums = sums;
          kernels.tiles[rows][vectors](job);
          std::vector<float> made;
          for (int i = 0; i < rows; ++i)
            made.insert(made.end(), sums + i * width, sums + i * width + used);
          return made;
        };
        for (const bool resume : {false, true}) {
          const auto expected = sums_of(TileForm::by_rows, false, resume);
          EXPECT_EQ(sums_of(TileForm::by_rows, true, resume), expected);
          EXPECT_EQ(sums_of(TileForm::by_offsets, true, resume), expected);
        }
      }
    }
  }
}

}  // namespace
}  // namespace sardonyx::kernels::test
