#include "apps/throughput_bench.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "apps/bare_passes.h"
#include "apps/bench_service.h"
#include "base/cpu_topology.h"
#include "base/large_block.h"
#include "base/log.h"
#include "kernels/backend.h"

namespace deepinfer {
namespace {

constexpr int kRounds = 5;      // of which medians are taken
constexpr int kColdRounds = 3;  // of long cold prompts
constexpr int64_t kCeilingBytes = int64_t{256} << 20;
constexpr int32_t kPlanPrompt = 2, kPlanTokens = 132;  // page ends at 64 and 128
constexpr int32_t kMaskPrompt = 48;
constexpr int32_t kHitTail = 4;                    // tokens of a hit's prompt after its pages
constexpr double kRateShares[] = {0.3, 0.6, 0.9};  // of what a mix reaches at once
constexpr int32_t kLeastModelLen = 128;
constexpr int32_t kNumStepTimes = 1 << 16;

Percentiles PercentilesOf(const std::vector<double>& values) {
  if (values.empty()) return {};
  return {Percentile(values, 0.5), Percentile(values, 0.9), Percentile(values, 0.99)};
}

std::vector<double> PlanMicroseconds(const std::vector<StepTimes>& steps, int32_t num_sequences) {
  std::vector<double> us;
  for (const StepTimes& step : steps) {
    if (num_sequences == 0 || step.num_sequences == num_sequences) us.push_back(step.plan_s * 1e6);
  }
  return us;
}

StatusOr<std::vector<double>> ParseRates(const std::vector<std::string>& texts) {
  std::vector<double> rates;
  for (const std::string& text : texts) {
    double rate = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rate);
    if (error != std::errc() || end != text.data() + text.size() || !(rate > 0) ||
        !std::isfinite(rate)) {
      return InvalidArgument("--rate: found \"", text, "\", expected requests/s above 0");
    }
    rates.push_back(rate);
  }
  std::sort(rates.begin(), rates.end());
  return rates;
}

class Bench {
 public:
  Bench(LoadedEngine& loaded, const ThroughputOptions& options, Clock& clock,
        ThroughputBench& result)
      : loaded_(loaded), options_(options), clock_(clock), rng_(options.seed), result_(result) {}

  Status Run(const std::vector<double>& rates) {
    DI_RETURN_IF_ERROR(CheckLengths());
    if (options_.Runs("single")) DI_RETURN_IF_ERROR(RunSingle());
    if (options_.Runs("batch")) DI_RETURN_IF_ERROR(RunBatch());
    if (options_.Runs("plan")) DI_RETURN_IF_ERROR(RunPlan());
    if (options_.Runs("masks")) DI_RETURN_IF_ERROR(RunMasks());
    if (options_.Runs("hits")) {
      DI_RETURN_IF_ERROR(RunHits());
      DI_RETURN_IF_ERROR(RunSaving());
    }
    return options_.Runs("load") ? RunLoad(rates) : OkStatus();
  }

 private:
  int32_t longest() const { return loaded_.info().max_model_len; }
  const SchedulerOptions& scheduling() const { return loaded_.core_options().scheduler; }
  std::vector<int32_t> Ids(int32_t count) {
    return DrawIds(count, loaded_.info().vocab_size, rng_);
  }

  Status CheckLengths() const {
    if (longest() < kLeastModelLen) {
      return InvalidArgument("--max-model-len: found ", longest(), ", bench throughput needs ",
                             kLeastModelLen);
    }
    // Part batch decodes twice as long, so that all requests are at it for a while.
    const int64_t most = int64_t{options_.prompt_tokens} + 2 * int64_t{options_.decode_tokens};
    if ((options_.Runs("single") || options_.Runs("batch")) && most >= longest()) {
      return InvalidArgument("--prompt-tokens and twice --decode-tokens: found ", most,
                             " together, expected less than max-model-len, ", longest());
    }
    return OkStatus();
  }

  // The longest length of whole pages and `tail` that fits beside one output token.
  int32_t FittingPrompt(int32_t wanted, int32_t tail) const {
    const int32_t most = longest() - 1;
    if (wanted <= most) return wanted;
    const int32_t fitting = (most - tail) / kTokensPerPage * kTokensPerPage + tail;
    LogInfo("prompts of ", fitting, " tokens instead of ", wanted, ": max-model-len is ",
            longest());
    return fitting;
  }

