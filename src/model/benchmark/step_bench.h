// model/benchmark/step_bench.h: one full-shape layer through Model::Forward, beside the machine's
// ceilings measured in the same run.
//
// The layer has all ops of layer 24: an index source inside candidate blocks, ratio 1, 384 experts.
// Its weights are made in place, in panels, without a checkpoint; before it runs a layer that owns
// the global KV and the candidates, over the same weights, which is not timed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "kernels/benchmark/ceilings.h"

namespace deepinfer {

struct StepBenchOptions {
  int32_t num_experts = 384;
  int32_t decode_context = 4096;  // positions before the decoded token
  int32_t decode_steps = 20;
  int32_t prefill_rows = 512;  // from position 0
  int32_t prefill_steps = 3;
};

// What an op of the layer reads and multiplies in a step: weights and KV, without padding.
struct StepPart {
  std::string name;
  int64_t bytes = 0, macs = 0;
};

struct StepFigure {
  double us = 0;                // median of the steps
  std::vector<StepPart> parts;  // of the last step
  int64_t bytes() const;
  int64_t macs() const;
};

struct StepBench {
  Ceilings ceilings;
  StepFigure decode, prefill;
  int64_t weight_bytes = 0;
  int64_t peak_resident_bytes = 0;  // of the process; 0: the system does not say
  double DecodeReadFraction() const;
  double PrefillDotFraction() const;
};

// Errors: kResourceExhausted if the memory for the weights (7.4 GB) cannot be had.
StatusOr<StepBench> BenchStep(const Backend& backend, const StepBenchOptions& options,
                              Clock& clock);

}  // namespace deepinfer
