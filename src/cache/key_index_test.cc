#include "cache/key_index.h"

#include <gtest/gtest.h>

#include <map>

#include "base/rng.h"
#include "cache/testing/test_key.h"

namespace deepinfer {
namespace {

// Keys with few different hashes, so that probes run into each other and around the table's end.
PageKey CollidingKey(int64_t number) {
  PageKey key = testing::TestKey(number);
  const auto hash = static_cast<size_t>(-2 + number % 5);
  std::memcpy(key.data(), &hash, sizeof hash);
  return key;
}

TEST(KeyIndex, KeysThatCollideAreToldApart) {
  KeyIndex index(4);
  for (int32_t id = 0; id < 4; ++id) index.Insert(id, CollidingKey(5 * id));
  for (int32_t id = 0; id < 4; ++id) EXPECT_EQ(index.Find(CollidingKey(5 * id)), id);
  EXPECT_EQ(index.Find(CollidingKey(20)), -1);
}

TEST(KeyIndex, RandomOperationsEqualAMap) {
  constexpr int32_t kIds = 23, kKeys = 40;
  KeyIndex index(kIds);
  std::vector<PageKey> keys;
  for (int64_t number = 0; number < kKeys; ++number) keys.push_back(CollidingKey(number));
  std::map<PageKey, int32_t> model;
  SeededRng rng(5);
  for (int32_t turn = 0; turn < 100'000; ++turn) {
    const auto id = static_cast<int32_t>(rng.Uniform(kIds));
    const PageKey& key = keys[rng.Uniform(kKeys)];
    if (index.Contains(id)) {
      model.erase(index.KeyOf(id));
      index.Erase(id);
    } else if (!model.contains(key)) {
      model[key] = id;
      index.Insert(id, key);
    }
    ASSERT_EQ(index.size(), std::ssize(model));
    for (const PageKey& any : keys) {
      const auto found = model.find(any);
      ASSERT_EQ(index.Find(any), found == model.end() ? -1 : found->second) << turn;
    }
    if (turn % 100 == 0) index.CheckInvariants();
  }
}

TEST(KeyIndexDeathTest, AKeyHasOneId) {
  KeyIndex index(2);
  index.Insert(0, testing::TestKey(1));
  EXPECT_DEATH(index.Insert(1, testing::TestKey(1)), "CHECK failed");
  EXPECT_DEATH(index.Insert(0, testing::TestKey(2)), "CHECK failed");
  EXPECT_DEATH(index.Erase(1), "CHECK failed");
}

}  // namespace
}  // namespace deepinfer
