// `deepinfer selftest`: ops and vectors on this machine, or the model against a golden folder.
#include <algorithm>

#include "apps/answer_collector.h"
#include "apps/command.h"
#include "apps/engine_flags.h"
#include "apps/op_selftest.h"
#include "apps/scratch_disk.h"
#include "apps/terminal.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "engine/loaded_engine.h"
#include "model/golden_check.h"

namespace deepinfer {
namespace {

// One line of the report, whichever check it comes from.
struct Line {
  std::string name;
  std::string variant;  // empty: none named
  double measured = 0;
  double limit = 0;
  bool at_least = false;
  bool pass = false;
};

struct Report {
  std::vector<Line> lines;
  std::vector<std::string> not_run;

  bool pass() const {
    return std::all_of(lines.begin(), lines.end(), [](const Line& line) { return line.pass; });
  }
};

std::string Text(const Report& report) {
  std::string text;
  size_t width = 0;
  for (const Line& line : report.lines) {
    width = std::max(width, line.name.size() + line.variant.size() + 3);
  }
  for (const Line& line : report.lines) {
    std::string name = line.name + (line.variant.empty() ? "" : StrCat(" (", line.variant, ")"));
    name.resize(width, ' ');
    text += StrCat(line.pass ? "ok    " : "FAIL  ", name, "  ", line.measured,
                   line.at_least ? ", at least " : ", at most ", line.limit, "\n");
  }
  for (const std::string& name : report.not_run) text += StrCat("not run: ", name, "\n");
  const auto failed = std::count_if(report.lines.begin(), report.lines.end(),
                                    [](const Line& line) { return !line.pass; });
  return text + StrCat(std::ssize(report.lines) - failed, " passed, ", failed, " failed\n");
}

std::string Json(const Report& report) {
  JsonValue figures{.kind = JsonValue::Kind::kArray}, not_run{.kind = JsonValue::Kind::kArray};
  for (const Line& line : report.lines) {
    JsonValue out = JsonValue::Object();
    out.Set("name", JsonValue::String(line.name));
    if (!line.variant.empty()) out.Set("variant", JsonValue::String(line.variant));
    out.Set("measured", JsonNumber(line.measured));
    out.Set(line.at_least ? "at_least" : "at_most", JsonNumber(line.limit));
    out.Set("pass", {.kind = JsonValue::Kind::kBool, .boolean = line.pass});
    figures.items.push_back(std::move(out));
  }
  for (const std::string& name : report.not_run) {
    not_run.items.push_back(JsonValue::String(name));
  }
  JsonValue out = JsonValue::Object();
  out.Set("pass", {.kind = JsonValue::Kind::kBool, .boolean = report.pass()});
  out.Set("figures", std::move(figures));
  out.Set("not_run", std::move(not_run));
  return DumpJson(out) + "\n";
}

Report CheckMachine(ThreadPool& threads) {
  Report report;
  for (const auto& figures : {CompareOps(&threads), CheckVectors()}) {
    for (const SelftestFigure& f : figures) {
      report.lines.push_back({f.name, f.variant, f.measured, f.limit, false, f.pass()});
    }
  }
  return report;
}

StatusOr<Report> CheckGolden(Disk& disk, const std::string& folder, const Backend& backend) {
  const std::string work = "/memory of deepinfer selftest";
  ScratchDisk scratch(disk, work);
  DI_ASSIGN_OR_RETURN(const GoldenReport golden,
                      RunGoldenCheck(scratch, folder, {.backend = backend, .work_dir = work}));
  Report report{.not_run = golden.not_run};
  for (const GoldenFigure& f : golden.figures) {
    report.lines.push_back({f.name, "", f.measured, f.limit, f.at_least, f.pass()});
  }
  return report;
}

}  // namespace

StatusOr<int> RunSelftestCommand(const CommandContext& context) {
  std::string golden, variant = "auto", log_level = "info";
  int32_t num_threads = 0;
  bool json = false;
  OptionSet options("selftest",
                    "Compares every op of this build with its oracle, and fixed vectors; with "
                    "--golden the whole model with stored outputs. Exit code 1: something is off.");
  options.Add({.flag = "golden",
               .help = "a folder with checkpoint/, tensors.tsv and outputs.safetensors",
               .unit = "DIR"},
              &golden);
  options.Add({.flag = "json", .help = "one JSON object instead of a table"}, &json);
  options.Add({.flag = "variant",
               .help = "form of the ops, with --golden",
               .choices = {"auto", "cpu", "avx2", "avx512", "ref"}},
              &variant);
  options.Add(
      {.flag = "threads", .help = "0: the CPUs this process may use", .min = 0, .max = 1024},
      &num_threads);
  AddLogOption(options, &log_level);
  if (const auto code = ParseOptions(options, context)) return *code;
  ApplyLogLevel(log_level);
  DI_ASSIGN_OR_RETURN(const VariantId id, ChooseVariant(variant));

  ThreadPool threads(num_threads > 0 ? num_threads : NumUsableCpus());
  Report report;
  if (golden.empty()) {
    report = CheckMachine(threads);
  } else {
    DI_ASSIGN_OR_RETURN(report,
                        CheckGolden(context.disk, golden, {.variant = id, .threads = &threads}));
  }
  DI_RETURN_IF_ERROR(WriteStdout(json ? Json(report) : Text(report)));
  return report.pass() ? kExitOk : kExitFailed;
}

}  // namespace deepinfer
