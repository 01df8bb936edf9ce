#include "apps/load_bench.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/check.h"
#include "base/log.h"
#include "model/synthetic_checkpoint.h"

namespace deepinfer {
namespace {

class LoadBenchTest : public ::testing::Test {
 protected:
  LoadBenchTest() {
    folder_ = (std::filesystem::temp_directory_path() / "load_bench-XXXXXX").string();
    CHECK(::mkdtemp(folder_.data()) != nullptr);
    const std::string config = RealDisk().ReadText(DI_SOURCE_DIR "/tools/tiny/tiny.json").value();
    CHECK(WriteSyntheticCheckpoint(RealDisk(), config, 101, folder_ + "/model").ok());
    flags_.engine.model = folder_ + "/model";
    flags_.engine.num_threads = 2;
    flags_.log_level = "off";
  }
  ~LoadBenchTest() override {
    std::filesystem::remove_all(folder_);
    SetLogLevel(LogLevel::kInfo);
  }

  LoadBench Bench(bool cold) {
    const StatusOr<LoadBench> bench =
        BenchLoad(flags_, cold, {{}, {}, RealDisk(), RealClock(), RealRng()});
    CHECK(bench.ok());
    return *bench;
  }

  std::string folder_;
  EngineFlags flags_;
};

// Every byte of the weights is read once, wherever from; what is reported follows from that.
TEST_F(LoadBenchTest, CountsWhatWasRead) {
  for (const bool cold : {false, true}) {
    const LoadBench bench = Bench(cold);
    EXPECT_EQ(bench.read_bytes(), bench.weight_bytes);
    EXPECT_EQ(bench.times.weights.cache_bytes, 0);
    EXPECT_GE(bench.file_bytes, bench.weight_bytes);
    EXPECT_GE(bench.num_rounds, 1);
    EXPECT_GT(bench.ceiling_bytes_per_s, 0);
    EXPECT_GT(bench.Fraction(), 0);
    EXPECT_GE(bench.peak_resident_bytes, bench.weight_bytes);
    EXPECT_NE(LoadTable(bench).find(cold ? "checkpoint, cold" : "checkpoint, warm"),
              std::string::npos);
  }
}

TEST_F(LoadBenchTest, MakesTheCacheAndReadsItOnly) {
  flags_.engine.weights_cache = folder_ + "/cache";
  const LoadBench bench = Bench(false);
  EXPECT_EQ(bench.times.weights.source_bytes, 0);
  EXPECT_GT(bench.times.weights.cache_bytes, 0);
  EXPECT_TRUE(bench.from_cache);
  EXPECT_NE(LoadJson(bench).find("\"from_cache\": true"), std::string::npos) << LoadJson(bench);
}

}  // namespace
}  // namespace deepinfer
