// Both disks are held to the same promises; what only one has stands below.
#include "base/disk.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/large_block.h"
#include "base/simulated_disk.h"
#include "base/system_cache.h"

namespace deepinfer {
namespace {

namespace fs = std::filesystem;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string path = (fs::temp_directory_path() / "disk_test-XXXXXX").string();
    path_ = ::mkdtemp(path.data());
  }
  ~TemporaryFolder() { fs::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class DiskTest : public ::testing::TestWithParam<bool> {
 protected:
  bool is_real() const { return GetParam(); }
  Disk& disk() { return is_real() ? RealDisk() : simulated_; }
  std::string Path(const std::string& name) const {
    return (is_real() ? folder_.path() : std::string("folder")) + "/" + name;
  }

  TemporaryFolder folder_;
  SimulatedDisk simulated_;
};

std::span<const uint8_t> Bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

TEST_P(DiskTest, ReadsBackWhatWasWritten) {
  ASSERT_TRUE(disk().WriteText(Path("a"), "hello").ok());
  EXPECT_EQ(*disk().ReadText(Path("a")), "hello");
  ASSERT_TRUE(disk().WriteText(Path("a"), "").ok());
  EXPECT_EQ(*disk().ReadText(Path("a")), "");
}

TEST_P(DiskTest, NothingAppearsBeforeCommitNorAfterGivingUp) {
  ASSERT_TRUE(disk().WriteText(Path("a"), "old").ok());
  {
    const auto file = *disk().Create(Path("a"));
    ASSERT_TRUE(file->Append("new").ok());
    EXPECT_EQ(*disk().ReadText(Path("a")), "old");
  }
  EXPECT_EQ(*disk().ReadText(Path("a")), "old");
  EXPECT_EQ(*disk().List(Path(".").substr(0, Path(".").size() - 2)), std::vector<std::string>{"a"});
}

TEST_P(DiskTest, ReadsAndMapsParts) {
  ASSERT_TRUE(disk().WriteText(Path("a"), "0123456789").ok());
  const auto file = *disk().OpenRead(Path("a"));
  EXPECT_EQ(file->size(), 10);
  std::array<uint8_t, 3> part{};
  ASSERT_TRUE(file->ReadAt(4, part).ok());
  EXPECT_EQ(part, (std::array<uint8_t, 3>{'4', '5', '6'}));
  const std::span<const uint8_t> all = *file->Map();
  EXPECT_EQ(std::string(all.begin(), all.end()), "0123456789");
}

TEST_P(DiskTest, ReadingPastTheEndIsDataLoss) {
  ASSERT_TRUE(disk().WriteText(Path("a"), "0123456789").ok());
  const auto file = *disk().OpenRead(Path("a"));
  std::array<uint8_t, 4> part{};
  const Status status = file->ReadAt(8, part);
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(MessageOf(status), Path("a") + ": file ends at byte 10, 4 bytes were expected at 8");
}

TEST_P(DiskTest, OpenReaderOutlivesRemoval) {
  ASSERT_TRUE(disk().WriteText(Path("a"), "abc").ok());
  const auto file = *disk().OpenRead(Path("a"));
  ASSERT_TRUE(disk().Remove(Path("a")).ok());
  EXPECT_FALSE(disk().IsFile(Path("a")));
  std::array<uint8_t, 3> part{};
  EXPECT_TRUE(file->ReadAt(0, part).ok());
}

TEST_P(DiskTest, FoldersAreListedAndToldFromFiles) {
  ASSERT_TRUE(disk().CreateDirectories(Path("x/y")).ok());
  ASSERT_TRUE(disk().WriteText(Path("x/b"), "1").ok());
  ASSERT_TRUE(disk().WriteText(Path("x/a"), "2").ok());
  EXPECT_EQ(*disk().List(Path("x")), (std::vector<std::string>{"a", "b", "y"}));
  EXPECT_TRUE(disk().IsDirectory(Path("x/y")));
  EXPECT_FALSE(disk().IsFile(Path("x/y")));
  EXPECT_TRUE(disk().IsFile(Path("x/a")));
  EXPECT_EQ(disk().List(Path("x/a")).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(disk().List(Path("z")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(disk().OpenRead(Path("x")).status().code(), StatusCode::kFailedPrecondition);
}

TEST_P(DiskTest, MissingFilesAreNotFoundAndNamed) {
  const Status status = disk().OpenRead(Path("a")).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(MessageOf(status), Path("a") + ": cannot open: No such file or directory");
  EXPECT_EQ(disk().Remove(Path("a")).code(), StatusCode::kNotFound);
}

TEST_P(DiskTest, TextOverTheLimitIsRefused) {
  ASSERT_TRUE(disk().WriteText(Path("a"), "12345").ok());
  EXPECT_TRUE(disk().ReadText(Path("a"), 5).ok());
  EXPECT_EQ(disk().ReadText(Path("a"), 4).status().code(), StatusCode::kResourceExhausted);
}

TEST_P(DiskTest, DirectReadsSeeTheSameBytes) {
  std::string text(3 * kDirectAlign + 100, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 37 / 11);
  ASSERT_TRUE(disk().WriteText(Path("a"), text).ok());
  const auto file = *disk().OpenRead(Path("a"));
  // What has just been written lies in the system's cache; afterwards it may not.
  for (int round = 0; round < 2; ++round) {
    std::unique_ptr<uint8_t, decltype(&std::free)> buffer(
        static_cast<uint8_t*>(std::aligned_alloc(kDirectAlign, 4 * kDirectAlign)), &std::free);
    ASSERT_TRUE(file->ReadDirect(kDirectAlign, {buffer.get(), 3 * kDirectAlign}).ok());
    EXPECT_EQ(std::memcmp(buffer.get(), text.data() + kDirectAlign, 2 * kDirectAlign + 100), 0);
    ASSERT_TRUE(file->ReadDirect(0, {buffer.get(), 2 * kDirectAlign}).ok());
    EXPECT_EQ(std::memcmp(buffer.get(), text.data(), 2 * kDirectAlign), 0);
    if (is_real()) DropFromSystemCache(Path("a"));
  }
}

TEST_P(DiskTest, DirectReadsBehindTheEndFail) {
  ASSERT_TRUE(disk().WriteText(Path("a"), "short").ok());
  const auto file = *disk().OpenRead(Path("a"));
  std::unique_ptr<uint8_t, decltype(&std::free)> buffer(
      static_cast<uint8_t*>(std::aligned_alloc(kDirectAlign, kDirectAlign)), &std::free);
  EXPECT_TRUE(file->ReadDirect(0, {buffer.get(), kDirectAlign}).ok());
  for (const int64_t offset : {kDirectAlign, 9 * kDirectAlign}) {
    EXPECT_EQ(file->ReadDirect(offset, {buffer.get(), kDirectAlign}).code(), StatusCode::kDataLoss);
  }
}

// What has just been written lies in the system's cache, if the system says so.
TEST_P(DiskTest, WhatTheSystemHasIsKnown) {
  const std::string text(5 * kDirectAlign + 9, 'x');
  ASSERT_TRUE(disk().WriteText(Path("a"), text).ok());
  const auto file = *disk().OpenRead(Path("a"));
  EXPECT_TRUE(is_real() || !file->IsCached(0, 1));
  if (!file->IsCached(0, std::ssize(text))) return;
  EXPECT_TRUE(file->IsCached(kDirectAlign - 1, 2));
  EXPECT_FALSE(file->IsCached(0, std::ssize(text) + kDirectAlign));  // one page more than there is
  ASSERT_EQ(::truncate(Path("a").c_str(), kDirectAlign), 0);
  EXPECT_FALSE(file->IsCached(0, std::ssize(text)));
}

// A file that takes the place of an opened one is not read in its stead.
TEST_P(DiskTest, DirectReadsKeepTheFileThatWasOpened) {
  ASSERT_TRUE(disk().WriteText(Path("a"), std::string(kDirectAlign, 'o')).ok());
  const auto file = *disk().OpenRead(Path("a"));
  if (!is_real()) return;  // simulated files have no direct form
  DropFromSystemCache(Path("a"));
  ASSERT_TRUE(disk().WriteText(Path("a"), std::string(kDirectAlign, 'n')).ok());
  std::unique_ptr<uint8_t, decltype(&std::free)> buffer(
      static_cast<uint8_t*>(std::aligned_alloc(kDirectAlign, kDirectAlign)), &std::free);
  ASSERT_TRUE(file->ReadDirect(0, {buffer.get(), kDirectAlign}).ok());
  EXPECT_EQ(buffer.get()[0], 'o');
}

TEST_P(DiskTest, UpdatesStayWithoutCommit) {
  {
    const auto file = *disk().OpenUpdate(Path("a"));
    ASSERT_TRUE(file->Reserve(8).ok());
    EXPECT_EQ(file->size(), 8);
    ASSERT_TRUE(file->WriteAt(2, Bytes("xy")).ok());
    ASSERT_TRUE(file->WriteAt(9, Bytes("z")).ok());
    ASSERT_TRUE(file->Sync().ok());
  }
  EXPECT_EQ(*disk().ReadText(Path("a")), std::string("\0\0xy\0\0\0\0\0z", 10));
  const auto file = *disk().OpenUpdate(Path("a"));
  ASSERT_TRUE(file->WriteAt(0, Bytes("w")).ok());
  EXPECT_EQ((*disk().ReadText(Path("a")))[0], 'w');
}

TEST_P(DiskTest, OneHolderUpdatesAtATime) {
  auto file = *disk().OpenUpdate(Path("a"));
  const Status status = disk().OpenUpdate(Path("a")).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(MessageOf(status), Path("a") + ": cannot lock: Resource temporarily unavailable");
  // Under a new name it is still held; the old name is free.
  ASSERT_TRUE(disk().Rename(Path("a"), Path("b")).ok());
  EXPECT_FALSE(disk().IsFile(Path("a")));
  EXPECT_EQ(disk().OpenUpdate(Path("b")).status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(disk().OpenUpdate(Path("a")).ok());
  file.reset();
  EXPECT_TRUE(disk().OpenUpdate(Path("b")).ok());
  EXPECT_EQ(disk().Rename(Path("none"), Path("b")).code(), StatusCode::kNotFound);
}

INSTANTIATE_TEST_SUITE_P(, DiskTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Real" : "Simulated"; });

TEST(SimulatedDisk, FullDiskFailsAndGivesSpaceBack) {
  SimulatedDisk disk;
  disk.set_capacity_bytes(10);
  ASSERT_TRUE(disk.WriteText("a", "123456").ok());
  const Status status = disk.WriteText("b", "12345");
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(MessageOf(status), "b: cannot write: No space left on device");
  EXPECT_FALSE(disk.IsFile("b"));
  EXPECT_EQ(disk.used_bytes(), 6);
  // Replacing needs room for both, as on a real disk.
  EXPECT_FALSE(disk.WriteText("a", "12345").ok());
  ASSERT_TRUE(disk.WriteText("a", "1234").ok());
  EXPECT_EQ(disk.used_bytes(), 4);
  ASSERT_TRUE(disk.Remove("a").ok());
  EXPECT_EQ(disk.used_bytes(), 0);
}

TEST(SimulatedDisk, BadByteFailsTheReadsThatTouchIt) {
  SimulatedDisk disk;
  ASSERT_TRUE(disk.WriteText("a", "0123456789").ok());
  disk.FailReadsAt("a", 5);
  const auto file = *disk.OpenRead("a");
  std::array<uint8_t, 5> part{};
  EXPECT_TRUE(file->ReadAt(0, part).ok());
  EXPECT_EQ(file->ReadAt(1, part).code(), StatusCode::kInternal);
  EXPECT_EQ(file->ReadAt(5, part).code(), StatusCode::kInternal);
}

TEST(SimulatedDisk, TruncationIsSeenByOpenReaders) {
  SimulatedDisk disk;
  ASSERT_TRUE(disk.WriteText("a", "0123456789").ok());
  const auto file = *disk.OpenRead("a");
  disk.Truncate("a", 4);
  std::array<uint8_t, 5> part{};
  EXPECT_EQ(file->ReadAt(0, part).code(), StatusCode::kDataLoss);
  EXPECT_EQ(disk.used_bytes(), 4);
}

// A mount that only root may make; without it the test says so.
class SmallFileSystem {
 public:
  explicit SmallFileSystem(const std::string& path) : path_(path) {
    mounted_ = ::mount("none", path.c_str(), "tmpfs", 0, "size=1m") == 0;
  }
  ~SmallFileSystem() {
    if (mounted_) ::umount(path_.c_str());
  }
  bool mounted() const { return mounted_; }

 private:
  const std::string path_;
  bool mounted_;
};

TEST(RealDisk, FullFileSystemLeavesNothingBehind) {
  const TemporaryFolder folder;
  const SmallFileSystem small(folder.path());
  if (!small.mounted()) GTEST_SKIP() << "a 1 MiB tmpfs cannot be mounted here (needs root)";
  const std::string path = folder.path() + "/a";
  const Status status = RealDisk().WriteText(path, std::string(2 << 20, 'x'));
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(MessageOf(status), path + ": cannot write: No space left on device");
  EXPECT_EQ(*RealDisk().List(folder.path()), std::vector<std::string>{});
  EXPECT_TRUE(RealDisk().WriteText(path, std::string(1 << 19, 'x')).ok());
}

TEST(RealDisk, FolderThatCannotBeWrittenIsNamed) {
  const Status status = RealDisk().WriteText("/proc/nothing/here", "x");
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(MessageOf(status), "/proc/nothing/here: cannot create: No such file or directory");
}

}  // namespace
}  // namespace deepinfer
