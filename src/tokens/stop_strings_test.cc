#include "tokens/stop_strings.h"

#include <gtest/gtest.h>

#include <random>

namespace deepinfer {
namespace {

struct Streamed {
  std::string text;
  int32_t stop_idx = -1;
  bool operator==(const Streamed&) const = default;
};

// Feeds pieces until a stop or the end.
Streamed Stream(const std::vector<std::string>& stops, const std::vector<std::string>& pieces,
                bool include_stop = false) {
  auto matcher = StopMatcher::Create(stops, include_stop);
  EXPECT_TRUE(matcher.ok()) << matcher.status();
  Streamed out;
  for (const std::string& piece : pieces) {
    const StopMatcher::Result result = matcher->Add(piece);
    out.text += result.text;
    out.stop_idx = result.stop_idx;
    if (matcher->stopped()) return out;
  }
  out.text += matcher->Finish();
  return out;
}

// The rule, spelled out: the first end, of those the longest stop.
Streamed Reference(const std::vector<std::string>& stops, const std::string& text,
                   bool include_stop) {
  for (size_t end = 1; end <= text.size(); ++end) {
    int32_t best = -1;
    for (size_t i = 0; i < stops.size(); ++i) {
      const bool ends = std::string_view(text).substr(0, end).ends_with(stops[i]);
      if (ends && (best < 0 || stops[i].size() > stops[static_cast<size_t>(best)].size())) {
        best = static_cast<int32_t>(i);
      }
    }
    if (best < 0) continue;
    const size_t stop_bytes = include_stop ? 0 : stops[static_cast<size_t>(best)].size();
    return {text.substr(0, end - stop_bytes), best};
  }
  return {text, -1};
}

TEST(StopStrings, FoundAcrossPieces) {
  EXPECT_EQ(Stream({"END"}, {"abE", "N", "Dxyz"}), (Streamed{"ab", 0}));
  EXPECT_EQ(Stream({"END"}, {"abE", "N", "Dxyz"}, true), (Streamed{"abEND", 0}));
  EXPECT_EQ(Stream({"END"}, {"abEN"}), (Streamed{"abEN", -1}));
  EXPECT_EQ(Stream({}, {"a", "b"}), (Streamed{"ab", -1}));
}

TEST(StopStrings, EarliestEndWinsThenTheLongest) {
  EXPECT_EQ(Stream({"abcd", "bc"}, {"xabcd"}), (Streamed{"xa", 1}));
  EXPECT_EQ(Stream({"c", "abc"}, {"xab", "c"}), (Streamed{"x", 1}));
  EXPECT_EQ(Stream({"aab"}, {"aa", "ab"}), (Streamed{"a", 0}));
}

TEST(StopStrings, HoldsBackNoMoreThanABeginning) {
  auto matcher = StopMatcher::Create({"\n\nUser", "stop"});
  EXPECT_EQ(matcher->Add("text").text, "text");
  EXPECT_EQ(matcher->Add(" s").text, " ");
  EXPECT_EQ(matcher->held_bytes(), 1);
  EXPECT_EQ(matcher->Add("tx\n").text, "stx");
  EXPECT_EQ(matcher->Add("\nUse").text, "");
  EXPECT_EQ(matcher->held_bytes(), 5);
  EXPECT_EQ(matcher->Add("d").text, "\n\nUsed");
}

TEST(StopStrings, TextGivenOutNeverEndsInHalfACharacter) {
  auto matcher = StopMatcher::Create({"\u4E2D!"});
  EXPECT_EQ(matcher->Add("\u4E2D").text, "");
  EXPECT_EQ(matcher->Add("\u4E2E").text, "\u4E2D\u4E2E");  // shares two bytes with the stop
}

TEST(StopStrings, EqualsTheRuleForAnyCutting) {
  std::mt19937 rng(7);
  const auto word = [&](size_t max) {
    std::string s;
    for (size_t i = 1 + rng() % max; i > 0; --i) s.push_back("ab"[rng() % 2]);
    return s;
  };
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::string> stops;
    for (size_t i = rng() % 4; i > 0; --i) stops.push_back(word(6) + (rng() % 2 ? "c" : ""));
    std::vector<std::string> pieces;
    std::string text;
    for (size_t i = rng() % 8; i > 0; --i) {
      pieces.push_back(word(5) + (rng() % 4 ? "" : "c"));
      text += pieces.back();
    }
    const bool include_stop = rng() % 2;
    ASSERT_EQ(Stream(stops, pieces, include_stop), Reference(stops, text, include_stop)) << text;
  }
}

TEST(StopStrings, LongNearMissesTakeLinearTime) {
  const std::string stop = std::string(20'000, 'a') + "b";
  auto matcher = StopMatcher::Create({stop});
  std::string text = matcher->Add(std::string(2'000'000, 'a')).text;
  text += matcher->Finish();
  EXPECT_EQ(text.size(), 2'000'000u);
}

TEST(StopStrings, EmptyStopIsRefused) {
  const auto matcher = StopMatcher::Create({"a", ""});
  ASSERT_FALSE(matcher.ok());
  EXPECT_EQ(MessageOf(matcher.status()), "stop string 1 is empty, at least one byte was expected");
}

}  // namespace
}  // namespace deepinfer
