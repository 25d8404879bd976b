// Tables of bytes, on every instruction set.
#include "kernels/elementwise/lookup_table.h"

#include <numeric>

#include "kernels/rows_support.h"

namespace sardonyx::kernels {
namespace {

TEST(LookupTable, LooksUpAllBytesOfAllLengths) {
  std::vector<uint8_t> table(lookup_table_size);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<uint8_t>(i * 73 + 29);
  test::each_target([&] {
    for (const int64_t n : {0, 1, 15, 16, 31, 63, 64, 65, 255, 256, 300, 400'001}) {
      std::vector<uint8_t> x(static_cast<size_t>(n)), y(x.size() + 1, 0xa5), wanted;
      std::iota(x.begin(), x.end(), uint8_t{17});
      for (const uint8_t byte : x) wanted.push_back(table[byte]);
      look_up_bytes(table.data(), x.data(), y.data(), n, test::two_threads());
      EXPECT_EQ(y.back(), 0xa5);  // nothing is written behind the end
      y.pop_back();
      EXPECT_EQ(y, wanted) << n;
      look_up_bytes(table.data(), x.data(), x.data(), n, test::one_thread());
      EXPECT_EQ(x, wanted) << n;
    }
  });
}

}  // namespace
}  // namespace sardonyx::kernels
