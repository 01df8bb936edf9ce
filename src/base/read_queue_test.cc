#include "base/read_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/simulated_disk.h"

namespace deepinfer {
namespace {

constexpr int64_t kFileBytes = 4096;

class ReadQueueTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    std::iota(text_.begin(), text_.end(), '\0');
    ASSERT_TRUE(disk_.WriteText("file", text_).ok());
    file_ = disk_.OpenRead("file").value();
  }
  // Reads of 8 bytes each, from every place of the file, into `out`.
  std::vector<FileRead> All(std::vector<uint8_t>& out) {
    out.assign(kFileBytes, 0);
    std::vector<FileRead> reads;
    for (int64_t at = 0; at < kFileBytes; at += 8) {
      reads.push_back({file_.get(), at, std::span(out).subspan(static_cast<size_t>(at), 8)});
    }
    return reads;
  }
  bool Same(const std::vector<uint8_t>& out) const {
    return std::string(out.begin(), out.end()) == text_;
  }

  SimulatedDisk disk_;
  std::unique_ptr<ReadableFile> file_;
  std::string text_ = std::string(kFileBytes, ' ');
};

TEST_P(ReadQueueTest, EveryReadOfEveryBatchIsDone) {
  ReadQueue queue(GetParam());
  std::vector<uint8_t> first, second;
  ReadBatch one(All(first)), two(All(second));
  queue.Start(one);
  queue.Start(two);
  EXPECT_TRUE(two.Wait().ok());
  EXPECT_TRUE(Same(second));
  EXPECT_TRUE(one.Wait().ok());
  EXPECT_TRUE(one.Wait().ok());
  EXPECT_TRUE(Same(first));
}

TEST_P(ReadQueueTest, DirectReadsGiveTheSame) {
  ReadQueue queue(GetParam());
  alignas(kDirectAlign) static std::array<uint8_t, kFileBytes> out;
  ReadBatch batch({{.file = file_.get(), .offset = 0, .out = out, .direct = true}});
  queue.Start(batch);
  EXPECT_TRUE(batch.Wait().ok());
  EXPECT_TRUE(Same({out.begin(), out.end()}));
}

TEST_P(ReadQueueTest, WhatWasReadMayBeRefused) {
  ReadQueue queue(GetParam());
  std::vector<uint8_t> out(1);
  const auto check = [](std::span<const uint8_t> bytes) {
    return bytes[0] == 7 ? OkStatus() : DataLoss("found ", int{bytes[0]}, ", expected 7");
  };
  ReadBatch batch({{.file = file_.get(), .offset = 7, .out = out, .check = check}});
  queue.Start(batch);
  EXPECT_TRUE(batch.Wait().ok());
  batch.reads()[0].offset = 8;
  queue.Start(batch);
  EXPECT_EQ(MessageOf(batch.Wait()), "found 8, expected 7");
}

TEST_P(ReadQueueTest, NoReadsAreOverAtOnce) {
  ReadQueue queue(GetParam());
  ReadBatch none;
  EXPECT_TRUE(none.Wait().ok());
  queue.Start(none);
  EXPECT_TRUE(none.Wait().ok());
}

TEST_P(ReadQueueTest, ABatchMayBeChangedOnceItIsOver) {
  ReadQueue queue(GetParam());
  std::vector<uint8_t> out(8);
  ReadBatch batch(All(out));
  queue.Start(batch);
  EXPECT_TRUE(batch.Wait().ok());
  batch.reads().clear();
  EXPECT_TRUE(batch.Wait().ok());
  batch.reads().push_back({.file = file_.get(), .offset = 16, .out = std::span(out).first(8)});
  EXPECT_TRUE(batch.Wait().ok());
  queue.Start(batch);
  EXPECT_TRUE(batch.Wait().ok());
  EXPECT_EQ(out[0], 16);
}

TEST_P(ReadQueueTest, AFailureIsItsBatchsOwn) {
  ReadQueue queue(GetParam());
  disk_.FailReadsAt("file", 1000);
  std::vector<uint8_t> out, other(8);
  ReadBatch bad(All(out)), good({{.file = file_.get(), .offset = 16, .out = other}});
  queue.Start(bad);
  queue.Start(good);
  EXPECT_EQ(MessageOf(bad.Wait()), "file: cannot read: Input/output error");
  EXPECT_TRUE(good.Wait().ok());
  EXPECT_EQ(other[0], 16);
}

TEST_P(ReadQueueTest, ABatchThatFailedCanBeStartedAgain) {
  ReadQueue queue(GetParam());
  std::vector<uint8_t> out;
  ReadBatch batch(All(out));
  for (int i = 0; i < 20; ++i) {
    const bool fails = i % 2 == 0;
    disk_.FailReadsAt("file", fails ? 100 * i : -1);
    std::fill(out.begin(), out.end(), uint8_t{0});
    queue.Start(batch);
    EXPECT_EQ(batch.Wait().ok(), !fails);
    EXPECT_EQ(Same(out), !fails);
  }
}

// A batch that nobody waited for holds its memory until the reads are over.
TEST_P(ReadQueueTest, BatchesThatGoWaitForTheirReads) {
  ReadQueue queue(GetParam());
  for (int i = 0; i < 20; ++i) {
    std::vector<uint8_t> out;
    {
      ReadBatch batch(All(out));
      queue.Start(batch);
    }
    EXPECT_TRUE(Same(out));
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, ReadQueueTest, ::testing::Values(1, 4));

}  // namespace
}  // namespace deepinfer
