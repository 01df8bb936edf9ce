#include "base/progress.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ProgressTest : public ::testing::Test {
 protected:
  ProgressOutput Output(bool terminal) {
    return {terminal, [this](std::string_view text) { printed_.emplace_back(text); }};
  }

  SimulatedClock clock_;
  std::vector<std::string> printed_;
};

TEST_F(ProgressTest, ShortWorkIsSilent) {
  for (const bool terminal : {false, true}) {
    Progress progress("reading", "bytes", 100, clock_, Output(terminal));
    clock_.Advance(milliseconds(400));
    progress.Add(100);
  }
  EXPECT_TRUE(printed_.empty());
}

TEST_F(ProgressTest, LinesOffATerminalAreSeldom) {
  {
    Progress progress("reading", "bytes", 20'000'000, clock_, Output(false));
    for (int i = 0; i < 20; ++i) {
      clock_.Advance(milliseconds(500));
      progress.Add(1'000'000);
    }
  }
  EXPECT_EQ(printed_,
            (std::vector<std::string>{"reading: 6.0 MB of 20.0 MB (30%), 2.0 MB/s, 7 s left\n",
                                      "reading: 16.0 MB of 20.0 MB (80%), 2.0 MB/s, 2 s left\n",
                                      "reading: 20.0 MB, 2.0 MB/s, 10 s\n"}));
}

TEST_F(ProgressTest, TerminalLineIsRedrawnInPlaceAndEnded) {
  {
    Progress progress("eval", "tokens", 0, clock_, Output(true));
    for (int i = 0; i < 10; ++i) {
      clock_.Advance(milliseconds(100));
      progress.Add(3);
    }
  }
  EXPECT_EQ(printed_, (std::vector<std::string>{"\reval: 15 tokens, 30 tokens/s\x1b[K",
                                                "\reval: 21 tokens, 30 tokens/s\x1b[K",
                                                "\reval: 27 tokens, 30 tokens/s\x1b[K",
                                                "\reval: 30 tokens, 30 tokens/s, 1 s\x1b[K\n"}));
}

TEST_F(ProgressTest, SlowRatesAndLongTimesStayReadable) {
  Progress progress("eval", "requests", 100, clock_, Output(false));
  clock_.Advance(seconds(400));
  progress.Add(10);
  EXPECT_EQ(printed_, std::vector<std::string>{
                          "eval: 10 requests of 100 requests (10%), 0.0 requests/s, 60 min 0 s "
                          "left\n"});
}

TEST(BytesText, UsesPowersOfAThousand) {
  EXPECT_EQ(BytesText(999), "999 B");
  EXPECT_EQ(BytesText(1234567), "1.2 MB");
  EXPECT_EQ(BytesText(510'286'023'000.0), "510.3 GB");
}

}  // namespace
}  // namespace deepinfer
