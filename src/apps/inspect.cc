#include "apps/inspect.h"

#include "base/thread_pool.h"
#include "engine/start_plan.h"
#include "model/checkpoint_report.h"

namespace deepinfer {
namespace {

StatusOr<std::string> PathOf(const std::string& model, Disk& disk,
                             const CacheEnvironment& environment) {
  if (model.ends_with(".json") && disk.IsFile(model)) return model;
  return LocateModel(disk, model, environment);
}

}  // namespace

StatusOr<InspectResult> RunInspect(const InspectOptions& options, Disk& disk,
                                   const CacheEnvironment& environment,
                                   const ProgressFn& progress) {
  ThreadPool pool(options.num_threads);
  ExamineOptions examine{.strict_config = options.strict,
                         .scan_weights = options.scan,
                         .pool = &pool,
                         .progress = progress};
  std::optional<MachineMemory> machine;
  if (!options.plan.empty()) {
    DI_ASSIGN_OR_RETURN(machine, ParseMachine(options.plan));
  }
  DI_ASSIGN_OR_RETURN(const std::string path, PathOf(options.model, disk, environment));
  DI_ASSIGN_OR_RETURN(CheckpointReport report, ExamineCheckpoint(disk, path, examine));
  if (machine) {
    DI_ASSIGN_OR_RETURN(const StartPlan start,
                        PlanStart(options.engine, report.config,
                                  {.num_threads = options.num_threads,
                                   .free_bytes = machine->ram_bytes - kRamReserveBytes}));
    report.plan = PlanMemory(report.config, report.expected, *machine, DescribeStart(start));
  }
  return InspectResult{.output = options.json ? ReportAsJson(report) : ReportAsText(report),
                       .exit_code = report.ok() ? 0 : 1};
}

}  // namespace deepinfer
