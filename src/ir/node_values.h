// The values that a node reads and makes, by position.
#pragma once

#include <string>
#include <utility>

#include "ir/model.h"

namespace sardonyx::ir {

// Whether a node has input (output) i: one that is given, and not "".
inline bool has_input(const Node& node, size_t i) {
  return i < node.inputs.size() && !node.inputs[i].empty();
}
inline bool has_output(const Node& node, size_t i) {
  return i < node.outputs.size() && !node.outputs[i].empty();
}

// Input (output) i; "" where it is absent.
inline const std::string& input(const Node& node, size_t i) {
  static const std::string absent;
  return i < node.inputs.size() ? node.inputs[i] : absent;
}
inline const std::string& output(const Node& node, size_t i) {
  static const std::string absent;
  return i < node.outputs.size() ? node.outputs[i] : absent;
}

// Makes `value` input (output) i; what is missing before it is absent.
inline void set_input(Node& node, size_t i, std::string value) {
  if (i >= node.inputs.size()) node.inputs.resize(i + 1);
  node.inputs[i] = std::move(value);
}
inline void set_output(Node& node, size_t i, std::string value) {
  if (i >= node.outputs.size()) node.outputs.resize(i + 1);
  node.outputs[i] = std::move(value);
}

}  // namespace sardonyx::ir
