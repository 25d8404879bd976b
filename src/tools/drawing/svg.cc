#include <fmt/format.h>

#include <algorithm>

#include "tools/drawing/layout.h"
#include "tools/drawing/write.h"

namespace sardonyx::drawing {
namespace {

constexpr double title_size = 13, text_size = 11;
constexpr double advance = 0.605;  // of a monospaced character, as a share of its size
constexpr double title_line = 18, text_line = 15, padding = 9, margin = 16, heading = 24;

constexpr std::string_view style =
    "<style>text{font-family:'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:11px;"
    "fill:#24292f}.t{font-size:13px;font-weight:bold}.m{fill:#6a737d}.o{fill:#0b5394}"
    ".b{fill:#fff;stroke:#57606a}.i{fill:#e3f1e4;stroke:#4f8a55}.u{fill:#f6e8d8;stroke:#a6763b}"
    ".c{fill:#e8e7f7;stroke:#6258a8}.g{fill:#f6f8fa;stroke:#b6bec7;stroke-dasharray:5 3}"
    ".e{fill:none;stroke:#6a737d;stroke-width:1.2}.k{stroke-dasharray:4 3}"
    ".f{stroke:#b6bec7}</style>\n"
    "<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
    "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#6a737d\"/></marker>"
    "</defs>\n";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

double width_of(std::string_view text, double size) {
  return static_cast<double>(character_count(text)) * size * advance;
}

// A diagram with places, those of the bodies of its boxes inside.
struct Placed {
  const Diagram* diagram = nullptr;
  Layout layout;
  std::vector<Extent> boxes;
  std::vector<std::vector<Placed>> bodies;  // of each box that has some
  std::vector<size_t> bodies_at;            // of each box, where in `bodies`; SIZE_MAX: it has none
  Extent size;                              // its heading and margins included
};

// Height of a box's own lines.
double head_height(const DiagramBox& box) {
  const auto lines = static_cast<double>(box.lines.size() + (box.name.empty() ? 0 : 1));
  return 2 * padding + title_line + lines * text_line;
}

Extent extent_of(const DiagramBox& box, const std::vector<Placed>* bodies) {
  double width = width_of(box.title, title_size) * 1.04;  // bold
  width = std::max(width, width_of(box.name, text_size));
  for (const std::string& line : box.lines) width = std::max(width, width_of(line, text_size));
  Extent extent{width + 2 * padding, head_height(box)};
  if (bodies == nullptr) return extent;
  double inner = padding, tallest = 0;
  for (const Placed& body : *bodies) {
    inner += body.size.width + padding;
    tallest = std::max(tallest, body.size.height);
  }
  return {std::max(extent.width, inner), extent.height + tallest + padding};
}

// Bodies in bodies: no deeper than diagrams_of goes.
Placed place(const Diagram& diagram) {
  Placed placed;
  placed.diagram = &diagram;
  std::vector<Link> links;
  for (const DiagramBox& box : diagram.boxes) {
    const bool has_bodies = !box.bodies.empty();
    placed.bodies_at.push_back(has_bodies ? placed.bodies.size() : SIZE_MAX);
    if (has_bodies) {
      std::vector<Placed>& bodies = placed.bodies.emplace_back();
      for (const Diagram& body : box.bodies) bodies.push_back(place(body));
    }
    placed.boxes.push_back(extent_of(box, has_bodies ? &placed.bodies.back() : nullptr));
  }
  for (const DiagramEdge& edge : diagram.edges) links.push_back({edge.from, edge.to});
  placed.layout = layered_layout(placed.boxes, links);
  placed.size = {
      std::max(placed.layout.size.width, width_of(diagram.title, title_size)) + 2 * margin,
      placed.layout.size.height + 2 * margin + heading};
  return placed;
}

class SvgWriter {
 public:
  explicit SvgWriter(const Write& write) : write_(write) {}

