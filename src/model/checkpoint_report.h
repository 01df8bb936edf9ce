// model/checkpoint_report.h: what `deepinfer inspect` says about a checkpoint, also about a broken
// one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/status.h"
#include "model/checkpoint.h"
#include "model/memory_plan.h"

namespace deepinfer {

struct CheckpointReport {
  std::string where;
  ModelConfig config;
  Census expected;           // from the configuration alone
  bool config_only = false;  // a bare config.json: nothing was compared
  CensusRow stored;          // what the files hold, right or wrong
  int32_t num_files = 0;
  std::vector<TensorProblem> problems;
  ScanReport scan;
  std::string scan_error;          // why weights are refused; empty: not
  std::optional<MemoryPlan> plan;  // whoever wants it sets it

  bool ok() const { return problems.empty() && scan_error.empty(); }
};

struct ExamineOptions {
  bool strict_config = true;
  bool scan_weights = true;
  ThreadPool* pool = nullptr;
  ProgressFn progress;
};

// `path` is a checkpoint directory or a config.json. Faults of the tensors end up in the report.
// Errors: a configuration that cannot be read or is not supported.
StatusOr<CheckpointReport> ExamineCheckpoint(Disk& disk, const std::string& path,
                                             const ExamineOptions& options);

// Lists the first problems; the JSON form lists more of them.
std::string ReportAsText(const CheckpointReport& report);
std::string ReportAsJson(
    const CheckpointReport& report);  // one object, indented, ending in a newline

}  // namespace deepinfer
