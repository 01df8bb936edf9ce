#include "model/hf_cache.h"

#include <gtest/gtest.h>

#include "base/simulated_disk.h"

namespace deepinfer {
namespace {

constexpr const char* kModel = "deepseek-ai/DeepSeek-V4.1-Flash";
constexpr const char* kFolder = "/models--deepseek-ai--DeepSeek-V4.1-Flash";

// A disk with the model's snapshot "abc123" under a hub folder.
void AddSnapshot(SimulatedDisk& disk, const std::string& hub) {
  ASSERT_TRUE(disk.WriteText(hub + kFolder + "/refs/main", "abc123\n").ok());
  ASSERT_TRUE(disk.WriteText(hub + kFolder + "/snapshots/abc123/config.json", "{}").ok());
}

TEST(HubCacheFolder, FollowsTheHubClientsOrder) {
  CacheEnvironment all{"/hub", "/hf", "/xdg", "/home/u"};
  EXPECT_EQ(HubCacheFolder(all), "/hub");
  all.hf_hub_cache = "";
  EXPECT_EQ(HubCacheFolder(all), "/hf/hub");
  all.hf_home = "";
  EXPECT_EQ(HubCacheFolder(all), "/xdg/huggingface/hub");
  all.xdg_cache_home = "";
  EXPECT_EQ(HubCacheFolder(all), "/home/u/.cache/huggingface/hub");
  EXPECT_EQ(HubCacheFolder({}), "");
}

TEST(LocateModel, TakesADirectoryAsItIs) {
  SimulatedDisk disk;
  ASSERT_TRUE(disk.WriteText("models/tiny/config.json", "{}").ok());
  EXPECT_EQ(LocateModel(disk, "models/tiny", {}).value(), "models/tiny");
}

TEST(LocateModel, FindsTheSnapshotOfTheMainRef) {
  SimulatedDisk disk;
  AddSnapshot(disk, "/hf/hub");
  EXPECT_EQ(LocateModel(disk, kModel, {.hf_home = "/hf"}).value(),
            StrCat("/hf/hub", kFolder, "/snapshots/abc123"));
}

TEST(LocateModel, SaysWhereItLookedAndWhatFetches) {
  SimulatedDisk disk;
  ASSERT_TRUE(disk.CreateDirectories("/hf/hub").ok());
  const Status status = LocateModel(disk, kModel, {.hf_home = "/hf"}).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  const std::string message = MessageOf(status);
  EXPECT_NE(message.find(StrCat("/hf/hub", kFolder, "/refs/main")), std::string::npos) << message;
  EXPECT_NE(message.find("`hf download deepseek-ai/DeepSeek-V4.1-Flash`"), std::string::npos)
      << message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(LocateModel, SaysWhenNoCacheFolderIsKnown) {
  SimulatedDisk disk;
  EXPECT_NE(MessageOf(LocateModel(disk, kModel, {}).status()).find("none of HF_HUB_CACHE"),
            std::string::npos);
}

TEST(LocateModel, RefusesHalfDownloadedAndBrokenCaches) {
  SimulatedDisk disk;
  AddSnapshot(disk, "/a");
  ASSERT_TRUE(disk.Remove(StrCat("/a", kFolder, "/snapshots/abc123/config.json")).ok());
  ASSERT_TRUE(disk.WriteText(StrCat("/a", kFolder, "/refs/main"), "other").ok());
  EXPECT_NE(MessageOf(LocateModel(disk, kModel, {"/a"}).status()).find("/snapshots/other"),
            std::string::npos);
  ASSERT_TRUE(disk.WriteText(StrCat("/a", kFolder, "/refs/main"), "../../../etc").ok());
  EXPECT_EQ(LocateModel(disk, kModel, {"/a"}).status().code(), StatusCode::kDataLoss);
}

TEST(LocateModel, NamesOtherArguments) {
  SimulatedDisk disk;
  ASSERT_TRUE(disk.WriteText("notes.txt", "x").ok());
  EXPECT_NE(MessageOf(LocateModel(disk, "notes.txt", {}).status()).find("is a file"),
            std::string::npos);
  for (const char* argument : {"nowhere", "../up/two", "a/b/c", "", "a/.."}) {
    const std::string message = MessageOf(LocateModel(disk, argument, {"/hub"}).status());
    EXPECT_NE(message.find("no such directory; expected"), std::string::npos) << argument;
  }
}

}  // namespace
}  // namespace deepinfer
