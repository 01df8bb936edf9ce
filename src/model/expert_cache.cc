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
  Fetch(ExpertCache& cache, int32_t block) : cache_(cache), block_(block) {}
  ~Fetch() override {
    FinishReads().IgnoreError();
    for (const int32_t slot : slots_) cache_.slots_[static_cast<size_t>(slot)].pinned = false;
  }

  // An expert that is in its slot already, or is to be read into it.
  void Add(int32_t expert, int32_t slot, bool missing) {
    bool& pinned = cache_.slots_[static_cast<size_t>(slot)].pinned;
    CHECK(!pinned);  // an expert belongs to one fetch at a time
    pinned = true;
    experts_.push_back(expert);
    slots_.push_back(slot);
    if (missing) missing_.push_back(slot);
  }
  void Read(std::vector<FileRead> reads) { ticket_ = cache_.queue_.Start(std::move(reads)); }

  Status Wait(ExpertMatrices* matrices) override {
    if (const Status status = FinishReads(); !status.ok()) {
      return Annotate(status, "experts of block ", block_);
    }
    for (size_t i = 0; i < experts_.size(); ++i) {
      matrices[experts_[i]] = cache_.InSlot(block_, experts_[i], slots_[i]);
    }
    return OkStatus();
  }

 private:
  // After a failure nothing is known about the slots that were read into.
  Status FinishReads() {
    const Status status = ticket_.Wait();
    if (!status.ok()) {
      for (const int32_t slot : missing_) cache_.Forget(slot);
      missing_.clear();
    }
    return status;
  }

  ExpertCache& cache_;
  const int32_t block_;
  std::vector<int32_t> experts_, slots_, missing_;
  ReadQueue::Ticket ticket_;
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

std::unique_ptr<ExpertFetch> ExpertCache::Start(int32_t block, std::span<const int32_t> experts) {
  auto fetch = std::make_unique<Fetch>(*this, block);
  // Those that are here first, so that none of them makes room for another.
  for (const int32_t expert : experts) {
    if (const int32_t slot = SlotOf(block, expert); slot != kNone) fetch->Add(expert, slot, false);
  }
  std::vector<FileRead> reads;
  for (const int32_t expert : experts) {
    if (SlotOf(block, expert) != kNone) continue;
    const int32_t slot = MakeRoom(block, expert);
    fetch->Add(expert, slot, true);
    reads.push_back(ReadInto(slot, block, expert));
    counts_.bytes_read += std::ssize(reads.back().out);
  }
  for (const int32_t expert : experts) {
    slots_[static_cast<size_t>(SlotOf(block, expert))].last_use = ++uses_;
  }
  counts_.fetched += std::ssize(experts);
  counts_.read += std::ssize(reads);
  fetch->Read(std::move(reads));
  return fetch;
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
  Slot& slot = slots_[static_cast<size_t>(best)];
  slot.block = block;
  slot.expert = expert;
  SlotOf(block, expert) = best;
  return best;
}

void ExpertCache::Forget(int32_t slot) {
  Slot& s = slots_[static_cast<size_t>(slot)];
  if (s.block != kNone) SlotOf(s.block, s.expert) = kNone;
  s.block = s.expert = kNone;
  s.last_use = 0;
}

FileRead ExpertCache::ReadInto(int32_t slot, int32_t block, int32_t expert) const {
  const PackedRange range = image_.layout->Expert(block, expert);
  const auto check = [this, range, expert](std::span<const uint8_t> bytes) {
    return Annotate(Check(range, bytes), "expert ", expert);
  };
  return {.file = image_.first_byte.file,
          .offset = image_.first_byte.offset + range.offset,
          .out = {SlotMemory(slot), static_cast<size_t>(range.bytes)},
          .direct = true,
          .check = check};
}

Status ExpertCache::Check(const PackedRange& range, std::span<const uint8_t> bytes) const {
  auto at = std::lower_bound(
      image_.pieces.begin(), image_.pieces.end(), range.offset,
      [](const CheckedRange& piece, int64_t offset) { return piece.range.offset < offset; });
  for (; at != image_.pieces.end() && at->range.end() <= range.end(); ++at) {
    const auto first = static_cast<size_t>(at->range.offset - range.offset);
    if (Hash64(bytes.subspan(first, static_cast<size_t>(at->range.bytes))) == at->checksum)
      continue;
    return DataLoss(image_.path, ": damaged at byte ", at->range.offset,
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
