#include "request/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <utility>
#include <vector>

#include "base/cpu_time.h"
#include "base/process_memory.h"

namespace deepinfer {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// Seconds. From a cached prompt on an idle machine to a long one on a slow one.
const prometheus::Histogram::BucketBoundaries kTtftBounds = {
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120, 300, 600};
const prometheus::Histogram::BucketBoundaries kTpotBounds = {
    0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15, 0.25, 0.5, 1, 2, 5};
const prometheus::Histogram::BucketBoundaries kE2eBounds = {
    0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120, 300, 600, 1200, 3600};

// Families of one metric each, in the order in which they are added.
class FamilyList {
 public:
  void Gauge(std::string name, std::string help, double value) {
    ClientMetric metric;
    metric.gauge.value = value;
    Add(std::move(name), std::move(help), MetricType::Gauge, std::move(metric));
  }
  void Counter(std::string name, std::string help, double value) {
    ClientMetric metric;
    metric.counter.value = value;
    Add(std::move(name), std::move(help), MetricType::Counter, std::move(metric));
  }
  void Counter(std::string name, std::string help, int64_t value) {
    Counter(std::move(name), std::move(help), static_cast<double>(value));
  }
  // Count and sum without quantiles.
  void Summary(std::string name, std::string help, int64_t count, double sum) {
    ClientMetric metric;
    metric.summary.sample_count = static_cast<uint64_t>(count);
    metric.summary.sample_sum = sum;
    Add(std::move(name), std::move(help), MetricType::Summary, std::move(metric));
  }
  void Info(std::string name, std::string help, std::vector<ClientMetric::Label> labels) {
    ClientMetric metric;
    metric.label = std::move(labels);
    metric.gauge.value = 1;
    Add(std::move(name), std::move(help), MetricType::Gauge, std::move(metric));
  }
  // One family, a value for each `reason`.
  void Counters(std::string name, std::string help, const char* label,
                const std::vector<std::pair<std::string, int64_t>>& values) {
    MetricFamily family{
        .name = std::move(name), .help = std::move(help), .type = MetricType::Counter};
    for (const auto& [text, value] : values) {
      ClientMetric metric;
      metric.label = {{.name = label, .value = text}};
      metric.counter.value = static_cast<double>(value);
      family.metric.push_back(std::move(metric));
    }
    all_.push_back(std::move(family));
  }

  std::vector<MetricFamily> Take() { return std::move(all_); }

 private:
  void Add(std::string name, std::string help, MetricType type, ClientMetric metric) {
    all_.push_back({.name = std::move(name),
                    .help = std::move(help),
                    .type = type,
                    .metric = {std::move(metric)}});
  }

  std::vector<MetricFamily> all_;
};

void AddRequests(const EngineSnapshot& engine, const RequestCounts& counts, FamilyList& out) {
  out.Gauge("deepinfer_requests_running", "Answers that share the engine's steps now.",
            engine.num_running);
  out.Gauge("deepinfer_requests_waiting", "Answers that have not started.", engine.num_waiting);
  out.Gauge("deepinfer_requests_preempted", "Answers that gave their memory back for now.",
            engine.num_preempted);
  out.Gauge("deepinfer_requests_running_max", "--max-num-seqs.", engine.max_num_seqs);
  out.Gauge("deepinfer_requests_waiting_max", "--max-waiting.", engine.max_waiting);
  out.Counters("deepinfer_requests_total", "Inference requests that ended, by outcome.", "outcome",
               {{"ok", counts.ok},
                {"failed", counts.failed},
                {"cancelled", counts.cancelled},
                {"rejected", counts.rejected}});
  out.Counters("deepinfer_aborted_total", "Inference requests that ended before their answer.",
               "reason", {{"client_gone", counts.cancelled}, {"failure", counts.failed}});
  out.Counter("deepinfer_preemptions_total", "Times a running answer gave way.", engine.preempted);
  out.Counter("deepinfer_resumptions_total", "Times it came back.", engine.resumed);
}

void AddTokens(const EngineSnapshot& engine, FamilyList& out) {
  out.Counter("deepinfer_prompt_tokens_total", "Tokens of accepted prompts.", engine.prompt_tokens);
  out.Counter("deepinfer_generation_tokens_total", "Output tokens.", engine.output_tokens);
  out.Counter("deepinfer_prefix_query_tokens_total", "Prompt tokens looked up in the cache.",
              engine.prompt_tokens);
  out.Counter("deepinfer_prefix_hit_tokens_total", "Of them, those found.", engine.cached_tokens);
  out.Counter("deepinfer_prefill_rows_total", "Rows of steps that computed prompts.",
              engine.prefill_rows);
  out.Counter("deepinfer_decode_rows_total", "Rows of steps that produced tokens.",
              engine.decode_rows);
  out.Counter("deepinfer_replay_tokens_total", "Rows computed again after a hit or a preemption.",
              engine.replay_rows);
  out.Counter("deepinfer_spec_verified_total", "Draft tokens verified.", engine.drafts_verified);
  out.Counter("deepinfer_spec_accepted_total", "Draft tokens accepted.", engine.drafts_accepted);
}

void AddEngine(const EngineSnapshot& engine, FamilyList& out) {
  out.Summary("deepinfer_step_seconds", "Steps of the engine.", engine.steps, engine.step_seconds);
  out.Gauge("deepinfer_step_age_seconds", "Since the last step ended, while requests run.",
            engine.seconds_since_step);
  out.Gauge("deepinfer_kv_blocks_used", "KV pages that answers hold.",
            static_cast<double>(engine.pages_used));
  out.Gauge("deepinfer_kv_blocks_cached", "KV pages kept for prompts that begin alike.",
            static_cast<double>(engine.pages_cached));
  out.Gauge("deepinfer_kv_blocks_total", "KV pages.", static_cast<double>(engine.pages_total));
  out.Summary("deepinfer_grammar_compile_seconds", "Grammars built.", engine.grammars_compiled,
              engine.grammar_compile_seconds);
  out.Counter("deepinfer_grammar_cached_total", "Grammars that were there already.",
              engine.grammars_cached);
  out.Summary("deepinfer_grammar_mask_seconds", "Masks made.", engine.masks, engine.mask_seconds);
  out.Counter("deepinfer_grammar_overrun_total", "Rows that sat out a step for their mask.",
              engine.masks_late);
}

void AddProcess(const MetricsContext& context, FamilyList& out) {
  const HttpServerStats& http = context.http;
  out.Gauge("deepinfer_ready", "1 if /ready says 200.", context.state == "ready" ? 1 : 0);
  out.Gauge("deepinfer_http_connections", "Open connections.",
            static_cast<double>(http.connections));
  out.Gauge("deepinfer_http_requests_open", "HTTP requests without a complete answer.",
            static_cast<double>(http.answering));
  out.Counter("deepinfer_http_connections_total", "Connections accepted.", http.accepted);
  out.Counter("deepinfer_http_clients_gone_total", "Clients that left before their answer.",
              http.gone);
  out.Counter("deepinfer_http_clients_cut_off_total", "Clients that did not read.", http.cut_off);
  out.Counter("deepinfer_http_received_bytes_total", "Bytes of requests.", http.bytes_in);
  out.Counter("deepinfer_http_sent_bytes_total", "Bytes of answers.", http.bytes_out);
  out.Counter("deepinfer_server_cpu_seconds_total", "Processor time of the server's thread.",
              context.server_cpu_seconds);
  out.Counter("deepinfer_planner_cpu_seconds_total", "Processor time of the planning thread.",
              context.engine.engine_cpu_seconds);
  out.Counter("process_cpu_seconds_total", "Processor time of the process.", ProcessCpuSeconds());
  out.Gauge("process_resident_memory_bytes", "Resident memory.",
            static_cast<double>(ResidentBytes()));
  out.Info(
      "deepinfer_build_info", "What runs here.",
      {{.name = "version", .value = context.version}, {.name = "model", .value = context.model}});
}

}  // namespace

