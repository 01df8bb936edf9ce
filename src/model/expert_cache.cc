#include "model/expert_cache.h"

#include <algorithm>

#include "base/check.h"
#include "base/hash64.h"

namespace deepinfer {
namespace {

constexpr int kNumReaders = 8;

}  // namespace

ExpertTotals CountExperts(const ModelWeights& weights, const PackedLayout& layout) {
  ExpertTotals totals;
  for (int32_t block = 0; block < layout.num_blocks(); ++block) {
    const auto count = static_cast<int32_t>(BlockOf(weights, block).experts.size());
    totals.num_experts += count;
    for (int32_t e = 0; e < count; ++e) {
      totals.slot_bytes = std::max(totals.slot_bytes, layout.Expert(block, e).bytes);
    }
  }
  return totals;
}

class ExpertCache::Fetch : public ExpertFetch {
 public:
  Fetch(ExpertCache& cache, int32_t max_experts) : cache_(cache) {
    const auto size = static_cast<size_t>(std::min(max_experts, cache.capacity()));
    for (std::vector<int32_t>* list : {&experts_, &slots_, &missing_}) list->reserve(size);
    batch_.reads().reserve(size);
  }
  ~Fetch() override { End(); }

  void Start(int32_t block, std::span<const int32_t> experts) override {
    CHECK(experts_.empty());
    block_ = block;
    // Those that are here first, so that none of them makes room for another.
    for (const int32_t expert : experts) {
      if (const int32_t slot = cache_.SlotOf(block, expert); slot != kNone) Add(expert, slot);
    }
    for (const int32_t expert : experts) {
      if (cache_.SlotOf(block, expert) != kNone) continue;
      const int32_t slot = cache_.MakeRoom(block, expert);
      Add(expert, slot);
      missing_.push_back(slot);
      batch_.reads().push_back(cache_.ReadInto(slot));
      cache_.counts_.bytes_read += std::ssize(batch_.reads().back().out);
    }
    for (const int32_t expert : experts) {
      cache_.SlotIn(cache_.SlotOf(block, expert)).last_use = ++cache_.uses_;
    }
    cache_.counts_.fetched += std::ssize(experts);
    cache_.counts_.read += std::ssize(missing_);
    cache_.queue_.Start(batch_);
  }

  Status Wait(ExpertMatrices* matrices) override {
    if (const Status status = FinishReads(); !status.ok()) {
      return Annotate(status, "experts of block ", block_);
    }
    for (size_t i = 0; i < experts_.size(); ++i) {
      matrices[experts_[i]] = cache_.InSlot(block_, experts_[i], slots_[i]);
    }
    return OkStatus();
  }

  void End() override {
    FinishReads().IgnoreError();
    for (const int32_t slot : slots_) cache_.SlotIn(slot).pinned = false;
    for (std::vector<int32_t>* list : {&experts_, &slots_, &missing_}) list->clear();
    batch_.reads().clear();
  }

 private:
  void Add(int32_t expert, int32_t slot) {
    bool& pinned = cache_.SlotIn(slot).pinned;
    CHECK(!pinned);  // an expert belongs to one fetch at a time
    pinned = true;
    experts_.push_back(expert);
    slots_.push_back(slot);
  }

  // After a failure nothing is known about the slots that were read into.
  Status FinishReads() {
    const Status status = batch_.Wait();
    if (!status.ok()) {
      for (const int32_t slot : missing_) cache_.Forget(slot);
      missing_.clear();
    }
    return status;
  }

