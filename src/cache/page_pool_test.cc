#include "cache/page_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "base/rng.h"
#include "base/testing/allocation_counter.h"
#include "cache/testing/test_key.h"

namespace deepinfer {
namespace {

using testing::TestKey;

class PagePoolTest : public ::testing::Test {
 protected:
  int32_t AcquireOne() {
    std::vector<int32_t> pages;
    EXPECT_TRUE(pool_.Acquire(1, pages));
    return pages[0];
  }
  // A page that is cached under this key.
  int32_t Cache(int64_t key, bool exact = true) {
    const int32_t page = AcquireOne();
    EXPECT_TRUE(pool_.Publish(page, TestKey(key), exact));
    pool_.Release(page);
    return page;
  }
  bool Has(int64_t key) const { return pool_.Find(TestKey(key)) != -1; }

  PagePool pool_{4};
};

TEST_F(PagePoolTest, AcquireFailsWithoutTakingAny) {
  std::vector<int32_t> pages;
  Cache(1);
  AcquireOne();
  EXPECT_FALSE(pool_.Acquire(4, pages));
  EXPECT_TRUE(pages.empty());
  EXPECT_EQ(pool_.num_available(), 3);
  EXPECT_TRUE(Has(1));
  EXPECT_TRUE(pool_.Acquire(3, pages));
  EXPECT_EQ(std::ssize(pages), 3);
}

TEST_F(PagePoolTest, APageWithoutAKeyIsFreeAgain) {
  pool_.Release(AcquireOne());
  EXPECT_EQ(pool_.num_free(), 4);
  EXPECT_EQ(pool_.num_cached(), 0);
}

TEST_F(PagePoolTest, APublishedPageIsFoundHeldAndCached) {
  const int32_t page = AcquireOne();
  EXPECT_TRUE(pool_.Publish(page, TestKey(1), true));
  EXPECT_EQ(pool_.Find(TestKey(1)), page);
  EXPECT_TRUE(pool_.KeyOf(page) == TestKey(1));
  pool_.Release(page);
  EXPECT_EQ(pool_.Find(TestKey(1)), page);
  EXPECT_EQ(pool_.num_cached(), 1);
  EXPECT_EQ(pool_.num_free(), 3);
}

TEST_F(PagePoolTest, AHitMakesACachedPageHeld) {
  const int32_t page = Cache(1);
  pool_.AddReference(page);
  EXPECT_EQ(pool_.num_held(), 1);
  EXPECT_EQ(pool_.num_available(), 3);
  std::vector<int32_t> pages;
  EXPECT_TRUE(pool_.Acquire(3, pages));
  EXPECT_EQ(pool_.Find(TestKey(1)), page);  // not evicted
}

TEST_F(PagePoolTest, ASharedPageStaysUntilItsLastHolderGoes) {
  const int32_t page = AcquireOne();
  pool_.AddReference(page);
  pool_.Release(page);
  EXPECT_EQ(pool_.num_held(), 1);
  pool_.Release(page);
  EXPECT_EQ(pool_.num_held(), 0);
}

TEST_F(PagePoolTest, TheLeastRecentlyUsedIsEvictedFirst) {
  const int32_t first = Cache(1);
  Cache(2);
  Cache(3);
  pool_.AddReference(first);  // a use
  pool_.Release(first);
  pool_.Find(TestKey(2));  // none
  AcquireOne();            // the free one
  EXPECT_EQ(pool_.num_evicted(), 0);
  AcquireOne();
  EXPECT_FALSE(Has(2));
  AcquireOne();
  EXPECT_FALSE(Has(3));
  EXPECT_TRUE(Has(1));
  EXPECT_EQ(pool_.num_evicted(), 2);
}

TEST_F(PagePoolTest, OfAChainTheEndIsEvictedFirst) {
  std::vector<int32_t> chain;
  ASSERT_TRUE(pool_.Acquire(4, chain));
  for (int32_t i = 0; i < 4; ++i) pool_.Publish(chain[static_cast<size_t>(i)], TestKey(i), true);
  for (int32_t i = 3; i >= 0; --i) pool_.Release(chain[static_cast<size_t>(i)]);
  AcquireOne();
  EXPECT_FALSE(Has(3));
  EXPECT_TRUE(Has(0) && Has(1) && Has(2));
}

TEST_F(PagePoolTest, TheFirstOfTwoEqualPagesKeepsTheKey) {
  const int32_t first = AcquireOne(), second = AcquireOne();
  EXPECT_TRUE(pool_.Publish(first, TestKey(1), false));
  EXPECT_FALSE(pool_.Publish(second, TestKey(1), true));
  EXPECT_EQ(pool_.Find(TestKey(1)), first);
  EXPECT_FALSE(pool_.IsExact(first));
  EXPECT_FALSE(pool_.IsPublished(second));
  pool_.Release(second);
  EXPECT_EQ(pool_.num_free(), 3);
}

TEST_F(PagePoolTest, ClearForgetsKeysAndKeepsHolders) {
  Cache(1);
  const int32_t held = AcquireOne();
  pool_.Publish(held, TestKey(2), true);
  pool_.Clear();
  EXPECT_FALSE(Has(1) || Has(2));
  EXPECT_EQ(pool_.num_held(), 1);
  EXPECT_EQ(pool_.num_free(), 3);
  pool_.Release(held);
  EXPECT_EQ(pool_.num_free(), 4);
  pool_.CheckInvariants();
}

TEST_F(PagePoolTest, AnUnpublishedPageIsFoundNoMore) {
  const int32_t cached = Cache(1), held = AcquireOne();
  pool_.Publish(held, TestKey(2), true);
  pool_.Unpublish(cached);
  pool_.Unpublish(held);
  EXPECT_FALSE(Has(1) || Has(2));
  EXPECT_EQ(pool_.num_free(), 3);
  EXPECT_TRUE(pool_.Publish(held, TestKey(1), false));  // a page may get another key
  pool_.CheckInvariants();
}

using PagePoolDeathTest = PagePoolTest;

TEST_F(PagePoolDeathTest, WhatNobodyHoldsCannotBeReleasedOrShared) {
  const int32_t page = AcquireOne();
  pool_.Release(page);
  EXPECT_DEATH(pool_.Release(page), "CHECK failed");
  EXPECT_DEATH(pool_.AddReference(page), "CHECK failed");
  EXPECT_DEATH(pool_.Publish(page, TestKey(1), true), "CHECK failed");
  EXPECT_DEATH(pool_.Unpublish(page), "CHECK failed");
}

// The same promises, written the slow way.
class NaivePool {
 public:
  explicit NaivePool(int32_t num_pages) : pages_(static_cast<size_t>(num_pages)) {}

