#include "apps/svg_chart.h"

#include <algorithm>
#include <cstdio>

#include "base/strings.h"

namespace deepinfer {
namespace {

constexpr int kChartWidth = 300, kChartHeight = 180, kMargin = 60;
constexpr const char* kColours[] = {"#1b6ca8", "#e08e1b", "#b3282d"};

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string Label(double x, double y, const std::string& text, const char* anchor = "middle") {
  return StrCat("<text x=\"", Number(x), "\" y=\"", Number(y), "\" text-anchor=\"", anchor, "\">",
                Escaped(text), "</text>\n");
}

double Largest(const Chart& chart, std::vector<double> ChartLine::*of) {
  double most = 0;
  for (const ChartLine& line : chart.lines) {
    for (const double value : line.*of) most = std::max(most, value);
  }
  return most > 0 ? most : 1;
}

class Panel {
 public:
  Panel(size_t column, size_t row, const Chart& chart)
      : left_(kMargin + static_cast<double>(column) * (kChartWidth + kMargin)),
        top_(kMargin + static_cast<double>(row) * (kChartHeight + kMargin)),
        chart_(chart),
        x_max_(Largest(chart, &ChartLine::x)),
        y_max_(Largest(chart, &ChartLine::y)) {}

  std::string Draw() const {
    std::string svg = Frame();
    for (size_t i = 0; i < chart_.lines.size(); ++i) svg += Draw(chart_.lines[i], i);
    return svg;
  }

 private:
  std::string Frame() const {
    const double bottom = top_ + kChartHeight;
    return StrCat("<rect x=\"", Number(left_), "\" y=\"", Number(top_), "\" width=\"", kChartWidth,
                  "\" height=\"", kChartHeight, "\" fill=\"none\" stroke=\"#888\"/>\n",
                  Label(left_ + kChartWidth / 2.0, top_ - 8, chart_.title),
                  Label(left_ - 6, top_ + 10, Number(y_max_), "end"),
                  Label(left_ - 6, bottom, "0", "end"),
                  Label(left_ + kChartWidth, bottom + 16, Number(x_max_), "end"),
                  Label(left_ + kChartWidth / 2.0, bottom + 16, chart_.x_label));
  }

  std::string Draw(const ChartLine& line, size_t index) const {
    const char* const colour = kColours[index % std::size(kColours)];
    std::string points, dots;
    for (size_t i = 0; i < line.x.size(); ++i) {
      const std::string x = Number(left_ + kChartWidth * line.x[i] / x_max_);
      const std::string y = Number(top_ + kChartHeight * (1 - line.y[i] / y_max_));
      points += StrCat(x, ",", y, " ");
      if (!chart_.dots) continue;
      dots += StrCat("<circle cx=\"", x, "\" cy=\"", y, "\" r=\"3\" fill=\"", colour, "\"/>\n");
    }
    return StrCat("<polyline fill=\"none\" stroke=\"", colour, "\" points=\"", points, "\"/>\n",
                  dots, "<g fill=\"", colour, "\">",
                  Label(left_ + 8, top_ + 14 + 14 * static_cast<double>(index), line.name, "start"),
                  "</g>\n");
  }

  const double left_, top_;
  const Chart& chart_;
  const double x_max_, y_max_;
};

}  // namespace

std::string SvgPage(const std::vector<std::vector<Chart>>& rows) {
  size_t num_columns = 0;
  std::string panels;
  for (size_t row = 0; row < rows.size(); ++row) {
    num_columns = std::max(num_columns, rows[row].size());
    for (size_t column = 0; column < rows[row].size(); ++column) {
      panels += Panel(column, row, rows[row][column]).Draw();
    }
  }
  return StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"",
                num_columns * (kChartWidth + kMargin) + kMargin, "\" height=\"",
                rows.size() * (kChartHeight + kMargin) + kMargin,
                "\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" "
                "height=\"100%\" fill=\"white\"/>\n",
                panels, "</svg>\n");
}

}  // namespace deepinfer
