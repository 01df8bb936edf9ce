// `deepinfer bench kernels|step|request|load`: how fast ops, a whole layer, or an engine run, and
// how fast a model loads, beside the machine's ceilings.
#include "apps/answer_collector.h"
#include "apps/bench_report.h"
#include "apps/command.h"
#include "apps/engine_flags.h"
#include "apps/load_bench.h"
#include "apps/request_bench.h"
#include "apps/terminal.h"
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
  bool json = false, cold = false;

  void AddTo(OptionSet& options);
  int NumThreads() const {
    return engine.engine.num_threads > 0 ? engine.engine.num_threads : DefaultNumThreads();
  }
};

void BenchFlags::AddTo(OptionSet& options) {
  options.Add({.flag = "what",
               .help = "what to time",
               .choices = {"kernels", "step", "request", "load"},
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
               .help = "length of the prompt, request only",
               .unit = "tokens",
               .min = 1},
              &request.prompt_tokens);
  options.Add({.flag = "decode-tokens",
               .help = "tokens after the first, request only",
               .unit = "tokens",
               .min = 1},
              &request.decode_tokens);
  options.Add({.flag = "cold",
               .help = "files are dropped from the system's cache before each reading, load only"},
              &cold);
  engine.AddTo(options);
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

Status Run(const BenchFlags& flags, const CommandContext& context) {
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
  BenchFlags flags;
  OptionSet options(
      "bench",
      "kernels: times every product of the model at its real shapes. step: one whole layer, decode "
      "at context 4096 and prefill of 512. Both on made-up weights, beside this machine's "
      "ceilings: bytes read and multiplications a second. request: one prompt through the engine "
      "with --model. load: reads --model, or its weights cache, beside plain reads of the same "
      "files.");
  flags.AddTo(options);
  if (const auto code = ParseOptions(options, context)) return *code;
  ApplyLogLevel(flags.engine.log_level);
  DI_RETURN_IF_ERROR(Run(flags, context));
  return kExitOk;
}

}  // namespace deepinfer
