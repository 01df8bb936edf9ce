#include "kernels/device/device.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

TEST(Device, NoteIsOneLineThatSaysWhereItComputes) {
  const std::string note = AcceleratorNote();
  EXPECT_EQ(note.find('\n'), std::string::npos) << note;
  EXPECT_TRUE(note.ends_with("computing on the CPU")) << note;
}

TEST(Device, NoteSaysHowThisWasBuilt) {
  EXPECT_EQ(AcceleratorNote().starts_with("CUDA build"), IsCudaBuild());
}

TEST(Device, NoteAgreesWithTheListOfGpus) {
  const std::string note = AcceleratorNote();
  const std::vector<GpuInfo> gpus = ListGpus();
  if (note.starts_with("built without CUDA") || note.find("no usable GPU") != std::string::npos) {
    EXPECT_TRUE(gpus.empty()) << note;
  } else {
    ASSERT_FALSE(gpus.empty()) << note;
    EXPECT_NE(note.find(gpus[0].name), std::string::npos) << note;
    EXPECT_GT(gpus[0].memory_bytes, 0);
  }
}

}  // namespace
}  // namespace deepinfer
