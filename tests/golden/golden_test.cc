// The engine against the official arithmetic: every figure of every folder inside its limit.
#include "model/golden_check.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "kernels/testing/packed.h"

namespace deepinfer {
namespace {

// A folder of this test's own, removed at the end.
class WorkDir {
 public:
  explicit WorkDir(const char* use = "generated")
      : path_(StrCat(std::filesystem::temp_directory_path().string(), "/deepinfer-golden-",
                     static_cast<int64_t>(::getpid()), "-", use)) {}
  ~WorkDir() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

// Every figure of `folder` is inside its limit, and there are at least `least` of them.
void ExpectGreen(const std::string& folder, VariantId variant, size_t least = 14) {
  const WorkDir work;
  ThreadPool threads(2);
  const auto report = RunGoldenCheck(
      RealDisk(), folder,
      {.backend = {.variant = variant, .threads = &threads}, .work_dir = work.path()});
  ASSERT_TRUE(report.ok()) << MessageOf(report.status());
  for (const GoldenFigure& figure : report->figures) {
    EXPECT_TRUE(figure.pass()) << figure.name << ": " << figure.measured << ", limit "
                               << (figure.at_least ? ">= " : "<= ") << figure.limit;
  }
  EXPECT_TRUE(report->pass());
  EXPECT_GE(report->figures.size(), least);  // an empty comparison proves nothing
}

std::string Stored(const std::string& name) {
  return StrCat(DI_SOURCE_DIR, "/tests/golden/", name);
}
// Larger data beside the project, where there is some.
std::string Shared(const std::string& name) {
  return StrCat(DI_SOURCE_DIR, "/../shared/data/golden/", name);
}

// Every folder once per CPU variant of this machine, and with the oracle.
class GoldenCpu : public testing::CpuVariants {};
DI_INSTANTIATE_CPU_VARIANTS(GoldenCpu);

TEST_P(GoldenCpu, Tiny) { ExpectGreen(Stored("tiny"), GetParam()); }
TEST(Golden, TinyOracle) { ExpectGreen(Stored("tiny"), kRefVariant); }
TEST_P(GoldenCpu, ManyExperts) { ExpectGreen(Stored("A"), GetParam()); }
TEST(Golden, ManyExpertsOracle) { ExpectGreen(Stored("A"), kRefVariant); }
// The bundled model, by the arithmetic of its training's language (tools/nano/reference.py).
TEST_P(GoldenCpu, Bundled) { ExpectGreen(Stored("nano"), GetParam(), 11); }
TEST_P(GoldenCpu, RealAttention) { ExpectGreen(Stored("B"), GetParam()); }

// B with its layer streams, which do not fit into the repository; limits.json of the stored copy
// applies.
TEST_P(GoldenCpu, RealAttentionLayerByLayer) {
  if (!RealDisk().IsDirectory(Shared("B"))) GTEST_SKIP() << "skipped: no " << Shared("B");
  const WorkDir copy("copy");
  std::filesystem::copy(Shared("B"), copy.path(), std::filesystem::copy_options::recursive);
  std::filesystem::permissions(copy.path(), std::filesystem::perms::owner_all);
  std::filesystem::copy_file(Stored("B") + "/limits.json", copy.path() + "/limits.json");
  ExpectGreen(copy.path(), GetParam(), 35);
}

TEST(Golden, SaysWhatIsMissing) {
  const auto report = RunGoldenCheck(RealDisk(), "/nowhere", {});
  ASSERT_FALSE(report.ok());
  EXPECT_NE(MessageOf(report.status()).find("/nowhere/outputs.safetensors"), std::string::npos);
}

}  // namespace
}  // namespace deepinfer
