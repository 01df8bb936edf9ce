#include "base/hash64.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace deepinfer {
namespace {

TEST(Hash64, EveryFlippedBitOfEveryLengthShows) {
  std::set<uint64_t> right;
  for (size_t size = 0; size < 300; size += size < 40 ? 1 : 13) {
    std::vector<uint8_t> bytes(size, 0x5a);
    const uint64_t sum = Hash64(bytes);
    EXPECT_TRUE(right.insert(sum).second) << size;
    for (size_t bit = 0; bit < 8 * size; ++bit) {
      bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      EXPECT_NE(Hash64(bytes), sum) << size << ", bit " << bit;
      bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    }
  }
}

// Two damages of the same bit in words of one lane must not cancel; swapped words must show.
TEST(Hash64, DamagesDoNotCancel) {
  std::vector<uint8_t> bytes(512, 1);
  const uint64_t right = Hash64(bytes);
  bytes[7] ^= 0x80;
  bytes[135] ^= 0x80;
  EXPECT_NE(Hash64(bytes), right);
  std::vector<uint8_t> swapped(512, 1);
  swapped[0] = 2;
  const uint64_t first = Hash64(swapped);
  swapped[0] = 1;
  swapped[128] = 2;
  EXPECT_NE(Hash64(swapped), first);
}

// The values are those of the plain loop.
TEST(Hash64, TheSeedAndTheStoredValuesHold) {
  const std::vector<uint8_t> bytes = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_NE(Hash64(bytes, 1), Hash64(bytes, 2));
  EXPECT_EQ(Hash64(bytes), 0x1711aee0335c2bb8u);
  std::vector<uint8_t> many(1003);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<uint8_t>(i * 7);
  EXPECT_EQ(Hash64(many), 0x2a975452d42a8ccu);
}

}  // namespace
}  // namespace deepinfer
