#include "profile_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <string_view>

#include "sardonyx/text.h"
#include "statistics.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

using json = nlohmann::ordered_json;

double run_ns(const Profile::Run& run) { return static_cast<double>(run.end - run.begin); }

// Runs by their time, the fastest first.
std::vector<int> sorted_runs(const Profile& profile) {
  std::vector<int> order(profile.runs().size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return run_ns(profile.runs()[static_cast<size_t>(a)]) <
           run_ns(profile.runs()[static_cast<size_t>(b)]);
  });
  return order;
}

// The run in the middle of those whose events were all kept; the first where none is.
int typical_run(const Profile& profile, std::vector<int> order) {
  if (profile.dropped_events() > 0 && !profile.events().empty()) {
    const int cut = profile.events().back().run;
    std::erase_if(order, [=](int run) { return run >= std::max(cut, 1); });
  }
  return order[order.size() / 2];
}

// What its arithmetic and its bytes take at least.
void judge(ProfileRow& row, const MachineLimits& limits) {
  if (row.self_ms <= 0 || row.calls <= 0) return;
  row.gflops = row.operations / row.self_ms * 1e-6;
  row.gbps = row.bytes / row.self_ms * 1e-6;
  const MachineLimits::Level& level = limits.level_for(row.bytes / row.calls);
  const double compute_ms = row.operations / limits.gflops * 1e-6,
               memory_ms = row.bytes / level.gbps * 1e-6;
  if (compute_ms <= 0 && memory_ms <= 0) return;
  row.bound = compute_ms >= memory_ms ? "compute" : level.name;
  row.share_of_bound = std::max(compute_ms, memory_ms) / row.self_ms;
}

std::vector<ProfileRow> step_rows(const ProfileReport& report, const std::vector<int>& runs) {
  const Profile& profile = *report.profile;
  const double count = static_cast<double>(runs.size());
  std::vector<ProfileRow> rows(profile.steps().size());
  for (size_t s = 0; s < rows.size(); ++s) {
    ProfileRow& row = rows[s];
    row.name = profile.steps()[s].node;
    row.step = static_cast<int>(s);
    double helped = 0;
    for (const int run : runs) {
      const auto& sums = profile.runs()[static_cast<size_t>(run)].steps;
      if (s >= sums.size()) continue;
      const Profile::Sum& sum = sums[s];
      row.calls += static_cast<double>(sum.calls) / count;
      row.ms += static_cast<double>(sum.nanoseconds) * 1e-6 / count;
      row.self_ms += static_cast<double>(sum.nanoseconds - sum.inside_nanoseconds) * 1e-6 / count;
      helped += static_cast<double>(sum.helped_nanoseconds) * 1e-6 / count;
      row.operations += sum.operations / count;
      row.bytes += sum.bytes / count;
    }
    row.share = row.self_ms / report.run_ms;
    row.threads = row.self_ms > 0 ? 1 + helped / row.self_ms : 0;
    judge(row, report.limits);
  }
  return rows;
}

// The least times of its steps together bound an operator; which of them counts most is its bound.
std::vector<ProfileRow> operator_rows(const ProfileReport& report) {
  std::map<std::string, ProfileRow> rows;
  std::map<std::string, std::map<std::string, double>> bounds;
  std::map<std::string, double> busy;
  for (size_t s = 0; s < report.steps.size(); ++s) {
    const ProfileRow& step = report.steps[s];
    const std::string& name = report.profile->steps()[s].operator_name;
    ProfileRow& row = rows[name];
    row.name = name;
    row.calls += step.calls;
    row.ms += step.ms;
    row.self_ms += step.self_ms;
    row.share += step.share;
    row.operations += step.operations;
    row.bytes += step.bytes;
    busy[name] += step.threads * step.self_ms;
    if (!step.bound.empty()) bounds[name][step.bound] += step.share_of_bound * step.self_ms;
  }
  std::vector<ProfileRow> sorted;
  for (auto& [name, row] : rows) {
    if (row.self_ms > 0) {
      row.gflops = row.operations / row.self_ms * 1e-6;
      row.gbps = row.bytes / row.self_ms * 1e-6;
      row.threads = busy[name] / row.self_ms;
      double most = 0;
      for (const auto& [bound, ms] : bounds[name]) {
        row.share_of_bound += ms / row.self_ms;
        if (ms > most) most = ms, row.bound = bound;
      }
    }
    sorted.push_back(std::move(row));
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const ProfileRow& a, const ProfileRow& b) { return a.self_ms > b.self_ms; });
  return sorted;
}

json row_json(const ProfileRow& row) {
  return {{"calls", row.calls},
          {"ms", row.ms},
          {"self_ms", row.self_ms},
          {"share", row.share},
          {"threads", row.threads},
          {"operations", row.operations},
          {"bytes", row.bytes},
          {"gflops", row.gflops},
          {"gbps", row.gbps},
          {"bound", row.bound},
          {"share_of_bound", row.share_of_bound}};
}

std::string time_text(double ms) {
  return ms < 0.1 ? fmt::format("{:.2f} us", ms * 1e3) : milliseconds(ms);
}