  StatusOr<std::unique_ptr<EngineInstance>> NewInstance(ReplayMode replay, int32_t num_seqs) const {
    EngineCoreOptions options = loaded_.core_options();
    options.num_step_times = kNumStepTimes;
    options.scheduler.replay = replay;
    options.scheduler.max_num_seqs = num_seqs;
    options.scheduler.max_num_batched_tokens =
        std::max(options.scheduler.max_num_batched_tokens, num_seqs * kPlanPrompt);
    DI_RETURN_IF_ERROR(CheckSchedulerOptions(options.scheduler));
    KvMemorySizes sizes = loaded_.kv_sizes();
    const int32_t plan_pages = (kPlanPrompt + kPlanTokens) / kTokensPerPage + 1;
    sizes.num_pages = std::max(sizes.num_pages, num_seqs * plan_pages);
    sizes.num_states = num_seqs;
    sizes.num_snapshot_rings = replay == ReplayMode::kExact
                                   ? loaded_.model().kv_shape().num_rings
                                   : options.scheduler.shape.num_encoder_layers;
    return loaded_.NewInstance(options, sizes);
  }

  void CountPlans(const Service& service) {
    result_.plans_in_time += service.plans_in_time;
    result_.plans_late += service.plans_late;
  }

  StatusOr<double> Ttft(EngineCore& core, const std::vector<int32_t>& ids,
                        int32_t* num_cached = nullptr) {
    DI_ASSIGN_OR_RETURN(const Service service, ServeAtOnce(core, clock_, {FixedRequest(ids, 1)}));
    if (num_cached != nullptr) *num_cached = service.requests[0].num_cached;
    return service.requests[0].Ttft();
  }

  Status RunSingle();
  Status RunBatch();
  Status RunPlan();
  Status RunMasks();
  Status RunHits();
  Status RunSaving();
  StatusOr<double> DecoderShare(const std::vector<int32_t>& ids);
  Status RunLoad(const std::vector<double>& rates);
  StatusOr<LoadFigures> RunTraffic(const TrafficMix& mix, double requests_per_s);

