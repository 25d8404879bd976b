#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "profile_report.h"
#include "sardonyx/text.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

using json = nlohmann::ordered_json;

constexpr size_t max_bars = 6000;  // of the timeline; the shortest are left out beyond it
constexpr double timeline_width = 1200, lane_height = 18;
constexpr double roof_width = 760, roof_height = 420, roof_margin = 56;

std::string escaped(std::string_view raw) {
  std::string text;
  for (const char c : printable(raw)) {
    switch (c) {
      case '&': text += "&amp;"; break;
      case '<': text += "&lt;"; break;
      case '>': text += "&gt;"; break;
      case '"': text += "&quot;"; break;
      default: text += c;
    }
  }
  return text;
}

// JSON that may stand inside a script element.
std::string embedded(const json& value) {
  std::string text;
  for (const char c : value.dump(-1, ' ', false, json::error_handler_t::replace)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

std::string short_time(double ms) {
  return ms < 0.1 ? fmt::format("{:.2f} µs", ms * 1e3) : milliseconds(ms);
}

constexpr std::string_view head = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
)";

constexpr std::string_view style = R"(<style>
:root { color-scheme: light dark; --fg: #1b1f24; --dim: #667; --bg: #fff; --line: #d5d9e0; --bar: #4b7bd6; --fill: 52%; }
@media (prefers-color-scheme: dark) {
  :root { --fg: #e6e8eb; --dim: #9aa3af; --bg: #14171b; --line: #343a43; --bar: #6b9bf0; --fill: 45%; }
}
body { font: 14px/1.45 system-ui, sans-serif; color: var(--fg); background: var(--bg); margin: 2rem auto; max-width: 1400px;
       padding: 0 1rem; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; margin-top: 2rem; }
p.note, td.origin, .dim { color: var(--dim); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .5rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; white-space: nowrap; }
th { cursor: pointer; position: sticky; top: 0; background: var(--bg); }
th.text, td.text { text-align: left; }
td.long { white-space: normal; overflow-wrap: anywhere; min-width: 9rem; } td.long:empty { min-width: 0; }
td.kernel { white-space: normal; overflow-wrap: break-word; min-width: 8rem; }
td.share { background: linear-gradient(to left, color-mix(in srgb, var(--bar) 35%, transparent) var(--w), transparent var(--w)); }
svg { display: block; width: 100%; background: color-mix(in srgb, var(--fg) 4%, var(--bg)); border: 1px solid var(--line); }
svg text { fill: var(--fg); font: 11px system-ui, sans-serif; paint-order: stroke; stroke: var(--bg); stroke-width: 3px; stroke-opacity: .8; }
svg .axis { stroke: var(--line); } svg .roof { stroke: var(--fg); fill: none; stroke-width: 1.5; }
svg rect.bar { stroke: var(--bg); stroke-width: .3; } svg rect.hot, svg circle.hot { stroke: var(--fg); stroke-width: 2; }
#roofline { max-width: 940px; }
#ticks { display: flex; justify-content: space-between; margin: .1rem 0; font-size: 11px; font-variant-numeric: tabular-nums; }
#hover { position: sticky; bottom: 0; min-height: 1.5em; background: var(--bg); border-top: 1px solid var(--line); }
.box { overflow-x: auto; }
@media (max-width: 1000px) {
  td.kernel, th.kernel { display: none; } td[data-kernel]::after { content: attr(data-kernel); display: block; color: var(--dim); }
}
@media (max-width: 720px) {
  body { font-size: 13px; } th, td { padding: .2rem .25rem; } td.long { min-width: 5rem; }
  .minor, td.origin, #steps tr > :nth-child(7) { display: none; }
  #roofline text { font-size: 19px; }
}
</style>
)";

// Sorting, hovering and zooming; without it the page shows the same.
constexpr std::string_view script = R"(<script>
for (const th of document.querySelectorAll('th')) th.onclick = () => {
  const table = th.closest('table'), at = [...th.parentNode.children].indexOf(th), text = th.classList.contains('text');
  const sign = th.dataset.sorted === 'down' ? 1 : -1;
  const key = row => { const c = row.children[at]; return text ? c.textContent : +(c.dataset.value ?? 0); };
  const rows = [...table.tBodies[0].rows].sort((a, b) => (key(a) < key(b) ? -sign : key(a) > key(b) ? sign : 0));
  th.dataset.sorted = sign < 0 ? 'down' : 'up';
  table.tBodies[0].append(...rows);
};
const hover = document.getElementById('hover');
document.addEventListener('mouseover', e => {
  const mark = e.target.closest('[data-step]');
  for (const old of document.querySelectorAll('.hot')) old.classList.remove('hot');
  if (!mark) return;
  const title = mark.querySelector('title');
  if (title) hover.textContent = title.textContent;
  for (const one of document.querySelectorAll(`svg [data-step="${mark.dataset.step}"]`)) one.classList.add('hot');
});
const line = document.getElementById('timeline');
if (line) {
  const [, , width, height] = line.getAttribute('viewBox').split(' ').map(Number);
  let from = 0, wide = width;
  const ticks = [...document.getElementById('ticks').children], run = +line.dataset.ms;
  const time = ms => {
    const [number, unit] = run * wide / width < 0.1 ? [ms * 1e3, 'µs'] : [ms, 'ms'], step = number / ms * run * wide / width / 5;
    return ms === 0 ? '0' : `${number.toFixed(Math.max(0, Math.min(6, 1 - Math.floor(Math.log10(step)))))} ${unit}`;
  };
  const show = () => {
    line.setAttribute('viewBox', `${from} 0 ${wide} ${height}`);
    ticks.forEach((tick, i) => { tick.textContent = time(run * (from + wide * i / (ticks.length - 1)) / width); });
  };
  show();
  const clamp = () => { wide = Math.min(width, Math.max(width / 1e5, wide)); from = Math.min(width - wide, Math.max(0, from)); };
  line.addEventListener('wheel', e => {
    e.preventDefault();
    const box = line.getBoundingClientRect(), at = from + wide * (e.clientX - box.left) / box.width;
    const next = wide * (e.deltaY > 0 ? 1.25 : 0.8);
    from = at - (at - from) * next / wide; wide = next; clamp(); show();
  }, { passive: false });
  let held = null;
  line.addEventListener('mousedown', e => { held = { x: e.clientX, from }; });
  addEventListener('mouseup', () => { held = null; });
  addEventListener('mousemove', e => {
    if (!held) return;
    from = held.from - (e.clientX - held.x) / line.getBoundingClientRect().width * wide; clamp(); show();
  });
}
</script>
)";

class Page {
 public:
  explicit Page(const ProfileReport& report) : report_(report), profile_(*report.profile) {
    for (size_t i = 0; i < report.operators.size(); ++i) {
      // Neighbours in the table get colours far apart.
      const double turns = static_cast<double>(i) * 0.618034;
      hues_[report.operators[i].name] = static_cast<int>(360 * (turns - std::floor(turns)));
    }
  }

  std::string make() {
    text_ = head;
    text_ += fmt::format("<title>{}: profile</title>\n", escaped(report_.model));
    text_ += style;
    text_ += "</head>\n<body>\n";
    summary();
    timeline();
    text_ += "<p id=\"hover\" class=\"dim\"></p>\n";
    operators();
    roofline();
    steps();
    text_ += fmt::format("<script type=\"application/json\" id=\"profile\">{}</script>\n",
                         embedded(report_json(report_)));
    text_ += script;
    text_ += "</body>\n</html>\n";
    return std::move(text_);
  }

 private:
  const Profile::Step& step(int index) const {
    return profile_.steps()[static_cast<size_t>(index)];
  }
  const ProfileRow& row(int index) const { return report_.steps[static_cast<size_t>(index)]; }

  std::string colour(int index) const {
    return fmt::format("hsl({} 60% var(--fill))", hues_.at(step(index).operator_name));
  }

  // What hovering over a mark shows.
  std::string title(int index) const {
    const ProfileRow& r = row(index);
    std::string text = fmt::format("{} · {}", step(index).node, step(index).kernel);
    const std::string origin =
        origin_text(step(index).origin, step(index).sources, max_sources_shown);
    if (!origin.empty()) text += fmt::format(" · {}", origin);
    if (step(index).inside >= 0) text += fmt::format(" · in {}", step(step(index).inside).node);
    text += fmt::format(" · {} ({:.1f}%)", short_time(r.self_ms), 100 * r.share);
    if (r.operations > 0) text += fmt::format(" · {:.1f} GFLOP/s", r.gflops);
    if (r.bytes > 0) text += fmt::format(" · {:.1f} GB/s", r.gbps);
    if (!r.bound.empty()) text += fmt::format(" · {:.0f}% of {}", 100 * r.share_of_bound, r.bound);
    return escaped(text);
  }

  void summary() {
    text_ += fmt::format(
        "<h1>{}</h1>\n<p>{} {}, {} instructions · run {} (median of {}), loaded in {} "
        "· this machine: {:.0f} GFLOP/s",
        escaped(report_.model), report_.threads, report_.threads == 1 ? "thread" : "threads",
        escaped(report_.limits.instruction_set), short_time(report_.median_ms),
        profile_.runs().size(), short_time(report_.load_ms), report_.limits.gflops);
    for (const MachineLimits::Level& level : report_.limits.levels)
      text_ += fmt::format(", {} {:.0f} GB/s", level.name, level.gbps);
    text_ += "</p>\n";
  }

  int depth(int index) const {
    int depth = 0;
    for (; step(index).inside >= 0; ++depth) index = step(index).inside;
    return depth;
  }

  void timeline() {
    const Profile::Run& run = profile_.runs()[static_cast<size_t>(report_.chosen_run)];
    std::vector<Profile::Event> events;
    int deepest = 0;
    for (const Profile::Event& event : profile_.events()) {
      if (event.run != report_.chosen_run) continue;
      events.push_back(event);
      if (event.thread == 0) deepest = std::max(deepest, depth(event.step));
    }
    const size_t all = events.size();
    if (all > max_bars) {
      std::nth_element(
          events.begin(), events.begin() + max_bars, events.end(),
          [](const auto& a, const auto& b) { return a.end - a.begin > b.end - b.begin; });
      events.resize(max_bars);
    }
    const int lanes = deepest + 1 + (report_.threads - 1);
    const double height = lanes * (lane_height + 2) + 2;
    const double run_ms = static_cast<double>(run.end - run.begin) * 1e-6;
    const double scale = timeline_width / std::max(1.0, static_cast<double>(run.end - run.begin));
    text_ += fmt::format(
        "<h2>One run</h2>\n<p class=\"note\">Run {} of {}, {}, coloured by operator as in the "
        "table "
        "below. {}{} Turn the wheel to look closer, drag to move.{}</p>\n",
        report_.chosen_run + 1, profile_.runs().size(), short_time(run_ms),
        deepest == 0 ? "The first lane is the thread of the run"
                     : "The first lanes are the thread of the run, each body below its step",
        report_.threads > 1 ? "; then come its helpers." : ".",
        all > events.size()
            ? fmt::format(" The {} shortest calls of {} are left out.", all - events.size(), all)
            : "");
    text_ += fmt::format(
        "<svg id=\"timeline\" viewBox=\"0 0 {} {}\" height=\"{}\" data-ms=\"{:.6g}\" "
        "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"timeline\">\n",
        timeline_width, height, height, run_ms);
    for (const Profile::Event& event : events) {
      const int lane = event.thread == 0 ? depth(event.step) : deepest + event.thread;
      text_ += fmt::format(
          "<rect class=\"bar\" data-step=\"{}\" data-thread=\"{}\" x=\"{:.3f}\" y=\"{}\" "
          "width=\"{:.3f}\" height=\"{}\" style=\"fill:{}\"><title>{}</title></rect>\n",
          event.step, event.thread, static_cast<double>(event.begin - run.begin) * scale,
          2 + lane * (lane_height + 2), static_cast<double>(event.end - event.begin) * scale,
          lane_height, colour(event.step), title(event.step));
    }
    text_ += "</svg>\n<div id=\"ticks\" class=\"dim\">";
    for (int fifth = 0; fifth <= 5; ++fifth)
      text_ += fmt::format("<span>{}</span>", short_time(run_ms * fifth / 5));
    text_ += "</div>\n";
  }

  void head_row(std::string_view first, bool steps) {
    text_ += fmt::format("<thead><tr><th class=\"text\">{}</th>", first);
    if (steps) text_ += "<th class=\"minor\">#</th>";
    text_ +=
        "<th class=\"minor\">calls</th><th>time</th><th>share</th><th class=\"minor\">threads</th>"
        "<th>GFLOP/s</th><th class=\"minor\">GB/s</th><th>of bound</th>"
        "<th class=\"text minor\">bound</th>";
    if (steps)
      text_ += "<th class=\"text kernel\">kernel</th><th class=\"text minor kernel\">origin</th>";
    text_ += "</tr></thead>\n";
  }

  // Narrow screens have no room for what is minor.
  void cell(double value, const std::string& shown, bool is_minor = false) {
    text_ += fmt::format("<td{} data-value=\"{:.6g}\">{}</td>", is_minor ? " class=\"minor\"" : "",
                         value, shown);
  }

  void numbers(const ProfileRow& r) {
    cell(r.calls, fmt::format("{:.0f}", r.calls), true);
    cell(r.self_ms, short_time(r.self_ms));
    text_ +=
        fmt::format("<td class=\"share\" style=\"--w:{:.1f}%\" data-value=\"{:.6g}\">{:.1f}%</td>",
                    100 * r.share, r.share, 100 * r.share);
    cell(r.threads, fmt::format("{:.1f}", r.threads), true);
    cell(r.gflops, r.operations > 0 ? fmt::format("{:.1f}", r.gflops) : "");
    cell(r.gbps, r.bytes > 0 ? fmt::format("{:.1f}", r.gbps) : "", true);
    cell(r.share_of_bound, r.bound.empty() ? "" : fmt::format("{:.0f}%", 100 * r.share_of_bound));
    text_ += fmt::format("<td class=\"text minor\">{}</td>", escaped(r.bound));
  }

  void operators() {
    text_ += "<h2>Operators</h2>\n<div class=\"box\"><table id=\"operators\">\n";
    head_row("operator", false);
    text_ += "<tbody>\n";
    for (const ProfileRow& r : report_.operators) {
      text_ += fmt::format(
          "<tr><td class=\"text\"><span style=\"color:hsl({} 60% var(--fill))\">■</span> {}</td>",
          hues_.at(r.name), escaped(r.name));
      numbers(r);
      text_ += "</tr>\n";
    }
    text_ += "</tbody>\n</table></div>\n";
    text_ += fmt::format(
        "<p class=\"note\">Outside the steps: {} ({:.1f}%). Times are of one run, bodies' steps "
        "counted by themselves; <i>of bound</i> is the least time that peak or bandwidth "
        "allow, as a share of the time taken.</p>\n",
        short_time(report_.rest_ms), 100 * report_.rest_ms / report_.run_ms);
  }

  void steps() {
    text_ += "<h2>Steps</h2>\n<div class=\"box\"><table id=\"steps\">\n";
    head_row("node", true);
    text_ += "<tbody>\n";
    for (const ProfileRow& r : report_.steps) {
      const Profile::Step& s = step(r.step);
      text_ += fmt::format(
          "<tr data-step=\"{}\"><td class=\"text long\" data-kernel=\"{}\" "
          "style=\"padding-left:{:.1f}rem\">{}</td>",
          r.step, escaped(s.kernel), 0.5 + depth(r.step), escaped(s.node));
      cell(r.step, std::to_string(r.step), true);
      numbers(r);
      text_ += fmt::format(
          "<td class=\"text kernel\">{}</td><td class=\"text long origin kernel\">{}</td></tr>\n",
          escaped(s.kernel), escaped(origin_text(s.origin, s.sources)));
    }
    text_ += "</tbody>\n</table></div>\n";
  }

  // Operations a byte across, GFLOP/s upwards, both in powers.
  void roofline() {
    double low_x = 0.125, high_x = 64, low_y = report_.limits.gflops / 100;
    for (const ProfileRow& r : report_.steps) {
      if (r.operations <= 0 || r.bytes <= 0 || r.share < 0.002) continue;
      low_x = std::min(low_x, r.operations / r.bytes / 2);
      high_x = std::max(high_x, r.operations / r.bytes * 2);
      low_y = std::min(low_y, std::max(r.gflops / 2, report_.limits.gflops * 1e-4));
    }
    const double high_y = report_.limits.gflops * 2;
    const auto x_of = [&](double intensity) {
      return roof_margin + (roof_width - 2 * roof_margin) * std::log(intensity / low_x) /
                               std::log(high_x / low_x);
    };
    const auto y_of = [&](double gflops) {
      return roof_height - roof_margin -
             (roof_height - 2 * roof_margin) * std::log(std::max(gflops, low_y) / low_y) /
                 std::log(high_y / low_y);
    };
    text_ +=
        "<h2>Roofline</h2>\n<p class=\"note\">Each mark is a step; its area is its share of the "
        "run.</p>\n";
    text_ += fmt::format(
        "<svg id=\"roofline\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"roofline\">\n",
        roof_width, roof_height);
    axes(low_x, high_x, low_y, high_y, x_of, y_of);
    // Names stand along their lines: above them, and below where the line above is near.
    double above = -1e9;
    int near = 0;
    for (const MachineLimits::Level& level : report_.limits.levels) {
      const double ridge = std::min(report_.limits.gflops / level.gbps, high_x);
      const double x = x_of(std::max(low_x, low_y / level.gbps)),
                   y = y_of(std::max(low_x * level.gbps, low_y)), ridge_x = x_of(ridge),
                   ridge_y = y_of(ridge * level.gbps);
      near = std::abs(y - above) < 24 ? near + 1 : 0;
      above = y;
      text_ += fmt::format(
          "<path class=\"roof\" d=\"M{0:.1f} {1:.1f} L{2:.1f} {3:.1f} L{4:.1f} {3:.1f}\"/>"
          "<text transform=\"translate({0:.1f} {1:.1f}) rotate({5:.1f})\" x=\"{8}\" dy=\"{9}\">"
          "{6} {7:.0f} GB/s</text>\n",
          x, y, ridge_x, ridge_y, x_of(high_x),
          std::atan2(ridge_y - y, ridge_x - x) * 180 / std::numbers::pi, escaped(level.name),
          level.gbps, 8 + near / 2 * 150, near % 2 == 0 ? "-.4em" : "1.1em");
    }
    text_ +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.0f} GFLOP/s</text>\n",
                    x_of(high_x), y_of(report_.limits.gflops) - 6, report_.limits.gflops);
    for (const ProfileRow& r : report_.steps) {
      if (r.operations <= 0 || r.bytes <= 0 || r.share < 0.002) continue;
      text_ += fmt::format(
          "<circle data-step=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" "
          "style=\"fill:{};fill-opacity:.75\"><title>{}</title></circle>\n",
          r.step, x_of(r.operations / r.bytes), y_of(r.gflops),
          3 + 24 * std::sqrt(std::min(r.share, 1.0)), colour(r.step), title(r.step));
    }
    text_ += "</svg>\n";
  }

  void axes(double low_x, double high_x, double low_y, double high_y, const auto& x_of,
            const auto& y_of) {
    const double left = roof_margin, right = roof_width - roof_margin;
    const double top = roof_margin, bottom = roof_height - roof_margin;
    for (double x = std::exp2(std::ceil(std::log2(low_x))); x <= high_x; x *= 4) {
      text_ += fmt::format(
          "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>"
          "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4:.3g}</text>\n",
          x_of(x), top, bottom, bottom + 16, x);
    }
    for (double y = std::pow(10, std::ceil(std::log10(low_y))); y <= high_y; y *= 10) {
      text_ += fmt::format(
          "<line class=\"axis\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
          "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.4g}</text>\n",
          left, right, y_of(y), left - 6, y_of(y) + 4, y);
    }
    text_ += fmt::format(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">FLOP a byte</text>"
        "<text x=\"{}\" y=\"{}\">GFLOP/s</text>\n",
        (left + right) / 2, roof_height - 14, 8, top - 14);
  }

  const ProfileReport& report_;
  const Profile& profile_;
  std::map<std::string, int> hues_;
  std::string text_;
};

}  // namespace

std::string report_html(const ProfileReport& report) { return Page(report).make(); }

}  // namespace sardonyx::cli