  void run(std::span<const Diagram> diagrams) {
    std::vector<Placed> all;
    Extent size{margin, 0};
    for (const Diagram& diagram : diagrams) {
      all.push_back(place(diagram));
      size.width += all.back().size.width + margin;
      size.height = std::max(size.height, all.back().size.height);
    }
    size.height += 2 * margin;
    write_(
        fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" "
                    "height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\">\n",
                    size.width, size.height));
    write_(style);
    write_("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
    double x = margin;
    for (const Placed& placed : all) {
      draw(placed, {x, margin});
      x += placed.size.width + margin;
    }
    write_("</svg>\n");
  }

 private:
  void draw(const Placed& placed, Point at) {
    rectangle("g", at, placed.size, 4);
    text("t", {at.x + margin, at.y + heading}, placed.diagram->title);
    const Point origin{at.x + margin, at.y + margin + heading};
    for (size_t i = 0; i < placed.layout.routes.size(); ++i) {
      if (placed.layout.routes[i].is_far)
        edge(placed.layout.routes[i], placed.diagram->edges[i], origin);
    }
    for (size_t i = 0; i < placed.boxes.size(); ++i) box(placed, i, origin);
    for (size_t i = 0; i < placed.layout.routes.size(); ++i) {
      if (!placed.layout.routes[i].is_far)
        edge(placed.layout.routes[i], placed.diagram->edges[i], origin);
    }
  }

  void box(const Placed& placed, size_t index, Point origin) {
    const DiagramBox& box = placed.diagram->boxes[index];
    const Point corner = placed.layout.corners[index];
    const Point at{origin.x + corner.x, origin.y + corner.y};
    std::string_view kind = "b";
    if (box.kind == DiagramBox::Kind::input) kind = "i";
    if (box.kind == DiagramBox::Kind::output) kind = "u";
    if (box.kind == DiagramBox::Kind::call) kind = "c";
    const bool is_node = kind == "b" || kind == "c";
    rectangle(kind, at, placed.boxes[index], is_node ? 3 : 12);
    double y = at.y + padding + title_line - 5;
    text("t", {at.x + padding, y}, box.title);
    if (!box.name.empty()) text("m", {at.x + padding, y += text_line}, box.name);
    for (const std::string& line : box.lines)
      text(line.starts_with("→") ? "o" : "", {at.x + padding, y += text_line}, line);
    if (box.bodies.empty()) return;
    double x = at.x + padding;
    for (const Placed& body : placed.bodies[placed.bodies_at[index]]) {
      draw(body, {x, at.y + head_height(box)});
      x += body.size.width + padding;
    }
  }

  void rectangle(std::string_view kind, Point at, Extent size, int radius) {
    write_(fmt::format(
        "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "rx=\"{}\"/>\n",
        kind, at.x, at.y, size.width, size.height, radius));
  }

  void text(std::string_view kind, Point at, std::string_view content) {
    const std::string named = kind.empty() ? "" : fmt::format(" class=\"{}\"", kind);
    write_(fmt::format("<text{} x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", named, at.x, at.y,
                       escaped(content)));
  }

  void edge(const Route& route, const DiagramEdge& edge, Point origin) {
    if (route.points.size() < 2) return;
    std::string path;
    Point last;
    for (size_t i = 0; i < route.points.size(); ++i) {
      const Point point{origin.x + route.points[i].x, origin.y + route.points[i].y};
      if (i == 0) {
        path = fmt::format("M{:.1f} {:.1f}", point.x, point.y);
      } else if (point.x == last.x) {
        path += fmt::format("V{:.1f}", point.y);
      } else {
        const double bend = (point.y - last.y) / 2;
        path += fmt::format("C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", last.x, last.y + bend,
                            point.x, point.y - bend, point.x, point.y);
      }
      last = point;
    }
    write_(fmt::format(
        "<path class=\"e{}{}\" d=\"{}\" marker-end=\"url(#a)\"><title>{}</title></path>\n",
        edge.is_captured ? " k" : "", route.is_far ? " f" : "", path, escaped(edge.value)));
  }

  const Write& write_;
};

}  // namespace

void write_svg(std::span<const Diagram> diagrams, const Write& write) {
  SvgWriter(write).run(diagrams);
}

}  // namespace sardonyx::drawing