  LoadedEngine& loaded_;
  const ThroughputOptions& options_;
  Clock& clock_;
  SeededRng rng_;
  ThroughputBench& result_;
};

// The engine decodes a request, then the bare model the same tokens at the same positions.
Status Bench::RunSingle() {
  SingleFigures& figures = result_.single;
  const int32_t num_prompt = options_.prompt_tokens, num_decoded = options_.decode_tokens;
  std::vector<double> engine_s, bare_s;
  for (int round = 0; round <= kRounds; ++round) {  // the first does not count
    const std::vector<int32_t> prompt = Ids(num_prompt);
    DI_ASSIGN_OR_RETURN(
        const Service service,
        ServeAtOnce(loaded_.core(), clock_, {FixedRequest(prompt, num_decoded + 1)}));
    BarePasses bare(loaded_.model(), clock_, num_prompt + num_decoded);
    DI_RETURN_IF_ERROR(bare.Prefill(prompt, scheduling().max_num_batched_tokens));
    std::vector<double> steps;
    for (int32_t i = 0; i < num_decoded; ++i) {
      DI_ASSIGN_OR_RETURN(const double seconds,
                          bare.Step(service.outputs[0][static_cast<size_t>(i)]));
      steps.push_back(seconds);
    }
    if (round == 0) continue;
    const std::vector<double> periods = service.Periods(1);
    engine_s.insert(engine_s.end(), periods.begin(), periods.end());
    bare_s.insert(bare_s.end(), steps.begin(), steps.end());
  }
  figures.prompt_tokens = num_prompt;
  figures.decode_tokens = num_decoded;
  figures.engine_token_s = Median(engine_s);
  figures.bare_step_s = Median(bare_s);
  figures.read_fraction = static_cast<double>(figures.work.bytes) / figures.bare_step_s /
                          result_.ceilings.read_bytes_per_s;
  LogInfo("single: ", figures.TokensPerSecond(), " tokens/s");
  return OkStatus();
}

Status Bench::RunBatch() {
  BatchFigures& figures = result_.batch;
  figures.num_requests = std::min(options_.batch_requests, scheduling().max_num_seqs);
  std::vector<double> periods;
  for (int round = 0; round < 2; ++round) {
    std::vector<Request> requests;
    for (int32_t i = 0; i < figures.num_requests; ++i) {
      requests.push_back(FixedRequest(Ids(options_.prompt_tokens), 2 * options_.decode_tokens));
    }
    DI_ASSIGN_OR_RETURN(const Service service,
                        ServeAtOnce(loaded_.core(), clock_, std::move(requests)));
    periods = service.Periods(figures.num_requests);
    CountPlans(service);
  }
  if (periods.empty()) {
    return InvalidArgument("--decode-tokens: found ", options_.decode_tokens, ": the ",
                           figures.num_requests,
                           " requests of part batch never decoded together; more tokens or a "
                           "larger --kv-cache-bytes let them");
  }
  figures.step_s = Median(periods);
  figures.dot_fraction = figures.TokensPerSecond() * static_cast<double>(result_.single.work.macs) /
                         result_.ceilings.macs_per_s;
  LogInfo("batch: ", figures.TokensPerSecond(), " tokens/s");
  return OkStatus();
}

// Prompts so short that all are computed in one step: page ends then come in the same steps.
Status Bench::RunPlan() {
  PlanFigures& figures = result_.plan;
  figures.num_requests = options_.plan_requests;
  DI_ASSIGN_OR_RETURN(const auto engine, NewInstance(scheduling().replay, options_.plan_requests));
  std::vector<Request> requests;
  for (int32_t i = 0; i < options_.plan_requests; ++i) {
    requests.push_back(FixedRequest(Ids(kPlanPrompt), kPlanTokens));
  }
  DI_ASSIGN_OR_RETURN(const Service service,
                      ServeAtOnce(engine->core(), clock_, std::move(requests)));
  const std::vector<double> us = PlanMicroseconds(service.step_times, options_.plan_requests);
  if (us.empty()) return Internal("bench throughput: no step of part plan had all requests");
  figures.num_steps = static_cast<int32_t>(us.size());
  figures.us_p50 = Percentile(us, 0.5);
  figures.us_p99 = Percentile(us, 0.99);
  CountPlans(service);
  LogInfo("plan: ", figures.us_p99, " us at p99");
  return OkStatus();
}

Status Bench::RunMasks() {
  DI_ASSIGN_OR_RETURN(result_.masks, BenchMasks(loaded_,
                                                {.num_requests = options_.batch_requests,
                                                 .prompt_tokens = kMaskPrompt,
                                                 .decode_tokens = 2 * options_.decode_tokens},
                                                clock_, rng_));
  LogInfo("masks: one of 5 ms costs the others ", 100 * result_.masks.SlowEffect(), " %");
  return OkStatus();
}

// Rounds of fresh prompts: once, after other requests again; both modes in turns.
Status Bench::RunHits() {
  const int32_t num_prompt = FittingPrompt(options_.hit_prompt_tokens, kHitTail);
  struct Side {
    std::unique_ptr<EngineInstance> engine;
    HitFigures* figures;
    std::vector<double> first_s, second_s;
  } sides[2];
  const int32_t num_seqs = scheduling().max_num_seqs;
  DI_ASSIGN_OR_RETURN(sides[0].engine, NewInstance(ReplayMode::kExact, num_seqs));
  DI_ASSIGN_OR_RETURN(sides[1].engine, NewInstance(ReplayMode::kBounded, num_seqs));
  sides[0].figures = &result_.exact_hit;
  sides[1].figures = &result_.bounded_hit;
  for (int round = 0; round <= kRounds; ++round) {  // the first does not count
    const std::vector<int32_t> prompt = Ids(num_prompt);
    for (Side& side : sides) {
      EngineCore& core = side.engine->core();
      DI_ASSIGN_OR_RETURN(const double first, Ttft(core, prompt));
      std::vector<Request> others;
      for (int i = 0; i < 3; ++i) {
        others.push_back(FixedRequest(Ids(std::min(num_prompt, 256)), 8));
      }
      DI_RETURN_IF_ERROR(ServeAtOnce(core, clock_, std::move(others)).status());
      DI_ASSIGN_OR_RETURN(const double second, Ttft(core, prompt, &side.figures->cached_tokens));
      if (round == 0) continue;
      side.first_s.push_back(first);
      side.second_s.push_back(second);
    }
  }
  for (const Side& side : sides) {
    side.figures->prompt_tokens = num_prompt;
    side.figures->first_s = Median(side.first_s);
    side.figures->second_s = Median(side.second_s);
  }
  LogInfo("hits: exact ", result_.exact_hit.Ratio(), ", bounded ", result_.bounded_hit.Ratio());
  return OkStatus();
}

Status Bench::RunSaving() {
  SavingFigures& figures = result_.saving;
  figures.prompt_tokens = FittingPrompt(options_.cold_prompt_tokens, 0);
  DI_ASSIGN_OR_RETURN(const auto exact, NewInstance(ReplayMode::kExact, 1));
  DI_ASSIGN_OR_RETURN(const auto bounded, NewInstance(ReplayMode::kBounded, 1));
  std::vector<double> exact_s, bounded_s, shares;
  for (int round = 0; round <= kColdRounds; ++round) {  // the first does not count
    const std::vector<int32_t> prompt = Ids(figures.prompt_tokens);
    DI_ASSIGN_OR_RETURN(const double one, Ttft(exact->core(), prompt));
    DI_ASSIGN_OR_RETURN(const double other, Ttft(bounded->core(), prompt));
    DI_ASSIGN_OR_RETURN(const double share, DecoderShare(prompt));
    if (round == 0) continue;
    exact_s.push_back(one);
    bounded_s.push_back(other);
    shares.push_back(share);
  }
  figures.exact_s = Median(exact_s);
  figures.bounded_s = Median(bounded_s);
  figures.decoder_share = Median(shares);
  LogInfo("hits: bounded saves ", figures.Saved(), " of cold prefill");
  return OkStatus();
}

// Bare exact passes of the same chunks, their halves timed.
StatusOr<double> Bench::DecoderShare(const std::vector<int32_t>& ids) {
  BarePasses passes(loaded_.model(), clock_, static_cast<int32_t>(ids.size()));
  HalfTimer timer(loaded_.config(), clock_);
  DI_RETURN_IF_ERROR(passes.Prefill(ids, scheduling().max_num_batched_tokens, &timer));
  return timer.DecoderShare();
}

Status Bench::RunLoad(const std::vector<double>& given_rates) {
  const std::vector<std::string> names =
      options_.mixes.empty() ? TrafficMixNames() : options_.mixes;
  for (const std::string& name : names) {
    const TrafficMix mix = FindTrafficMix(name).value();
    DI_ASSIGN_OR_RETURN(LoadFigures at_once, RunTraffic(mix, 0));
    std::vector<double> rates = given_rates;
    if (rates.empty()) {
      for (const double share : kRateShares) rates.push_back(share * at_once.served_per_s);
    }
    result_.load.push_back(std::move(at_once));
    for (const double rate : rates) {
      DI_ASSIGN_OR_RETURN(result_.load.emplace_back(), RunTraffic(mix, rate));
    }
  }
  return OkStatus();
}

// Every run begins with an empty cache and sees the same requests.
StatusOr<LoadFigures> Bench::RunTraffic(const TrafficMix& mix, double requests_per_s) {
  loaded_.core().ClearCache();
  DI_ASSIGN_OR_RETURN(const Service service,
                      Serve(loaded_.core(), clock_,
                            MakeTraffic(mix, {.num_requests = options_.load_requests,
                                              .requests_per_s = requests_per_s,
                                              .vocab_size = loaded_.info().vocab_size,
                                              .max_tokens = longest(),
                                              .seed = options_.seed})));
  std::vector<double> ttft, tpot;
  for (const RequestTimes& request : service.requests) {
    ttft.push_back(request.Ttft());
    if (request.num_output > 1) tpot.push_back(request.Tpot());
  }
  CountPlans(service);
  LoadFigures figures = {
      .mix = mix.name,
      .requests_per_s = requests_per_s,
      .num_requests = options_.load_requests,
      .tokens_per_s = service.TokensPerSecond(),
      .served_per_s = static_cast<double>(service.requests.size()) / service.duration_s,
      .hit_rate = service.HitRate(),
      .ttft_s = PercentilesOf(ttft),
      .tpot_s = PercentilesOf(tpot),
      .plan_us = PercentilesOf(PlanMicroseconds(service.step_times, 0)),
      .plans_in_time = service.plans_in_time,
      .plans_late = service.plans_late};
  LogInfo("load: ", mix.name, " at ", requests_per_s, " requests/s: ", figures.tokens_per_s,
          " tokens/s");
  return figures;
}

StatusOr<Ceilings> MeasureMachine(const Backend& backend, Clock& clock) {
  DI_ASSIGN_OR_RETURN(const LargeBlock memory,
                      LargeBlock::Allocate(kCeilingBytes, "the ceiling of reads"));
  std::memset(memory.data(), 1, static_cast<size_t>(memory.num_bytes()));
  return MeasureCeilings(backend, memory.data(), memory.num_bytes(), clock);
}

}  // namespace

