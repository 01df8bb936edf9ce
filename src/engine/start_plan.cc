#include "engine/start_plan.h"

#include <algorithm>
#include <limits>

#include "base/progress.h"
#include "model/kv_shape.h"

namespace deepinfer {
namespace {

constexpr int32_t kDefaultKeep = 140;
constexpr int32_t kMaxBatchedTokens = 32'768;

int64_t PagesFor(int64_t num_tokens) { return (num_tokens + kTokensPerPage - 1) / kTokensPerPage; }

std::string Bytes(int64_t num_bytes) { return BytesText(static_cast<double>(num_bytes)); }

// The options with the checkpoint's own limits filled in.
StatusOr<SchedulerOptions> MakeSchedulerOptions(const EngineOptions& options,
                                                const ModelConfig& config, const KvShape& shape) {
  const int64_t own =
      std::min<int64_t>(config.max_position_embeddings, std::numeric_limits<int32_t>::max() / 2);
  if (options.max_model_len > own) {
    return InvalidArgument("max_model_len: found ", options.max_model_len,
                           ", the model has positions for ", own, " tokens");
  }
  if (options.max_num_batched_tokens > kMaxBatchedTokens) {
    return InvalidArgument("max_num_batched_tokens: found ", options.max_num_batched_tokens,
                           ", expected at most ", kMaxBatchedTokens);
  }
  DI_ASSIGN_OR_RETURN(const ReplayMode replay, ParseReplayMode(options.replay));
  SchedulerOptions made = {
      .max_num_seqs = options.max_num_seqs,
      .max_num_batched_tokens = options.max_num_batched_tokens,
      .max_model_len =
          options.max_model_len == 0 ? static_cast<int32_t>(own) : options.max_model_len,
      .max_waiting = options.max_waiting,
      .num_drafts = options.scripted_drafts,
      .replay = replay,
      .shape = {.window = config.sliding_window,
                .verify_width = shape.verify_width,
                .num_layers = config.num_hidden_layers,
                .num_encoder_layers = config.FirstDecoderLayer(),
                .keep = options.replay_keep != 0
                            ? options.replay_keep
                            : std::max(kDefaultKeep, config.sliding_window + shape.verify_width)},
      .prefix_cache = options.prefix_cache};
  DI_RETURN_IF_ERROR(CheckSchedulerOptions(made));
  return made;
}

StatusOr<KvMemorySizes> MakeKvSizes(const EngineOptions& options,
                                    const SchedulerOptions& scheduling, const KvShape& shape) {
  const int64_t page_bytes = shape.layout.page_bytes;
  const int64_t bytes =
      options.kv_cache_bytes != 0
          ? options.kv_cache_bytes
          : DefaultKvCacheBytes(page_bytes, scheduling.max_model_len, scheduling.max_num_seqs);
  if (bytes < page_bytes) {
    return InvalidArgument("kv_cache_bytes: found ", bytes, ", expected at least one page of ",
                           kTokensPerPage, " tokens, ", page_bytes);
  }
  const auto pages_in = [page_bytes](int64_t memory) {
    return static_cast<int32_t>(
        std::min<int64_t>(memory / page_bytes, std::numeric_limits<int32_t>::max() / 2));
  };
  const int32_t num_seqs = scheduling.max_num_seqs;
  const bool exact = scheduling.replay == ReplayMode::kExact;
  return KvMemorySizes{
      .num_pages = pages_in(bytes),
      .num_states = num_seqs,
      .num_host_pages =
          pages_in(options.host_cache_bytes >= 0 ? options.host_cache_bytes : bytes / 4),
      .num_saves = num_seqs / 4 + 1,
      .num_slots = !options.prefix_cache    ? 0
                   : options.swa_slots >= 0 ? options.swa_slots
                                            : 4 * num_seqs,
      .num_snapshot_rings = exact ? shape.num_rings : scheduling.shape.num_encoder_layers};
}

}  // namespace

ReserveShape ScratchShape(const SchedulerOptions& options) {
  return {.max_rows = options.max_num_batched_tokens,
          .max_logits_rows = options.max_num_seqs * (1 + options.num_drafts),
          .max_context = options.max_model_len};
}

int64_t DefaultKvCacheBytes(int64_t page_bytes, int64_t num_tokens, int64_t num_sequences) {
  constexpr int64_t kLimit = int64_t{1} << 30;
  const int64_t one = PagesFor(num_tokens) * page_bytes;
  return std::max(one, std::min(kLimit, one * num_sequences));
}

StatusOr<StartPlan> PlanStart(const EngineOptions& options, const ModelConfig& config,
                              const StartMachine& machine) {
  const KvShape shape = MakeKvShape(config);
  StartPlan plan;
  DI_ASSIGN_OR_RETURN(plan.variant, ChooseVariant(options.variant));
  const bool packs = plan.variant != kRefVariant;
  DI_ASSIGN_OR_RETURN(plan.placement,
                      ParsePlacement(options.experts, options.engram, options.expert_cache_bytes,
                                     packs && !options.weights_cache.empty()));
  DI_ASSIGN_OR_RETURN(plan.scheduler, MakeSchedulerOptions(options, config, shape));
  DI_ASSIGN_OR_RETURN(plan.kv_sizes, MakeKvSizes(options, plan.scheduler, shape));
  plan.page_bytes = shape.layout.page_bytes;
  plan.state_bytes = StateBytes(shape);
  plan.slot_bytes = SnapshotBytes(shape, plan.kv_sizes.num_snapshot_rings);
  plan.index_scratch_bytes = options.index_scratch_bytes;
  plan.kv = PlanKvMemory(shape, plan.kv_sizes);
  const ReserveShape largest = ScratchShape(plan.scheduler);
  plan.scratch = Model::PlanScratch(config,
                                    {.variant = plan.variant,
                                     .num_threads = machine.num_threads,
                                     .index_scratch_bytes = options.index_scratch_bytes,
                                     .expert_rounds = plan.placement.experts != WeightPlace::kRam},
                                    largest);
  DI_ASSIGN_OR_RETURN(plan.weights,
                      PlanWeightMemory(config, packs, plan.placement, machine.free_bytes,
                                       Model::MaxEngramRows(config, largest)));
  plan.placement.expert_cache_bytes = plan.weights.expert_slots;
  plan.about =
      StrCat(plan.scheduler.max_num_seqs, " sequences of at most ", plan.scheduler.max_model_len,
             " tokens, replay ", options.replay, ", experts ", options.experts, ", engram ",
             options.engram, ", ", machine.num_threads, " threads");
  return plan;
}

EngineMemory DescribeStart(const StartPlan& plan) {
  using Place = EngineMemory::Place;
  const KvMemorySizes& sizes = plan.kv_sizes;
  const SchedulerOptions& scheduling = plan.scheduler;
  const auto tokens = [](int64_t pages) { return StrCat(pages * kTokensPerPage, " tokens"); };
  const auto states = [&](int32_t count) {
    return StrCat(count, " of ", plan.state_bytes, " bytes");
  };
  return {.parts = {{"packed_weights", "weights, packed", plan.weights.packed, Place::kWeights, ""},
                    {"expert_slots", "slots of experts on disk", plan.weights.expert_slots,
                     Place::kWeights, ""},
                    {"engram", "engram tables or rows", plan.weights.engram, Place::kWeights, ""},
                    {"kv_pages", "KV pages", plan.kv.pages, Place::kDevice,
                     StrCat(sizes.num_pages, " of ", plan.page_bytes, " bytes, ",
                            tokens(sizes.num_pages))},
                    {"states", "window state, running", plan.kv.states, Place::kDevice,
                     states(sizes.num_states)},
                    {"row_scratch", "forward scratch, rows", plan.scratch.rows_bytes,
                     Place::kDevice, StrCat(scheduling.max_num_batched_tokens, " rows a step")},
                    {"thread_scratch", "forward scratch, threads", plan.scratch.threads_bytes,
                     Place::kDevice,
                     StrCat(Bytes(plan.scratch.index_bytes), " of it for choosing index entries, ",
                            Bytes(plan.index_scratch_bytes), " allowed")},
                    {"host_pages", "host tier, KV pages", plan.kv.host_pages, Place::kHost,
                     StrCat(sizes.num_host_pages, ", ", tokens(sizes.num_host_pages))},
                    {"saves", "window state, preempted", plan.kv.saves, Place::kHost,
                     states(sizes.num_saves)},
                    {"swa_slots", "SWA slots", plan.kv.slots, Place::kHost,
                     StrCat(sizes.num_slots, " of ", plan.slot_bytes,
                            " bytes, window states for prefix hits")}},
          .about = plan.about,
          .kv_page_bytes = plan.kv.pages,
          .index_scratch_bytes = plan.scratch.index_bytes};
}

}  // namespace deepinfer
