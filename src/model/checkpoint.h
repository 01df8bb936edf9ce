// model/checkpoint.h: an opened checkpoint directory: configuration, weights as views, what was
// found.
//
// Opening checks everything that can be checked without running the model: every tensor's name,
// element type, shape and scale grid against the list of model/tensor_spec.h, and, unless somebody
// else is going to (model/packed_weights.h), every byte by model/weight_scan.h. Weights stay where
// they are: files are mapped and Matrix::data points into them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/disk.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "model/config.h"
#include "model/safetensors.h"
#include "model/tensor_spec.h"
#include "model/weight_scan.h"
#include "model/weights.h"

namespace deepinfer {

struct CheckpointOptions {
  bool strict_config = true;   // unknown configuration keys are errors
  bool scan_weights = true;    // false: trust the bytes, or look at them while they are packed
  ThreadPool* pool = nullptr;  // null: the calling thread alone
  ProgressFn progress;         // of the scan; may be empty
};

// Threads: read-only after Open, from any thread.
class Checkpoint {
 public:
  // Errors: one line that names the file or tensor, what was expected and what was found; kNotFound
  // for a missing or empty directory, kInvalidArgument for another model, kDataLoss for damaged
  // weights.
  static StatusOr<std::unique_ptr<Checkpoint>> Open(Disk& disk, const std::string& directory,
                                                    const CheckpointOptions& options = {});

  const std::string& directory() const { return files_.directory; }
  const ModelConfig& config() const { return config_; }
  const ModelWeights& weights() const { return weights_; }
  const Census& census() const { return census_; }
  const ScanReport& scan() const { return scan_; }
  std::vector<std::string> file_names() const;  // the weight files, sorted
  const TensorFiles& files() const { return files_; }

  // Every tensor, in the order of ExpectedTensors.
  std::span<const ScanItem> items() const { return items_; }
  // Which of them a view of weights() begins with. Requires: `data` is the first byte of one.
  size_t ItemAt(const void* data) const;

 private:
  Checkpoint() = default;
  void Bind();

  ModelConfig config_;
  TensorFiles files_;
  std::vector<TensorSpec> expected_;
  std::vector<ScanItem> items_;
  std::unordered_map<const void*, size_t> item_at_;
  std::vector<std::vector<uint8_t>> copies_;  // tensors whose place in the file is not aligned
  ModelWeights weights_;
  Census census_;
  ScanReport scan_;
};

// Warns of unusual scales, if there are any.
void ReportUnusual(const ScanReport& scan);

// Reads and checks `directory`/config.json. When there is none, says what the directory holds
// instead (nothing, a LoRA adapter, another format) and what is supported.
StatusOr<ModelConfig> ReadModelConfig(Disk& disk, const std::string& directory, bool strict = true);

// Every difference between what is stored and what should be: missing, extra, renamed, wrong shape,
// wrong element type, cut off by the end of the file; problems of the files themselves come first.
std::vector<TensorProblem> FindDifferences(const std::vector<TensorSpec>& expected,
                                           const TensorFiles& files);

// The stored tensors that are as expected, with their bytes, in the order of `expected` (which the
// items point into). Maps the files; reads nothing.
StatusOr<std::vector<ScanItem>> MakeScanItems(const std::vector<TensorSpec>& expected,
                                              const TensorFiles& files);

}  // namespace deepinfer
