// `deepinfer bench kernels|step|load`: how fast ops, or a whole layer, run, and how fast a model
// loads, beside the machine's ceilings.
#include <cstdio>

#include "apps/answer_collector.h"
#include "apps/command.h"
#include "apps/engine_flags.h"
#include "apps/load_bench.h"
#include "apps/terminal.h"
#include "base/cpu_topology.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "kernels/benchmark/kernel_bench.h"
#include "model/benchmark/step_bench.h"

namespace deepinfer {
namespace {

std::string Percent(double part, double whole) {
  char text[16];
  std::snprintf(text, sizeof text, "%5.1f %%", 100 * part / whole);
  return text;
}

std::string TableLine(const KernelFigure& f, const Ceilings& ceilings) {
  char text[160];
  std::snprintf(text, sizeof text, "%-24s %5d  %10.0f us  %7.2f GB/s %s  %8.1f GMAC/s %s\n",
                f.name.c_str(), f.num_rows, f.us, f.BytesPerSecond() * 1e-9,
                Percent(f.BytesPerSecond(), ceilings.read_bytes_per_s).c_str(),
                f.MacsPerSecond() * 1e-9, Percent(f.MacsPerSecond(), ceilings.macs_per_s).c_str());
  return text;
}

std::string Table(const KernelBench& bench, const std::string& isa, int threads) {
  char text[160];
  std::snprintf(text, sizeof text,
                "%s, %d threads; ceilings: reads %.2f GB/s, dot products %.1f GMAC/s\n",
                isa.c_str(), threads, bench.ceilings.read_bytes_per_s * 1e-9,
                bench.ceilings.macs_per_s * 1e-9);
  std::string table = text;
  for (const KernelFigure& figure : bench.figures) table += TableLine(figure, bench.ceilings);
  return table;
}

std::string Json(const KernelBench& bench, const std::string& isa, int threads) {
  const Ceilings& ceilings = bench.ceilings;
  JsonValue figures{.kind = JsonValue::Kind::kArray};
  for (const KernelFigure& f : bench.figures) {
    JsonValue out = JsonValue::Object();
    out.Set("name", JsonValue::String(f.name));
    out.Set("rows", JsonNumber(int64_t{f.num_rows}));
    out.Set("us", JsonNumber(f.us));
    out.Set("bytes", JsonNumber(f.bytes));
    out.Set("macs", JsonNumber(f.macs));
    out.Set("read_fraction", JsonNumber(f.BytesPerSecond() / ceilings.read_bytes_per_s));
    out.Set("dot_fraction", JsonNumber(f.MacsPerSecond() / ceilings.macs_per_s));
    figures.items.push_back(std::move(out));
  }
  JsonValue out = JsonValue::Object();
  out.Set("isa", JsonValue::String(isa));
  out.Set("threads", JsonNumber(int64_t{threads}));
  out.Set("read_bytes_per_s", JsonNumber(ceilings.read_bytes_per_s));
  out.Set("macs_per_s", JsonNumber(ceilings.macs_per_s));
  out.Set("kernels", std::move(figures));
  return DumpJson(out) + "\n";
}

std::string StepTable(const char* name, const StepFigure& figure) {
  char text[160];
  std::snprintf(text, sizeof text, "%s: %.0f us, %.1f MB read, %.1f million multiplications\n",
                name, figure.us, static_cast<double>(figure.bytes()) * 1e-6,
                static_cast<double>(figure.macs()) * 1e-6);
  std::string table = text;
  for (const StepPart& part : figure.parts) {
    std::snprintf(text, sizeof text, "  %-24s %10.2f MB %12.1f M\n", part.name.c_str(),
                  static_cast<double>(part.bytes) * 1e-6, static_cast<double>(part.macs) * 1e-6);
    table += text;
  }
  return table;
}

std::string Table(const StepBench& bench, const std::string& isa, int threads) {
  char text[160];
  std::snprintf(text, sizeof text,
                "%s, %d threads; ceilings: reads %.2f GB/s, dot products %.1f GMAC/s\n"
                "decode reads %.1f %%, prefill multiplies %.1f %% of them\n",
                isa.c_str(), threads, bench.ceilings.read_bytes_per_s * 1e-9,
                bench.ceilings.macs_per_s * 1e-9, 100 * bench.DecodeReadFraction(),
                100 * bench.PrefillDotFraction());
  return text + StepTable("decode", bench.decode) + StepTable("prefill", bench.prefill);
}

JsonValue StepJson(const StepFigure& figure) {
  JsonValue parts{.kind = JsonValue::Kind::kArray};
  for (const StepPart& part : figure.parts) {
    JsonValue out = JsonValue::Object();
    out.Set("name", JsonValue::String(part.name));
    out.Set("bytes", JsonNumber(part.bytes));
    out.Set("macs", JsonNumber(part.macs));
    parts.items.push_back(std::move(out));
  }
  JsonValue out = JsonValue::Object();
  out.Set("us", JsonNumber(figure.us));
  out.Set("bytes", JsonNumber(figure.bytes()));
  out.Set("macs", JsonNumber(figure.macs()));
  out.Set("parts", std::move(parts));
  return out;
}

std::string Json(const StepBench& bench, const std::string& isa, int threads) {
  JsonValue out = JsonValue::Object();
  out.Set("isa", JsonValue::String(isa));
  out.Set("threads", JsonNumber(int64_t{threads}));
  out.Set("decode_read_fraction", JsonNumber(bench.DecodeReadFraction()));
  out.Set("prefill_dot_fraction", JsonNumber(bench.PrefillDotFraction()));
  out.Set("read_bytes_per_s", JsonNumber(bench.ceilings.read_bytes_per_s));
  out.Set("macs_per_s", JsonNumber(bench.ceilings.macs_per_s));
  out.Set("decode", StepJson(bench.decode));
  out.Set("prefill", StepJson(bench.prefill));
  return DumpJson(out) + "\n";
}

}  // namespace

StatusOr<int> RunBenchCommand(const CommandContext& context) {
  std::string what = "kernels", variant = "auto";
  EngineFlags load;
  KernelBenchOptions bench_options;
  StepBenchOptions step_options;
  int32_t num_threads = 0;
  bool json = false, cold = false;
  OptionSet options(
      "bench",
      "kernels: times every product of the model at its real shapes. step: one whole "
      "layer, decode at context 4096 and prefill of 512. Both on made-up weights, "
      "beside this machine's ceilings: bytes read and multiplications a second. load: "
      "reads --model, or its weights cache, beside plain reads of the same files.");
  options.Add({.flag = "what",
               .help = "what to time",
               .choices = {"kernels", "step", "load"},
               .positional = true},
              &what);
  options.Add({.flag = "json", .help = "one JSON object instead of a table"}, &json);
  options.Add({.flag = "variant",
               .help = "form of the ops",
               .choices = {"auto", "cpu", "avx2", "avx512", "amx", "ref"}},
              &variant);
  options.Add(
      {.flag = "threads", .help = "0: the CPUs this process may use", .min = 0, .max = 1024},
      &num_threads);
  options.Add({.flag = "weight-bytes",
               .help = "memory the weights lie in; should exceed four last-level caches",
               .unit = "bytes",
               .min = 256 << 20},
              &bench_options.weight_bytes);
  options.Add({.flag = "experts", .help = "routed experts of the layer, step only", .min = 6},
              &step_options.num_experts);
  options.Add({.flag = "cold",
               .help = "files are dropped from the system's cache before each reading, load only"},
              &cold);
  options.Add({.flag = "weights-cache",
               .help = "measure the load from the packed weights kept there, load only",
               .unit = "DIR"},
              &load.engine.weights_cache);
  AddModelOption(options, &load.engine.model);
  AddLogOption(options, &load.log_level);
  if (const auto code = ParseOptions(options, context)) return *code;
  ApplyLogLevel(load.log_level);
  if (what == "load") {
    load.engine.variant = variant;
    load.engine.num_threads = num_threads;
    DI_ASSIGN_OR_RETURN(const LoadBench bench, BenchLoad(load, cold, context));
    DI_RETURN_IF_ERROR(WriteStdout(json ? LoadJson(bench) : LoadTable(bench)));
    return kExitOk;
  }
  DI_ASSIGN_OR_RETURN(const VariantId id, ChooseVariant(variant));

  ThreadPool threads(num_threads > 0 ? num_threads : DefaultNumThreads(), {.pin = true});
  const std::string isa = VariantNames()[static_cast<size_t>(id)];
  const Backend backend{.variant = id, .threads = &threads};
  const auto write = [&](const auto& bench) {
    return WriteStdout(json ? Json(bench, isa, threads.num_threads())
                            : Table(bench, isa, threads.num_threads()));
  };
  if (what == "step") {
    DI_ASSIGN_OR_RETURN(const StepBench bench, BenchStep(backend, step_options, context.clock));
    DI_RETURN_IF_ERROR(write(bench));
    return kExitOk;
  }
  const auto log = [](const KernelFigure& f) {
    LogInfo(f.name, ", ", f.num_rows, " rows: ", f.us, " us");
  };
  DI_ASSIGN_OR_RETURN(const KernelBench bench,
                      BenchKernels(backend, bench_options, context.clock, log));
  DI_RETURN_IF_ERROR(write(bench));
  return kExitOk;
}

}  // namespace deepinfer
