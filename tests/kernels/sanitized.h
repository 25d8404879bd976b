// How much of the kernels' sizes tests go through. Under sanitizers the references, plain loops,
// take ten times as long: the cases that take the longest go through a part of their sizes there.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <vector>

namespace sardonyx::kernels::test {

#ifdef SARDONYX_SANITIZED
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

// All of them; under sanitizers every third, and the last.
template <class T>
std::vector<T> sizes(std::initializer_list<T> all) {
  std::vector<T> some;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!sanitized || i % 3 == 0 || i + 1 == all.size()) some.push_back(all.begin()[i]);
  }
  return some;
}

constexpr int times(int all) { return sanitized ? all / 6 : all; }

}  // namespace sardonyx::kernels::test
