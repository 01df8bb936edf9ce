#include "model/checkpoint_report.h"

#include <nlohmann/json.hpp>

namespace deepinfer {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kMaxConfigBytes = 1 << 20;
constexpr size_t kMaxTextProblems = 20;
constexpr size_t kMaxJsonProblems = 1000;

StatusOr<ModelConfig> ReadConfig(Disk& disk, const std::string& path, bool strict) {
  if (!disk.IsFile(path)) return ReadModelConfig(disk, path, strict);
  DI_ASSIGN_OR_RETURN(const std::string text, disk.ReadText(path, kMaxConfigBytes));
  return ParseModelConfig(text, path, strict);
}

// Fills everything that needs the weight files.
void ExamineWeights(Disk& disk, const std::vector<TensorSpec>& expected,
                    const ExamineOptions& options, CheckpointReport* report) {
  const StatusOr<TensorFiles> files = OpenTensorFiles(disk, report->where);
  if (!files.ok()) {
    report->problems.push_back(
        {.tensor = "",
         .expected = StrCat(expected.size(), " tensors in safetensors files"),
         .found = MessageOf(files.status()),
         .file = report->where,
         .hint = ""});
    return;
  }
  report->num_files = static_cast<int32_t>(files->files.size());
  for (const StoredTensor& tensor : files->tensors) {
    report->stored.num_tensors += 1;
    report->stored.num_bytes += tensor.num_bytes;
  }
  report->problems = FindDifferences(expected, *files);
  if (!options.scan_weights) return;
  const StatusOr<std::vector<ScanItem>> items = MakeScanItems(expected, *files);
  if (!items.ok()) {
    report->scan_error = MessageOf(items.status());
    return;
  }
  StatusOr<ScanReport> scan = ScanWeights(*items, options.pool, options.progress);
  if (scan.ok()) {
    report->scan = std::move(*scan);
  } else {
    report->scan_error = MessageOf(scan.status());
  }
}

std::string CensusLine(std::string_view name, const CensusRow& row) {
  std::string line = StrCat("  ", name);
  line.resize(std::max<size_t>(line.size(), 22), ' ');
  std::string count = StrCat(row.num_tensors);
  line.append(8 - std::min<size_t>(8, count.size()), ' ');
  return StrCat(line, count, " tensors  ", row.num_bytes, " bytes\n");
}

std::string ShapeLine(const ModelConfig& c) {
  return StrCat("  deepseek_v41: ", c.num_hidden_layers, " layers (decoder from ",
                c.FirstDecoderLayer(), "), ", c.num_nextn_predict_layers, " draft blocks, hidden ",
                c.hidden_size, ", ", c.num_attention_heads, " heads of ", c.head_dim, ", ",
                c.n_routed_experts, " experts top-", c.num_experts_per_tok, ", engram at ",
                Join(c.engram_layer_ids, " "), ", vocabulary ", c.vocab_size, ", context ",
                c.max_position_embeddings, "\n");
}

std::string ScanLines(const CheckpointReport& report) {
  if (!report.scan_error.empty()) return StrCat("weights refused: ", report.scan_error, "\n");
  if (!report.scan.done) return "weights: not read\n";
  const ScanReport& scan = report.scan;
  std::string text = StrCat("weights: no NaN; ", scan.num_unusual_scales, " scale bytes outside [",
                            int{kUsualScaleMin}, ", ", int{kUsualScaleMax}, "]");
  if (scan.num_unusual_scales > 0) {
    text += StrCat(" in ", scan.num_unusual_tensors, " tensors, first ", scan.first_unusual_tensor,
                   " (exact slow path)");
  }
  if (!report.config.engram_layer_ids.empty()) {
    text += StrCat("; smallest engram scale byte ", int{scan.engram_scale_min},
                   scan.engram_direct() ? " (rows feed their projection as stored)"
                                        : " (rows are requantised)");
  }
  return text + "\n";
}

std::string ProblemLines(const CheckpointReport& report) {
  if (report.config_only) return "";
  if (report.problems.empty()) return "differences from the specification: none\n";
  std::string text = StrCat("differences from the specification: ", report.problems.size(), "\n");
  for (size_t i = 0; i < std::min(report.problems.size(), kMaxTextProblems); ++i) {
    text += StrCat("  ", ToLine(report.problems[i]), "\n");
  }
  if (report.problems.size() > kMaxTextProblems) {
    text += StrCat("  and ", report.problems.size() - kMaxTextProblems, " more\n");
  }
  return text;
}

ordered_json AsJson(const CensusRow& row) {
  return {{"tensors", row.num_tensors}, {"bytes", row.num_bytes}};
}

std::string JsonKey(std::string_view name) {  // "draft dense" -> "draft_dense"
  std::string key(name);
  std::replace(key.begin(), key.end(), ' ', '_');
  return key;
}

ordered_json CensusAsJson(const Census& census) {
  ordered_json by_type = ordered_json::object(), by_part = ordered_json::object();
  for (int i = 0; i < kNumModelDtypes; ++i) {
    by_type[std::string(DtypeName(Dtype(i)))] = AsJson(census.of(Dtype(i)));
  }
  for (int i = 0; i < kNumParts; ++i) {
    by_part[JsonKey(PartName(Part(i)))] = AsJson(census.of(Part(i)));
  }
  return {{"total", AsJson(census.total)}, {"by_type", by_type}, {"by_part", by_part}};
}

ordered_json ScanAsJson(const CheckpointReport& report) {
  if (!report.scan_error.empty()) return {{"refused", report.scan_error}};
  if (!report.scan.done) return nullptr;
  return {{"unusual_scale_bytes", report.scan.num_unusual_scales},
          {"unusual_tensors", report.scan.num_unusual_tensors},
          {"engram_scale_min", report.scan.engram_scale_min},
          {"engram_direct", report.scan.engram_direct()}};
}

ordered_json EngineAsJson(const EngineMemory& engine) {
  ordered_json out = {{"about", engine.about}};
  for (const EngineMemory::Part& part : engine.parts) out[part.name + "_bytes"] = part.num_bytes;
  out["index_scratch_bytes"] = engine.index_scratch_bytes;  // of thread_scratch_bytes
  out["total_bytes"] = engine.total_bytes();
  return out;
}

ordered_json PlanAsJson(const MemoryPlan& plan) {
  ordered_json rows = ordered_json::array();
  for (const PlanRow& row : plan.rows) {
    rows.push_back({{"experts", PlaceName(row.experts)},
                    {"engram", PlaceName(row.engram)},
                    {"ep_size", row.ep_size},
                    {"gpu_bytes", row.gpu_bytes},
                    {"ram_bytes", row.ram_bytes},
                    {"disk_bytes", row.disk_bytes},
                    {"fits", row.fits},
                    {"kv_tokens", row.kv_tokens}});
  }
  return {{"ram_bytes", plan.machine.ram_bytes},
          {"num_gpus", plan.machine.num_gpus},
          {"gpu_bytes", plan.machine.gpu_bytes},
          {"resident_bytes", plan.resident_bytes},
          {"expert_bytes", plan.expert_bytes},
          {"engram_bytes", plan.engram_bytes},
          {"sequence_bytes", plan.sequence_bytes},
          {"engine", EngineAsJson(plan.engine)},
          {"placements", rows}};
}

}  // namespace

