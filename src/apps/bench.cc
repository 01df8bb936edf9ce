// `deepinfer bench kernels|step|request|throughput|load`: how fast ops, a whole layer, or an engine
// run, and how fast a model loads, beside the machine's ceilings. `bench serve` has a file of its
// own.
#include "apps/answer_collector.h"
#include "apps/bench_report.h"
#include "apps/bench_traffic.h"
#include "apps/command.h"
#include "apps/engine_flags.h"
#include "apps/load_bench.h"
#include "apps/request_bench.h"
#include "apps/terminal.h"
#include "apps/throughput_report.h"
#include "base/cpu_topology.h"
#include "base/log.h"
#include "base/thread_pool.h"

namespace deepinfer {
namespace {

struct BenchFlags {
  std::string what = "kernels", device = "cpu";
  EngineFlags engine;
  KernelBenchOptions kernels;
  StepBenchOptions step;
  RequestBenchOptions request;
  ThroughputOptions throughput;
  std::string plot;
  bool json = false, cold = false;

  void AddTo(OptionSet& options);
  void AddThroughputTo(OptionSet& options);
  int NumThreads() const {
    return engine.engine.num_threads > 0 ? engine.engine.num_threads : DefaultNumThreads();
  }
};

void BenchFlags::AddTo(OptionSet& options) {
  options.Add({.flag = "what",
               .help = "what to time",
               .choices = {"kernels", "step", "request", "throughput", "load", "serve"},
               .positional = true},
              &what);
  options.Add({.flag = "json", .help = "one JSON object instead of a table"}, &json);
  options.Add({.flag = "device", .help = "where the ops run", .choices = {"cpu"}}, &device);
  options.Add({.flag = "weight-bytes",
               .help = "memory the weights lie in, kernels only; should exceed four last-level "
                       "caches",
               .unit = "bytes",
               .min = 256 << 20},
              &kernels.weight_bytes);
  options.Add({.flag = "num-experts", .help = "routed experts of the layer, step only", .min = 6},
              &step.num_experts);
  options.Add({.flag = "prompt-tokens",
               .help = "length of the prompts, request and throughput (parts single and batch)",
               .unit = "tokens",
               .min = 1},
              &request.prompt_tokens);
  options.Add({.flag = "decode-tokens",
               .help = "tokens after the first, request and throughput (parts single and batch)",
               .unit = "tokens",
               .min = 1},
              &request.decode_tokens);
  options.Add({.flag = "cold",
               .help = "files are dropped from the system's cache before each reading, load only"},
              &cold);
  AddThroughputTo(options);
  engine.AddTo(options);
}

void BenchFlags::AddThroughputTo(OptionSet& options) {
  options.Add({.flag = "part",
               .help = "what throughput measures; none: everything",
               .choices = {"single", "batch", "plan", "masks", "hits", "load"}},
              &throughput.parts);
  options.Add({.flag = "batch-requests",
               .help = "requests together, part batch; at most max-num-seqs",
               .min = 1},
              &throughput.batch_requests);
  options.Add({.flag = "plan-requests",
               .help = "short requests that decode together, part plan",
               .min = 1,
               .max = 4096},
              &throughput.plan_requests);
  options.Add({.flag = "hit-prompt-tokens",
               .help = "length of the prompt that comes twice, part hits; cut to max-model-len",
               .unit = "tokens",
               .min = kTokensPerPage + 1},
              &throughput.hit_prompt_tokens);
  options.Add({.flag = "cold-prompt-tokens",
               .help = "length of the prompts whose prefill exact and bounded replay compare, part "
                       "hits; cut to max-model-len",
               .unit = "tokens",
               .min = kTokensPerPage + 1},
              &throughput.cold_prompt_tokens);
  options.Add({.flag = "mix",
               .help = "traffic of part load: short strangers, documents, growing conversations "
                       "behind one prefix; none: all",
               .choices = TrafficMixNames()},
              &throughput.mixes);
  options.Add({.flag = "rate",
               .help = "arrivals of part load; none: 0.3, 0.6 and 0.9 "
                       "of what the mix reaches when all arrive at once",
               .unit = "requests/s"},
              &throughput.rates);
  options.Add({.flag = "load-requests", .help = "of each mix and rate, part load", .min = 2},
              &throughput.load_requests);
  options.Add({.flag = "seed", .help = "of ids, lengths and arrivals, throughput only"},
              &throughput.seed);
  options.Add({.flag = "plot",
               .help = "draws latencies and tokens/s of part load over the arrival rate there, as "
                       "SVG",
               .unit = "FILE"},
              &plot);
}

template <typename Bench>
Status Write(const BenchFlags& flags, const Bench& bench, VariantId variant) {
  const std::string isa = VariantNames()[static_cast<size_t>(variant)];
  const int threads = flags.NumThreads();
  return WriteStdout(flags.json ? BenchJson(bench, isa, threads) : BenchTable(bench, isa, threads));
}

// On made-up weights.
Status BenchOps(const BenchFlags& flags, Clock& clock) {
  DI_ASSIGN_OR_RETURN(const VariantId variant, ChooseVariant(flags.engine.engine.variant));
  ThreadPool threads(flags.NumThreads(), {.pin = true});
  const Backend backend{.variant = variant, .threads = &threads};
  if (flags.what == "step") {
    DI_ASSIGN_OR_RETURN(const StepBench bench, BenchStep(backend, flags.step, clock));
    return Write(flags, bench, variant);
  }
  const auto log = [](const KernelFigure& f) {
    LogInfo(f.name, ", ", f.num_rows, " rows: ", f.us, " us");
  };
  DI_ASSIGN_OR_RETURN(const KernelBench bench, BenchKernels(backend, flags.kernels, clock, log));
  return Write(flags, bench, variant);
}

Status BenchService(const BenchFlags& flags, const CommandContext& context) {
  ThroughputOptions options = flags.throughput;
  options.prompt_tokens = flags.request.prompt_tokens;
  options.decode_tokens = flags.request.decode_tokens;
  if (!flags.plot.empty() && !options.Runs("load")) {
    return InvalidArgument("--plot: draws part load, which --part leaves out");
  }
  DI_ASSIGN_OR_RETURN(const ThroughputBench bench, BenchThroughput(flags.engine, options, context));
  if (!flags.plot.empty()) {
    DI_RETURN_IF_ERROR(context.disk.WriteText(flags.plot, ThroughputPlot(bench)));
  }
  return WriteStdout(flags.json ? ThroughputJson(bench) : ThroughputTable(bench));
}

Status Run(const BenchFlags& flags, const CommandContext& context) {
  if (!flags.plot.empty() && flags.what != "throughput") {
    return InvalidArgument("--plot: bench ", flags.what, " draws nothing; throughput and serve do");
  }
  if (flags.what == "throughput") return BenchService(flags, context);
  if (flags.what == "load") {
    DI_ASSIGN_OR_RETURN(const LoadBench bench, BenchLoad(flags.engine, flags.cold, context));
    return WriteStdout(flags.json ? LoadJson(bench) : LoadTable(bench));
  }
  if (flags.what == "request") {
    DI_ASSIGN_OR_RETURN(const RequestBench bench,
                        BenchRequest(flags.engine, flags.request, context));
    return WriteStdout(flags.json ? RequestJson(bench) : RequestTable(bench));
  }
  return BenchOps(flags, context.clock);
}

}  // namespace

StatusOr<int> RunBenchCommand(const CommandContext& context) {
  if (!context.arguments.empty() && context.arguments.front() == "serve") {
    CommandContext rest = context;
    rest.arguments.erase(rest.arguments.begin());
    return RunBenchServeCommand(rest);
  }
  BenchFlags flags;
  OptionSet options(
      "bench",
      "kernels: times every product of the model at its real shapes. step: one whole layer, decode "
      "at context 4096 and prefill of 512. Both on made-up weights, beside this machine's "
      "ceilings: bytes read and multiplications a second. request: one prompt through the engine "
      "with --model. throughput: many, in parts. load: reads --model, or its weights cache, beside "
      "plain reads of the same "
      "files. serve: load on a running server, with options of its own: deepinfer bench serve "
      "--help");
  flags.AddTo(options);
  if (const auto code = ParseOptions(options, context)) return *code;
  if (flags.what == "serve") {
    PrintError("deepinfer bench: serve comes first: deepinfer bench serve [options]");
    return kExitUsage;
  }
  ApplyLogLevel(flags.engine.log_level);
  DI_RETURN_IF_ERROR(Run(flags, context));
  return kExitOk;
}

}  // namespace deepinfer
