#include "cache/kv_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/rng.h"
#include "base/testing/allocation_counter.h"

namespace deepinfer {
namespace {

constexpr int32_t kSmallRows = 11, kSmallRings = 3, kEncoderRings = 2;

// Two compressors and one source without; an odd record (33 bytes).
KvShape SmallShape() {
  return {.layout = MakePageLayout(32, 32, {1, 2, 4}),
          .num_rings = kSmallRings,
          .ring_rows = kSmallRows,
          .verify_width = 3};
}

KvShape RealShape() {
  return {.layout = MakePageLayout(512, 128, {2, 2, 2, 1}),
          .num_rings = 43,
          .ring_rows = 134,
          .verify_width = 6};
}

TEST(KvMemorySizes, TheRealShapeHasThePublishedSizes) {
  EXPECT_EQ(RealShape().layout.page_bytes, 56'960);
  EXPECT_EQ(SnapshotBytes(RealShape(), 20), 1'415'040);
  EXPECT_EQ(SnapshotBytes(RealShape(), 43), 3'128'352);
  EXPECT_EQ(StateBytes(RealShape()), 3'128'352);
}

// Stored for n tokens: their pages and one slot (case 38).
TEST(KvMemorySizes, case_38_AMillionTokensTakeTheirLayoutAndOneSlot) {
  constexpr int32_t kPages = 1'000'000 / kTokensPerPage;
  const KvMemorySizes sizes = {.num_host_pages = kPages, .num_slots = 1, .num_snapshot_rings = 20};
  EXPECT_EQ(PlanKvMemory(RealShape(), sizes).total(), 1'000'000LL * 890 + 1'415'040);
}

TEST(KvMemorySizes, EveryPartCounts) {
  const KvShape shape = SmallShape();
  const auto bytes = [&](const KvMemorySizes& sizes) { return PlanKvMemory(shape, sizes).total(); };
  EXPECT_EQ(bytes({}), 0);
  EXPECT_EQ(bytes({.num_pages = 3}), 3 * shape.layout.page_bytes);
  EXPECT_EQ(bytes({.num_host_pages = 3}), 3 * shape.layout.page_bytes);
  EXPECT_EQ(bytes({.num_states = 3}), bytes({.num_saves = 3}));
  EXPECT_GE(bytes({.num_states = 1}), StateBytes(shape));
  EXPECT_LT(bytes({.num_states = 1}), StateBytes(shape) + 128);
  const int64_t slot = bytes({.num_slots = 1, .num_snapshot_rings = kEncoderRings});
  EXPECT_GE(slot, SnapshotBytes(shape, kEncoderRings));
  EXPECT_LT(slot, SnapshotBytes(shape, kEncoderRings) + 64);
}

TEST(KvMemory, MemoryThatTheMachineDoesNotGiveIsAnError) {
  const StatusOr<std::unique_ptr<KvMemory>> memory =
      KvMemory::Create(RealShape(), {.num_pages = 2'000'000'000, .num_host_pages = 2'000'000'000});
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(MessageOf(memory.status()).find("KV pages"), std::string::npos);
}

// What row `position` of a ring of sequence `seed` holds.
std::vector<uint8_t> RowOf(uint64_t seed, int32_t ring, int32_t position) {
  std::vector<uint8_t> row(static_cast<size_t>(SwaRecordBytes(32)));
  SeededRng rng(seed * 1'000'003 + static_cast<uint64_t>(position * 64 + ring));
  for (uint8_t& byte : row) byte = static_cast<uint8_t>(rng.NextU64());
  return row;
}

class KvMemoryTest : public ::testing::Test {
 protected:
  explicit KvMemoryTest(int32_t num_snapshot_rings = kEncoderRings)
      : num_snapshot_rings_(num_snapshot_rings),
        memory_(KvMemory::Create(SmallShape(), {.num_pages = 4,
                                                .num_states = 3,
                                                .num_host_pages = 3,
                                                .num_saves = 2,
                                                .num_slots = 3,
                                                .num_snapshot_rings = num_snapshot_rings})
                    .value()) {
    for (int32_t state = 0; state < 3; ++state)
      FillState(state, 1000 + static_cast<uint64_t>(state));
  }

  size_t record() const { return static_cast<size_t>(SwaRecordBytes(32)); }
  uint8_t* RingRow(int32_t state, int32_t ring, int32_t position) {
    return memory_->SequenceOf(state).Ring(ring) +
           static_cast<size_t>(position % kSmallRows) * record();
  }
  bool HasRow(int32_t state, int32_t ring, int32_t position, uint64_t seed) {
    return std::memcmp(RingRow(state, ring, position), RowOf(seed, ring, position).data(),
                       record()) == 0;
  }
  // Rings and tails as a sequence that is computed up to `end` has them.
  void WriteState(int32_t state, uint64_t seed, int32_t end) {
    for (int32_t ring = 0; ring < kSmallRings; ++ring) {
      for (int32_t p = std::max(0, end - kSmallRows); p < end; ++p) {
        std::memcpy(RingRow(state, ring, p), RowOf(seed, ring, p).data(), record());
      }
    }
    SeededRng rng(seed);
    for (float& value : Tails(state)) value = static_cast<float>(rng.UniformDouble());
  }
  void FillState(int32_t state, uint64_t seed) {
    for (uint8_t& byte : Rings(state)) byte = static_cast<uint8_t>(seed++ * 31);
    for (float& value : Tails(state)) value = static_cast<float>(seed++);
  }
  std::span<uint8_t> Rings(int32_t state) {
    return {memory_->SequenceOf(state).Ring(0),
            static_cast<size_t>(memory_->shape().AllRingBytes())};
  }
  std::span<float> Tails(int32_t state) {
    return {memory_->SequenceOf(state).TailRow(1, 0),  // source 0 has none
            static_cast<size_t>(memory_->shape().AllTailFloats())};
  }
  std::vector<uint8_t> BytesOf(int32_t state) {
    std::vector<uint8_t> bytes(Rings(state).begin(), Rings(state).end());
    const auto* const tails = reinterpret_cast<const uint8_t*>(Tails(state).data());
    bytes.insert(bytes.end(), tails, tails + Tails(state).size_bytes());
    return bytes;
  }
  std::span<uint8_t> PageBytes(int32_t page) {
    return {memory_->Page(page), static_cast<size_t>(memory_->shape().layout.page_bytes)};
  }
  void FillPage(int32_t page, uint64_t seed) {
    SeededRng rng(seed);
    for (uint8_t& byte : PageBytes(page)) byte = static_cast<uint8_t>(rng.NextU64());
  }

  // A sealed snapshot of a sequence at `end`, its rows written as a forward pass does.
  void WriteSnapshot(int32_t slot, uint64_t seed, int32_t end, int32_t state,
                     uint32_t generation = 0) {
    const SnapshotTarget target = memory_->Snapshot(slot, end);
    ASSERT_EQ(target.num_rings, num_snapshot_rings_);
    ASSERT_EQ(target.end, end);
    for (int32_t ring = 0; ring < target.num_rings; ++ring) {
      for (int32_t r = std::max(0, kSmallRows - end); r < kSmallRows; ++r) {
        std::memcpy(target.rows + static_cast<size_t>(ring * kSmallRows + r) * record(),
                    RowOf(seed, ring, end - kSmallRows + r).data(), record());
      }
    }
    memory_->SealSnapshot(slot, state, end, generation);
  }
  void ExpectRefused(int32_t slot, int32_t end, const std::string& why, uint32_t generation = 0) {
    const std::vector<uint8_t> before = BytesOf(2);
    const Status status = memory_->LoadSnapshot(slot, end, 2, generation);
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_NE(MessageOf(status).find(why), std::string::npos) << MessageOf(status);
    EXPECT_EQ(BytesOf(2), before);
  }

  const int32_t num_snapshot_rings_;
  std::unique_ptr<KvMemory> memory_;
};

class KvMemoryOfAllRings : public KvMemoryTest {
 protected:
  KvMemoryOfAllRings() : KvMemoryTest(kSmallRings) {}
};

// An odd number of ring bytes must not move the compressor rows to an odd place.
TEST_F(KvMemoryTest, PartsOfAStateAreAligned) {
  ASSERT_NE(Rings(0).size() % 64, 0u);
  for (int32_t state = 0; state < 3; ++state) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(Rings(state).data()) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(Tails(state).data()) % 64, 0u);
  }
}

TEST_F(KvMemoryTest, PagesComeBackBitForBit) {
  FillPage(0, 1);
  FillPage(1, 2);
  memory_->SavePage(0, 2);
  memory_->SavePage(1, 0);
  const std::vector<uint8_t> first(PageBytes(0).begin(), PageBytes(0).end());
  FillPage(0, 3);
  ASSERT_TRUE(memory_->LoadPage(2, 3).ok());
  EXPECT_TRUE(std::equal(first.begin(), first.end(), PageBytes(3).begin()));
  ASSERT_TRUE(memory_->LoadPage(0, 0).ok());
  EXPECT_TRUE(std::equal(PageBytes(0).begin(), PageBytes(0).end(), PageBytes(1).begin()));
}

TEST_F(KvMemoryTest, EveryDamagedByteOfAHostPageIsNoticed) {
  FillPage(0, 1);
  FillPage(1, 2);
  const std::vector<uint8_t> before(PageBytes(1).begin(), PageBytes(1).end());
  memory_->SavePage(0, 0);
  for (int64_t byte = 0; byte < std::ssize(PageBytes(0)); ++byte) {
    memory_->DamageHostPage(0, byte);
    const Status status = memory_->LoadPage(0, 1);
    ASSERT_EQ(status.code(), StatusCode::kDataLoss) << byte;
    memory_->DamageHostPage(0, byte);  // whole again
  }
  EXPECT_TRUE(std::equal(before.begin(), before.end(), PageBytes(1).begin()));
  EXPECT_TRUE(memory_->LoadPage(0, 1).ok());
}

TEST_F(KvMemoryTest, AHostPageThatWasNeverSavedIsRefused) {
  const Status status = memory_->LoadPage(1, 0);
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_NE(MessageOf(status).find("found none"), std::string::npos) << MessageOf(status);
}

TEST_F(KvMemoryTest, StatesComeBackBitForBit) {
  WriteState(0, 7, 40);
  const std::vector<uint8_t> saved = BytesOf(0), neighbour = BytesOf(1);
  memory_->SaveState(0, 1);
  FillState(0, 5);
  memory_->LoadState(1, 2);
  EXPECT_EQ(BytesOf(2), saved);
  EXPECT_EQ(BytesOf(1), neighbour);
}

TEST_F(KvMemoryTest, AClearedStateHoldsNoNumber) {
  const std::vector<uint8_t> neighbour = BytesOf(1);
  memory_->ClearState(0);
  for (const float value : Tails(0)) ASSERT_TRUE(std::isnan(value));
  for (const uint8_t byte : Rings(0)) ASSERT_EQ(byte, kNanByte);
  EXPECT_EQ(BytesOf(1), neighbour);
}

// Ends below, at and above the ring's length, and every place where it wraps.
TEST_F(KvMemoryTest, ASnapshotGoesBackToTheRowsOfItsPositions) {
  for (int32_t end = 1; end <= 5 * kSmallRows; ++end) {
    const auto seed = static_cast<uint64_t>(end);
    WriteSnapshot(end % 3, seed, end, 0);
    FillState(1, 99);
    const std::vector<uint8_t> before = BytesOf(1);
    WriteState(2, seed, end);
    ASSERT_TRUE(memory_->LoadSnapshot(end % 3, end, 1).ok());
    for (int32_t ring = 0; ring < kEncoderRings; ++ring) {
      for (int32_t p = std::max(0, end - kSmallRows); p < end; ++p) {
        ASSERT_TRUE(HasRow(1, ring, p, seed)) << "end " << end << " position " << p;
      }
    }
    // Rows of no position, other rings and compressor rows are as before.
    const auto rows_end = static_cast<size_t>(kEncoderRings * kSmallRows) * record();
    const std::vector<uint8_t> after = BytesOf(1);
    ASSERT_TRUE(std::equal(after.begin() + static_cast<int64_t>(rows_end), after.end(),
                           before.begin() + static_cast<int64_t>(rows_end)));
    for (int32_t p = end; p < kSmallRows; ++p) {
      const auto at = static_cast<size_t>(p) * record();
      ASSERT_TRUE(std::equal(&after[at], &after[at] + record(), &before[at]));
    }
  }
}

TEST_F(KvMemoryOfAllRings, ASnapshotIsTheWholeState) {
  for (const int32_t end : {kSmallRows, kSmallRows + 3, 64, 128, 640}) {
    const auto seed = static_cast<uint64_t>(end);
    WriteState(0, seed, end);
    WriteSnapshot(1, seed, end, 0);
    FillState(2, 4);
    ASSERT_TRUE(memory_->LoadSnapshot(1, end, 2).ok());
    EXPECT_EQ(BytesOf(2), BytesOf(0)) << end;
  }
}

TEST_F(KvMemoryTest, ASnapshotThatWasNotFinishedIsRefused) {
  ExpectRefused(0, 64, "not finished");
  WriteSnapshot(0, 1, 64, 0);
  memory_->Snapshot(0, 64);  // a pass begins to write and fails
  ExpectRefused(0, 64, "not finished");
}

TEST_F(KvMemoryTest, ASnapshotOfAnotherEndOrUseIsRefused) {
  WriteSnapshot(0, 1, 64, 0, 5);
  ExpectRefused(0, 128, "expected the snapshot of end 128, generation 5, found end 64", 5);
  ExpectRefused(0, 64, "found end 64, generation 5", 6);
  EXPECT_TRUE(memory_->LoadSnapshot(0, 64, 2, 5).ok());
}

TEST_F(KvMemoryOfAllRings, EveryDamagedByteOfASnapshotIsNoticed) {
  WriteSnapshot(0, 1, 64, 0);
  for (int64_t byte = 0; byte < SnapshotBytes(memory_->shape(), kSmallRings); ++byte) {
    memory_->DamageSnapshot(0, byte);
    ASSERT_EQ(memory_->LoadSnapshot(0, 64, 2).code(), StatusCode::kDataLoss) << byte;
    memory_->DamageSnapshot(0, byte);  // whole again
  }
  EXPECT_TRUE(memory_->LoadSnapshot(0, 64, 2).ok());
  memory_->DamageSnapshot(0);
  ExpectRefused(0, 64, "check the machine's memory");
}

TEST_F(KvMemoryTest, CopiesAllocateNothing) {
  if (!CountsAllocations()) GTEST_SKIP() << "a sanitizer has the heap";
  const AllocationCounter counter;
  memory_->SavePage(0, 0);
  ASSERT_TRUE(memory_->LoadPage(0, 1).ok());
  memory_->SaveState(0, 0);
  memory_->LoadState(0, 1);
  memory_->ClearState(2);
  memory_->Snapshot(0, 64);
  memory_->SealSnapshot(0, 0, 64);
  ASSERT_TRUE(memory_->LoadSnapshot(0, 64, 1).ok());
  EXPECT_EQ(counter.count(), 0);
}

using KvMemoryDeathTest = KvMemoryTest;

TEST_F(KvMemoryDeathTest, IdsOutOfRangeAndStatesNeverSavedAreBugs) {
  EXPECT_DEATH(memory_->Page(4), "CHECK failed");
  EXPECT_DEATH(memory_->SequenceOf(-1), "CHECK failed");
  EXPECT_DEATH(memory_->SavePage(0, 3), "CHECK failed");
  EXPECT_DEATH(memory_->LoadState(0, 0), "CHECK failed");
  EXPECT_DEATH(memory_->Snapshot(3, 64), "CHECK failed");
}

}  // namespace
}  // namespace deepinfer
