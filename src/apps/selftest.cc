// `deepinfer selftest`: ops and vectors on this machine, or the model against a golden folder; or a
// run of the model written as such a folder.
#include <algorithm>

#include "apps/answer_collector.h"
#include "apps/command.h"
#include "apps/engine_flags.h"
#include "apps/op_selftest.h"
#include "apps/scratch_disk.h"
#include "apps/terminal.h"
#include "base/cpu_topology.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "engine/loaded_engine.h"
#include "model/golden_check.h"
#include "model/golden_data.h"
#include "model/golden_output.h"

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

constexpr char kScratch[] = "/memory of deepinfer selftest";  // a folder of a ScratchDisk

StatusOr<Report> CheckGolden(Disk& disk, const std::string& folder, const Backend& backend) {
  ScratchDisk scratch(disk, kScratch);
  DI_ASSIGN_OR_RETURN(const GoldenReport golden,
                      RunGoldenCheck(scratch, folder, {.backend = backend, .work_dir = kScratch}));
  Report report{.not_run = golden.not_run};
  for (const GoldenFigure& f : golden.figures) {
    report.lines.push_back({f.name, "", f.measured, f.limit, f.at_least, f.pass()});
  }
  return report;
}

// prompt_of: a golden folder whose prompt is taken; empty: a random prompt.
Status WriteGolden(Disk& disk, const std::string& folder, const std::string& prompt_of,
                   GoldenRecordOptions options) {
  std::string prompt = StrCat(options.num_prompt_tokens, " prompt tokens of seed ", options.seed);
  if (!prompt_of.empty()) {
    DI_ASSIGN_OR_RETURN(const auto data,
                        GoldenData::Open(disk, prompt_of + "/outputs.safetensors"));
    const auto ids = data->Get<int32_t>("prompt_ids");
    options.prompt.assign(ids.begin(), ids.end());
    prompt = StrCat("the ", ids.size(), " prompt tokens of ", prompt_of);
  }
  ScratchDisk scratch(disk, kScratch);
  options.work_dir = kScratch;
  DI_ASSIGN_OR_RETURN(const int64_t num_tensors, RecordGolden(scratch, folder, options));
  return WriteStdout(
      StrCat(folder, "/outputs.safetensors: ", num_tensors, " tensors, ", prompt, "\n"));
}

}  // namespace

StatusOr<int> RunSelftestCommand(const CommandContext& context) {
  std::string golden, record, prompt_of, variant = "auto", log_level = "info";
  GoldenRecordOptions recording;
  int32_t num_threads = 0;
  bool json = false;
  OptionSet options("selftest",
                    "Compares every op of this build with its oracle, and fixed vectors; with "
                    "--golden the whole model with stored outputs. Exit code 1: something is off.");
  options.Add({.flag = "golden",
               .help = "a folder with checkpoint/, tensors.tsv and outputs.safetensors",
               .unit = "DIR"},
              &golden);
  options.Add({.flag = "record",
               .help = "compare nothing: run DIR/checkpoint on a prompt and 24 greedy steps, "
                       "and write DIR/outputs.safetensors as --golden reads it",
               .unit = "DIR"},
              &record);
  options.Add({.flag = "seed", .help = "of a random prompt, with --record"}, &recording.seed);
  options.Add({.flag = "prompt-tokens",
               .help = "length of a random prompt, with --record",
               .unit = "tokens",
               .min = kMinGoldenPrompt,
               .max = 1 << 16},
              &recording.num_prompt_tokens);
  options.Add({.flag = "prompt-of",
               .help = "with --record: take the prompt of this golden folder, not a random one",
               .unit = "DIR"},
              &prompt_of);
  options.Add({.flag = "json", .help = "one JSON object instead of a table"}, &json);
  options.Add({.flag = "variant",
               .help = "form of the ops, with --golden and --record",
               .choices = {"auto", "cpu", "avx2", "avx512", "amx", "ref"}},
              &variant);
  options.Add(
      {.flag = "threads", .help = "0: the CPUs this process may use", .min = 0, .max = 1024},
      &num_threads);
  AddLogOption(options, &log_level);
  if (const auto code = ParseOptions(options, context)) return *code;
  ApplyLogLevel(log_level);
  if (!golden.empty() && !record.empty()) {
    return InvalidArgument("--golden and --record: one at a time, first record, then compare");
  }
  const bool runs_model = !golden.empty() || !record.empty();
  DI_ASSIGN_OR_RETURN(const VariantId id, ChooseVariant(variant));

  ThreadPool threads(num_threads > 0 ? num_threads : DefaultNumThreads());
  Report report;
  if (!runs_model) {
    report = CheckMachine(threads);
  } else {
    const Backend backend = {.variant = id, .threads = &threads};
    if (!record.empty()) {
      recording.backend = backend;
      DI_RETURN_IF_ERROR(WriteGolden(context.disk, record, prompt_of, recording));
      return kExitOk;
    }
    DI_ASSIGN_OR_RETURN(report, CheckGolden(context.disk, golden, backend));
  }
  DI_RETURN_IF_ERROR(WriteStdout(json ? Json(report) : Text(report)));
  return report.pass() ? kExitOk : kExitFailed;
}

}  // namespace deepinfer
