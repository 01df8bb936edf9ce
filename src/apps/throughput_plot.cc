// The SVG of throughput_report.h: a row of three panels a mix, points over the arrival rate.
#include <algorithm>
#include <cstdio>

#include "apps/throughput_report.h"
#include "base/strings.h"

namespace deepinfer {
namespace {

constexpr int kPanelWidth = 300, kPanelHeight = 180, kMargin = 60;
constexpr const char* kColours[] = {"#1b6ca8", "#e08e1b", "#b3282d"};

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string Label(double x, double y, const std::string& text, const char* anchor = "middle") {
  return StrCat("<text x=\"", Number(x), "\" y=\"", Number(y), "\" text-anchor=\"", anchor, "\">",
                text, "</text>\n");
}

struct Curve {
  std::string name;
  std::vector<double> values;  // one a rate
};

// Both axes begin at 0.
class Panel {
 public:
  Panel(int column, int row, std::vector<double> rates, double most)
      : left_(kMargin + column * (kPanelWidth + kMargin)),
        top_(kMargin + row * (kPanelHeight + kMargin)),
        rates_(std::move(rates)),
        most_(most > 0 ? most : 1) {}

  std::string Frame(const std::string& title) const {
    const double bottom = top_ + kPanelHeight;
    return StrCat("<rect x=\"", Number(left_), "\" y=\"", Number(top_), "\" width=\"", kPanelWidth,
                  "\" height=\"", kPanelHeight, "\" fill=\"none\" stroke=\"#888\"/>\n",
                  Label(left_ + kPanelWidth / 2.0, top_ - 8, title),
                  Label(left_ - 6, top_ + 10, Number(most_), "end"),
                  Label(left_ - 6, bottom, "0", "end"),
                  Label(left_ + kPanelWidth, bottom + 16, Number(rates_.back()), "end"),
                  Label(left_ + kPanelWidth / 2.0, bottom + 16, "requests/s"));
  }

  std::string Draw(const Curve& curve, size_t index) const {
    const char* const colour = kColours[index % std::size(kColours)];
    std::string points, dots;
    for (size_t i = 0; i < rates_.size(); ++i) {
      const std::string x = Number(left_ + kPanelWidth * rates_[i] / rates_.back());
      const std::string y = Number(top_ + kPanelHeight * (1 - curve.values[i] / most_));
      points += StrCat(x, ",", y, " ");
      dots += StrCat("<circle cx=\"", x, "\" cy=\"", y, "\" r=\"3\" fill=\"", colour, "\"/>\n");
    }
    return StrCat(
        "<polyline fill=\"none\" stroke=\"", colour, "\" points=\"", points, "\"/>\n", dots,
        "<g fill=\"", colour, "\">",
        Label(left_ + 8, top_ + 14 + 14 * static_cast<double>(index), curve.name, "start"),
        "</g>\n");
  }

 private:
  const double left_, top_;
  const std::vector<double> rates_;
  const double most_;
};

std::string DrawPanel(int column, int row, const std::string& title,
                      const std::vector<double>& rates, const std::vector<Curve>& curves) {
  double most = 0;
  for (const Curve& curve : curves) {
    for (const double value : curve.values) most = std::max(most, value);
  }
  const Panel panel(column, row, rates, most);
  std::string svg = panel.Frame(title);
  for (size_t i = 0; i < curves.size(); ++i) svg += panel.Draw(curves[i], i);
  return svg;
}

template <typename Get>
Curve CurveOf(const std::string& name, const std::vector<LoadFigures>& points, const Get& get) {
  Curve curve{.name = name};
  for (const LoadFigures& point : points) curve.values.push_back(get(point));
  return curve;
}

// Milliseconds.
std::vector<Curve> LatencyCurves(const std::vector<LoadFigures>& points,
                                 Percentiles LoadFigures::*of) {
  return {CurveOf("p50", points, [=](const LoadFigures& f) { return (f.*of).p50 * 1e3; }),
          CurveOf("p90", points, [=](const LoadFigures& f) { return (f.*of).p90 * 1e3; }),
          CurveOf("p99", points, [=](const LoadFigures& f) { return (f.*of).p99 * 1e3; })};
}

std::string DrawMix(int row, const std::vector<LoadFigures>& points) {
  const std::string& mix = points[0].mix;
  const std::vector<double> rates =
      CurveOf("", points, [](const LoadFigures& f) { return f.requests_per_s; }).values;
  return DrawPanel(0, row, mix + ": TTFT, ms", rates, LatencyCurves(points, &LoadFigures::ttft_s)) +
         DrawPanel(1, row, mix + ": TPOT, ms", rates, LatencyCurves(points, &LoadFigures::tpot_s)) +
         DrawPanel(2, row, mix + ": output tokens/s", rates,
                   {CurveOf("", points, [](const LoadFigures& f) { return f.tokens_per_s; })});
}

}  // namespace

std::string ThroughputPlot(const ThroughputBench& bench) {
  std::vector<std::vector<LoadFigures>> mixes;  // what arrived at a rate
  for (const LoadFigures& figures : bench.load) {
    if (figures.requests_per_s == 0) continue;
    if (mixes.empty() || mixes.back()[0].mix != figures.mix) mixes.emplace_back();
    mixes.back().push_back(figures);
  }
  const auto rows = static_cast<int>(mixes.size());
  std::string svg = StrCat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", 3 * (kPanelWidth + kMargin) + kMargin,
      "\" height=\"", rows * (kPanelHeight + kMargin) + kMargin,
      "\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"white\"/>\n");
  for (int row = 0; row < rows; ++row) svg += DrawMix(row, mixes[static_cast<size_t>(row)]);
  return svg + "</svg>\n";
}

}  // namespace deepinfer
