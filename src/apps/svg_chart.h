// apps/svg_chart.h: line charts as the text of an SVG file.
#pragma once

#include <string>
#include <vector>

namespace deepinfer {

struct ChartLine {
  std::string name;          // shown in the line's colour; may be empty
  std::vector<double> x, y;  // as many of each; x ascends
};

struct Chart {
  std::string title, x_label;
  std::vector<ChartLine> lines;
  bool dots = false;  // at the points, which are few
};

// Both axes of every chart begin at 0 and end at the largest value.
std::string SvgPage(const std::vector<std::vector<Chart>>& rows);

}  // namespace deepinfer
