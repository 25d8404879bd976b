// What a rewrite takes for granted of the sizes that a graph will run with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/dim.h"

namespace sardonyx::passes {

// A condition on sizes under which a rewritten graph means what the model does.
struct Guard {
  ir::Dim size;
  int64_t value = 0;  // that it must have
  std::string text;   // "If 'choose' takes its then_branch"
};

// Sizes of a graph's inputs may decide ranks that are open while they are names: by an If whose
// branches make values of different ranks, or by the length of a list, as of the target of a
// Reshape. A rewrite that is given these notes what would have to be known or, given the sizes of a
// run, takes it to be as in that run and notes the guards.
class Assumptions {
 public:
  // What every run with new shapes evaluates is bounded.
  static constexpr size_t max_guards = 256;
  // Of the inference. The symbols that it has when the rewrite begins are those of inputs.
  ir::SymbolTable symbols;
  // By symbol id, of a run's inputs; empty: nothing is guards.
  std::vector<int64_t> sizes;
  std::vector<Guard> guards;
  // Lengths of lists that leave ranks open.
  std::vector<ir::Dim> lengths;
  // Whether there is an If whose outputs' ranks sizes of inputs would decide.
  bool decides_branches = false;

  void begin() { inputs_ = symbols.size(); }
  // Whether sizes of inputs decide it.
  bool is_decided(const ir::Dim& size) const {
    std::vector<int> ids;
    size.collect_symbols(ids);
    return std::ranges::all_of(ids, [&](int id) { return id < inputs_; });
  }
  // Takes it to have the value that it has with `sizes`; nullopt where that can't be told, or too
  // much is guards already.
  // `text(value)` says what that means.
  template <class Text>
  std::optional<int64_t> assume(const ir::Dim& size, const Text& text) {
    if (sizes.empty() || !is_decided(size)) return std::nullopt;
    const auto value = size.evaluate(sizes);
    const auto is_same = [&](const Guard& guard) { return guard.size == size; };
    if (!value || std::ranges::any_of(guards, is_same)) return value;
    if (guards.size() == max_guards) return std::nullopt;
    guards.push_back({size, *value, text(*value)});
    return value;
  }

 private:
  int inputs_ = 0;
};

}  // namespace sardonyx::passes
