#include "comparison.h"

#include <fmt/format.h>

#include <string_view>

#include "sardonyx/text.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

using json = nlohmann::ordered_json;

std::string summary_line(std::string_view which, const std::optional<NumberSummary>& summary) {
  if (!summary) return {};
  std::string text = fmt::format("    {:<9} min {:.6g}, max {:.6g}, {} NaN", which, summary->least,
                                 summary->most, summary->nans);
  if (summary->infinite > 0) text += fmt::format(", {} infinite", summary->infinite);
  return text + "\n";
}

json to_json(const std::optional<NumberSummary>& summary) {
  if (!summary) return nullptr;
  return {{"elements", summary->elements},
          {"min", summary->least},
          {"max", summary->most},
          {"nan", summary->nans},
          {"infinite", summary->infinite}};
}

}  // namespace

std::string comparison_text(const RunComparison& comparison, size_t most) {
  const int64_t differing = comparison.differing();
  std::string text =
      fmt::format("{} values compared, {} differ",
                  grouped(static_cast<int64_t>(comparison.values.size())), grouped(differing));
  if (const ComparedValue* first = comparison.first_difference())
    text += fmt::format("; the first that does: '{}'", printable(first->name));
  text += "\n";
  size_t listed = 0;
  for (const ComparedValue& value : comparison.values) {
    if (value.difference.agree) continue;
    if (listed++ == most) {
      text += fmt::format("  and {} more\n", differing - static_cast<int64_t>(most));
      break;
    }
    text += fmt::format("  {}: {}\n", printable(value.name), value.difference.reason);
    text += summary_line("found", value.actual) + summary_line("expected", value.expected);
  }
  return text;
}

json to_json(const RunComparison& comparison) {
  const ComparedValue* first = comparison.first_difference();
  json report = {{"same", comparison.agree()},
                 {"compared", comparison.values.size()},
                 {"differing", comparison.differing()},
                 {"first_difference", first == nullptr ? json() : json(first->name)},
                 {"values", json::array()}};
  for (const ComparedValue& value : comparison.values) {
    const Difference& difference = value.difference;
    json one = {{"name", value.name},
                {"agree", difference.agree},
                {"missing", value.is_missing},
                {"largest_difference", difference.largest},
                {"share_of_rms", difference.share_of_rms},
                {"differing", difference.differing},
                {"found", to_json(value.actual)},
                {"expected", to_json(value.expected)}};
    if (!difference.agree) one["reason"] = difference.reason;
    report["values"].push_back(std::move(one));
  }
  return report;
}

}  // namespace sardonyx::cli
