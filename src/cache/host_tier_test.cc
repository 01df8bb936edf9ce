#include "cache/host_tier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "base/rng.h"
#include "base/testing/allocation_counter.h"
#include "cache/testing/test_key.h"

namespace deepinfer {
namespace {

using testing::TestKey;

class HostTierTest : public ::testing::Test {
 protected:
  int32_t Insert(int64_t key, bool exact = true) { return tier_.Insert(TestKey(key), exact); }
  int32_t Find(int64_t key) const { return tier_.Find(TestKey(key)); }

  HostTier tier_{3};
};

TEST_F(HostTierTest, WithoutPagesNothingIsKept) {
  HostTier none(0);
  EXPECT_EQ(none.Insert(TestKey(1), true), -1);
  EXPECT_EQ(none.InsertAnonymous(), -1);
  EXPECT_EQ(none.Find(TestKey(1)), -1);
  none.CheckInvariants();
}

TEST_F(HostTierTest, TheLeastRecentlyUsedGoes) {
  const int32_t first = Insert(1), second = Insert(2, false);
  Insert(3);
  EXPECT_TRUE(tier_.IsExact(first));
  EXPECT_FALSE(tier_.IsExact(second));
  tier_.Touch(first);
  EXPECT_EQ(Insert(4), second);
  EXPECT_EQ(Find(2), -1);
  EXPECT_EQ(Find(1), first);
}

TEST_F(HostTierTest, FindIsNoUse) {
  const int32_t first = Insert(1);
  Insert(2);
  Insert(3);
  EXPECT_EQ(Find(1), first);
  EXPECT_EQ(Insert(4), first);
}

TEST_F(HostTierTest, PinnedPagesAreNeverEvicted) {
  const int32_t pinned = Insert(1);
  tier_.Pin(pinned);
  EXPECT_NE(tier_.InsertAnonymous(), -1);
  EXPECT_NE(tier_.InsertAnonymous(), -1);
  EXPECT_EQ(tier_.num_pinned(), 3);
  EXPECT_EQ(Insert(2), -1);
  EXPECT_EQ(tier_.InsertAnonymous(), -1);
  tier_.Unpin(pinned);
  EXPECT_EQ(tier_.num_evictable(), 1);
  EXPECT_EQ(Insert(2), pinned);
}

TEST_F(HostTierTest, UnpinningIsAUse) {
  const int32_t first = Insert(1), second = Insert(2);
  Insert(3);
  tier_.Pin(first);
  tier_.Unpin(first);
  EXPECT_EQ(Insert(4), second);
}

TEST_F(HostTierTest, TheLastUnpinOfAnAnonymousPageFreesIt) {
  const int32_t page = tier_.InsertAnonymous();
  tier_.Pin(page);
  tier_.Unpin(page);
  EXPECT_EQ(tier_.num_free(), 2);
  tier_.Unpin(page);
  EXPECT_EQ(tier_.num_free(), 3);
}

TEST_F(HostTierTest, AForgottenPageIsFoundNoMoreAndFreeWithoutPins) {
  const int32_t loose = Insert(1), pinned = Insert(2);
  tier_.Pin(pinned);
  tier_.Forget(loose);
  tier_.Forget(pinned);
  EXPECT_EQ(Find(1), -1);
  EXPECT_EQ(Find(2), -1);
  EXPECT_EQ(tier_.num_free(), 2);
  EXPECT_EQ(tier_.num_pinned(), 1);
  EXPECT_NE(Insert(2), pinned);  // found again only when written anew
  tier_.Unpin(pinned);
  EXPECT_EQ(tier_.num_free(), 2);
  tier_.CheckInvariants();
}

TEST_F(HostTierTest, ClearForgetsKeysAndKeepsPins) {
  const int32_t loose = Insert(1), pinned = Insert(2), anonymous = tier_.InsertAnonymous();
  tier_.Pin(pinned);
  EXPECT_TRUE(tier_.HasKey(loose) && tier_.HasKey(pinned) && !tier_.HasKey(anonymous));
  tier_.Clear();
  EXPECT_FALSE(tier_.HasKey(loose) || tier_.HasKey(pinned));
  EXPECT_EQ(Find(2), -1);
  EXPECT_EQ(tier_.num_free(), 1);
  EXPECT_EQ(tier_.num_pinned(), 2);
  tier_.CheckInvariants();
}

using HostTierDeathTest = HostTierTest;

TEST_F(HostTierDeathTest, FreePagesCannotBeUsed) {
  EXPECT_DEATH(tier_.Pin(0), "CHECK failed");
  EXPECT_DEATH(tier_.Unpin(0), "CHECK failed");
  EXPECT_DEATH(tier_.Touch(0), "CHECK failed");
  EXPECT_DEATH(tier_.Forget(0), "CHECK failed");
  Insert(1);
  EXPECT_DEATH(Insert(1), "CHECK failed");
}

// The same promises, written the slow way.
struct NaiveTier {
  struct Page {
    std::optional<int64_t> key;
    bool exact = false;
    int32_t pins = 0;
    int64_t last_use = 0;
    bool is_free() const { return !key && pins == 0; }
  };

