#include "base/hash64.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace deepinfer {
namespace {

TEST(Hash64, EveryFlippedBitOfEveryLengthShows) {
  std::set<uint64_t> right;
  for (size_t size = 0; size < 80; ++size) {
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
  std::vector<uint8_t> bytes(128, 1);
  const uint64_t right = Hash64(bytes);
  bytes[7] ^= 0x80;
  bytes[39] ^= 0x80;
  EXPECT_NE(Hash64(bytes), right);
  std::vector<uint8_t> swapped(128, 1);
  swapped[0] = 2;
  const uint64_t first = Hash64(swapped);
  swapped[0] = 1;
  swapped[32] = 2;
  EXPECT_NE(Hash64(swapped), first);
}

TEST(Hash64, TheSeedAndTheStoredValueHold) {
  const std::vector<uint8_t> bytes = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_NE(Hash64(bytes, 1), Hash64(bytes, 2));
  EXPECT_EQ(Hash64(bytes), 0xa6b002ef1f5d973du);
}

}  // namespace
}  // namespace deepinfer
