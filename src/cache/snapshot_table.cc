#include "cache/snapshot_table.h"

#include "base/check.h"

namespace deepinfer {

SnapshotTable::SnapshotTable(int32_t num_slots)
    : slots_(static_cast<size_t>(num_slots)), evictable_(num_slots), index_(num_slots) {
  free_.reserve(slots_.size());
  for (int32_t slot = num_slots - 1; slot >= 0; --slot) free_.push_back(slot);
}

int32_t SnapshotTable::Acquire() {
  if (free_.empty()) {
    const int32_t oldest = evictable_.oldest();
    if (oldest == -1) return -1;
    Drop(oldest);
  }
  const int32_t slot = free_.back();
  free_.pop_back();
  SlotAt(slot).state = State::kWriting;
  ++SlotAt(slot).generation;
  ++num_writing_;
  return slot;
}

void SnapshotTable::Publish(int32_t slot, const Snapshot& snapshot) {
  CHECK(SlotAt(slot).state == State::kWriting);
  if (const int32_t other = Find(snapshot.key); other != -1) {
    Drop(SlotAt(other).snapshot.exact ? slot : other);
    if (SlotAt(slot).state != State::kWriting) return;
  }
  --num_writing_;
  SlotAt(slot).state = State::kReady;
  SlotAt(slot).snapshot = snapshot;
  index_.Insert(slot, snapshot.key);
  evictable_.AddNewest(slot);
}

void SnapshotTable::Drop(int32_t slot) {
  Slot& dropped = SlotAt(slot);
  if (dropped.state == State::kWriting) {
    --num_writing_;
    Free(slot);
    return;
  }
  CHECK(dropped.state == State::kReady);
  index_.Erase(slot);
  dropped.state = State::kDropped;
  if (dropped.pins > 0) return;
  evictable_.Remove(slot);
  Free(slot);
}

void SnapshotTable::Clear() {
  for (int32_t slot = 0; slot < num_slots(); ++slot) {
    if (SlotAt(slot).state == State::kReady) Drop(slot);
  }
}

void SnapshotTable::Free(int32_t slot) {
  SlotAt(slot).state = State::kFree;
  free_.push_back(slot);
}

int32_t SnapshotTable::Find(const PageKey& key) const { return index_.Find(key); }

const Snapshot& SnapshotTable::At(int32_t slot) const {
  CHECK(SlotAt(slot).state == State::kReady || SlotAt(slot).pins > 0);
  return SlotAt(slot).snapshot;
}

void SnapshotTable::Pin(int32_t slot) {
  Slot& pinned = SlotAt(slot);
  CHECK(pinned.state == State::kReady || pinned.pins > 0);
  if (pinned.pins++ > 0) return;
  evictable_.Remove(slot);
  ++num_pinned_;
}

void SnapshotTable::Unpin(int32_t slot) {
  Slot& pinned = SlotAt(slot);
  CHECK_GT(pinned.pins, 0);
  if (--pinned.pins > 0) return;
  --num_pinned_;
  if (pinned.state == State::kReady) {
    evictable_.AddNewest(slot);
  } else {
    Free(slot);
  }
}

void SnapshotTable::CheckInvariants() const {
  evictable_.CheckInvariants();
  index_.CheckInvariants();
  std::vector<bool> listed(slots_.size(), false);
  for (const int32_t slot : free_) {
    CHECK(SlotAt(slot).state == State::kFree && !listed[static_cast<size_t>(slot)]);
    listed[static_cast<size_t>(slot)] = true;
  }
  int32_t num_writing = 0, num_pinned = 0;
  for (int32_t id = 0; id < num_slots(); ++id) {
    const Slot& slot = SlotAt(id);
    const bool ready = slot.state == State::kReady;
    CHECK_GE(slot.pins, 0);
    CHECK_EQ(bool{listed[static_cast<size_t>(id)]}, slot.state == State::kFree);
    CHECK_EQ(index_.Contains(id), ready);
    CHECK(!ready || index_.KeyOf(id) == slot.snapshot.key);
    CHECK_EQ(evictable_.Contains(id), ready && slot.pins == 0);
    CHECK(slot.pins == 0 || ready || slot.state == State::kDropped);
    CHECK(slot.state != State::kDropped || slot.pins > 0);
    num_writing += slot.state == State::kWriting ? 1 : 0;
    num_pinned += slot.pins > 0 ? 1 : 0;
  }
  CHECK_EQ(num_writing, num_writing_);
  CHECK_EQ(num_pinned, num_pinned_);
}

}  // namespace deepinfer
