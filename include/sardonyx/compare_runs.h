// What two runs gave, value by value: outputs, and what nodes give to each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sardonyx/compare.h"
#include "sardonyx/session.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

// The numbers of a tensor at a glance.
struct NumberSummary {
  int64_t elements = 0;
  int64_t nans = 0, infinite = 0;
  double least = 0, most = 0;  // of those that are finite; 0 where none is
};

// Nothing for what holds no numbers.
std::optional<NumberSummary> summarize(const Value& value);

struct ComparedValue {
  std::string name = {};
  bool is_missing = false;  // one of the two has no value of this name: `difference` says which
  Difference difference = {};
  std::optional<NumberSummary> actual = {}, expected = {};
};

struct RunComparison {
  std::vector<ComparedValue> values = {};  // in the order of the actual ones, then what these lack

  int64_t differing() const;
  bool agree() const { return differing() == 0; }
  // The first that differs: where values are in the order of their making, what went wrong first.
  // Null where none does.
  const ComparedValue* first_difference() const;
};

struct CompareRunsOptions {
  Tolerance tolerance = {};
  bool common_only = false;   // values that only one has are no difference
  bool all_expected = false;  // as above, but only for those that nobody expects
};

// Values of one name. Absent values (kind none) equal each other only. Throws Error (bad_input)
// where a name is there twice among the expected values, or a tolerance is negative or NaN.
RunComparison compare_runs(const std::vector<NamedValue>& actual,
                           const std::vector<NamedValue>& expected,
                           const CompareRunsOptions& options = {});

// The values of a run that somebody wrote: the arrays of an .npz, or a folder's .npy and .pb files,
// whose names without the ending are those of the values, in the order of these names (numbers by
// their size). `wanted` (may be empty) says which types arrays of these names have, and which names
// write_output_npz did not give its arrays. A .pb that the model (if there is one) does not know is
// of the first kind that fits. Throws Error: (unreadable), (bad_input).
std::vector<NamedValue> read_run(const std::string& path, const Model* model = nullptr,
                                 const std::vector<ValueDescription>& wanted = {});

// The positions of a session's outputs in the order in which a run makes them. Those of the model
// come first among the outputs, before values that were made earlier.
std::vector<size_t> making_order(const Model& model, const std::vector<ValueDescription>& outputs);

}  // namespace sardonyx

#pragma GCC visibility pop
