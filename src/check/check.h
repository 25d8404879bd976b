// Checks a model against the rules of the standard. The rules, where they come from and how severe
// each is: docs/checker.md. A model is never the cause of a throw here, however broken it is, and
// nothing recurses on it. May be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/model.h"
#include "sardonyx/diagnostic.h"

namespace sardonyx::schema {
class MoreSignatures;
}

namespace sardonyx::check {

// The public interface's names for what is found.
using sardonyx::Diagnostic;
using sardonyx::name_of;
using sardonyx::Severity;
using Place = DiagnosticPlace;

enum class Profile : uint8_t {
  runnable,  // only what makes running impossible, as errors; nothing else is reported
  standard,  // what the standard forbids is an error, what it advises against a warning
  strict,    // what real models often break is an error, too
};

struct Options {
  Profile profile = Profile::standard;
  // An operator of a domain that neither the standard nor the model defines is an error, not
  // information.
  bool unknown_domains_are_errors = false;
  // Signatures of operators from outside; null: none. Borrowed for the call.
  const schema::MoreSignatures* more = nullptr;
  // Of each severity. What comes after is counted, not listed; a last finding says how many.
  size_t max_diagnostics = 1000;
};

// All findings: the model's own, then graph by graph. Empty: there is nothing to report.
std::vector<Diagnostic> check(const ir::Model& model, const Options& options = {});

bool has_errors(std::span<const Diagnostic> diagnostics);

// How a profile reports a rule; `off`: not at all.
enum class Level : uint8_t { off, info, warning, error };

// The end of what holds for all newer versions, too.
inline constexpr int newest_known = std::numeric_limits<int>::max();

// One rule of the table.
struct Rule {
  std::string_view id;     // of the standard's list of obligations; "L-…" are limits of ours
  std::string_view title;  // what it asks, in one line
  Level runnable = Level::off;
  Level standard = Level::off;
  Level strict = Level::off;
  // The IR versions it holds for. Versions newer than any known one are judged as the newest.
  int ir_from = 1, ir_to = newest_known;
};

// Every rule the checker can report.
std::span<const Rule> rules();

}  // namespace sardonyx::check
