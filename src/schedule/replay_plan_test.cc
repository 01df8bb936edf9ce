#include "schedule/replay_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace deepinfer {
namespace {

constexpr ReplayMode kModes[] = {ReplayMode::kExact, ReplayMode::kBounded, ReplayMode::kMask};
constexpr ReplayShape kReal = {
    .window = 128, .verify_width = 6, .num_layers = 40, .num_encoder_layers = 20, .keep = 140};
constexpr int32_t kPage = 64;

int32_t LongestHit(int32_t num_prompt) { return (num_prompt - 1) / kPage * kPage; }

PrefixHit WithSlot(int32_t num_tokens, const ReplayShape& shape = kReal) {
  const int32_t rows = shape.window + shape.verify_width;
  return {.num_tokens = num_tokens,
          .has_slot = true,
          .slot_first_valid = std::max(0, num_tokens - rows),
          .slot_exact = true};
}
PrefixHit WithoutSlot(int32_t num_tokens) { return {.num_tokens = num_tokens}; }

int64_t RowLayers(ReplayMode mode, int32_t num_prompt, const PrefixHit& hit) {
  return PlannedRowLayers(kReal, num_prompt, PlanReplay(mode, kReal, num_prompt, hit));
}

TEST(ReplayMode, IsParsedByName) {
  EXPECT_EQ(ParseReplayMode("exact").value(), ReplayMode::kExact);
  EXPECT_EQ(ParseReplayMode("bounded").value(), ReplayMode::kBounded);
  EXPECT_EQ(ParseReplayMode("mask").value(), ReplayMode::kMask);
  EXPECT_EQ(ParseReplayMode("off").value(), ReplayMode::kExact);
  EXPECT_EQ(ParseReplayMode("compact").value(), ReplayMode::kBounded);
  const Status status = ParseReplayMode("none").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(MessageOf(status), "replay mode is 'none', expected exact, bounded or mask");
}

TEST(ReplayShape, KeepBelowWindowPlusVerifyWidthIsRefused) {
  ReplayShape shape = kReal;
  shape.keep = 134;
  EXPECT_TRUE(CheckReplayShape(shape).ok());
  shape.keep = 133;
  const Status status = CheckReplayShape(shape);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(MessageOf(status),
            "replay keeps 133 prompt rows, less than sliding window 128 + verify width 6; use 134 "
            "or more");
}

TEST(ReplayPlan, ColdPromptRunsTheDecoderOnAllRowsOrOnTheKeptOnes) {
  const ReplayPlan exact = PlanReplay(ReplayMode::kExact, kReal, 1000, {});
  EXPECT_EQ(exact.begin, 0);
  EXPECT_EQ(exact.decoder_begin, 0);
  EXPECT_EQ(exact.decoder_window_begin, 0);
  const ReplayPlan bounded = PlanReplay(ReplayMode::kBounded, kReal, 1000, {});
  EXPECT_EQ(bounded.begin, 0);
  EXPECT_EQ(bounded.decoder_begin, 860);
  EXPECT_EQ(bounded.decoder_window_begin, 860);
  EXPECT_TRUE(bounded.exact);
  const ReplayPlan mask = PlanReplay(ReplayMode::kMask, kReal, 1000, {});
  EXPECT_EQ(mask.decoder_begin, 0);
  EXPECT_EQ(mask.decoder_window_begin, 860);
}

TEST(ReplayPlan, SlotWithALongSuffixNeedsNoReplay) {
  const ReplayPlan plan = PlanReplay(ReplayMode::kBounded, kReal, 1024 + 140, WithSlot(1024));
  EXPECT_TRUE(plan.uses_slot);
  EXPECT_EQ(plan.num_cached, 1024);
  EXPECT_EQ(plan.begin, 1024);
  EXPECT_FALSE(plan.separate_replay);
  EXPECT_EQ(plan.window_begin, 1024 - 134);
  EXPECT_EQ(plan.decoder_begin, 1024);
  EXPECT_TRUE(plan.exact);
}

TEST(ReplayPlan, SlotWithAShortSuffixReplaysForTheDecoderAlone) {
  const ReplayPlan plan = PlanReplay(ReplayMode::kBounded, kReal, 1024 + 139, WithSlot(1024));
  EXPECT_TRUE(plan.uses_slot);
  EXPECT_EQ(plan.begin, 1023);
  EXPECT_TRUE(plan.separate_replay);
  EXPECT_EQ(plan.replay_window_begin, 1023);
  EXPECT_EQ(plan.window_begin, 1024 - 134);
  EXPECT_EQ(plan.decoder_begin, 1023);
  EXPECT_EQ(plan.decoder_window_begin, 1023);
  EXPECT_TRUE(plan.exact);
}

TEST(ReplayPlan, WithoutSlotOneRunReplaysTheWindowAndTheKeptRows) {
  const ReplayPlan window = PlanReplay(ReplayMode::kBounded, kReal, 2000, WithoutSlot(1024));
  EXPECT_EQ(window.begin, 1024 - 128);
  EXPECT_EQ(window.window_begin, 1024 - 128);
  EXPECT_EQ(window.decoder_begin, 2000 - 140);
  EXPECT_FALSE(window.separate_replay);
  EXPECT_FALSE(window.exact);
  const ReplayPlan kept = PlanReplay(ReplayMode::kBounded, kReal, 1025, WithoutSlot(1024));
  EXPECT_EQ(kept.begin, 1025 - 140);
  EXPECT_EQ(kept.window_begin, 1025 - 140);
}

TEST(ReplayPlan, ExactModeReplaysLayersTimesWindowOrMisses) {
  const ReplayPlan plan = PlanReplay(ReplayMode::kExact, kReal, 6000, WithoutSlot(5184));
  EXPECT_EQ(plan.num_cached, 5184);
  EXPECT_EQ(plan.begin, 64);
  EXPECT_EQ(plan.decoder_begin, 64);
  EXPECT_EQ(PlanReplay(ReplayMode::kExact, kReal, 6000, WithoutSlot(5120)).num_cached, 0);
}

TEST(ReplayPlan, ExactModeUsesNothingThatIsNotExact) {
  PrefixHit hit = WithSlot(1024);
  EXPECT_EQ(PlanReplay(ReplayMode::kExact, kReal, 2000, hit).num_cached, 1024);
  hit.slot_exact = false;
  EXPECT_EQ(PlanReplay(ReplayMode::kExact, kReal, 2000, hit).num_cached, 0);
  hit = WithSlot(1024);
  hit.pages_exact = false;
  EXPECT_EQ(PlanReplay(ReplayMode::kExact, kReal, 2000, hit).num_cached, 0);
}

TEST(ReplayPlan, SlotWithoutTheWholeWindowCountsAsNone) {
  PrefixHit hit = WithSlot(1024);
  hit.slot_first_valid = 1024 - 127;
  EXPECT_TRUE(PlanReplay(ReplayMode::kBounded, kReal, 2000, hit).uses_slot);
  hit.slot_first_valid = 1024 - 126;
  EXPECT_FALSE(PlanReplay(ReplayMode::kBounded, kReal, 2000, hit).uses_slot);
}

TEST(ReplayPlan, InexactSlotOrPagesStayInexact) {
  PrefixHit slot = WithSlot(1024);
  slot.slot_exact = false;
  EXPECT_FALSE(PlanReplay(ReplayMode::kBounded, kReal, 2000, slot).exact);
  PrefixHit pages = WithSlot(1024);
  pages.pages_exact = false;
  EXPECT_FALSE(PlanReplay(ReplayMode::kBounded, kReal, 2000, pages).exact);
}

// ---- A restatement that follows every row through every layer -----------------------------------

struct Layer {
  std::vector<char> present;  // [N] this layer has the row's window record
  std::vector<char> exact;    // [N] and it is a cold run's
};

// Runs a plan row by row. A row is exact in a layer iff all that it reads is present and exact.
class Follower {
 public:
  Follower(const ReplayShape& shape, int32_t num_prompt, const PrefixHit& hit,
           const ReplayPlan& plan)
      : shape_(shape), num_prompt_(num_prompt), hit_(hit), plan_(plan) {
    rings_.resize(static_cast<size_t>(shape.num_layers));
    for (Layer& ring : rings_) {
      ring.present.assign(static_cast<size_t>(num_prompt), 0);
      ring.exact = ring.present;
    }
    pages_exact_ = plan.num_cached == 0 || hit.pages_exact;
  }

