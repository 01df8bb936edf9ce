// The SVG of throughput_report.h: a row of three charts a mix, points over the arrival rate.
#include "apps/svg_chart.h"
#include "apps/throughput_report.h"

namespace deepinfer {
namespace {

template <typename Get>
ChartLine LineOf(const std::string& name, const std::vector<LoadFigures>& points, const Get& get) {
  ChartLine line{.name = name};
  for (const LoadFigures& point : points) {
    line.x.push_back(point.requests_per_s);
    line.y.push_back(get(point));
  }
  return line;
}

// Milliseconds.
std::vector<ChartLine> LatencyLines(const std::vector<LoadFigures>& points,
                                    Percentiles LoadFigures::*of) {
  return {LineOf("p50", points, [=](const LoadFigures& f) { return (f.*of).p50 * 1e3; }),
          LineOf("p90", points, [=](const LoadFigures& f) { return (f.*of).p90 * 1e3; }),
          LineOf("p99", points, [=](const LoadFigures& f) { return (f.*of).p99 * 1e3; })};
}

std::vector<Chart> ChartsOf(const std::vector<LoadFigures>& points) {
  const auto chart = [&](const char* title, std::vector<ChartLine> lines) {
    return Chart{.title = points[0].mix + title,
                 .x_label = "requests/s",
                 .lines = std::move(lines),
                 .dots = true};
  };
  return {chart(": TTFT, ms", LatencyLines(points, &LoadFigures::ttft_s)),
          chart(": TPOT, ms", LatencyLines(points, &LoadFigures::tpot_s)),
          chart(": output tokens/s",
                {LineOf("", points, [](const LoadFigures& f) { return f.tokens_per_s; })})};
}

}  // namespace

std::string ThroughputPlot(const ThroughputBench& bench) {
  std::vector<std::vector<LoadFigures>> mixes;  // what arrived at a rate
  for (const LoadFigures& figures : bench.load) {
    if (figures.requests_per_s == 0) continue;
    if (mixes.empty() || mixes.back()[0].mix != figures.mix) mixes.emplace_back();
    mixes.back().push_back(figures);
  }
  std::vector<std::vector<Chart>> rows;
  for (const std::vector<LoadFigures>& points : mixes) rows.push_back(ChartsOf(points));
  return SvgPage(rows);
}

}  // namespace deepinfer
