// The curve of a training as an image or a page.
#pragma once

#include <string>
#include <vector>

namespace sardonyx::cli {

struct Curve {
  struct Point {
    double x, y;
  };
  std::string name;
  std::vector<Point> points;
};

// An SVG of lines over steps. Points that are no finite numbers are left out.
std::string curve_svg(const std::vector<Curve>& curves, const std::string& title);

// A page of its own that has the drawing, and below it the numbers of each epoch.
struct CurveTable {
  std::vector<std::string> heads;
  std::vector<std::vector<std::string>> rows;
};
std::string curve_page(const std::string& svg, const std::string& title, const CurveTable& table);

}  // namespace sardonyx::cli