  void Run(bool slot_has_all_rings) {
    if (plan_.uses_slot)
      LoadSlot(slot_has_all_rings ? shape_.num_layers : shape_.num_encoder_layers);
    const std::vector<Layer> loaded = rings_;
    if (plan_.separate_replay) {
      for (int32_t l = 0; l < shape_.num_encoder_layers; ++l)
        Forget(rings_[static_cast<size_t>(l)]);
    }
    for (int32_t p = plan_.begin; p < num_prompt_; ++p) {
      if (plan_.separate_replay && p == plan_.num_cached) {
        std::copy_n(loaded.begin(), shape_.num_encoder_layers, rings_.begin());
      }
      Row(p);
    }
  }

  // Nothing was read that is not there.
  bool reads_are_present = true;
  // Encoder outputs of all rows from num_cached on, and so the pages made of them.
  bool encoder_exact = true;
  // Outputs of the last layer of all rows from num_cached on.
  bool all_exact = true;

 private:
  void Forget(Layer& ring) const { ring.present.assign(ring.present.size(), 0); }

  void LoadSlot(int32_t num_layers) {
    for (int32_t l = 0; l < num_layers; ++l) {
      Layer& ring = rings_[static_cast<size_t>(l)];
      for (int32_t p = hit_.slot_first_valid; p < hit_.num_tokens; ++p) {
        ring.present[static_cast<size_t>(p)] = 1;
        ring.exact[static_cast<size_t>(p)] = hit_.slot_exact;
      }
    }
  }