struct Metrics::Families {
  prometheus::Histogram& Add(const std::string& name, const std::string& help,
                             const prometheus::Histogram::BucketBoundaries& bounds) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, bounds);
  }

  prometheus::Registry registry;
  prometheus::Histogram& ttft =
      Add("deepinfer_ttft_seconds", "From a request's arrival to its first token.", kTtftBounds);
  prometheus::Histogram& tpot = Add(
      "deepinfer_tpot_seconds", "Between tokens: mean of a request after its first.", kTpotBounds);
  prometheus::Histogram& e2e =
      Add("deepinfer_e2e_seconds", "From a request's arrival to its end.", kE2eBounds);
  prometheus::Family<prometheus::Counter>& responses = prometheus::BuildCounter()
                                                           .Name("deepinfer_http_responses_total")
                                                           .Help("Answers by status.")
                                                           .Register(registry);
  prometheus::Family<prometheus::Counter>& finished =
      prometheus::BuildCounter()
          .Name("deepinfer_requests_finished_total")
          .Help("Inference requests that ended, by the reason that the client was told.")
          .Register(registry);
};

Metrics::Metrics() : families_(std::make_unique<Families>()) {}

Metrics::~Metrics() = default;

void Metrics::OnFirstToken(const ExchangeFacts& facts) {
  families_->ttft.Observe(*facts.ttft_s());
  ttft_.Add(*facts.first_token, *facts.ttft_s());
}

void Metrics::OnEnd(const ExchangeFacts& facts) {
  const std::string status = facts.status == 0 ? "none" : std::to_string(facts.status);
  families_->responses.Add({{"status", status}}).Increment();
  if (!facts.inference) return;
  if (facts.gone) {
    ++counts_.cancelled;
  } else if (facts.status == 500 || facts.finish == "error") {
    ++counts_.failed;
  } else if (facts.status >= 400) {
    ++counts_.rejected;
  } else {
    ++counts_.ok;
    families_->e2e.Observe(facts.e2e_s());
    e2e_.Add(facts.end, facts.e2e_s());
  }
  if (!facts.finish.empty()) families_->finished.Add({{"reason", facts.finish}}).Increment();
  if (const auto tpot = facts.tpot_s()) {
    families_->tpot.Observe(*tpot);
    tpot_.Add(facts.end, *tpot);
  }
}

std::string Metrics::Text(const MetricsContext& context) const {
  FamilyList out;
  AddRequests(context.engine, counts_, out);
  AddTokens(context.engine, out);
  AddEngine(context.engine, out);
  AddProcess(context, out);
  std::vector<MetricFamily> all = out.Take();
  for (MetricFamily& family : families_->registry.Collect()) all.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(all);
}

}  // namespace deepinfer
