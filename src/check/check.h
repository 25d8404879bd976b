// Checks a model against the rules of the standard. Rules and their severities:
// docs/checker.md. Nothing here throws for what a model says, however broken it is; nothing
// recurses on it, either. May be called from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/model.h"

namespace sardonyx::check {

enum class Severity : uint8_t { error, warning, info };
std::string_view name_of(Severity severity);

enum class Profile : uint8_t {
  runnable,  // only what makes running impossible is an error, and only errors are reported
  standard,  // what the standard forbids is an error, what it advises against a warning
  strict,    // as standard; what real models often break, and what is advice, is an error, too
};

// Where a finding is. Empty fields do not apply.
struct Place {
  std::string graph;        // "graph 'main'", "function 'custom.Foo'", "graph 'main' > node 3 …"
  int64_t node_index = -1;  // in that graph
  std::string node_name;
  std::string op;      // with its domain where that is not ai.onnx
  std::string detail;  // "input 'x'", "attribute 'axis'", "initializer 'w'"

  // "graph 'main', node 3 Softmax 'attn/probs', attribute 'axis'"
  std::string to_string() const;
};

struct Diagnostic {
  Severity severity = Severity::error;
  std::string_view rule;  // "G-21"; docs/checker.md lists them
  Place place;
  std::string message;  // what the rule is and what was found
  std::string advice;   // what to do about it; may be empty

  // "error: graph 'main', node 3 Softmax 'p', attribute 'axis': … [D-22]"
  std::string to_string() const;
};

struct Options {
  Profile profile = Profile::standard;
  // Operators of domains that neither the standard nor the model defines are errors instead of
  // information (a session that has no kernel for them asks for this).
  bool unknown_domains_are_errors = false;
  // Reports end after so many findings, with one that says so.
  size_t max_diagnostics = 1000;
};

// All findings, in the order of the file. Empty: nothing to report.
std::vector<Diagnostic> check(const ir::Model& model, const Options& options = {});

bool has_errors(const std::vector<Diagnostic>& diagnostics);

// One rule of the table: its id in the standard's list of obligations, what it says in one line,
// and its severity in the profiles (nullptr-like `off` where a profile does not report it).
enum class Level : uint8_t { off, info, warning, error };
struct Rule {
  std::string_view id;
  std::string_view title;
  Level runnable = Level::off;
  Level standard = Level::off;
  Level strict = Level::off;
};
// Every rule that the checker can report, ordered by id's group and number.
const std::vector<Rule>& rules();

}  // namespace sardonyx::check
