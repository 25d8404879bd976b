// A layered layout of a graph of boxes: edges lead downwards, from rank to rank.
#pragma once

#include <span>
#include <vector>

namespace sardonyx::drawing {

struct Extent {
  double width = 0;
  double height = 0;
};

struct Point {
  double x = 0;
  double y = 0;
};

struct Link {  // between boxes, by index
  int from = 0;
  int to = 0;
};

struct Route {
  // From the lower border of one box to the upper border of the other. Between two points of one
  // height a line crosses the gap between two ranks; between the others it passes a rank.
  std::vector<Point> points;
  bool is_far = false;  // drawn straight across what lies between: it has no place of its own there
};

struct Layout {
  std::vector<Point> corners;  // upper left, of each box
  std::vector<Route> routes;   // of each link; empty where it leads from a box to itself
  Extent size;
};

// Ranks by longest path, order within ranks by barycentres, places by least squares. Time and
// memory grow as boxes and links do (times a logarithm): links over many ranks get a place in each
// only while there are not too many of these. Links may form cycles.
Layout layered_layout(std::span<const Extent> boxes, std::span<const Link> links);

}  // namespace sardonyx::drawing
