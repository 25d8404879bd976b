// What a check finds, as values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

enum class Severity : uint8_t { info, warning, error };
// "info", "warning", "error"
std::string_view name_of(Severity severity);

// Where in a model a finding is. Empty fields do not apply.
struct DiagnosticPlace {
  std::string graph = {};        // "graph 'main'", "function 'custom.Foo', node 3 If, then_branch"
  int64_t node_index = -1;       // in that graph
  std::string node_name = {};    // of the node, where it has one
  std::string node_output = {};  // the first, of a node without a name
  std::string op = {};           // with its domain where that is not ai.onnx
  std::string detail = {};       // "input 'x'", "attribute 'axis'", "initializer 'w'"

  // "graph 'main', node 3 Softmax 'attn/probs', attribute 'axis'"
  std::string to_string() const;
};

struct Diagnostic {
  Severity severity = Severity::error;
  // The rule's number in docs/checker.md, "G-21". Valid as long as the program runs.
  std::string_view rule = {};
  DiagnosticPlace place = {};
  std::string message = {};  // the rule and what was found
  std::string advice = {};   // what to do about it; may be empty

  // "error: graph 'main', node 3 Softmax 'p', attribute 'axis': … [D-22]"
  std::string to_string() const;
};

}  // namespace sardonyx

#pragma GCC visibility pop
