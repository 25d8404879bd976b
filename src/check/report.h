// Collects findings: decides by rule and profile whether and how each is reported.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check/check.h"
#include "check/rules.h"
#include "ir/walk.h"

namespace sardonyx::check {

// The text with bytes that are no UTF-8 spelled out, \xff.
std::string as_utf8(std::string text);

// A place as the checker carries it about; made into text only for what is reported.
struct Where {
  std::string_view root = {};            // where there is no graph: "model", "function 'a.F'"
  const ir::WalkPlace* graph = nullptr;  // outlives the Where
  const ir::Node* node = nullptr;
  size_t node_index = 0;
  std::string detail = {};
  std::string_view part = {}, part_name = {};  // within that: "input", "x"

  Where in(std::string inner) const {
    Where where = *this;
    where.detail = whole_detail();
    where.part = where.part_name = {};
    where.detail = where.detail.empty() ? std::move(inner) : where.detail + ", " + inner;
    return where;
  }
  // The same for "input 'x'". The two, which outlive the Where, are assembled when they are
  // needed.
  Where in(std::string_view what, std::string_view name) const {
    Where where = *this;
    if (!part.empty()) where.detail = whole_detail();
    where.part = what;
    where.part_name = name;
    return where;
  }
  Place to_place() const;

 private:
  std::string whole_detail() const;
};

class Report {
 public:
  Report(const Options& options, int64_t ir_version) : options_(options), ir_version_(ir_version) {}

  // False where findings of the rule are not reported, so that looking for them is a waste.
  bool wants(RuleId rule) const { return level(*rule) != Level::off; }

  // `advice` says what to do and may be empty. `format` gives the message.
  template <class... Args>
  void operator()(RuleId rule, const Where& where, std::string_view advice,
                  fmt::format_string<Args...> format, Args&&... args) {
    add(*rule, level(*rule), where, advice, format, std::forward<Args>(args)...);
  }
  // The same for a finding that does not keep the model from running.
  template <class... Args>
  void not_fatal(RuleId rule, const Where& where, std::string_view advice,
                 fmt::format_string<Args...> format, Args&&... args) {
    if (options_.profile == Profile::runnable) return;
    add(*rule, level(*rule), where, advice, format, std::forward<Args>(args)...);
  }
  // The same for a finding that real models often have: an error for the strict profile only.
  template <class... Args>
  void lax(RuleId rule, const Where& where, std::string_view advice,
           fmt::format_string<Args...> format, Args&&... args) {
    if (options_.profile == Profile::strict)
      return add(*rule, level(*rule), where, advice, format, std::forward<Args>(args)...);
    at_most_warning(rule, where, advice, format, std::forward<Args>(args)...);
  }
  // The same for a finding that is a warning at most.
  template <class... Args>
  void at_most_warning(RuleId rule, const Where& where, std::string_view advice,
                       fmt::format_string<Args...> format, Args&&... args) {
    if (options_.profile == Profile::runnable) return;
    add(*rule, std::min(level(*rule), Level::warning), where, advice, format,
        std::forward<Args>(args)...);
  }

  std::vector<Diagnostic> take();

 private:
  Level level(const Rule& rule) const;
  void push(const Rule& rule, Level level, const Where& where, std::string_view advice,
            std::string message);

  template <class... Args>
  void add(const Rule& rule, Level found, const Where& where, std::string_view advice,
           fmt::format_string<Args...> format, Args&&... args) {
    if (found == Level::off) return;
    // Each severity has a limit of its own, so that advice does not crowd out errors.
    if (++counts_[static_cast<size_t>(found)] > options_.max_diagnostics) return;
    push(rule, found, where, advice, fmt::format(format, std::forward<Args>(args)...));
  }

  const Options& options_;
  int64_t ir_version_;
  std::vector<Diagnostic> diagnostics_;
  std::array<size_t, 4> counts_ = {};  // by Level
};

}  // namespace sardonyx::check
