#include "base/small_vector.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

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

using Numbers = SmallVector<int, 2>;

std::vector<int> as_vector(const Numbers& numbers) { return {numbers.begin(), numbers.end()}; }

TEST(SmallVector, IsMadeAsVectorsAre) {
  const std::vector<int> five{1, 2, 3, 4, 5};
  EXPECT_EQ(as_vector(Numbers(five.begin(), five.end())), five);
  EXPECT_EQ(as_vector(Numbers(3, 7)), std::vector<int>(3, 7));
  EXPECT_EQ(as_vector(Numbers(size_t{3})), std::vector<int>(3));
  EXPECT_TRUE(Numbers({1, 2, 3}) == Numbers({1, 2, 3}));
  EXPECT_FALSE(Numbers({1, 2, 3}) == Numbers({1, 2}));
  EXPECT_FALSE(Numbers({1, 2}) == Numbers({2, 1}));
}

// What std::vector does with the same numbers, within the list's own room and beyond it.
TEST(SmallVector, ItemsArePutInAndTakenOutAnywhere) {
  const std::vector<int> more{10, 11, 12};
  for (const int count : {0, 1, 2, 3, 7}) {
    for (int at = 0; at <= count; ++at) {
      std::vector<int> expected;
      for (int i = 0; i < count; ++i) expected.push_back(i);
      Numbers numbers(expected.begin(), expected.end());
      EXPECT_EQ(*numbers.insert(numbers.begin() + at, 20), 20);
      expected.insert(expected.begin() + at, 20);
      EXPECT_EQ(as_vector(numbers), expected);
      EXPECT_EQ(*numbers.insert(numbers.begin() + at, more.begin(), more.end()), 10);
      expected.insert(expected.begin() + at, more.begin(), more.end());
      EXPECT_EQ(as_vector(numbers), expected);
      numbers.erase(numbers.begin() + at, numbers.begin() + at + 2);
      expected.erase(expected.begin() + at, expected.begin() + at + 2);
      EXPECT_EQ(as_vector(numbers), expected);
      numbers.resize(expected.size() + 3, 5);
      expected.resize(expected.size() + 3, 5);
      EXPECT_EQ(as_vector(numbers), expected);
      numbers.pop_back();
      numbers.resize(1);
      EXPECT_EQ(as_vector(numbers), std::vector<int>(1, expected[0]));
      numbers.clear();
      EXPECT_TRUE(numbers.empty());
    }
  }
}

// As with std::vector, also where the list moves to make room.
TEST(SmallVector, GrowsByItsOwnItems) {
  for (const int count : {1, 2, 5}) {
    List list = counted(count);
    const Item first = list[0];
    list.resize(list.size() + 3, list[0]);
    list.push_back(list[0]);
    EXPECT_EQ(first.use_count(), 6);
    EXPECT_EQ(list.back(), first);
  }
}

}  // namespace
}  // namespace sardonyx
