#include "cache/sequence_kv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "cache/standalone_kv.h"
#include "kernels/kv_records/kv_records.h"

namespace deepinfer {
namespace {

KvShape Shape() {
  return {.layout = MakePageLayout(32, 32, {1, 2, 4}),
          .num_rings = 3,
          .ring_rows = 11,
          .verify_width = 3};
}

TEST(KvShape, TailsFollowFromTheRatio) {
  EXPECT_EQ(Shape().TailRows(0), 0);          // nothing to gather
  EXPECT_EQ(Shape().TailRows(1), 2 + 3 - 1);  // an open group, and rows that may be rejected
  EXPECT_EQ(Shape().TailRows(2), 4 + 3 - 1);
  EXPECT_EQ(Shape().TailOffset(1), 0);
  EXPECT_EQ(Shape().TailOffset(2), 4 * 2 * 32);
  EXPECT_EQ(Shape().AllTailFloats(), (4 + 6) * 2 * 32);
}

TEST(SequenceKv, NoTwoCompressorRowsShareAPlace) {
  StandaloneKv memory(Shape(), 1);
  std::set<float*> places;
  for (const int32_t source : {1, 2}) {
    for (int32_t p = 0; p < Shape().TailRows(source); ++p) {
      float* const row = memory.kv().TailRow(source, p);
      for (int32_t i = 0; i < 2 * 32; ++i) EXPECT_TRUE(places.insert(row + i).second);
      EXPECT_EQ(memory.kv().TailRow(source, p + 10 * Shape().TailRows(source)), row);
    }
  }
  EXPECT_EQ(std::ssize(places), Shape().AllTailFloats());
}

TEST(SequenceKv, RingsLieOneBehindTheOther) {
  StandaloneKv memory(Shape(), 1);
  EXPECT_EQ(Shape().RingBytes(), 11 * 33);
  EXPECT_EQ(memory.kv().Ring(2) - memory.kv().Ring(0), 2 * Shape().RingBytes());
  EXPECT_EQ(Shape().AllRingBytes(), 3 * Shape().RingBytes());
}

TEST(SequenceKv, EntriesLieInThePageOfTheTable) {
  StandaloneKv memory(Shape(), 3 * kTokensPerPage);
  memory.kv().page_table() = {2, 0, 1};
  const PagedSource source = memory.kv().Source(1);
  EXPECT_EQ(source.section.ratio, 2);
  EXPECT_EQ(source.PageOf(31), memory.pages().data() + 2 * Shape().layout.page_bytes);
  EXPECT_EQ(source.PageOf(32), memory.pages().data());
}

TEST(StandaloneKv, HoldsNoNumberAtFirst) {
  StandaloneKv memory(Shape(), 1);
  std::vector<float> numbers(32);
  DecodeSwaRecord(memory.kv().Ring(1), 32, numbers.data());
  for (const float number : numbers) EXPECT_TRUE(std::isnan(number));
  DecodeGlobalRecord(memory.kv().Source(0).GlobalRecord(5, 32), 32, numbers.data());
  for (const float number : numbers) EXPECT_TRUE(std::isnan(number));
  EXPECT_TRUE(std::isnan(memory.kv().TailRow(2, 1)[7]));
}

TEST(StandaloneKv, HasPagesForEveryToken) {
  for (const auto& [num_tokens, num_pages] : {std::pair{0, 0}, {1, 1}, {64, 1}, {65, 2}}) {
    StandaloneKv memory(Shape(), num_tokens);
    ASSERT_EQ(std::ssize(memory.kv().page_table()), num_pages);
    EXPECT_EQ(std::ssize(memory.pages()), num_pages * Shape().layout.page_bytes);
    for (int32_t page = 0; page < num_pages; ++page) {
      EXPECT_EQ(memory.kv().page_table()[static_cast<size_t>(page)], page);
    }
  }
}

}  // namespace
}  // namespace deepinfer