bool ThroughputOptions::Runs(const std::string& part) const {
  return parts.empty() || std::find(parts.begin(), parts.end(), part) != parts.end();
}

StatusOr<ThroughputBench> BenchThroughput(EngineFlags flags, const ThroughputOptions& options,
                                          const CommandContext& context) {
  DI_ASSIGN_OR_RETURN(const std::vector<double> rates, ParseRates(options.rates));
  DI_ASSIGN_OR_RETURN(const VariantId variant, ChooseVariant(flags.engine.variant));
  flags.engine.num_step_times = kNumStepTimes;
  DI_ASSIGN_OR_RETURN(const std::unique_ptr<LoadedEngine> loaded, LoadWithProgress(flags, context));
  ThroughputBench result{
      .model = loaded->info().model_directory,
      .isa = VariantNames()[static_cast<size_t>(variant)],
      .num_threads = flags.engine.num_threads > 0 ? flags.engine.num_threads : DefaultNumThreads()};
  {
    ThreadPool threads(result.num_threads, {.pin = true});
    DI_ASSIGN_OR_RETURN(result.ceilings,
                        MeasureMachine({.variant = variant, .threads = &threads}, context.clock));
  }
  result.single.work = CountTokenWork(loaded->config(), loaded->placed_weights().weights());
  DI_RETURN_IF_ERROR(Bench(*loaded, options, context.clock, result).Run(rates));
  return result;
}

}  // namespace deepinfer
