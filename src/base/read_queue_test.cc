#include "base/read_queue.h"

#include <gtest/gtest.h>

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
  ReadQueue::Ticket one = queue.Start(All(first)), two = queue.Start(All(second));
  EXPECT_TRUE(two.Wait().ok());
  EXPECT_TRUE(Same(second));
  EXPECT_TRUE(one.Wait().ok());
  EXPECT_TRUE(one.Wait().ok());
  EXPECT_TRUE(Same(first));
}

TEST_P(ReadQueueTest, DirectReadsGiveTheSame) {
  ReadQueue queue(GetParam());
  alignas(kDirectAlign) static std::array<uint8_t, kFileBytes> out;
  EXPECT_TRUE(
      queue.Start({{.file = file_.get(), .offset = 0, .out = out, .direct = true}}).Wait().ok());
  EXPECT_TRUE(Same({out.begin(), out.end()}));
}

TEST_P(ReadQueueTest, WhatWasReadMayBeRefused) {
  ReadQueue queue(GetParam());
  std::vector<uint8_t> out(1);
  const auto check = [](std::span<const uint8_t> bytes) {
    return bytes[0] == 7 ? OkStatus() : DataLoss("found ", int{bytes[0]}, ", expected 7");
  };
  EXPECT_TRUE(
      queue.Start({{.file = file_.get(), .offset = 7, .out = out, .check = check}}).Wait().ok());
  EXPECT_EQ(
      MessageOf(
          queue.Start({{.file = file_.get(), .offset = 8, .out = out, .check = check}}).Wait()),
      "found 8, expected 7");
}

TEST_P(ReadQueueTest, NoReadsAreOverAtOnce) {
  ReadQueue queue(GetParam());
  EXPECT_TRUE(queue.Start({}).Wait().ok());
  EXPECT_TRUE(ReadQueue::Ticket().Wait().ok());
}

TEST_P(ReadQueueTest, AFailureIsItsBatchsOwn) {
  ReadQueue queue(GetParam());
  disk_.FailReadsAt("file", 1000);
  std::vector<uint8_t> out, other(8);
  ReadQueue::Ticket bad = queue.Start(All(out));
  ReadQueue::Ticket good = queue.Start({{.file = file_.get(), .offset = 16, .out = other}});
  EXPECT_EQ(MessageOf(bad.Wait()), "file: cannot read: Input/output error");
  EXPECT_TRUE(good.Wait().ok());
  EXPECT_EQ(other[0], 16);
}

// A ticket that nobody waited for holds its memory until the reads are over.
TEST_P(ReadQueueTest, TicketsThatGoWaitForTheirReads) {
  ReadQueue queue(GetParam());
  for (int i = 0; i < 20; ++i) {
    std::vector<uint8_t> first, second;
    ReadQueue::Ticket ticket = queue.Start(All(first));
    ticket = queue.Start(All(second));
    EXPECT_TRUE(Same(first));
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, ReadQueueTest, ::testing::Values(1, 4));

}  // namespace
}  // namespace deepinfer
