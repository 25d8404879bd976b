// The curve of a training as a image.
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

// Writes a small file whole. Throws Error (unreadable).
void write_text(const std::string& path, const std::string& text);

}  // namespace sardonyx::cli
