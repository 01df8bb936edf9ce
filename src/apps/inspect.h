// apps/inspect.h: `deepinfer inspect`: census, differences from the specification, memory plan.
#pragma once

#include <string>

#include "base/disk.h"
#include "base/status.h"
#include "deepinfer/engine.h"
#include "model/hf_cache.h"
#include "model/weight_scan.h"

namespace deepinfer {

struct InspectOptions {
  std::string model;  // directory, org/name in the local cache, or a bare config.json
  bool json = false;
  std::string plan;      // a machine such as "ram=512GiB,gpus=8x139GiB"; empty: no memory plan
  EngineOptions engine;  // whose memory is planned; `model` is not looked at
  bool scan = true;      // read every weight, looking for NaN
  bool strict = true;    // unknown configuration keys are errors
  int num_threads = 1;
};

struct InspectResult {
  std::string output;  // for stdout
  int exit_code = 0;   // 1: the checkpoint has problems
};

// Errors: no such model, or a configuration that is not supported; as PlanStart; one line.
StatusOr<InspectResult> RunInspect(const InspectOptions& options, Disk& disk,
                                   const CacheEnvironment& environment,
                                   const ProgressFn& progress = {});

}  // namespace deepinfer
