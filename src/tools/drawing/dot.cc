#include <fmt/format.h>

#include "tools/drawing/write.h"

namespace sardonyx::drawing {
namespace {

// Text between quotes: Graphviz takes backslashes and entities in labels for more than they are.
std::string in_quotes(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"') {
      out += "\\\"";
    } else if (c == '\\') {
      out += "\\\\";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string_view style_of(DiagramBox::Kind kind) {
  switch (kind) {
    case DiagramBox::Kind::input:
      return ", shape=box, style=\"rounded,filled\", fillcolor=\"#e3f1e4\"";
    case DiagramBox::Kind::output:
      return ", shape=box, style=\"rounded,filled\", fillcolor=\"#f6e8d8\"";
    case DiagramBox::Kind::call: return ", shape=box, peripheries=2";
    case DiagramBox::Kind::node: break;
  }
  return ", shape=box";
}

class DotWriter {
 public:
  explicit DotWriter(const Write& write) : write_(write) {}

  void run(std::span<const Diagram> diagrams) {
    write_(
        "digraph model {\n  rankdir=TB;\n  compound=true;\n"
        "  node [fontname=\"monospace\", fontsize=10];\n"
        "  graph [fontname=\"monospace\", fontsize=11];\n");
    for (const Diagram& diagram : diagrams) cluster(diagram);
    write_("}\n");
  }

 private:
  void cluster(const Diagram& diagram) {
    write_(fmt::format("  subgraph cluster_{} {{\n    label=\"{}\";\n", ++clusters_,
                       in_quotes(diagram.title)));
    graph(diagram);
    write_("  }\n");
  }

  void graph(const Diagram& diagram) {
    const size_t first = boxes_;
    boxes_ += diagram.boxes.size();
    for (size_t i = 0; i < diagram.boxes.size(); ++i) {
      const DiagramBox& box = diagram.boxes[i];
      const bool has_bodies = !box.bodies.empty();
      if (has_bodies)
        write_(fmt::format("    subgraph cluster_{} {{\n    label=\"{}\";\n    style=dashed;\n",
                           ++clusters_, in_quotes(box.name.empty() ? box.title : box.name)));
      std::string label = in_quotes(box.title);
      if (!box.name.empty()) label += "\\n" + in_quotes(box.name);
      for (const std::string& line : box.lines) label += "\\n" + in_quotes(line);
      write_(fmt::format("    n{} [label=\"{}\"{}];\n", first + i, label, style_of(box.kind)));
      for (const Diagram& body : box.bodies) cluster(body);
      if (has_bodies) write_("    }\n");
    }
    for (const DiagramEdge& edge : diagram.edges) {
      write_(fmt::format("    n{} -> n{} [tooltip=\"{}\"{}];\n",
                         first + static_cast<size_t>(edge.from),
                         first + static_cast<size_t>(edge.to), in_quotes(edge.value),
                         edge.is_captured ? ", style=dashed" : ""));
    }
  }

  const Write& write_;
  size_t boxes_ = 0, clusters_ = 0;
};

}  // namespace

void write_dot(std::span<const Diagram> diagrams, const Write& write) {
  DotWriter(write).run(diagrams);
}

}  // namespace sardonyx::drawing
