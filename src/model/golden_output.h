// model/golden_output.h: writes a run of this engine as outputs.safetensors of a golden folder.
//
// Implementations that are not ours start from it (tools/oracle/), and so does a check of one form
// of our ops against another.
#pragma once

#include <string>
#include <vector>

#include "base/disk.h"
#include "base/status.h"
#include "kernels/backend.h"

namespace deepinfer {

inline constexpr int32_t kMinGoldenPrompt = 16;  // 8 entries of a source with ratio 2

struct GoldenRecordOptions {
  Backend backend;
  std::string
      work_dir;  // where shards are generated when the folder has none; the caller removes it
  std::vector<int32_t> prompt;     // >= kMinGoldenPrompt ids, or empty: random ones
  uint64_t seed = 1;               // of a random prompt
  int32_t num_prompt_tokens = 72;  // of a random prompt, >= kMinGoldenPrompt
};

// Runs golden_dir/checkpoint on a prompt and 24 greedy decode steps, and writes
// golden_dir/outputs.safetensors (golden_writer.h). Returns the number of tensors.
// Errors: as OpenGoldenFolder; kFailedPrecondition if that file is there already;
// kInvalidArgument for a prompt too short or ids outside the vocabulary; as the disk's.
StatusOr<int64_t> RecordGolden(Disk& disk, const std::string& golden_dir,
                               const GoldenRecordOptions& options);

}  // namespace deepinfer