  void CheckAcquired(const std::vector<int32_t>& taken) {
    for (const int32_t page : taken) {
      if (num_free() > 0) {
        EXPECT_TRUE(At(page).references == 0 && !At(page).key) << page;
      } else {
        ASSERT_FALSE(cached.empty());
        EXPECT_EQ(page, cached.front());
        cached.erase(cached.begin());
      }
      At(page) = {.references = 1};
    }
  }
  void AddReference(int32_t page) {
    std::erase(cached, page);
    ++At(page).references;
  }
  void Release(int32_t page) {
    if (--At(page).references == 0 && At(page).key) cached.push_back(page);
  }
  void Unpublish(int32_t page) {
    std::erase(cached, page);
    At(page).key.reset();
  }
  int32_t Find(int64_t key) const {
    for (size_t page = 0; page < pages_.size(); ++page) {
      if (pages_[page].key == key) return static_cast<int32_t>(page);
    }
    return -1;
  }
  void Clear() {
    cached.clear();
    for (Page& page : pages_) page.key.reset();
  }
  int32_t num_free() const {
    return static_cast<int32_t>(std::count_if(pages_.begin(), pages_.end(), [](const Page& page) {
      return page.references == 0 && !page.key;
    }));
  }

  struct Page {
    int32_t references = 0;
    std::optional<int64_t> key;
    bool exact = false;
  };
  Page& At(int32_t page) { return pages_[static_cast<size_t>(page)]; }

