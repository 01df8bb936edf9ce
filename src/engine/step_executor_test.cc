// What a plan's execution reports of rows that ran, and of those that did not.
#include "engine/step_executor.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "engine/testing/fake_model.h"

namespace deepinfer {
namespace {

using testing::FakeModel;

constexpr int32_t kVocab = 16, kSequences = 3;

// Three sequences of 10, 20 and 30 prompt tokens, one page each; page and state have its index.
class StepExecutorTest : public ::testing::Test {
 protected:
  StepExecutorTest()
      : model_(kVocab),
        memory_(MakeMemory()),
        executor_({.forward = [this](const ForwardBatch& batch) { return model_.Forward(batch); },
                   .memory = memory_.get(),
                   .clock = &clock_,
                   .vocab_size = kVocab}) {
    job_.plan.Reserve(kSequences, kSequences);
    for (int32_t i = 0; i < kSequences; ++i) {
      const std::vector<int32_t> prompt(static_cast<size_t>(10 * (i + 1)), 2 + i);
      runs_.push_back(std::make_unique<SequenceRun>(prompt, 1'000'000, std::vector<int32_t>(),
                                                    SequenceSampling({}, 1, {}, prompt)));
      AddStart(i);
      AddRows(i, 0, 10 * (i + 1));
    }
  }

  static std::unique_ptr<KvMemory> MakeMemory() {
    auto memory =
        KvMemory::Create(FakeModel::Shape(),
                         {.num_pages = kSequences, .num_states = kSequences, .num_host_pages = 1});
    CHECK(memory.ok());
    return *std::move(memory);
  }
  void AddStart(int32_t i) {
    job_.plan.copies.push_back({.kind = CopyKind::kNewState,
                                .sequence = {i},
                                .to = i,
                                .first_page = static_cast<int32_t>(job_.plan.pages.size()),
                                .num_pages = 1});
    job_.plan.pages.push_back(i);
    job_.copy_runs.push_back(runs_[static_cast<size_t>(i)].get());
  }
  void AddRows(int32_t i, int32_t begin, int32_t end) {
    job_.plan.rows.push_back({.sequence = {i}, .begin = begin, .end = end});
    job_.row_runs.push_back(runs_[static_cast<size_t>(i)].get());
  }
  double RowsThatRan() {
    executor_.Run(job_);
    return job_.load.rows;
  }

  FakeModel model_;
  SimulatedClock clock_;
  std::unique_ptr<KvMemory> memory_;
  StepExecutor executor_;
  std::vector<std::unique_ptr<SequenceRun>> runs_;
  StepJob job_;
};

TEST_F(StepExecutorTest, LoadIsThatOfTheRows) {
  EXPECT_EQ(RowsThatRan(), 60);
  EXPECT_EQ(job_.load.row_squares, 10 * 10 + 20 * 20 + 30 * 30);
}

TEST_F(StepExecutorTest, LoadIsWithoutRowsThatWereDropped) {
  runs_[1]->stop = true;
  EXPECT_EQ(RowsThatRan(), 40);
  for (const auto& run : runs_) run->stop = true;
  EXPECT_EQ(RowsThatRan(), 0);
}

TEST_F(StepExecutorTest, AFailedPassHasNoLoad) {
  model_.FailNextPass();
  EXPECT_EQ(RowsThatRan(), 0);
  for (const RowsOutcome& outcome : job_.outcomes) EXPECT_TRUE(outcome.starts_anew);
}

TEST_F(StepExecutorTest, ASequenceHoldsOutputMemoryOnlyOnceItStarts) {
  EXPECT_LE(runs_[0]->tokens.capacity(), 10u);
  RowsThatRan();
  EXPECT_GE(runs_[0]->tokens.size(), 1'000'010u);
}

// Rows of a sequence whose load failed are dropped until it starts anew, in later plans, too.
TEST_F(StepExecutorTest, AfterADamagedLoadRowsAreDroppedUntilTheNextStart) {
  job_.plan.copies.push_back(
      {.kind = CopyKind::kLoadPage, .sequence = {2}, .from = 0, .to = 2});  // never saved
  job_.copy_runs.push_back(runs_[2].get());
  EXPECT_EQ(RowsThatRan(), 30);
  EXPECT_EQ(job_.failed_copies, (std::vector<int32_t>{3}));
  EXPECT_TRUE(job_.outcomes[2].dropped);
  EXPECT_TRUE(job_.outcomes[2].status.ok());

  job_.plan.Clear();
  job_.copy_runs.clear();
  job_.row_runs.clear();
  AddRows(2, 0, 30);
  EXPECT_EQ(RowsThatRan(), 0);
  AddStart(2);
  EXPECT_EQ(RowsThatRan(), 30);
  EXPECT_FALSE(job_.outcomes[0].dropped);
}

}  // namespace
}  // namespace deepinfer
