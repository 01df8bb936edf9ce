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

// How far each figure may be off. The defaults are the strict ones; a folder states what differs,
// and why, in limits.json (any of these keys, and "why").
struct GoldenLimits {
  double injected = 3e-2;        // logits, stored selections given: relative RMS
  double free = 5e-2;            // logits, own selections: relative RMS
  double layers = 0.995;         // bit-equal fraction of a layer over the prompt
  double decode_layers = 0.995;  // the same over all decode steps
  double records = 0;            // values of KV records that differ
  double selections = 0;         // rows whose selection differs, near ties apart
  double draft = 5e-3;           // draft logits: relative RMS
  double confidence = 5e-2;      // of a draft, divided by its temperature: largest difference
};

struct GoldenOptions {
  Backend backend;
  std::string
      work_dir;  // where shards are generated when the folder has none; removed by the caller
  bool layers_only = false;  // only the strong test
};

// Errors: what is missing or unreadable. A figure outside its limit is not an error but a red
// figure.
StatusOr<GoldenReport> RunGoldenCheck(Disk& disk, const std::string& golden_dir,
                                      const GoldenOptions& options);

}  // namespace deepinfer