  ExpertCache& cache_;
  int32_t block_ = kNone;
  std::vector<int32_t> experts_, slots_;
  std::vector<int32_t> missing_;  // the slots that are read into
  ReadBatch batch_;
};

StatusOr<std::unique_ptr<ExpertCache>> ExpertCache::Create(const ModelWeights& weights,
                                                           const PackedImage& image,
                                                           int32_t num_slots) {
  CHECK_GE(num_slots, 2);
  std::unique_ptr<ExpertCache> cache(new ExpertCache(weights, image));
  cache->slots_.resize(static_cast<size_t>(num_slots));
  DI_ASSIGN_OR_RETURN(cache->memory_,
                      LargeBlock::Allocate(num_slots * cache->slot_bytes_, "expert cache"));
  return cache;
}

ExpertCache::ExpertCache(const ModelWeights& weights, const PackedImage& image)
    : weights_(weights),
      image_(image),
      slot_bytes_(CountExperts(weights, *image.layout).slot_bytes),
      queue_(kNumReaders) {
  for (int32_t block = 0; block < image.layout->num_blocks(); ++block) {
    slot_of_.emplace_back(BlockOf(weights, block).experts.size(), kNone);
  }
}

int32_t& ExpertCache::SlotOf(int32_t block, int32_t expert) {
  return slot_of_[static_cast<size_t>(block)][static_cast<size_t>(expert)];
}

std::unique_ptr<ExpertFetch> ExpertCache::NewFetch(int32_t max_experts) {
  return std::make_unique<Fetch>(*this, max_experts);
}

int32_t ExpertCache::MakeRoom(int32_t block, int32_t expert) {
  int32_t best = kNone;
  for (int32_t slot = 0; slot < capacity(); ++slot) {
    const Slot& candidate = slots_[static_cast<size_t>(slot)];
    if (candidate.pinned) continue;
    if (best == kNone || candidate.last_use < slots_[static_cast<size_t>(best)].last_use) {
      best = slot;
    }
  }
  CHECK(best != kNone);  // Start's requirement
  Forget(best);
  Slot& slot = SlotIn(best);
  slot.block = block;
  slot.expert = expert;
  SlotOf(block, expert) = best;
  return best;
}

void ExpertCache::Forget(int32_t slot) {
  Slot& s = SlotIn(slot);
  if (s.block != kNone) SlotOf(s.block, s.expert) = kNone;
  s.block = s.expert = kNone;
  s.last_use = 0;
}

FileRead ExpertCache::ReadInto(int32_t slot) const {
  const Slot& s = slots_[static_cast<size_t>(slot)];
  const PackedRange range = image_.layout->Expert(s.block, s.expert);
  return {.file = image_.first_byte.file,
          .offset = image_.first_byte.offset + range.offset,
          .out = {SlotMemory(slot), static_cast<size_t>(range.bytes)},
          .direct = true,
          .check = [this, &s](std::span<const uint8_t> bytes) { return Check(s, bytes); }};
}

// By a reader: what a slot is to hold does not change while it is read into.
Status ExpertCache::Check(const Slot& slot, std::span<const uint8_t> bytes) const {
  const PackedRange range = image_.layout->Expert(slot.block, slot.expert);
  auto at = std::lower_bound(
      image_.pieces.begin(), image_.pieces.end(), range.offset,
      [](const CheckedRange& piece, int64_t offset) { return piece.range.offset < offset; });
  for (; at != image_.pieces.end() && at->range.end() <= range.end(); ++at) {
    const auto first = static_cast<size_t>(at->range.offset - range.offset);
    if (Hash64(bytes.subspan(first, static_cast<size_t>(at->range.bytes))) == at->checksum)
      continue;
    return DataLoss("expert ", slot.expert, ": ", image_.path, ": damaged at byte ",
                    at->range.offset,
                    " of the packed image; delete the file, the next start makes it again");
  }
  return OkStatus();
}

ExpertMatrices ExpertCache::InSlot(int32_t block, int32_t expert, int32_t slot) const {
  ExpertMatrices matrices = BlockOf(weights_, block).experts[static_cast<size_t>(expert)];
  const auto parts = image_.layout->ExpertParts(block, expert);
  Matrix* const all[] = {&matrices.w1, &matrices.w3, &matrices.w2};
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!all[i]->usual_scales) continue;  // takes the slow path over its plain view
    all[i]->panels = SlotMemory(slot) + (parts[i].offset - parts[0].offset);
  }
  return matrices;
}

}  // namespace deepinfer
