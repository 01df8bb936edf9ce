// cache/snapshot_table.h: SWA slots: the window state of a sequence at a page end, kept in host
// memory so that a prefix hit need not be replayed. Ids only; the bytes are cache/kv_memory.h's.
//
// Threads: the planning thread only. Life of a slot: free -> writing -> ready -> free; one that is
// dropped while pinned stays until its last pin goes. A slot that is being written or is pinned is
// never evicted; of the others the least recently used one is. Its generation grows with every new
// use. Source: serving.md 9.1, kvstore.md 11. Nothing allocates after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache/key_index.h"
#include "cache/lru_list.h"
#include "cache/page_key.h"

namespace deepinfer {

struct Snapshot {
  PageKey key = {};  // of the page that ends at `end`
  int32_t end = 0;   // rows of positions [first_valid, end) are usable
  int32_t first_valid = 0;
  bool exact = false;  // what a cold run would have there
};

class SnapshotTable {
 public:
  explicit SnapshotTable(int32_t num_slots);

  // A slot to write, or -1. Evicts a ready one if none is free.
  int32_t Acquire();
  // writing -> ready. If another slot has this key: an exact one stays and `slot` is freed, else
  // the older one goes (when its pins do).
  void Publish(int32_t slot, const Snapshot& snapshot);
  // writing or ready -> free, a pinned one when its last pin goes. It is found no more.
  void Drop(int32_t slot);
  void Clear();  // drops every ready slot
  // A ready slot, or -1. Does not count as use.
  int32_t Find(const PageKey& key) const;
  bool IsReady(int32_t slot) const { return SlotAt(slot).state == State::kReady; }
  const Snapshot& At(int32_t slot) const;  // Requires: ready, or pinned
  // Of the slot's present use; the first is 1.
  uint32_t generation(int32_t slot) const { return SlotAt(slot).generation; }
  void Pin(int32_t slot);  // counts as use. Requires: ready, or pinned
  void Unpin(int32_t slot);

  int32_t num_slots() const { return static_cast<int32_t>(slots_.size()); }
  int32_t num_free() const { return static_cast<int32_t>(free_.size()); }
  int32_t num_writing() const { return num_writing_; }
  int32_t num_ready() const { return index_.size(); }
  int32_t num_pinned() const { return num_pinned_; }  // ready or dropped
  // CHECKs every invariant; O(num_slots). For tests and debug builds.
  void CheckInvariants() const;

 private:
  enum class State { kFree, kWriting, kReady, kDropped };  // dropped: pinned, and found no more
  struct Slot {
    State state = State::kFree;
    int32_t pins = 0;
    uint32_t generation = 0;
    Snapshot snapshot;
  };
  Slot& SlotAt(int32_t slot) { return slots_[static_cast<size_t>(slot)]; }
  const Slot& SlotAt(int32_t slot) const { return slots_[static_cast<size_t>(slot)]; }
  void Free(int32_t slot);

  std::vector<Slot> slots_;
  std::vector<int32_t> free_;  // the last is handed out first
  LruList evictable_;          // ready and not pinned
  KeyIndex index_;             // ready
  int32_t num_writing_ = 0;
  int32_t num_pinned_ = 0;
};

}  // namespace deepinfer
