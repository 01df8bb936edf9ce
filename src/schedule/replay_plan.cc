#include "schedule/replay_plan.h"

#include <algorithm>

#include "base/check.h"

namespace deepinfer {
namespace {

bool SlotIsUsable(ReplayMode mode, const ReplayShape& shape, const PrefixHit& hit) {
  const int32_t window_of_next_row = std::max(0, hit.num_tokens - shape.window + 1);
  return hit.has_slot && hit.slot_first_valid <= window_of_next_row &&
         (mode != ReplayMode::kExact || hit.slot_exact);
}

// One run of rows [begin, N) that sees nothing below `begin` in windows.
ReplayPlan Contiguous(int32_t num_cached, int32_t begin) {
  return {.num_cached = num_cached,
          .begin = begin,
          .replay_window_begin = begin,
          .window_begin = begin};
}

ReplayPlan FromSlot(const PrefixHit& hit) {
  return {.num_cached = hit.num_tokens,
          .uses_slot = true,
          .begin = hit.num_tokens,
          .replay_window_begin = hit.slot_first_valid,
          .window_begin = hit.slot_first_valid};
}

// The decoder half from the plan's first row on, with all that its windows can reach.
ReplayPlan WithWholeDecoder(ReplayPlan plan) {
  plan.decoder_begin = plan.begin;
  plan.decoder_window_begin = plan.window_begin;
  return plan;
}

ReplayPlan PlanExact(const ReplayShape& shape, const PrefixHit& hit, bool slot) {
  if (hit.num_tokens == 0 || !hit.pages_exact) return {};
  if (slot) return WithWholeDecoder(FromSlot(hit));
  // A layer's outputs are whole again W rows behind where those of the layer below are.
  const int64_t begin = hit.num_tokens - int64_t{shape.num_layers} * shape.window;
  if (begin <= 0) return {};
  return WithWholeDecoder(Contiguous(hit.num_tokens, static_cast<int32_t>(begin)));
}

// What the encoder half does in bounded mode. kept: first of the last KEEP prompt rows.
ReplayPlan PlanBoundedEncoder(const ReplayShape& shape, int32_t kept, const PrefixHit& hit,
                              bool slot) {
  if (hit.num_tokens == 0) return {};
  if (!slot) {
    const int32_t begin = std::min(hit.num_tokens - shape.window, kept);
    if (begin <= 0) return {};  // everything would be computed
    ReplayPlan plan = Contiguous(hit.num_tokens, begin);
    // For good, although window rows are whole again num_encoder_layers x W tokens on (serving.md
    // 9.3): the pages written until then are approximate, and later rows read them.
    plan.exact = false;
    return plan;
  }
  if (kept <= 0) {
    // All rows are computed, so the snapshot has nothing to add; the pages stay as they are.
    ReplayPlan plan = Contiguous(hit.num_tokens, 0);
    plan.exact = hit.pages_exact;
    return plan;
  }
  ReplayPlan plan = FromSlot(hit);
  plan.exact = hit.slot_exact && hit.pages_exact;
  if (kept < hit.num_tokens) {
    plan.begin = kept;
    plan.separate_replay = true;
    plan.replay_window_begin = kept;
  }
  return plan;
}

}  // namespace

StatusOr<ReplayMode> ParseReplayMode(std::string_view name) {
  // off and compact: the same in DeepInfer's own settings.
  if (name == "exact" || name == "off") return ReplayMode::kExact;
  if (name == "bounded" || name == "compact") return ReplayMode::kBounded;
  if (name == "mask") return ReplayMode::kMask;
  return InvalidArgument("replay mode is '", name, "', expected exact, bounded or mask");
}

Status CheckReplayShape(const ReplayShape& shape) {
  const int32_t least = shape.window + shape.verify_width;
  if (shape.keep >= least) return OkStatus();
  return InvalidArgument("replay keeps ", shape.keep, " prompt rows, less than sliding window ",
                         shape.window, " + verify width ", shape.verify_width, "; use ", least,
                         " or more");
}

ReplayPlan PlanReplay(ReplayMode mode, const ReplayShape& shape, int32_t num_prompt,
                      const PrefixHit& hit) {
  CHECK_GE(hit.num_tokens, 0);
  CHECK_LT(hit.num_tokens, num_prompt);
  const bool slot = SlotIsUsable(mode, shape, hit);
  if (mode == ReplayMode::kExact) return PlanExact(shape, hit, slot);
  const int32_t kept = num_prompt - shape.keep;
  ReplayPlan plan = PlanBoundedEncoder(shape, kept, hit, slot);
  plan.decoder_window_begin = std::max(0, kept);
  plan.decoder_begin = mode == ReplayMode::kMask ? plan.begin : plan.decoder_window_begin;
  return plan;
}

int64_t PlannedRowLayers(const ReplayShape& shape, int32_t num_prompt, const ReplayPlan& plan) {
  const int64_t encoder_rows = num_prompt - plan.begin;
  const int64_t decoder_rows = num_prompt - std::max(plan.begin, plan.decoder_begin);
  return encoder_rows * shape.num_encoder_layers +
         decoder_rows * (shape.num_layers - shape.num_encoder_layers);
}

}  // namespace deepinfer
