#include "apps/bench_report.h"

#include <cstdio>

#include "apps/answer_collector.h"
#include "tokens/json.h"

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

}  // namespace

std::string BenchTable(const KernelBench& bench, const std::string& isa, int threads) {
  char text[160];
  std::snprintf(text, sizeof text,
                "%s, %d threads; ceilings: reads %.2f GB/s, dot products %.1f GMAC/s\n",
                isa.c_str(), threads, bench.ceilings.read_bytes_per_s * 1e-9,
                bench.ceilings.macs_per_s * 1e-9);
  std::string table = text;
  for (const KernelFigure& figure : bench.figures) table += TableLine(figure, bench.ceilings);
  return table;
}

std::string BenchJson(const KernelBench& bench, const std::string& isa, int threads) {
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

std::string BenchTable(const StepBench& bench, const std::string& isa, int threads) {
  char text[160];
  std::snprintf(text, sizeof text,
                "%s, %d threads; ceilings: reads %.2f GB/s, dot products %.1f GMAC/s\n"
                "decode reads %.1f %%, prefill multiplies %.1f %% of them\n",
                isa.c_str(), threads, bench.ceilings.read_bytes_per_s * 1e-9,
                bench.ceilings.macs_per_s * 1e-9, 100 * bench.DecodeReadFraction(),
                100 * bench.PrefillDotFraction());
  return text + StepTable("decode", bench.decode) + StepTable("prefill", bench.prefill);
}

std::string BenchJson(const StepBench& bench, const std::string& isa, int threads) {
  JsonValue out = JsonValue::Object();
  out.Set("isa", JsonValue::String(isa));
  out.Set("threads", JsonNumber(int64_t{threads}));
  out.Set("decode_read_fraction", JsonNumber(bench.DecodeReadFraction()));
  out.Set("prefill_dot_fraction", JsonNumber(bench.PrefillDotFraction()));
  out.Set("read_bytes_per_s", JsonNumber(bench.ceilings.read_bytes_per_s));
  out.Set("macs_per_s", JsonNumber(bench.ceilings.macs_per_s));
  out.Set("weight_bytes", JsonNumber(bench.weight_bytes));
  out.Set("peak_resident_bytes", JsonNumber(bench.peak_resident_bytes));
  out.Set("decode", StepJson(bench.decode));
  out.Set("prefill", StepJson(bench.prefill));
  return DumpJson(out) + "\n";
}

}  // namespace deepinfer
