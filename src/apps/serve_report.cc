// What `bench serve` prints and draws: the table, JSON and SVG of serve_bench.h.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "apps/answer_collector.h"
#include "apps/serve_bench.h"
#include "apps/svg_chart.h"

namespace deepinfer {
namespace {

constexpr size_t kCurvePoints = 200;
constexpr size_t kTimeSlices = 100;

template <typename... Args>
void Append(std::string& text, const char* format, Args... args) {
  char line[256];
  std::snprintf(line, sizeof line, format, args...);
  text += line;
}

double Percent(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

void AppendRow(std::string& text, const char* name, const Distribution& d) {
  if (d.count == 0) return;
  Append(text, "%-10s %10.2f %10.2f %10.2f %10.2f %10.2f  %9zu\n", name, d.mean * 1e3, d.p50 * 1e3,
         d.p90 * 1e3, d.p99 * 1e3, d.max * 1e3, d.count);
}

std::string Outcomes(const ServeFigures& figures) {
  std::vector<std::string> parts;
  for (const auto& [outcome, count] : figures.outcomes) {
    parts.push_back(StrCat(count, " x ", outcome));
  }
  return Join(parts, ", ");
}

JsonValue Object(std::initializer_list<std::pair<const char*, JsonValue>> members) {
  JsonValue object = JsonValue::Object();
  for (const auto& [key, value] : members) object.Set(key, value);
  return object;
}

JsonValue ToJson(const Distribution& d) {
  return Object({{"count", JsonNumber(static_cast<int64_t>(d.count))},
                 {"mean", JsonNumber(d.mean)},
                 {"p50", JsonNumber(d.p50)},
                 {"p90", JsonNumber(d.p90)},
                 {"p99", JsonNumber(d.p99)},
                 {"max", JsonNumber(d.max)}});
}

// The share of values (%) that a value, in ms, is not below.
ChartLine Cumulated(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  ChartLine line;
  const size_t num_points = std::min(values.size(), kCurvePoints);
  for (size_t i = 0; i < num_points; ++i) {
    const size_t rank = (i + 1) * values.size() / num_points;
    line.x.push_back(values[rank - 1] * 1e3);
    line.y.push_back(100 * static_cast<double>(rank) / static_cast<double>(values.size()));
  }
  return line;
}

template <typename Get>
Chart Curve(const char* title, const ServeRun& run, const Get& get) {
  std::vector<double> values;
  for (const ServedRequest& request : run.requests) {
    if (request.ok()) get(request, values);
  }
  return {.title = StrCat("% of requests with at most this ", title),
          .x_label = "ms",
          .lines = {Cumulated(values)}};
}

// Over time, in slices of the run.
Chart TokensOverTime(const ServeRun& run) {
  const double slice_s = std::max(run.duration_s, 1e-9) / kTimeSlices;
  std::vector<double> tokens(kTimeSlices);
  for (const ServedRequest& request : run.requests) {
    for (const double time_s : request.piece_s) {
      const auto slice = static_cast<size_t>(std::max(0.0, time_s / slice_s));
      tokens[std::min(slice, kTimeSlices - 1)] +=
          static_cast<double>(request.NumOutput()) / static_cast<double>(request.piece_s.size());
    }
  }
  ChartLine line;
  for (size_t i = 0; i < kTimeSlices; ++i) {
    line.x.push_back((static_cast<double>(i) + 0.5) * slice_s);
    line.y.push_back(tokens[i] / slice_s);
  }
  return {.title = "output tokens/s", .x_label = "s", .lines = {std::move(line)}};
}

Chart RequestsOverTime(const ServeRun& run) {
  ChartLine line;
  for (size_t i = 0; i < kTimeSlices; ++i) {
    const double now = run.duration_s * (static_cast<double>(i) + 0.5) / kTimeSlices;
    line.x.push_back(now);
    line.y.push_back(static_cast<double>(
        std::count_if(run.requests.begin(), run.requests.end(),
                      [&](const ServedRequest& r) { return r.sent_s <= now && now < r.end_s; })));
  }
  return {.title = "requests in flight", .x_label = "s", .lines = {std::move(line)}};
}

JsonValue DetailOf(const ServedRequest& r) {
  JsonValue pieces{.kind = JsonValue::Kind::kArray};
  for (const double time_s : r.piece_s) pieces.items.push_back(JsonNumber(time_s));
  return Object({{"due_s", JsonNumber(r.due_s)},
                 {"sent_s", JsonNumber(r.sent_s)},
                 {"end_s", JsonNumber(r.end_s)},
                 {"status", JsonNumber(int64_t{r.status})},
                 {"error", JsonValue::String(r.error)},
                 {"prompt_tokens", JsonNumber(r.prompt_tokens)},
                 {"cached_tokens", JsonNumber(r.cached_tokens)},
                 {"output_tokens", JsonNumber(r.output_tokens)},
                 {"piece_s", std::move(pieces)},
                 {"text", JsonValue::String(r.text)}});
}

}  // namespace

std::string ServeTable(const ServeRun& run, const ServeFigures& figures) {
  std::string text =
      StrCat(run.url, ", model ", run.model, ", ", run.scheduled ? "open loop" : "closed loop");
  if (run.max_concurrency > 0) text += StrCat(", at most ", run.max_concurrency, " at a time");
  Append(text, "\nrequests: %zu in %.2f s, %.2f/s served: %s\n", run.requests.size(),
         run.duration_s, figures.requests_per_s, Outcomes(figures).c_str());
  Append(text, "tokens: prompt %lld (%.1f %% cached), output %lld, %.1f/s\n",
         static_cast<long long>(figures.prompt_tokens),
         Percent(figures.cached_tokens, figures.prompt_tokens),
         static_cast<long long>(figures.output_tokens), figures.output_tokens_per_s);
  if (figures.peak_s > 0) {
    Append(text, "while %d streams ran together, %.2f s: %.1f tokens/s\n", figures.peak_streams,
           figures.peak_s, figures.peak_tokens_per_s);
  }
  text += "ms               mean        p50        p90        p99        max      count\n";
  AppendRow(text, "TTFT", figures.ttft_s);
  AppendRow(text, "TPOT", figures.tpot_s);
  AppendRow(text, "between", figures.gap_s);
  AppendRow(text, "whole", figures.latency_s);
  AppendRow(text, "sent late", figures.late_s);
  Append(text, "load generator's own share: %.2f s of processor time, %.1f %% of one; %lld",
         run.generator_cpu_s, 100 * figures.generator_share,
         static_cast<long long>(run.num_connections));
  text += " connections made\n";
  if (figures.num_failed > 0) text += StrCat("first failure: ", figures.first_error, "\n");
  return text;
}

std::string ServeJson(const ServeRun& run, const ServeFigures& figures) {
  JsonValue outcomes = JsonValue::Object();
  for (const auto& [outcome, count] : figures.outcomes) outcomes.Set(outcome, JsonNumber(count));
  return DumpJson(Object({{"url", JsonValue::String(run.url)},
                          {"model", JsonValue::String(run.model)},
                          {"loop", JsonValue::String(run.scheduled ? "open" : "closed")},
                          {"max_concurrency", JsonNumber(int64_t{run.max_concurrency})},
                          {"requests", JsonNumber(static_cast<int64_t>(run.requests.size()))},
                          {"served", JsonNumber(figures.num_served)},
                          {"failed", JsonNumber(figures.num_failed)},
                          {"first_error", JsonValue::String(figures.first_error)},
                          {"outcomes", std::move(outcomes)},
                          {"duration_s", JsonNumber(run.duration_s)},
                          {"requests_per_s", JsonNumber(figures.requests_per_s)},
                          {"prompt_tokens", JsonNumber(figures.prompt_tokens)},
                          {"cached_tokens", JsonNumber(figures.cached_tokens)},
                          {"output_tokens", JsonNumber(figures.output_tokens)},
                          {"output_tokens_per_s", JsonNumber(figures.output_tokens_per_s)},
                          {"peak_streams", JsonNumber(int64_t{figures.peak_streams})},
                          {"peak_s", JsonNumber(figures.peak_s)},
                          {"peak_tokens_per_s", JsonNumber(figures.peak_tokens_per_s)},
                          {"ttft_s", ToJson(figures.ttft_s)},
                          {"tpot_s", ToJson(figures.tpot_s)},
                          {"gap_s", ToJson(figures.gap_s)},
                          {"latency_s", ToJson(figures.latency_s)},
                          {"late_s", ToJson(figures.late_s)},
                          {"generator_cpu_s", JsonNumber(run.generator_cpu_s)},
                          {"generator_share", JsonNumber(figures.generator_share)},
                          {"connections", JsonNumber(run.num_connections)}})) +
         "\n";
}

std::string ServeDetails(const ServeRun& run) {
  std::string text = DumpJson(Object({{"url", JsonValue::String(run.url)},
                                      {"start_monotonic_ns", JsonNumber(run.start.ns)}})) +
                     "\n";
  for (const ServedRequest& request : run.requests) text += DumpJson(DetailOf(request)) + "\n";
  return text;
}

std::string ServePlot(const ServeRun& run) {
  using Values = std::vector<double>;
  const Chart ttft = Curve("TTFT", run, [](const ServedRequest& r, Values& values) {
    if (!r.piece_s.empty()) values.push_back(r.Ttft());
  });
  const Chart tpot = Curve("TPOT", run, [](const ServedRequest& r, Values& values) {
    if (!r.piece_s.empty() && r.NumOutput() > 1) values.push_back(r.Tpot());
  });
  const Chart whole = Curve("time to the end", run, [](const ServedRequest& r, Values& values) {
    values.push_back(r.Latency());
  });
  return SvgPage({{ttft, tpot, whole}, {TokensOverTime(run), RequestsOverTime(run)}});
}

}  // namespace deepinfer