StatusOr<CheckpointReport> ExamineCheckpoint(Disk& disk, const std::string& path,
                                             const ExamineOptions& options) {
  CheckpointReport report;
  report.where = path;
  report.config_only = disk.IsFile(path);
  DI_ASSIGN_OR_RETURN(report.config, ReadConfig(disk, path, options.strict_config));
  const std::vector<TensorSpec> expected = ExpectedTensors(report.config);
  report.expected = CountTensors(expected);
  if (!report.config_only) ExamineWeights(disk, expected, options, &report);
  return report;
}

std::string ReportAsText(const CheckpointReport& report) {
  std::string text =
      StrCat(report.where, "\n", ShapeLine(report.config), "tensors by the specification\n");
  for (int i = 0; i < kNumModelDtypes; ++i) {
    text += CensusLine(DtypeName(Dtype(i)), report.expected.of(Dtype(i)));
  }
  for (int i = 0; i < kNumParts; ++i) {
    text += CensusLine(PartName(Part(i)), report.expected.of(Part(i)));
  }
  text += CensusLine("total", report.expected.total);
  if (!report.config_only) {
    text += CensusLine(StrCat("stored in ", report.num_files, " files"), report.stored);
    text += ProblemLines(report) + ScanLines(report);
  }
  if (report.plan) text += PlanAsText(*report.plan);
  return text;
}

std::string ReportAsJson(const CheckpointReport& report) {
  ordered_json root = {
      {"path", report.where}, {"ok", report.ok()}, {"expected", CensusAsJson(report.expected)}};
  if (!report.config_only) {
    root["stored"] = AsJson(report.stored);
    root["files"] = report.num_files;
    root["num_differences"] = report.problems.size();
    ordered_json& list = root["differences"] = ordered_json::array();
    for (size_t i = 0; i < std::min(report.problems.size(), kMaxJsonProblems); ++i) {
      const TensorProblem& problem = report.problems[i];
      list.push_back({{"tensor", problem.tensor},
                      {"expected", problem.expected},
                      {"found", problem.found},
                      {"file", problem.file},
                      {"hint", problem.hint}});
    }
    root["weights"] = ScanAsJson(report);
  }
  if (report.plan) root["plan"] = PlanAsJson(*report.plan);
  // Names in a broken file may be any bytes.
  return root.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace deepinfer
