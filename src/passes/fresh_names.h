// Names for the values that a pass makes.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "infer/infer.h"

namespace sardonyx::passes {

// Makes names that no value of a scope has, nor one that it has made: "x__layout_7". Borrows the
// scope.
class FreshNames {
 public:
  explicit FreshNames(const infer::Scope& scope) : scope_(scope) {}

  // From the name of the value that it is made for, and what the pass calls such.
  std::string make(std::string_view value, std::string_view mark) {
    for (;;) {
      std::string name = fmt::format("{}__{}_{}", value, mark, counter_++);
      if (scope_.find(name) == nullptr) return name;
    }
  }

 private:
  const infer::Scope& scope_;
  int64_t counter_ = 0;
};

}  // namespace sardonyx::passes
