// model/weight_scan.h: one look at every stored byte before it is used.
//
// Refused: NaN codes (e4m3 0x7f/0xff), NaN scales (E8M0 255), BF16/F32 values that are not finite.
// Counted: scale bytes outside [64, 190]; such matrices are legal and take the exact slow path.
// Source: kernels.md 2.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "model/tensor_spec.h"

namespace deepinfer {

inline constexpr uint8_t kUsualScaleMin = 64, kUsualScaleMax = 190;
// From this scale byte on, requantising a dequantised engram row gives the stored codes again.
inline constexpr uint8_t kDirectEngramScaleMin = 105;

struct ScanItem {
  const TensorSpec* spec = nullptr;  // name and element type
  std::span<const uint8_t> bytes;    // mapped
  std::string file;
  // The same bytes for who reads instead of mapping; null: only in memory.
  const ReadableFile* source = nullptr;
  int64_t offset = 0;
};

struct ScanReport {
  bool done = false;               // false: the scan was left out
  int64_t num_unusual_scales = 0;  // bytes
  int64_t num_unusual_tensors = 0;
  std::string first_unusual_tensor;
  std::vector<uint8_t> has_unusual;  // per item, 0 or 1; empty when not done
  uint8_t engram_scale_min = 255;    // over all engram tables
  // Whether engram rows may feed their projection without requantisation.
  bool engram_direct() const { return done && engram_scale_min >= kDirectEngramScaleMin; }
};

// What a look at some bytes of one tensor found.
struct ScanFinding {
  static constexpr int64_t kNone = -1;
  int64_t first_bad = kNone;  // byte, from the first one looked at
  int64_t num_unusual = 0;    // of scales
  uint8_t scale_min = 255;    // of scales
};
// Requires: whole elements.
ScanFinding ScanBytes(Dtype dtype, std::span<const uint8_t> bytes);

// Adds findings up to the report, or to the error, of ScanWeights.
class ScanTally {
 public:
  explicit ScanTally(std::span<const ScanItem> items);

  // `begin`: the byte of items[item] where the look began. Items ascend, and bytes in an item; what
  // nobody looked at may be left out.
  void Add(size_t item, int64_t begin, const ScanFinding& finding);
  StatusOr<ScanReport> Finish();  // once

 private:
  void Remember(const ScanItem& item, int64_t byte);

  std::span<const ScanItem> items_;
  ScanReport report_;
  int64_t num_bad_tensors_ = 0;
  size_t last_bad_item_;
  std::string first_bad_;
};

using ProgressFn = std::function<void(int64_t done_bytes, int64_t total_bytes)>;

// Reads all items, in parallel when `pool` is given. `progress` (may be empty) is called from the
// calling thread, now and then and at the end. Errors: kDataLoss naming the first refused tensor,
// its file, the element and how many more tensors are refused.
StatusOr<ScanReport> ScanWeights(std::span<const ScanItem> items, ThreadPool* pool,
                                 const ProgressFn& progress);

}  // namespace deepinfer
