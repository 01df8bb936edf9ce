#include "apps/throughput_report.h"

#include <cstdio>

#include "apps/answer_collector.h"
#include "tokens/json.h"

namespace deepinfer {
namespace {

template <typename... Args>
void Append(std::string& text, const char* format, Args... args) {
  char line[256];
  std::snprintf(line, sizeof line, format, args...);
  text += line;
}

void AddParts(std::string& text, const ThroughputBench& bench) {
  const SingleFigures& single = bench.single;
  if (single.prompt_tokens > 0) {
    Append(text, "one request, prompt %d, %d decoded: %.1f tokens/s; bare step %.0f us, %.1f %% of",
           single.prompt_tokens, single.decode_tokens, single.TokensPerSecond(),
           single.bare_step_s * 1e6, 100 * single.StepFraction());
    Append(text, " the engine's token; it reads %.1f MB of weights, %.1f %% of the ceiling\n",
           static_cast<double>(single.work.bytes) * 1e-6, 100 * single.read_fraction);
  }
  const BatchFigures& batch = bench.batch;
  if (batch.num_requests > 0) {
    Append(text, "%d requests together: %.1f tokens/s", batch.num_requests,
           batch.TokensPerSecond());
    if (single.prompt_tokens > 0) {
      Append(text, ", %.2f times one", batch.TokensPerSecond() * single.engine_token_s);
    }
    Append(text, "; %.1f million weight products", static_cast<double>(single.work.macs) * 1e-6);
    Append(text, " a token, %.1f %% of the ceiling\n", 100 * batch.dot_fraction);
  }
  if (bench.plan.num_steps > 0) {
    Append(text, "plan of %d decoding requests: p50 %.0f us, p99 %.0f us, of %d steps\n",
           bench.plan.num_requests, bench.plan.us_p50, bench.plan.us_p99, bench.plan.num_steps);
  }
  const MaskFigures& masks = bench.masks;
  if (masks.num_requests > 0) {
    Append(text, "%d requests, %.3f ms a token; with one whose masks take 5 ms: %+.1f %% (itself",
           masks.num_requests, masks.free_s * 1e3, 100 * masks.SlowEffect());
    Append(text, " %.1f ms, %lld rows late); all with masks of 50 us: %+.1f %% (%lld rows late)\n",
           masks.slow_request_s * 1e3, static_cast<long long>(masks.slow_late),
           100 * masks.QuickEffect(), static_cast<long long>(masks.quick_late));
  }
  const auto hit = [&](const char* mode, const HitFigures& figures) {
    if (figures.prompt_tokens == 0) return;
    Append(text, "prompt of %d again, %d cached, %s: TTFT %.4f s, then %.4f s: %.3f of the first\n",
           figures.prompt_tokens, figures.cached_tokens, mode, figures.first_s, figures.second_s,
           figures.Ratio());
  };
  hit("exact", bench.exact_hit);
  hit("bounded", bench.bounded_hit);
  const SavingFigures& saving = bench.saving;
  if (saving.prompt_tokens > 0) {
    Append(text, "cold prompt of %d: exact %.3f s, bounded %.3f s: saves %.1f %%",
           saving.prompt_tokens, saving.exact_s, saving.bounded_s, 100 * saving.Saved());
    Append(text, "; the decoder half takes %.1f %% of exact passes\n", 100 * saving.decoder_share);
  }
}

void AddLoad(std::string& text, const ThroughputBench& bench) {
  if (bench.load.empty()) return;
  text +=
      "mix    arrivals/s  tokens/s  hits |  TTFT ms p50     p90     p99 | TPOT ms p50   p90   p99 "
      "| "
      "plan us p50  p99\n";
  for (const LoadFigures& f : bench.load) {
    char rate[16] = "at once";
    if (f.requests_per_s > 0) std::snprintf(rate, sizeof rate, "%.2f", f.requests_per_s);
    Append(text, "%-6s %10s %9.1f %4.0f%% | %12.1f %7.1f %7.1f", f.mix.c_str(), rate,
           f.tokens_per_s, 100 * f.hit_rate, f.ttft_s.p50 * 1e3, f.ttft_s.p90 * 1e3,
           f.ttft_s.p99 * 1e3);
    Append(text, " | %11.2f %5.2f %5.2f | %11.0f %4.0f\n", f.tpot_s.p50 * 1e3, f.tpot_s.p90 * 1e3,
           f.tpot_s.p99 * 1e3, f.plan_us.p50, f.plan_us.p99);
  }
}

JsonValue Object(std::initializer_list<std::pair<const char*, JsonValue>> members) {
  JsonValue object = JsonValue::Object();
  for (const auto& [key, value] : members) object.Set(key, value);
  return object;
}

JsonValue ToJson(const Percentiles& p) {
  return Object(
      {{"p50", JsonNumber(p.p50)}, {"p90", JsonNumber(p.p90)}, {"p99", JsonNumber(p.p99)}});
}

JsonValue ToJson(const HitFigures& f) {
  return Object({{"prompt_tokens", JsonNumber(int64_t{f.prompt_tokens})},
                 {"cached_tokens", JsonNumber(int64_t{f.cached_tokens})},
                 {"first_ttft_s", JsonNumber(f.first_s)},
                 {"second_ttft_s", JsonNumber(f.second_s)}});
}

JsonValue ToJson(const LoadFigures& f) {
  return Object({{"mix", JsonValue::String(f.mix)},
                 {"arrivals_per_s", JsonNumber(f.requests_per_s)},
                 {"requests", JsonNumber(int64_t{f.num_requests})},
                 {"served_per_s", JsonNumber(f.served_per_s)},
                 {"tokens_per_s", JsonNumber(f.tokens_per_s)},
                 {"hit_rate", JsonNumber(f.hit_rate)},
                 {"ttft_s", ToJson(f.ttft_s)},
                 {"tpot_s", ToJson(f.tpot_s)},
                 {"plan_us", ToJson(f.plan_us)},
                 {"plans_in_time", JsonNumber(f.plans_in_time)},
                 {"plans_late", JsonNumber(f.plans_late)}});
}

JsonValue ToJson(const MaskFigures& f) {
  if (f.num_requests == 0) return {};
  return Object({{"requests", JsonNumber(int64_t{f.num_requests})},
                 {"free_us", JsonNumber(f.free_s * 1e6)},
                 {"slow_us", JsonNumber(f.slow_s * 1e6)},
                 {"slow_effect", JsonNumber(f.SlowEffect())},
                 {"slow_request_us", JsonNumber(f.slow_request_s * 1e6)},
                 {"slow_late", JsonNumber(f.slow_late)},
                 {"quick_us", JsonNumber(f.quick_s * 1e6)},
                 {"quick_effect", JsonNumber(f.QuickEffect())},
                 {"quick_late", JsonNumber(f.quick_late)}});
}

JsonValue SingleJson(const SingleFigures& f) {
  return Object({{"prompt_tokens", JsonNumber(int64_t{f.prompt_tokens})},
                 {"decode_tokens", JsonNumber(int64_t{f.decode_tokens})},
                 {"engine_token_us", JsonNumber(f.engine_token_s * 1e6)},
                 {"bare_step_us", JsonNumber(f.bare_step_s * 1e6)},
                 {"weight_bytes_a_token", JsonNumber(f.work.bytes)},
                 {"weight_macs_a_token", JsonNumber(f.work.macs)},
                 {"read_fraction", JsonNumber(f.read_fraction)}});
}

}  // namespace

std::string ThroughputTable(const ThroughputBench& bench) {
  std::string text;
  Append(text, "%s, %d threads; ceilings: reads %.2f GB/s, dot products %.1f GMAC/s\n",
         bench.isa.c_str(), bench.num_threads, bench.ceilings.read_bytes_per_s * 1e-9,
         bench.ceilings.macs_per_s * 1e-9);
  AddParts(text, bench);
  AddLoad(text, bench);
  if (bench.plans_in_time + bench.plans_late > 0) {
    Append(text, "plans made ahead: %lld in time, %lld late, %.2f %%\n",
           static_cast<long long>(bench.plans_in_time), static_cast<long long>(bench.plans_late),
           100 * bench.PlanLateFraction());
  }
  return text;
}

std::string ThroughputJson(const ThroughputBench& bench) {
  JsonValue load{.kind = JsonValue::Kind::kArray};
  for (const LoadFigures& figures : bench.load) load.items.push_back(ToJson(figures));
  const BatchFigures& batch = bench.batch;
  const SavingFigures& saving = bench.saving;
  return DumpJson(Object(
             {{"model", JsonValue::String(bench.model)},
              {"isa", JsonValue::String(bench.isa)},
              {"threads", JsonNumber(int64_t{bench.num_threads})},
              {"read_bytes_per_s", JsonNumber(bench.ceilings.read_bytes_per_s)},
              {"macs_per_s", JsonNumber(bench.ceilings.macs_per_s)},
              {"single_tokens_per_s", JsonNumber(bench.single.TokensPerSecond())},
              {"batch_tokens_per_s", JsonNumber(batch.TokensPerSecond())},
              {"dot_fraction", JsonNumber(batch.dot_fraction)},
              {"ttft_hit_ratio_bounded", JsonNumber(bench.bounded_hit.Ratio())},
              {"ttft_hit_ratio_exact", JsonNumber(bench.exact_hit.Ratio())},
              {"plan_late_fraction", JsonNumber(bench.PlanLateFraction())},
              {"single_step_fraction", JsonNumber(bench.single.StepFraction())},
              {"plan_us_p99", JsonNumber(bench.plan.us_p99)},
              {"single", SingleJson(bench.single)},
              {"batch", Object({{"requests", JsonNumber(int64_t{batch.num_requests})},
                                {"step_us", JsonNumber(batch.step_s * 1e6)},
                                {"times_single", JsonNumber(batch.TokensPerSecond() *
                                                            bench.single.engine_token_s)}})},
              {"plan", Object({{"requests", JsonNumber(int64_t{bench.plan.num_requests})},
                               {"steps", JsonNumber(int64_t{bench.plan.num_steps})},
                               {"us_p50", JsonNumber(bench.plan.us_p50)},
                               {"in_time", JsonNumber(bench.plans_in_time)},
                               {"late", JsonNumber(bench.plans_late)}})},
              {"masks", ToJson(bench.masks)},
              {"hits", Object({{"exact", ToJson(bench.exact_hit)},
                               {"bounded", ToJson(bench.bounded_hit)}})},
              {"cold_prefill", Object({{"prompt_tokens", JsonNumber(int64_t{saving.prompt_tokens})},
                                       {"exact_s", JsonNumber(saving.exact_s)},
                                       {"bounded_s", JsonNumber(saving.bounded_s)},
                                       {"saved_fraction", JsonNumber(saving.Saved())},
                                       {"decoder_share", JsonNumber(saving.decoder_share)}})},
              {"load", std::move(load)}})) +
         "\n";
}

}  // namespace deepinfer
