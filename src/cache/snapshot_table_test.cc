#include "cache/snapshot_table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "base/testing/allocation_counter.h"
#include "cache/testing/test_key.h"

namespace deepinfer {
namespace {

using testing::TestKey;

Snapshot Of(int64_t key, bool exact = true) {
  return {.key = TestKey(key), .end = 64, .first_valid = 1, .exact = exact};
}

class SnapshotTableTest : public ::testing::Test {
 protected:
  int32_t Write(int64_t key, bool exact = true) {
    const int32_t slot = table_.Acquire();
    table_.Publish(slot, Of(key, exact));
    return slot;
  }
  int32_t Find(int64_t key) const { return table_.Find(TestKey(key)); }

  SnapshotTable table_{3};
};

TEST_F(SnapshotTableTest, ASlotIsFoundOnceItIsReady) {
  const int32_t slot = table_.Acquire();
  EXPECT_EQ(table_.num_writing(), 1);
  EXPECT_EQ(Find(1), -1);
  table_.Publish(slot, Of(1));
  EXPECT_EQ(Find(1), slot);
  EXPECT_EQ(table_.num_writing(), 0);
  EXPECT_EQ(table_.At(slot).end, 64);
  EXPECT_EQ(table_.At(slot).first_valid, 1);
  EXPECT_TRUE(table_.At(slot).exact);
}

TEST_F(SnapshotTableTest, EveryUseIsANewGeneration) {
  const int32_t slot = Write(1);
  EXPECT_EQ(table_.generation(slot), 1u);
  table_.Drop(slot);
  EXPECT_EQ(table_.Acquire(), slot);
  EXPECT_EQ(table_.generation(slot), 2u);
}

TEST_F(SnapshotTableTest, TheLeastRecentlyUsedReadySlotIsEvicted) {
  const int32_t first = Write(1), second = Write(2);
  Write(3);
  table_.Pin(first);
  table_.Unpin(first);         // a use
  EXPECT_EQ(Find(2), second);  // none
  EXPECT_EQ(table_.Acquire(), second);
  EXPECT_EQ(Find(2), -1);
  EXPECT_EQ(Find(1), first);
}

TEST_F(SnapshotTableTest, WritingAndPinnedSlotsAreNeverEvicted) {
  table_.Pin(Write(1));
  table_.Acquire();
  const int32_t last = Write(2);
  EXPECT_EQ(table_.Acquire(), last);
  EXPECT_EQ(table_.Acquire(), -1);
  EXPECT_NE(Find(1), -1);
}

TEST_F(SnapshotTableTest, ADroppedSlotIsFreeWhenItsLastPinGoes) {
  const int32_t slot = Write(1);
  table_.Pin(slot);
  table_.Drop(slot);
  EXPECT_EQ(Find(1), -1);
  EXPECT_EQ(table_.num_free(), 2);
  EXPECT_EQ(table_.num_pinned(), 1);
  EXPECT_EQ(table_.At(slot).end, 64);  // its reader still has it
  table_.Unpin(slot);
  EXPECT_EQ(table_.num_free(), 3);
  EXPECT_EQ(table_.num_pinned(), 0);
}

TEST_F(SnapshotTableTest, AWritingSlotCanBeDropped) {
  table_.Drop(table_.Acquire());
  EXPECT_EQ(table_.num_free(), 3);
  EXPECT_EQ(table_.num_writing(), 0);
}

TEST_F(SnapshotTableTest, OfTwoSlotsWithAKeyAnExactOneStaysElseTheYounger) {
  const int32_t approximate = Write(1, false), younger = Write(1, false);
  EXPECT_EQ(Find(1), younger);
  EXPECT_EQ(table_.num_free(), 2);
  const int32_t exact = Write(1, true);
  EXPECT_EQ(exact, approximate);  // free again
  EXPECT_EQ(Find(1), exact);
  Write(1, false);
  EXPECT_EQ(Find(1), exact);
  Write(1, true);
  EXPECT_EQ(Find(1), exact);
  EXPECT_EQ(table_.num_ready(), 1);
  EXPECT_EQ(table_.num_free(), 2);
  table_.CheckInvariants();
}

TEST_F(SnapshotTableTest, APinnedSlotThatIsReplacedWaitsForItsPins) {
  const int32_t older = Write(1, false);
  table_.Pin(older);
  const int32_t younger = Write(1);
  EXPECT_EQ(Find(1), younger);
  EXPECT_EQ(table_.num_free(), 1);
  table_.Unpin(older);
  EXPECT_EQ(table_.num_free(), 2);
}

TEST_F(SnapshotTableTest, ClearDropsReadySlotsOnly) {
  const int32_t loose = Write(1), pinned = Write(2), writing = table_.Acquire();
  table_.Pin(pinned);
  EXPECT_TRUE(table_.IsReady(loose) && table_.IsReady(pinned) && !table_.IsReady(writing));
  table_.Clear();
  EXPECT_FALSE(table_.IsReady(loose) || table_.IsReady(pinned));
  EXPECT_EQ(table_.num_free(), 1);
  EXPECT_EQ(table_.num_writing(), 1);
  EXPECT_EQ(table_.num_pinned(), 1);
  table_.CheckInvariants();
}

using SnapshotTableDeathTest = SnapshotTableTest;

TEST_F(SnapshotTableDeathTest, OnlyReadySlotsAreRead) {
  const int32_t slot = table_.Acquire();
  EXPECT_DEATH(table_.Pin(slot), "CHECK failed");
  EXPECT_DEATH(table_.At(slot), "CHECK failed");
  table_.Publish(slot, Of(1));
  EXPECT_DEATH(table_.Publish(slot, Of(2)), "CHECK failed");
  EXPECT_DEATH(table_.Unpin(slot), "CHECK failed");
  table_.Drop(slot);
  EXPECT_DEATH(table_.Drop(slot), "CHECK failed");
}

// The same promises, written the slow way.
struct NaiveTable {
  enum State { kFree, kWriting, kReady, kDropped };
  struct Slot {
    State state = kFree;
    int64_t key = -1;
    bool exact = false;
    int32_t pins = 0;
    int64_t last_use = 0;
    uint32_t generation = 0;
  };

