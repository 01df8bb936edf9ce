#include "engine/mask_workers.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "base/cpu_time.h"
#include "engine/testing/fake_grammar.h"

namespace deepinfer {
namespace {

using testing::FakeConstraint;
using testing::FakeLanguage;

constexpr int32_t kVocab = 16;
constexpr auto kLong = std::chrono::minutes(1);

std::shared_ptr<SequenceMasks> Masks(const FakeLanguage& language,
                                     std::function<void()> before_mask = nullptr) {
  auto masks = std::make_shared<SequenceMasks>(kVocab, std::vector<int32_t>{FakeConstraint::kEos});
  masks->Begin([language, before_mask] {
    return std::make_unique<FakeConstraint>(language, kVocab, before_mask);
  });
  return masks;
}

// Tokens of a row.
std::vector<int32_t> Allowed(const SequenceMasks& masks, int32_t row) {
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < kVocab; ++id) {
    if ((masks.Row(row)[0] >> id & 1) != 0) ids.push_back(id);
  }
  return ids;
}

class MaskWorkersTest : public ::testing::Test {
 protected:
  // The masks behind `sampled`, with `drafts` ahead.
  void Continue(const std::shared_ptr<SequenceMasks>& masks, const std::vector<int32_t>& sampled,
                const std::vector<int32_t>& drafts) {
    masks->Continue(sampled, drafts);
    Compute(masks);
  }
  void Compute(const std::shared_ptr<SequenceMasks>& masks) {
    workers_.Compute(masks);
    ASSERT_TRUE(workers_.Await(*masks, kLong));
  }

  MaskWorkers workers_{1};
};

TEST_F(MaskWorkersTest, ARowForTheNextTokenAndOneBehindEachDraft) {
  const auto masks = Masks({.least = 2});
  EXPECT_FALSE(masks->ready());
  Compute(masks);
  EXPECT_EQ(masks->num_rows(), 1);
  EXPECT_EQ(Allowed(*masks, 0), (std::vector<int32_t>{3, 6, 9, 12, 15}));
  Continue(masks, {3}, {2, 4, 3});
  EXPECT_EQ(masks->num_rows(), 4);
  EXPECT_EQ(Allowed(*masks, 0), (std::vector<int32_t>{2, 5, 8, 11, 14}));
  EXPECT_EQ(Allowed(*masks, 1), (std::vector<int32_t>{1, 4, 7, 10, 13}));
  EXPECT_EQ(Allowed(*masks, 2), (std::vector<int32_t>{1, 3, 6, 9, 12, 15}));
  EXPECT_EQ(Allowed(*masks, 3), (std::vector<int32_t>{1, 2, 5, 8, 11, 14}));
  // The drafts are taken back: another token came.
  Continue(masks, {5}, {});
  EXPECT_EQ(Allowed(*masks, 0), (std::vector<int32_t>{1, 4, 7, 10, 13}));
}

TEST_F(MaskWorkersTest, NothingBehindADraftThatIsForbiddenOrEndsTheOutput) {
  const auto masks = Masks({});
  Compute(masks);
  Continue(masks, {3}, {2, 2, 4});
  EXPECT_EQ(masks->num_rows(), 2);
  Continue(masks, {2}, {4, 1, 1});
  EXPECT_EQ(masks->num_rows(), 2);
}

TEST_F(MaskWorkersTest, SeveralTokensOfAStepAreAllFed) {
  const auto masks = Masks({.start = 7});
  Compute(masks);
  EXPECT_EQ(masks->Row(0), nullptr);
  Continue(masks, {9, 7, 3, 2}, {});
  EXPECT_EQ(Allowed(*masks, 0), (std::vector<int32_t>{1, 4, 7, 10, 13}));
}

TEST_F(MaskWorkersTest, ATokenThatIsRefusedIsTold) {
  const auto masks = Masks({});
  Compute(masks);
  Continue(masks, {2}, {});
  EXPECT_EQ(MessageOf(masks->status()),
            "structured output: token 2 came, which its grammar refuses");
}

TEST_F(MaskWorkersTest, SlowMasksHoldUpNobody) {
  std::promise<void> gate;
  std::shared_future<void> open = gate.get_future().share();
  const auto first = Masks({}), second = Masks({});
  Compute(first);
  Compute(second);
  // A first one: nobody knows how long it takes.
  const auto slow = Masks({}, [open] { open.wait(); });
  workers_.Compute(slow);
  Continue(first, {3}, {2});
  Continue(second, {3}, {2});
  EXPECT_FALSE(slow->ready());
  gate.set_value();
  EXPECT_TRUE(workers_.Await(*slow, kLong));
}

TEST_F(MaskWorkersTest, WhatWasSlowOnceCountsAsSlowForAWhile) {
  bool busy = true;
  const auto masks = Masks({}, [&] {
    const double until = ThreadCpuSeconds() + 0.005;
    while (busy && ThreadCpuSeconds() < until) {
    }
  });
  Compute(masks);
  EXPECT_GE(*masks->mask_seconds(), 0.005);
  EXPECT_GE(masks->seconds(), 0.005);
  busy = false;
  Continue(masks, {3}, {});
  EXPECT_GT(*masks->mask_seconds(), kSlowMaskSeconds);
  std::vector<int32_t> cycle = {2, 4, 3};
  for (size_t i = 0; i < 60; ++i) Continue(masks, {cycle[i % 3]}, {});
  EXPECT_LT(*masks->mask_seconds(), kSlowMaskSeconds);
}

TEST_F(MaskWorkersTest, AwaitEndsInTime) {
  std::promise<void> gate;
  std::shared_future<void> open = gate.get_future().share();
  const auto slow = Masks({}, [open] { open.wait(); });
  workers_.Compute(slow);
  EXPECT_FALSE(workers_.Await(*slow, std::chrono::milliseconds(1)));
  gate.set_value();
}

TEST(MaskWorkers, WhatWaitsAtTheEndIsDropped) {
  int count = 0;
  std::vector<std::shared_ptr<SequenceMasks>> all;
  {
    MaskWorkers workers(1);
    for (int i = 0; i < 100; ++i) {
      all.push_back(Masks({}, [&count] {
        ++count;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }));
      workers.Compute(all.back());
    }
  }
  EXPECT_LT(count, 50);
}

TEST_F(MaskWorkersTest, WhatWasCancelledIsNotComputed) {
  bool computed = false;
  const auto gone = Masks({}, [&computed] { computed = true; });
  gone->Cancel();
  workers_.Compute(gone);
  Compute(Masks({}));  // behind it
  EXPECT_FALSE(computed);
  EXPECT_FALSE(gone->ready());
}

}  // namespace
}  // namespace deepinfer
