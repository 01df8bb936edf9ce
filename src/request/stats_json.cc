#include "request/stats_json.h"

#include <cstdio>

#include "tokens/json.h"

namespace deepinfer {
namespace {

// Members of one object, in order.
class JsonFields {
 public:
  JsonFields& Text(std::string_view name, std::string_view value) {
    Name(name);
    AppendJsonString(value, out_);
    return *this;
  }
  JsonFields& Number(std::string_view name, int64_t value) {
    return Raw(name, std::to_string(value));
  }
  JsonFields& Number(std::string_view name, double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.15g", value);
    return Raw(name, text);
  }
  JsonFields& Raw(std::string_view name, std::string_view json) {
    Name(name);
    out_ += json;
    return *this;
  }
  std::string Take() { return out_ + "}"; }

 private:
  void Name(std::string_view name) {
    if (out_.size() > 1) out_ += ',';
    AppendJsonString(name, out_);
    out_ += ':';
  }
  std::string out_ = "{";
};

std::string PercentilesJson(const std::optional<Percentiles>& seconds) {
  if (!seconds) return R"({"p50":null,"p90":null,"p99":null})";
  return JsonFields()
      .Number("p50", seconds->p50 * 1e3)
      .Number("p90", seconds->p90 * 1e3)
      .Number("p99", seconds->p99 * 1e3)
      .Take();
}

}  // namespace

std::string StatsJson(const MetricsContext& context, Metrics& metrics, const StatsTimes& times) {
  const EngineSnapshot& engine = context.engine;
  const RequestCounts& counts = metrics.counts();
  const std::string pages = JsonFields()
                                .Number("used", engine.pages_used)
                                .Number("cached", engine.pages_cached)
                                .Number("total", engine.pages_total)
                                .Take();
  const std::string requests = JsonFields()
                                   .Number("ok", counts.ok)
                                   .Number("failed", counts.failed)
                                   .Number("cancelled", counts.cancelled)
                                   .Number("rejected", counts.rejected)
                                   .Take();
  const std::string drafts = JsonFields()
                                 .Number("verified", engine.drafts_verified)
                                 .Number("accepted", engine.drafts_accepted)
                                 .Take();
  const std::string http = JsonFields()
                               .Number("connections", context.http.connections)
                               .Number("open_requests", context.http.answering)
                               .Take();
  return JsonFields()
      .Number("time", times.wall_seconds)
      .Number("uptime_seconds", times.uptime_seconds)
      .Text("model", context.model)
      .Text("version", context.version)
      .Text("state", context.state)
      .Number("running", int64_t{engine.num_running})
      .Number("waiting", int64_t{engine.num_waiting})
      .Number("preempted", int64_t{engine.num_preempted})
      .Number("max_num_seqs", int64_t{engine.max_num_seqs})
      .Number("max_waiting", int64_t{engine.max_waiting})
      .Number("prompt_tokens", engine.prompt_tokens)
      .Number("cached_tokens", engine.cached_tokens)
      .Number("output_tokens", engine.output_tokens)
      .Number("steps", engine.steps)
      .Number("step_seconds", engine.step_seconds)
      .Raw("pages", pages)
      .Raw("ttft_ms", PercentilesJson(metrics.recent_ttft().At(times.now)))
      .Raw("tpot_ms", PercentilesJson(metrics.recent_tpot().At(times.now)))
      .Raw("e2e_ms", PercentilesJson(metrics.recent_e2e().At(times.now)))
      .Raw("requests", requests)
      .Raw("http", http)
      .Number("late_masks", engine.masks_late)
      .Raw("drafts", drafts)
      .Take();
}

}  // namespace deepinfer