  int32_t Find(int64_t key) const {
    for (int32_t i = 0; i < std::ssize(slots); ++i) {
      const Slot& slot = slots[static_cast<size_t>(i)];
      if (slot.state == kReady && slot.key == key) return i;
    }
    return -1;
  }
  int32_t Count(State state) const {
    return static_cast<int32_t>(
        std::count_if(slots.begin(), slots.end(), [&](const Slot& s) { return s.state == state; }));
  }
  int32_t NumPinned() const {
    return static_cast<int32_t>(
        std::count_if(slots.begin(), slots.end(), [](const Slot& s) { return s.pins > 0; }));
  }
  void Drop(int32_t slot) { At(slot).state = At(slot).pins > 0 ? kDropped : kFree; }
  void Unpin(int32_t slot, int64_t now) {
    At(slot).last_use = now;
    if (--At(slot).pins == 0 && At(slot).state == kDropped) At(slot).state = kFree;
  }
  void Publish(int32_t slot, int64_t key, bool exact, int64_t now) {
    if (const int32_t other = Find(key); other != -1) {
      if (At(other).exact) return Drop(slot);
      Drop(other);
    }
    At(slot) = {kReady, key, exact, 0, now, At(slot).generation};
  }
  void CheckAcquired(int32_t slot) {
    if (Count(kFree) == 0) {
      int32_t oldest = -1;
      for (int32_t i = 0; i < std::ssize(slots); ++i) {
        if (At(i).state != kReady || At(i).pins > 0) continue;
        if (oldest == -1 || At(i).last_use < At(oldest).last_use) oldest = i;
      }
      ASSERT_EQ(slot, oldest);
      if (slot == -1) return;
    } else {
      ASSERT_NE(slot, -1);
      ASSERT_EQ(At(slot).state, kFree);
    }
    At(slot) = {.state = kWriting, .generation = At(slot).generation + 1};
  }
  Slot& At(int32_t slot) { return slots[static_cast<size_t>(slot)]; }

