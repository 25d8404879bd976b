#include "base/name_map.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sardonyx {
namespace {

TEST(NameMap, HoldsEachNameOnce) {
  std::vector<std::string> names{""};  // the empty name is one like any other
  for (int i = 0; i < 1000; ++i) names.push_back("name" + std::to_string(i));
  NameMap<size_t> map;
  EXPECT_FALSE(map.contains("name1"));
  for (size_t i = 0; i < names.size(); ++i) {
    const auto [value, is_new] = map.emplace(names[i], i);
    EXPECT_TRUE(is_new);
    EXPECT_EQ(*value, i);
  }
  EXPECT_EQ(map.size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const auto [value, is_new] = map.emplace(std::string(names[i]), 0);
    EXPECT_FALSE(is_new);
    EXPECT_EQ(*value, i);
    ASSERT_NE(map.find(names[i]), nullptr);
    EXPECT_EQ(*map.find(names[i]), i);
  }
  EXPECT_FALSE(map.contains("name1000"));
  size_t visited = 0;
  map.for_each([&](std::string_view name, size_t value) {
    EXPECT_EQ(name, names[value]);
    ++visited;
  });
  EXPECT_EQ(visited, names.size());
}

}  // namespace
}  // namespace sardonyx
