// model/golden_check.h: compares the engine with stored outputs of the official arithmetic.
//
// A folder in the golden layout holds checkpoint/ (config.json, engram_classes.bin, generator.json,
// with or without shards), tensors.tsv and outputs.safetensors. The strong test starts every layer
// from the stored streams and selections, so that a rounding flip cannot travel; then the model
// runs end to end, with and without the stored selections; then the draft runs alone. Every figure
// is printed beside its limit.
#pragma once

#include <string>
#include <vector>

#include "base/disk.h"
#include "base/status.h"
#include "kernels/backend.h"

namespace deepinfer {

struct GoldenFigure {
  std::string name;  // what was measured
  double measured = 0;
  double limit = 0;
  bool at_least = false;  // passes when measured >= limit, else when measured <= limit
  bool pass() const { return at_least ? measured >= limit : measured <= limit; }
};

struct GoldenReport {
  std::vector<GoldenFigure> figures;
  std::vector<std::string> not_run;  // what the folder holds and this build does not check
  bool pass() const;
};

struct GoldenOptions {
  Backend backend;
  // Where shards are generated when the folder has none; removed by the caller.
  std::string work_dir;
  bool layers_only = false;  // only the strong test
  // End to end limits, relative RMS of logits. Random-weight models differ in how rounding grows,
  // so a folder may state its own in limits.json: {"injected": x, "free": y}.
  double injected_limit = 3e-2;
  double free_limit = 5e-2;
};

// Errors: what is missing or unreadable. A figure outside its limit is not an error but a red
// figure.
StatusOr<GoldenReport> RunGoldenCheck(Disk& disk, const std::string& golden_dir,
                                      const GoldenOptions& options);

}  // namespace deepinfer