  std::vector<Slot> slots;
};

TEST(SnapshotTable, RandomOperationsEqualTheNaiveTable) {
  constexpr int32_t kSlots = 9, kKeys = 14;
  SnapshotTable table(kSlots);
  NaiveTable naive{std::vector<NaiveTable::Slot>(kSlots)};
  SeededRng rng(3);
  int64_t num_refused = 0, num_doubled = 0;
  for (int32_t turn = 1; turn <= 100'000; ++turn) {
    const auto slot = static_cast<int32_t>(rng.Uniform(kSlots));
    const auto key = static_cast<int64_t>(rng.Uniform(kKeys));
    const NaiveTable::Slot at = naive.At(slot);
    const uint64_t op = rng.Uniform(100);
    if (op < 30) {
      const int32_t taken = table.Acquire();
      num_refused += taken == -1 ? 1 : 0;
      naive.CheckAcquired(taken);
    } else if (op < 50) {
      if (at.state != NaiveTable::kWriting) continue;
      num_doubled += naive.Find(key) != -1 ? 1 : 0;
      table.Publish(slot, Of(key, op % 2 == 0));
      naive.Publish(slot, key, op % 2 == 0, turn);
    } else if (op < 55) {
      if (at.state != NaiveTable::kWriting && at.state != NaiveTable::kReady) continue;
      table.Drop(slot);
      naive.Drop(slot);
    } else if (op < 70) {
      if (at.state != NaiveTable::kReady && at.pins == 0) continue;
      table.Pin(slot);
      ++naive.At(slot).pins;
    } else {
      if (at.pins == 0) continue;
      table.Unpin(slot);
      naive.Unpin(slot, turn);
    }
    ASSERT_FALSE(::testing::Test::HasFailure()) << turn;
    ASSERT_EQ(table.Find(TestKey(key)), naive.Find(key)) << turn;
    ASSERT_EQ(table.generation(slot), naive.At(slot).generation);
    if (naive.At(slot).state == NaiveTable::kReady) {
      ASSERT_EQ(table.At(slot).exact, naive.At(slot).exact);
    }
    ASSERT_EQ(table.num_free(), naive.Count(NaiveTable::kFree)) << turn;
    ASSERT_EQ(table.num_writing(), naive.Count(NaiveTable::kWriting)) << turn;
    ASSERT_EQ(table.num_ready(), naive.Count(NaiveTable::kReady)) << turn;
    ASSERT_EQ(table.num_pinned(), naive.NumPinned()) << turn;
    if (turn % 16 == 0) table.CheckInvariants();
  }
  EXPECT_GT(num_refused, 100);
  EXPECT_GT(num_doubled, 100);
}

TEST(SnapshotTable, NothingAllocatesAfterConstruction) {
  if (!CountsAllocations()) GTEST_SKIP() << "a sanitizer has the heap";
  constexpr int32_t kSlots = 100;
  SnapshotTable table(kSlots);
  std::vector<Snapshot> snapshots;
  for (int32_t i = 0; i < 3 * kSlots; ++i) snapshots.push_back(Of(i));
  const AllocationCounter counter;
  for (const Snapshot& snapshot : snapshots) {
    const int32_t slot = table.Acquire();
    table.Publish(slot, snapshot);
    table.Pin(slot);
    table.Unpin(slot);
  }
  table.Drop(table.Find(snapshots.back().key));
  EXPECT_EQ(counter.count(), 0);
}

}  // namespace
}  // namespace deepinfer
