// model/packed_weights.h: the weights in the order in which the fast CPU forms read them.
//
// Reads every matrix that LinearOp multiplies from the checkpoint, once, by all threads, past the
// system's cache where it can; looks at each byte for damage on the way (model/weight_scan.h); and
// leaves panels (kernels/formats/panels.h) in huge pages where the system gives them. With a
// weights cache (model/weights_cache.h) the panels are kept in a file and a later start reads
// those. Lookup tables (embeddings, engram rows) and F32 matrices stay where they are. Threads:
// read-only after Load, from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/large_block.h"
#include "base/thread_pool.h"
#include "model/checkpoint.h"
#include "model/packed_layout.h"
#include "model/weight_scan.h"
#include "model/weights.h"
#include "model/weights_cache.h"

namespace deepinfer {

struct PackOptions {
  ThreadPool* pool = nullptr;  // null: the calling thread alone
  ProgressFn progress;         // bytes read; may be empty
  bool scan = true;            // refuse damaged weights, those of plain tensors too
  bool direct = true;          // false: everything through the system's cache
  // Where to keep packed weights; empty: nowhere. `disk` outlives the result.
  std::string cache_directory;
  Disk* disk = nullptr;
  // False: routed experts get no panels in memory; they are packed into the cache only. Requires
  // then: cache_directory.
  bool keep_experts = true;
  Clock* clock = &RealClock();
};

// What loading read and how long it took.
struct PackTimes {
  double cache_s = 0;  // panels read from the weights cache
  int64_t cache_bytes = 0;
  double source_s = 0;  // weights read from the checkpoint, looked at, packed and written
  int64_t source_bytes = 0;
};

class PackedWeights {
 public:
  // `checkpoint` outlives the result. Matrices with unusual scales get no panels. Trouble with the
  // cache is a warning; only without experts in memory it is an error.
  // Errors: kResourceExhausted if the memory cannot be had; kDataLoss for damaged weights, as
  // ScanWeights; as ReadableFile.
  static StatusOr<std::unique_ptr<PackedWeights>> Load(const Checkpoint& checkpoint,
                                                       const PackOptions& options = {});
  // The plain weights, with Matrix::panels set where there are panels in memory.
  const ModelWeights& weights() const { return weights_; }
  const PackedLayout& layout() const { return layout_; }
  int64_t num_bytes() const { return memory_.num_bytes(); }
  // Of what was looked at: not `done` when the cache says that all was before, or nobody asked.
  const ScanReport& scan() const { return scan_; }
  const PackTimes& times() const { return times_; }
  // The image in the weights cache, if it is whole.
  const std::optional<ImageFile>& image_file() const { return image_file_; }

 private:
  friend class PackedLoader;
  explicit PackedWeights(const ModelWeights& plain) : weights_(plain), layout_(plain) {}

  ModelWeights weights_;
  PackedLayout layout_;
  LargeBlock memory_;  // the image, or its part before the experts
  ScanReport scan_;
  PackTimes times_;
  std::optional<ImageFile> image_file_;
};

}  // namespace deepinfer