std::string row_text(const ProfileRow& row) {
  std::string text = fmt::format("{:>10} {:>5.1f}% {:>4.1f}", time_text(row.self_ms),
                                 100 * row.share, row.threads);
  text += row.operations > 0 ? fmt::format(" {:>8.1f}", row.gflops) : fmt::format(" {:>8}", "");
  text += row.bytes > 0 ? fmt::format(" {:>7.1f}", row.gbps) : fmt::format(" {:>7}", "");
  text += row.bound.empty() ? fmt::format(" {:>4}  {:<8}", "", "")
                            : fmt::format(" {:>3.0f}%  {:<8}", 100 * row.share_of_bound, row.bound);
  return text;
}

int depth_of(const Profile& profile, int step) {
  int depth = 0;
  for (; profile.steps()[static_cast<size_t>(step)].inside >= 0; ++depth)
    step = profile.steps()[static_cast<size_t>(step)].inside;
  return depth;
}

}  // namespace

ProfileReport make_report(const Profile& profile, MachineLimits limits) {
  ProfileReport report;
  report.profile = &profile;
  report.limits = std::move(limits);
  report.threads = profile.threads();
  const std::vector<int> order = sorted_runs(profile);
  const size_t quarter = order.size() / 4;
  const std::vector<int> middle(order.begin() + static_cast<std::ptrdiff_t>(quarter),
                                order.end() - static_cast<std::ptrdiff_t>(quarter));
  report.chosen_run = typical_run(profile, order);
  std::vector<double> all;
  for (const Profile::Run& run : profile.runs()) all.push_back(run_ns(run) * 1e-6);
  report.median_ms = median(all);
  for (const int run : middle)
    report.run_ms += all[static_cast<size_t>(run)] / static_cast<double>(middle.size());
  report.steps = step_rows(report, middle);
  report.operators = operator_rows(report);
  report.rest_ms = report.run_ms;
  for (const ProfileRow& row : report.steps) report.rest_ms -= row.self_ms;
  return report;
}

json report_json(const ProfileReport& report) {
  const Profile& profile = *report.profile;
  json machine = {{"instruction_set", report.limits.instruction_set},
                  {"threads", report.limits.threads},
                  {"gflops", report.limits.gflops},
                  {"levels", json::array()}};
  for (const MachineLimits::Level& level : report.limits.levels) {
    json one = {{"name", level.name}, {"gbps", level.gbps}};
    if (level.bytes != INT64_MAX) one["bytes"] = level.bytes;
    machine["levels"].push_back(std::move(one));
  }
  json made = {{"model", report.model},         {"threads", report.threads},
               {"machine", std::move(machine)}, {"load_ms", report.load_ms},
               {"first_ms", report.first_ms},   {"runs", profile.runs().size()},
               {"median_ms", report.median_ms}, {"run_ms", report.run_ms},
               {"rest_ms", report.rest_ms},     {"guards", report.guards},
               {"steps", json::array()},        {"operators", json::array()}};
  for (const ProfileRow& row : report.steps) {
    const Profile::Step& step = profile.steps()[static_cast<size_t>(row.step)];
    json one = {{"node", step.node},     {"operator", step.operator_name},
                {"origin", step.origin}, {"sources", step.sources},
                {"kernel", step.kernel}, {"graph", step.graph},
                {"inside", step.inside}};
    one.update(row_json(row));
    made["steps"].push_back(std::move(one));
  }
  for (const ProfileRow& row : report.operators) {
    json one = {{"operator", row.name}};
    one.update(row_json(row));
    made["operators"].push_back(std::move(one));
  }
  return made;
}

std::string report_text(const ProfileReport& report) {
  const Profile& profile = *report.profile;
  std::string text =
      fmt::format("{}: {} {}, {}\n", printable(report.model), report.threads,
                  report.threads == 1 ? "thread" : "threads", report.limits.instruction_set);
  text += fmt::format("machine {:.0f} GFLOP/s", report.limits.gflops);
  for (const MachineLimits::Level& level : report.limits.levels)
    text += fmt::format("; {} {:.0f} GB/s", level.name, level.gbps);
  text +=
      fmt::format("\nrun     {} median of {} (the first, which binds sizes, {})\n",
                  time_text(report.median_ms), profile.runs().size(), time_text(report.first_ms));
  for (const std::string& one : report.guards)
    text += fmt::format("planned for runs in which {}\n", printable(one));
  text += '\n';
  const std::string head = fmt::format("{:>10} {:>6} {:>4} {:>8} {:>7} {:>4}  {:<8}", "time",
                                       "share", "thr", "GFLOP/s", "GB/s", "of", "bound");
  text += head + "  operator\n";
  for (const ProfileRow& row : report.operators)
    text += fmt::format("{}  {} x{:.0f}\n", row_text(row), printable(row.name), row.calls);
  text += fmt::format("{:>10} {:>5.1f}%{:>40}outside the steps\n\n", time_text(report.rest_ms),
                      100 * report.rest_ms / report.run_ms, "");
  text += head + "  step\n";
  for (const ProfileRow& row : report.steps) {
    const Profile::Step& step = profile.steps()[static_cast<size_t>(row.step)];
    const std::string origin = origin_text(step.origin, step.sources, max_sources_shown);
    text += fmt::format("{}  {:{}}{} {}  {}{}{}\n", row_text(row), "",
                        2 * depth_of(profile, row.step), row.step, printable(step.node),
                        printable(step.kernel), origin.empty() ? "" : "  ", printable(origin));
  }
  return text;
}

std::string report_trace(const ProfileReport& report) {
  return profile_trace(*report.profile, report.model);
}

}  // namespace sardonyx::cli
