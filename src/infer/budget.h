// What a node's outputs cost of the budget, and what is left of them where it is spent.
#pragma once

#include <forward_list>
#include <span>

#include "base/small_vector.h"
#include "infer/infer.h"

namespace sardonyx::infer {

// What most values have, and what is not counted.
inline constexpr size_t usual_rank = 8, usual_elements = 16;

// Charges what an output holds of expressions and, in inference of symbolic values, takes of memory
// beyond what most do. Where either is spent, it keeps no expressions, or nothing large.
void charge(ops::InferContext& context, ValueFacts& output, bool symbolic_values, Budget& budget);

// Charges the memory that so many new symbols take.
void charge_symbols(int64_t count, Budget& budget);

bool is_large(const ValueFacts& value);
void make_small(ValueFacts& value);

// Inputs of which nothing large is known any more.
class SmallInputs {
 public:
  explicit SmallInputs(std::span<const ValueFacts* const> inputs) : pointers_(inputs) {
    for (const ValueFacts*& input : pointers_) {
      if (input == nullptr || !is_large(*input)) continue;
      ValueFacts& copy = copies_.emplace_front(*input);
      make_small(copy);
      input = &copy;
    }
  }
  std::span<const ValueFacts* const> inputs() const { return pointers_; }

 private:
  SmallVector<const ValueFacts*, 8> pointers_;
  std::forward_list<ValueFacts> copies_;
};

}  // namespace sardonyx::infer
