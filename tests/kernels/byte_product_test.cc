// Products of bytes: exact, whatever the bytes are.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/gemm/gemm_int8.h"

namespace sardonyx::kernels {
namespace {

// The largest size of a panel's bytes, term by term of a group of four.
struct ByteSizes {
  const char* what;
  int most[4];
};
constexpr ByteSizes byte_sizes[] = {
    {"all of any size", {128, 128, 128, 128}},
    {"neighbours that fit 16 bits together", {64, 64, 64, 64}},
    {"neighbours of two groups that do", {32, 32, 32, 32}},
    {"one large and one small neighbour", {127, 1, 0, 127}},
    {"none", {0, 0, 0, 0}},
};

// Every eighth value is the largest one there is.
int drawn_byte(std::mt19937& engine, int least, int most) {
  const auto draw = static_cast<int>(engine() % 8);
  if (draw == 0) return most;
  if (draw == 1) return least;
  return least + static_cast<int>(engine() % static_cast<unsigned>(most - least + 1));
}

void check_bytes(bool panel_signed, const ByteSizes& sizes, int64_t rows, int64_t groups,
                 int64_t columns) {
  SCOPED_TRACE(testing::Message() << sizes.what << ", " << rows << " rows, " << groups
                                  << " groups, " << columns << " columns, "
                                  << (panel_signed ? "signed" : "unsigned") << " panel");
  std::mt19937 engine(11);
  const int64_t stride = 4 * groups + 3;
  std::vector<uint8_t> a(static_cast<size_t>(rows * stride));
  for (uint8_t& byte : a)
    byte = static_cast<uint8_t>(panel_signed ? drawn_byte(engine, 0, 255)
                                             : drawn_byte(engine, -128, 127));
  // Groups of four terms of each column, as they lie in a panel.
  std::vector<uint8_t> panel(static_cast<size_t>(groups * byte_panel_columns * 4));
  for (size_t i = 0; i < panel.size(); ++i) {
    const int most = sizes.most[i % 4];
    panel[i] = static_cast<uint8_t>(panel_signed ? drawn_byte(engine, -most, std::min(most, 127))
                                                 : drawn_byte(engine, 0, 2 * most - (most > 0)));
  }
  const auto place = [&](int64_t term, int64_t column) {
    return static_cast<size_t>((term / 4 * byte_panel_columns + column) * 4 + term % 4);
  };
  std::vector<int8_t> packed(static_cast<size_t>(byte_panel_bytes(groups)));
  if (panel_signed) {
    std::vector<uint8_t> matrix;
    for (int64_t t = 0; t < 4 * groups; ++t) {
      for (int64_t j = 0; j < byte_panel_columns; ++j) matrix.push_back(panel[place(t, j)]);
    }
    std::vector<int32_t> column_sums(byte_panel_columns);
    pack_byte_panels(ElementType::int8, matrix.data(), byte_panel_columns, 1, 4 * groups,
                     byte_panel_columns, packed.data(), column_sums.data(), ThreadPool::single());
  }
  std::vector<int32_t> sums(static_cast<size_t>(rows * byte_panel_columns), -1);
  byte_panel_product(panel_signed, a.data(), stride, rows, groups,
                     panel_signed ? static_cast<const void*>(packed.data()) : panel.data(), columns,
                     sums.data());
  const auto value = [](uint8_t byte, bool is_signed) {
    return is_signed ? static_cast<int>(static_cast<int8_t>(byte)) : static_cast<int>(byte);
  };
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      int32_t sum = 0;
      for (int64_t t = 0; t < 4 * groups; ++t) {
        sum += value(a[static_cast<size_t>(i * stride + t)], !panel_signed) *
               value(panel[place(t, j)], panel_signed);
      }
      ASSERT_EQ(sums[static_cast<size_t>(i * byte_panel_columns + j)], sum) << i << ", " << j;
    }
  }
}

TEST(ByteProduct, ExactForBytesOfAnySize) {
  for (const bool panel_signed : {true, false}) {
    for (const ByteSizes& sizes : byte_sizes) {
      for (const int64_t rows : {1, 7, 8, 13, 64, 130}) {
        for (const int64_t groups : {1, 9, 64, 77})
          check_bytes(panel_signed, sizes, rows, groups, 64);
      }
      check_bytes(panel_signed, sizes, 20, 130, 17);
    }
  }
}

}  // namespace
}  // namespace sardonyx::kernels
