// Operators of the caller's as their functions describe them, and the signatures that Sardonyx has
// of them.
#pragma once

#include <climits>
#include <string>
#include <vector>

#include "ort_api/kernels.h"

namespace sardonyx::ort_api {

// One of the operators that share a name, each with types and versions of its own.
struct Overload {
  struct Place {                                // an input or output
    ElementType type = ElementType::undefined;  // undefined: any
    OrtCustomOpInputOutputCharacteristic kind = INPUT_OUTPUT_REQUIRED;
    int least = 1;          // variadic: values
    bool is_mixed = false;  // variadic: values may differ in type

    bool is_like(const Place& other) const {
      return kind == other.kind && least == other.least && is_mixed == other.is_mixed;
    }
  };
  const OrtCustomOp* functions = nullptr;
  std::vector<Place> inputs, outputs;
  int first = 1, last = INT_MAX;  // versions of the domain

  // What it says of itself, of which it is only asked for what its version has.
  explicit Overload(const OrtCustomOp& op);
  bool has(uint32_t version) const { return functions->version >= version; }
  // Whether the sizes that its inference sets are what they were meant to be: the C++ wrapper of
  // releases before 1.19 made each of them 1.
  bool says_sizes() const { return has(19); }
  // Whether it computes nodes whose signature began with this version.
  bool serves(int version) const { return first <= version && version <= last; }
  // Of the node's input or output; the last one stands for all values of a list.
  static const Place& place_of(const std::vector<Place>& places, int index);
};

// Reports what is wrong with a node, with its place.
[[noreturn]] void fail_node(const CustomNode& node, ErrorCode code, const std::string& message);

// Refuses overloads of one version that differ in more than types.
std::string signature_of(const std::string& name, const std::vector<Overload>& overloads,
                         const AttributeTypes& attributes);

// The first one that takes the node's inputs; reports nodes that none does. Types that are not
// known yet fit all.
const Overload& choose(const std::vector<Overload>& overloads, const CustomNode& node);

}  // namespace sardonyx::ort_api