  int32_t Find(int64_t key) const {
    const auto at =
        std::find_if(pages.begin(), pages.end(), [&](const Page& page) { return page.key == key; });
    return at == pages.end() ? -1 : static_cast<int32_t>(at - pages.begin());
  }
  int32_t Count(bool (*is)(const Page&)) const {
    return static_cast<int32_t>(std::count_if(pages.begin(), pages.end(), is));
  }
  static bool IsFree(const Page& page) { return page.is_free(); }
  static bool IsPinned(const Page& page) { return page.pins > 0; }
  // `page` was handed out for a new use: it was free, or the oldest that may go if none was.
  void CheckTaken(int32_t page) const {
    if (Count(IsFree) > 0) {
      ASSERT_NE(page, -1);
      EXPECT_TRUE(pages[static_cast<size_t>(page)].is_free());
      return;
    }
    int32_t oldest = -1;
    for (int32_t i = 0; i < std::ssize(pages); ++i) {
      const Page& p = pages[static_cast<size_t>(i)];
      if (p.pins > 0) continue;
      if (oldest == -1 || p.last_use < pages[static_cast<size_t>(oldest)].last_use) oldest = i;
    }
    EXPECT_EQ(page, oldest);
  }

  std::vector<Page> pages;
};

TEST(HostTier, RandomOperationsEqualTheNaiveTier) {
  constexpr int32_t kPages = 11, kKeys = 20;
  HostTier tier(kPages);
  NaiveTier naive{std::vector<NaiveTier::Page>(kPages)};
  SeededRng rng(2);
  int64_t num_refused = 0;
  for (int32_t turn = 1; turn <= 100'000; ++turn) {
    const auto page = static_cast<int32_t>(rng.Uniform(kPages));
    const auto key = static_cast<int64_t>(rng.Uniform(kKeys));
    NaiveTier::Page& at = naive.pages[static_cast<size_t>(page)];
    const uint64_t op = rng.Uniform(100);
    if (op < 30) {
      if (naive.Find(key) != -1) continue;
      const int32_t taken = tier.Insert(TestKey(key), op % 2 == 0);
      naive.CheckTaken(taken);
      num_refused += taken == -1 ? 1 : 0;
      if (taken != -1) naive.pages[static_cast<size_t>(taken)] = {key, op % 2 == 0, 0, turn};
    } else if (op < 40) {
      const int32_t taken = tier.InsertAnonymous();
      naive.CheckTaken(taken);
      if (taken != -1) naive.pages[static_cast<size_t>(taken)] = {.pins = 1};
    } else if (at.is_free()) {
      continue;
    } else if (op < 60) {
      tier.Pin(page);
      ++at.pins;
    } else if (op < 85) {
      if (at.pins == 0) continue;
      tier.Unpin(page);
      if (--at.pins == 0) at.last_use = turn;
    } else if (op < 95) {
      tier.Touch(page);
      at.last_use = turn;
    } else {
      if (!at.key) continue;
      tier.Forget(page);
      at.key.reset();
    }
    ASSERT_EQ(tier.Find(TestKey(key)), naive.Find(key)) << turn;
    if (at.key) {
      ASSERT_EQ(tier.IsExact(page), at.exact);
    }
    ASSERT_EQ(tier.num_free(), naive.Count(NaiveTier::IsFree)) << turn;
    ASSERT_EQ(tier.num_pinned(), naive.Count(NaiveTier::IsPinned)) << turn;
    ASSERT_FALSE(::testing::Test::HasFailure()) << turn;
    if (turn % 16 == 0) tier.CheckInvariants();
  }
  EXPECT_GT(num_refused, 100);
}

TEST(HostTier, NothingAllocatesAfterConstruction) {
  if (!CountsAllocations()) GTEST_SKIP() << "a sanitizer has the heap";
  constexpr int32_t kPages = 300;
  HostTier tier(kPages);
  std::vector<PageKey> keys;
  for (int32_t i = 0; i < 3 * kPages; ++i) keys.push_back(TestKey(i));
  const AllocationCounter counter;
  for (const PageKey& key : keys) {
    const int32_t page = tier.Insert(key, true);
    tier.Pin(page);
    tier.Touch(page);
    tier.Unpin(page);
  }
  tier.Forget(tier.Find(keys.back()));
  tier.Unpin(tier.InsertAnonymous());
  EXPECT_EQ(counter.count(), 0);
}

}  // namespace
}  // namespace deepinfer
