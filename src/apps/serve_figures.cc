// The figures of serve_bench.h.
#include <algorithm>
#include <numeric>

#include "apps/bench_traffic.h"
#include "apps/serve_bench.h"

namespace deepinfer {
namespace {

std::string OutcomeOf(const ServedRequest& request) {
  if (request.status == 0) return "no answer";
  if (request.status == 200 && !request.ok()) return "200, then failed";
  return StrCat(request.status);
}

// How many streams run from a moment on.
struct StreamCount {
  double from_s = 0;
  int32_t count = 0;
};

// A stream runs from its first piece to its last.
std::vector<StreamCount> CountStreams(const std::vector<ServedRequest>& requests) {
  std::vector<StreamCount> changes;
  for (const ServedRequest& request : requests) {
    if (request.piece_s.size() < 2) continue;
    changes.push_back({request.piece_s.front(), 1});
    changes.push_back({request.piece_s.back(), -1});
  }
  std::sort(changes.begin(), changes.end(),
            [](const StreamCount& a, const StreamCount& b) { return a.from_s < b.from_s; });
  int32_t count = 0;
  for (StreamCount& change : changes) change.count = count += change.count;
  return changes;
}

// Pieces of all streams, ascending, each with the tokens it stands for.
struct Piece {
  double time_s = 0, tokens = 0;
};

std::vector<Piece> AllPieces(const std::vector<ServedRequest>& requests) {
  std::vector<Piece> pieces;
  for (const ServedRequest& request : requests) {
    const double tokens = static_cast<double>(request.NumOutput()) /
                          static_cast<double>(std::max<size_t>(1, request.piece_s.size()));
    for (const double time_s : request.piece_s) pieces.push_back({time_s, tokens});
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.time_s < b.time_s; });
  return pieces;
}

void AddPeak(const std::vector<ServedRequest>& requests, ServeFigures& figures) {
  const std::vector<StreamCount> counts = CountStreams(requests);
  for (const StreamCount& c : counts) {
    figures.peak_streams = std::max(figures.peak_streams, c.count);
  }
  const std::vector<Piece> pieces = AllPieces(requests);
  double tokens = 0;
  for (size_t i = 0; i + 1 < counts.size(); ++i) {
    if (counts[i].count < figures.peak_streams) continue;
    figures.peak_s += counts[i + 1].from_s - counts[i].from_s;
    const auto after = [&](double time_s) {
      return std::upper_bound(pieces.begin(), pieces.end(), time_s,
                              [](double t, const Piece& p) { return t < p.time_s; });
    };
    const auto end = after(counts[i + 1].from_s);
    tokens += std::accumulate(after(counts[i].from_s), end, 0.0,
                              [](double sum, const Piece& p) { return sum + p.tokens; });
  }
  if (figures.peak_s > 0) figures.peak_tokens_per_s = tokens / figures.peak_s;
}

void AddLatencies(const ServeRun& run, ServeFigures& figures) {
  std::vector<double> ttft, tpot, gaps, latency, late;
  for (const ServedRequest& request : run.requests) {
    if (run.scheduled) late.push_back(request.sent_s - request.due_s);
    if (!request.ok()) continue;
    latency.push_back(request.Latency());
    if (request.piece_s.empty()) continue;
    ttft.push_back(request.Ttft());
    if (request.NumOutput() > 1) tpot.push_back(request.Tpot());
    for (size_t i = 1; i < request.piece_s.size(); ++i) {
      gaps.push_back(request.piece_s[i] - request.piece_s[i - 1]);
    }
  }
  figures.ttft_s = DistributionOf(ttft);
  figures.tpot_s = DistributionOf(tpot);
  figures.gap_s = DistributionOf(gaps);
  figures.latency_s = DistributionOf(latency);
  figures.late_s = DistributionOf(late);
}

}  // namespace

Distribution DistributionOf(const std::vector<double>& values) {
  if (values.empty()) return {};
  return {.count = values.size(),
          .mean = std::accumulate(values.begin(), values.end(), 0.0) /
                  static_cast<double>(values.size()),
          .p50 = Percentile(values, 0.5),
          .p90 = Percentile(values, 0.9),
          .p99 = Percentile(values, 0.99),
          .max = *std::max_element(values.begin(), values.end())};
}

ServeFigures FiguresOf(const ServeRun& run) {
  ServeFigures figures;
  for (const ServedRequest& request : run.requests) {
    ++figures.outcomes[OutcomeOf(request)];
    ++(request.ok() ? figures.num_served : figures.num_failed);
    if (!request.ok()) {
      if (figures.first_error.empty()) figures.first_error = request.error;
      continue;
    }
    figures.prompt_tokens += std::max<int64_t>(0, request.prompt_tokens);
    figures.cached_tokens += std::max<int64_t>(0, request.cached_tokens);
    figures.output_tokens += request.NumOutput();
  }
  if (run.duration_s > 0) {
    figures.requests_per_s = static_cast<double>(figures.num_served) / run.duration_s;
    figures.output_tokens_per_s = static_cast<double>(figures.output_tokens) / run.duration_s;
    figures.generator_share = run.generator_cpu_s / run.duration_s;
  }
  AddPeak(run.requests, figures);
  AddLatencies(run, figures);
  return figures;
}

}  // namespace deepinfer
