// Inputs that a model declares as scalars, given one element with dimensions around it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sardonyx/session.h"

namespace sardonyx {

// Such an element is taken, with a warning once for each input: what is meant leaves no doubt. May
// be used from any thread.
class ScalarInputs {
 public:
  using Warn = std::function<void(const Warning&)>;

  // `strict`: take none.
  ScalarInputs(std::span<const ValueDescription> inputs, bool strict, Warn warn);

  // Whether any input is a scalar.
  bool exist() const { return !names_.empty(); }
  // The scalar that is meant by what input i is given; nullopt where it is to be taken as it is.
  std::optional<Value> meant(size_t i, const Value& given) const;

 private:
  std::vector<std::string> names_;  // by input; "" where it is no scalar. Empty: none is
  Warn warn_;
  std::unique_ptr<std::atomic<bool>[]> told_;
};

}  // namespace sardonyx
