#include "base/small_vector.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace sardonyx {
namespace {

using Item = std::shared_ptr<int>;
using List = SmallVector<Item, 2>;

List counted(int count) {
  List list;
  for (int i = 0; i < count; ++i) list.push_back(std::make_shared<int>(i));
  return list;
}

void expect_counted(const List& list, int count) {
  ASSERT_EQ(list.size(), static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) EXPECT_EQ(*list[static_cast<size_t>(i)], i);
}

// Below, at and beyond what a list holds in itself.
TEST(SmallVector, IsCopiedMovedAndAssigned) {
  for (const int count : {0, 1, 2, 3, 9}) {
    const List list = counted(count);
    List copy = list;
    expect_counted(copy, count);
    List moved = std::move(copy);
    expect_counted(moved, count);
    for (const int before : {0, 1, 2, 3, 9}) {
      List assigned = counted(before);
      assigned = list;
      expect_counted(assigned, count);
      assigned = counted(before);
      expect_counted(assigned, before);
    }
    moved = *&moved;
    expect_counted(moved, count);
    for (const Item& item : list) EXPECT_EQ(item.use_count(), 2);
  }
}

TEST(SmallVector, ItemsComeAndGo) {
  List list = counted(2);
  list.append(counted(4));
  ASSERT_EQ(list.size(), 6u);
  EXPECT_EQ(*list.back(), 3);
  list.erase(list.begin() + 1);
  ASSERT_EQ(list.size(), 5u);
  EXPECT_EQ(*list[1], 0);
  EXPECT_EQ(*list[4], 3);
  const Item kept = list[0], dropped = list[4];
  list.truncate(1);
  EXPECT_EQ(list.size(), 1u);
  EXPECT_EQ(kept.use_count(), 2);
  EXPECT_EQ(dropped.use_count(), 1);
  list.truncate(0);
  EXPECT_TRUE(list.empty());
}

}  // namespace
}  // namespace sardonyx