  std::vector<int32_t> cached;  // the oldest first

 private:
  std::vector<Page> pages_;
};

TEST(PagePool, RandomOperationsEqualTheNaivePool) {
  constexpr int32_t kPages = 13, kKeys = 30;
  PagePool pool(kPages);
  NaivePool naive(kPages);
  SeededRng rng(1);
  std::vector<int32_t> taken;
  int64_t num_refused = 0, num_hits = 0;
  for (int32_t turn = 0; turn < 100'000; ++turn) {
    const auto page = static_cast<int32_t>(rng.Uniform(kPages));
    const auto key = static_cast<int64_t>(rng.Uniform(kKeys));
    const bool held = naive.At(page).references > 0, has_key = naive.At(page).key.has_value();
    const uint64_t op = rng.Uniform(1000);
    if (op < 200) {
      taken.clear();
      const auto count = static_cast<int32_t>(rng.Uniform(4));
      const bool fits = count <= naive.num_free() + std::ssize(naive.cached);
      ASSERT_EQ(pool.Acquire(count, taken), fits);
      ASSERT_EQ(std::ssize(taken), fits ? count : 0);
      num_refused += fits ? 0 : 1;
      naive.CheckAcquired(taken);
    } else if (op < 600) {
      if (!held) continue;
      pool.Release(page);
      naive.Release(page);
    } else if (op < 700) {
      if (!held && !has_key) continue;
      pool.AddReference(page);
      naive.AddReference(page);
    } else if (op < 980) {
      if (!held || has_key) continue;
      const bool is_new = naive.Find(key) == -1;
      num_hits += is_new ? 0 : 1;
      ASSERT_EQ(pool.Publish(page, TestKey(key), op % 2 == 0), is_new);
      if (is_new) naive.At(page) = {naive.At(page).references, key, op % 2 == 0};
    } else if (op < 998) {
      if (!has_key) continue;
      pool.Unpublish(page);
      naive.Unpublish(page);
    } else {
      pool.Clear();
      naive.Clear();
    }
    ASSERT_EQ(pool.Find(TestKey(key)), naive.Find(key)) << turn;
    ASSERT_EQ(pool.IsPublished(page), naive.At(page).key.has_value());
    if (pool.IsPublished(page)) {
      ASSERT_EQ(pool.IsExact(page), naive.At(page).exact);
    }
    ASSERT_EQ(pool.num_free(), naive.num_free()) << turn;
    ASSERT_EQ(pool.num_cached(), std::ssize(naive.cached)) << turn;
    if (turn % 16 == 0) pool.CheckInvariants();
  }
  EXPECT_GT(num_refused, 100);
  EXPECT_GT(num_hits, 100);
  EXPECT_GT(pool.num_evicted(), 100);
}

TEST(PagePool, NothingAllocatesAfterConstruction) {
  if (!CountsAllocations()) GTEST_SKIP() << "a sanitizer has the heap";
  constexpr int32_t kPages = 500;
  PagePool pool(kPages);
  std::vector<PageKey> keys;
  for (int32_t i = 0; i < 2 * kPages; ++i) keys.push_back(TestKey(i));
  std::vector<int32_t> pages;
  pages.reserve(kPages);
  const AllocationCounter counter;
  for (size_t round = 0; round < 2; ++round) {  // the second one evicts the first one's
    ASSERT_TRUE(pool.Acquire(kPages, pages));
    for (size_t i = 0; i < kPages; ++i) pool.Publish(pages[i], keys[round * kPages + i], true);
    for (const int32_t page : pages) pool.AddReference(page);
    for (const int32_t page : pages) pool.Release(page);
    for (const int32_t page : pages) pool.Release(page);
    pages.clear();
  }
  pool.Clear();
  EXPECT_EQ(counter.count(), 0);
  EXPECT_EQ(pool.num_evicted(), kPages);
}

}  // namespace
}  // namespace deepinfer
