// model/expert_cache.h: routed experts on disk, as many of them in memory as there are slots.
//
// The disk holds the packed image of the weights (model/packed_layout.h), where an expert is one
// run of bytes: what is missing is read with one read an expert, several at a time. The least
// recently used expert makes room. Threads: the step loop only; the readers are the cache's own.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/large_block.h"
#include "base/read_queue.h"
#include "model/expert_source.h"
#include "model/packed_layout.h"
#include "model/weights.h"
#include "model/weights_cache.h"

namespace deepinfer {

// A packed image in a file. What it points to outlives its user.
struct PackedImage {
  const PackedLayout* layout = nullptr;
  std::string path;      // for messages
  FilePlace first_byte;  // at a multiple of kDirectAlign
  // What parts of it must read as, ascending; parts that are not listed are believed.
  std::span<const CheckedRange> pieces;
};

class ExpertCache : public ExpertSource {
 public:
  // `weights` gives shapes and plain views and outlives the cache.
  // Requires: num_slots >= 2. Errors: kResourceExhausted if the memory cannot be had.
  static StatusOr<std::unique_ptr<ExpertCache>> Create(const ModelWeights& weights,
                                                       const PackedImage& image, int32_t num_slots);

  int32_t capacity() const override { return static_cast<int32_t>(slots_.size()); }
  std::unique_ptr<ExpertFetch> NewFetch(int32_t max_experts) override;
  int64_t memory_bytes() const override { return memory_.num_bytes(); }

 private:
  class Fetch;
  static constexpr int32_t kNone = -1;
  struct Slot {
    int32_t block = kNone, expert = kNone;  // what it holds or is to hold
    int64_t last_use = 0;
    bool pinned = false;  // by a fetch
  };

  ExpertCache(const ModelWeights& weights, const PackedImage& image);
  Slot& SlotIn(int32_t slot) { return slots_[static_cast<size_t>(slot)]; }
  // Where an expert is or is to be; kNone.
  int32_t& SlotOf(int32_t block, int32_t expert);
  uint8_t* SlotMemory(int32_t slot) const { return memory_.data() + slot * slot_bytes_; }
  // A slot for an expert that has none: a free one, or the least recently used.
  int32_t MakeRoom(int32_t block, int32_t expert);
  void Forget(int32_t slot);
  // Of the expert that the slot is to hold.
  FileRead ReadInto(int32_t slot) const;
  Status Check(const Slot& slot, std::span<const uint8_t> bytes) const;
  ExpertMatrices InSlot(int32_t block, int32_t expert, int32_t slot) const;

  const ModelWeights& weights_;
  const PackedImage image_;
  int64_t slot_bytes_ = 0;
  LargeBlock memory_;
  std::vector<Slot> slots_;
  std::vector<std::vector<int32_t>> slot_of_;  // by block and expert; kNone
  int64_t uses_ = 0;
  ReadQueue queue_;
};

// Bytes that a slot takes, and how many experts there are.
struct ExpertTotals {
  int64_t slot_bytes = 0;
  int64_t num_experts = 0;
};
ExpertTotals CountExperts(const ModelWeights& weights, const PackedLayout& layout);

}  // namespace deepinfer
