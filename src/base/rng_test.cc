#include "base/rng.h"

#include <gtest/gtest.h>

#include <set>

namespace deepinfer {
namespace {

TEST(SeededRng, SameSeedSameNumbersOtherSeedOthers) {
  SeededRng a(1), b(1), c(2);
  const uint64_t first = a.NextU64();
  EXPECT_EQ(first, b.NextU64());
  EXPECT_NE(first, c.NextU64());
}

// Recomputed from the paper's definition in Python integers, seed 42.
TEST(SeededRng, GivesTheNumbersOfTheDefinition) {
  SeededRng rng(42);
  EXPECT_EQ(rng.NextU64(), 0xd0764d4f4476689fu);
  EXPECT_EQ(rng.NextU64(), 0x519e4174576f3791u);
  EXPECT_EQ(rng.NextU64(), 0xfbe07cfb0c24ed8cu);
}

TEST(Rng, UniformCoversItsRangeEvenly) {
  SeededRng rng(3);
  std::array<int, 6> counts{};
  for (int i = 0; i < 60000; ++i) ++counts[rng.Uniform(6)];
  // 10000 expected, standard deviation 91: six of them either way.
  for (const int count : counts) EXPECT_NEAR(count, 10000, 550);
  EXPECT_EQ(rng.Uniform(1), 0u);
}

// Returns what it is told, so that the redraw of Uniform() can be seen.
class ScriptedRng : public Rng {
 public:
  explicit ScriptedRng(std::vector<uint64_t> values) : values_(std::move(values)) {}
  uint64_t NextU64() override { return values_[next_++]; }
  size_t num_drawn() const { return next_; }

 private:
  const std::vector<uint64_t> values_;
  size_t next_ = 0;
};

TEST(Rng, UniformRedrawsWhatWouldBeBiased) {
  // 2^64 mod 3 = 1: the value 0 is one too many.
  ScriptedRng rng({0, 5});
  EXPECT_EQ(rng.Uniform(3), 2u);
  EXPECT_EQ(rng.num_drawn(), 2u);
}

TEST(Rng, DoublesStayBelowOne) {
  ScriptedRng rng({UINT64_MAX, 0, uint64_t{1} << 63});
  EXPECT_EQ(rng.UniformDouble(), 1 - 0x1p-53);
  EXPECT_EQ(rng.UniformDouble(), 0);
  EXPECT_EQ(rng.UniformDouble(), 0.5);
}

TEST(RealRng, DoesNotRepeat) {
  std::set<uint64_t> seen;
  for (int i = 0; i < 100; ++i) seen.insert(RealRng().NextU64());
  EXPECT_EQ(seen.size(), 100u);
}

}  // namespace
}  // namespace deepinfer