  void Row(int32_t p) {
    bool exact = true;  // of the row's state at the layer's input
    for (int32_t l = 0; l < shape_.num_layers; ++l) {
      const bool decoder = l >= shape_.num_encoder_layers;
      if (l == shape_.num_encoder_layers && p >= plan_.num_cached) {
        encoder_exact &= exact;
        pages_exact_ &= exact;
      }
      if (decoder && p < plan_.decoder_begin) return;
      Layer& ring = rings_[static_cast<size_t>(l)];
      ring.present[static_cast<size_t>(p)] = 1;
      ring.exact[static_cast<size_t>(p)] = exact;
      exact &= WindowIsExact(ring, p, WindowBegin(p, decoder)) && pages_exact_;
    }
    if (p >= plan_.num_cached) all_exact &= exact;
  }

  int32_t WindowBegin(int32_t p, bool decoder) const {
    // Decoder rows before the narrowed ones exist in mask mode only; nobody reads what they make.
    if (decoder) return p >= plan_.decoder_window_begin ? plan_.decoder_window_begin : p;
    return p < plan_.num_cached ? plan_.replay_window_begin : plan_.window_begin;
  }

  bool WindowIsExact(const Layer& ring, int32_t p, int32_t window_begin) {
    const int32_t whole = std::max(0, p - shape_.window + 1);
    const int32_t first = std::max(whole, window_begin);
    bool exact = first == whole;
    for (int32_t i = first; i <= p; ++i) {
      reads_are_present &= ring.present[static_cast<size_t>(i)] != 0;
      exact &= ring.exact[static_cast<size_t>(i)] != 0;
    }
    return exact;
  }

