#include "curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sardonyx::cli {
namespace {

constexpr double width = 720, height = 360, left = 64, right = 16, top = 36, bottom = 40;
constexpr const char* colours[] = {"#b5541c", "#1c6fb5", "#3c8c3c", "#7a3ca0"};
constexpr size_t max_points = 2000;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (static_cast<unsigned char>(c) >= 0x20)
      out += c;
  }
  return out;
}

struct Range {
  double low = HUGE_VAL, high = -HUGE_VAL;
  void take(double value) { low = std::min(low, value), high = std::max(high, value); }
  void widen() {
    if (low > high) low = 0, high = 1;
    if (low == high) low -= 0.5, high += 0.5;
  }
  double share(double value) const { return (value - low) / (high - low); }
};

// Means of neighbours where there are more points than an image shows.
std::vector<Curve::Point> thinned(const std::vector<Curve::Point>& points) {
  std::vector<Curve::Point> kept;
  const size_t each = (points.size() + max_points - 1) / max_points;
  for (size_t i = 0; i < points.size(); i += std::max<size_t>(each, 1)) {
    Curve::Point mean{0, 0};
    size_t count = 0;
    for (size_t k = i; k < std::min(i + each, points.size()); ++k) {
      if (!std::isfinite(points[k].y)) continue;
      mean.x += points[k].x, mean.y += points[k].y, ++count;
    }
    if (count > 0)
      kept.push_back({mean.x / static_cast<double>(count), mean.y / static_cast<double>(count)});
  }
  return kept;
}

}  // namespace

std::string curve_svg(const std::vector<Curve>& curves, const std::string& title) {
  Range x, y;
  std::vector<std::vector<Curve::Point>> lines;
  for (const Curve& curve : curves) {
    for (const Curve::Point& point : lines.emplace_back(thinned(curve.points)))
      x.take(point.x), y.take(point.y);
  }
  y.take(0);
  x.widen(), y.widen();
  const auto at_x = [&](double v) { return left + x.share(v) * (width - left - right); };
  const auto at_y = [&](double v) {
    return height - bottom - y.share(v) * (height - top - bottom);
  };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"{2}\" y=\"20\" font-size=\"14\">{3}</text>\n",
      width, height, left, escaped(title));
  for (int i = 0; i <= 4; ++i) {
    const double value = y.low + (y.high - y.low) * i / 4, step = x.low + (x.high - x.low) * i / 4;
    svg += fmt::format(
        "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>"
        "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.3g}</text>"
        "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.0f}</text>\n",
        left, width - right, at_y(value), at_y(value), left - 6, at_y(value) + 4, value, at_x(step),
        height - bottom + 18, step);
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    const char* colour = colours[i % std::size(colours)];
    std::string points;
    for (const Curve::Point& point : lines[i])
      points += fmt::format("{:.1f},{:.1f} ", at_x(point.x), at_y(point.y));
    svg +=
        fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" points=\"{}\"/>\n",
                    colour, points);
    svg +=
        fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"{}\">{}</text>\n",
                    width - right, 20 + 16 * static_cast<int>(i), colour, escaped(curves[i].name));
  }
  return svg + "</svg>\n";
}

std::string curve_page(const std::string& svg, const std::string& title, const CurveTable& table) {
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>{0}</title>\n"
      "<style>body{{font:15px sans-serif;margin:1.5em auto;max-width:760px;padding:0 1em}}"
      "svg{{max-width:100%;height:auto}}div{{overflow-x:auto}}table{{border-collapse:collapse}}"
      "th,td{{text-align:right;padding:.25em .8em;border-bottom:1px solid #ddd;"
      "font-variant-numeric:tabular-nums}}</style>\n<h1>{0}</h1>\n{1}<div><table>\n<tr>",
      escaped(title), svg);
  for (const std::string& head : table.heads) page += "<th>" + escaped(head);
  for (const auto& row : table.rows) {
    page += "\n<tr>";
    for (const std::string& cell : row) page += "<td>" + escaped(cell);
  }
  return page + "\n</table></div>\n</html>\n";
}

}  // namespace sardonyx::cli