  const ReplayShape shape_;
  const int32_t num_prompt_;
  const PrefixHit hit_;
  const ReplayPlan plan_;
  std::vector<Layer> rings_;
  bool pages_exact_ = true;
};

std::vector<PrefixHit> HitsOf(int32_t num_tokens, const ReplayShape& shape) {
  std::vector<PrefixHit> hits;
  for (const bool pages_exact : {true, false}) {
    hits.push_back({.num_tokens = num_tokens, .pages_exact = pages_exact});
    for (const bool slot_exact : {true, false}) {
      PrefixHit hit = WithSlot(num_tokens, shape);
      hit.pages_exact = pages_exact;
      hit.slot_exact = slot_exact;
      hits.push_back(hit);
    }
  }
  return hits;
}

// Calls check(mode, num_prompt, hit) for all prompts up to `num_prompt_max` and all their hits.
template <typename Check>
void ForEveryPrompt(const ReplayShape& shape, int32_t num_prompt_max, Check check) {
  constexpr int32_t kSmallPage = 4;
  for (int32_t n = 1; n <= num_prompt_max; ++n) {
    for (int32_t h = 0; h < n; h += kSmallPage) {
      for (const PrefixHit& hit : HitsOf(h, shape)) {
        for (const ReplayMode mode : kModes) check(mode, n, hit);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

constexpr ReplayShape kSmall = {
    .window = 6, .verify_width = 3, .num_layers = 5, .num_encoder_layers = 3, .keep = 10};

TEST(ReplayPlan, WindowsSeeOnlyWhatIsComputedOrRestored) {
  ForEveryPrompt(kSmall, 120, [](ReplayMode mode, int32_t n, const PrefixHit& hit) {
    const ReplayPlan plan = PlanReplay(mode, kSmall, n, hit);
    Follower follower(kSmall, n, hit, plan);
    follower.Run(mode == ReplayMode::kExact);
    SCOPED_TRACE(testing::Message() << "mode " << static_cast<int>(mode) << " N " << n << " H "
                                    << hit.num_tokens << " slot " << hit.has_slot);
    EXPECT_TRUE(follower.reads_are_present);
    EXPECT_LE(plan.exact, follower.encoder_exact);
    EXPECT_TRUE(mode != ReplayMode::kExact || (plan.exact && follower.all_exact));
  });
}

// Every flag and number, restated from the modes' definitions.
TEST(ReplayPlan, FollowsTheRulesForEveryPromptAndHit) {
  ForEveryPrompt(kSmall, 160, [](ReplayMode mode, int32_t n, const PrefixHit& hit) {
    const ReplayPlan plan = PlanReplay(mode, kSmall, n, hit);
    const int32_t h = hit.num_tokens, kept = n - kSmall.keep;
    const bool exact_mode = mode == ReplayMode::kExact;
    const bool slot = hit.has_slot && (hit.slot_exact || !exact_mode);
    SCOPED_TRACE(testing::Message() << "mode " << static_cast<int>(mode) << " N " << n << " H " << h
                                    << " slot " << slot);
    bool taken = h > 0;
    int32_t begin = 0;
    if (exact_mode) {
      taken &= hit.pages_exact && (slot || h > kSmall.num_layers * kSmall.window);
      begin = slot ? h : h - kSmall.num_layers * kSmall.window;
    } else if (slot) {
      begin = std::max(0, std::min(h, kept));
    } else {
      begin = std::max(0, std::min(h - kSmall.window, kept));
      taken &= begin > 0;
    }
    EXPECT_EQ(plan.num_cached, taken ? h : 0);
    EXPECT_EQ(plan.begin, taken ? begin : 0);
    EXPECT_LE(plan.begin, std::min(plan.num_cached, n - 1));
    EXPECT_EQ(plan.uses_slot, taken && slot && begin > 0);
    EXPECT_EQ(plan.separate_replay, plan.uses_slot && plan.begin < h);
    EXPECT_EQ(plan.replay_window_begin, plan.separate_replay ? begin : plan.window_begin);
    EXPECT_EQ(plan.window_begin, plan.uses_slot ? hit.slot_first_valid : plan.begin);
    if (exact_mode) {
      EXPECT_EQ(plan.decoder_begin, plan.begin);
      EXPECT_EQ(plan.decoder_window_begin, plan.window_begin);
    } else {
      EXPECT_EQ(plan.decoder_begin, mode == ReplayMode::kMask ? plan.begin : std::max(0, kept));
      EXPECT_EQ(plan.decoder_window_begin, std::max(0, kept));
    }
  });
}

// ---- Named cases and claims ---------------------------------------------------------------------

TEST(ReplayPlan, case_32_RepeatedPromptHitsAllItsWholePages) {
  for (const int32_t n : {129, 257, 1024, 2048, 4095}) {
    for (const ReplayMode mode : kModes) {
      const int32_t expected = (n - 1) / 64 * 64;
      EXPECT_EQ(PlanReplay(mode, kReal, n, WithSlot(LongestHit(n))).num_cached, expected) << n;
    }
  }
}

// A prompt within the window is computed as in exact mode, whatever was cached, unless a snapshot
// says more; so replay changes nothing there.
TEST(ReplayPlan, case_37_ReplayOfAPromptWithinTheWindowIsExact) {
  for (int32_t n = 1; n <= 400; ++n) {
    for (int32_t h = 0; h < n; h += kPage) {
      for (const PrefixHit& hit : {WithoutSlot(h), WithSlot(h)}) {
        const ReplayPlan plan = PlanReplay(ReplayMode::kBounded, kReal, n, hit);
        if (n <= kReal.window) {
          EXPECT_TRUE(plan.exact);
          EXPECT_EQ(plan.begin, 0);
          EXPECT_EQ(plan.window_begin, 0);
          EXPECT_EQ(plan.decoder_begin, 0);
        }
        EXPECT_TRUE(plan.num_cached == 0 || hit.has_slot || h > kReal.window);
      }
    }
  }
}

TEST(ReplayPlan, claim_2_ReplayedRowsDoNotGrowWithTheContext) {
  for (const int32_t suffix : {1, 4, 12, 64, 139, 140, 1000}) {
    const auto replayed = [suffix](int32_t hit, bool slot) {
      const ReplayPlan plan = PlanReplay(ReplayMode::kBounded, kReal, hit + suffix,
                                         slot ? WithSlot(hit) : WithoutSlot(hit));
      return hit - plan.begin;
    };
    for (int32_t hit = 4096; hit <= 1 << 20; hit *= 2) {
      EXPECT_EQ(replayed(hit, true), std::max(0, 140 - suffix));
      EXPECT_EQ(replayed(hit, false), std::max(128, 140 - suffix));
    }
  }
}

TEST(ReplayPlan, claim_3_DecoderReplayNearlyHalvesPrefill) {
  const auto ratio_full = [](int32_t n) {
    return static_cast<double>(RowLayers(ReplayMode::kBounded, n, {})) /
           static_cast<double>(RowLayers(ReplayMode::kExact, n, {}));
  };
  EXPECT_NEAR(ratio_full(4096), 0.517, 5e-4);
  EXPECT_NEAR(ratio_full(65536), 0.501, 5e-4);
  EXPECT_GE(ratio_full(16384), 0.48);
  EXPECT_LE(ratio_full(16384), 0.56);
  EXPECT_EQ(ratio_full(140), 1.0);
}

TEST(ReplayPlan, SecondPromptOf4100TokensCostsThePublishedRowLayers) {
  EXPECT_EQ(RowLayers(ReplayMode::kBounded, 4100, {}), 84'800);
  EXPECT_EQ(RowLayers(ReplayMode::kBounded, 4100, WithSlot(4096)), 140 * 40);
  EXPECT_EQ(RowLayers(ReplayMode::kBounded, 4100, WithoutSlot(4096)), 140 * 40);
  EXPECT_EQ(RowLayers(ReplayMode::kExact, 4100, {}), 164'000);
  EXPECT_EQ(RowLayers(ReplayMode::kExact, 4100, WithSlot(4096)), 4 * 40);
}

}  // namespace
}  // namespace deepinfer
