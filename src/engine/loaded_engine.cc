#include "engine/loaded_engine.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "base/clock.h"
#include "base/cpu_topology.h"
#include "base/log.h"
#include "base/progress.h"
#include "model/hf_cache.h"
#include "model/kv_shape.h"
#include "tokens/engram_classes.h"
#include "tokens/prompt_encoder.h"

namespace deepinfer {
namespace {

int64_t PagesFor(int64_t num_tokens) { return (num_tokens + kTokensPerPage - 1) / kTokensPerPage; }

constexpr int32_t kDefaultKeep = 140;
constexpr int32_t kMaxBatchedTokens = 32'768;

// The options with the checkpoint's own limits filled in.
StatusOr<SchedulerOptions> MakeSchedulerOptions(const EngineOptions& options,
                                                const ModelConfig& config) {
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
  const KvShape shape = MakeKvShape(config);
  SchedulerOptions made = {
      .max_num_seqs = options.max_num_seqs,
      .max_num_batched_tokens = options.max_num_batched_tokens,
      .max_model_len =
          options.max_model_len == 0 ? static_cast<int32_t>(own) : options.max_model_len,
      .max_waiting = options.max_waiting,
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

// Says what takes less memory where experts in memory do not fit.
Status WithAdvice(const Status& status, const PlacementOptions& placement) {
  if (status.code() != StatusCode::kResourceExhausted || placement.experts != WeightPlace::kRam) {
    return status;
  }
  return ResourceExhausted(MessageOf(status),
                           "; --experts disk or mmap with --weights-cache DIR takes less");
}

}  // namespace

std::string ToText(const LoadTimes& times) {
  const auto seconds = [](double s) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", s);
    return std::string(text);
  };
  std::string text =
      StrCat("loaded in ", seconds(times.total_s), " s: headers ", seconds(times.headers_s));
  const auto add = [&](double s, int64_t bytes, std::string_view what) {
    if (bytes == 0) return;
    const double rate = static_cast<double>(bytes) / std::max(s, 1e-9);
    text += StrCat(", weights ", seconds(s), " (", BytesText(rate), "/s, ", what, ")");
  };
  const PackTimes& weights = times.weights;
  add(weights.cache_s, weights.cache_bytes, "from the weights cache");
  add(weights.source_s, weights.source_bytes, "read, checked and packed");
  return StrCat(text, ", rest ",
                seconds(times.total_s - times.headers_s - weights.cache_s - weights.source_s));
}

int64_t DefaultKvCacheBytes(int64_t page_bytes, int64_t num_tokens, int64_t num_sequences) {
  constexpr int64_t kLimit = int64_t{1} << 30;
  const int64_t one = PagesFor(num_tokens) * page_bytes;
  return std::max(one, std::min(kLimit, one * num_sequences));
}

StatusOr<std::unique_ptr<LoadedEngine>> LoadedEngine::Load(const EngineOptions& options, Disk& disk,
                                                           Rng& rng) {
  DI_ASSIGN_OR_RETURN(const VariantId variant, ChooseVariant(options.variant));
  const bool has_image = !options.weights_cache.empty() && variant != kRefVariant;
  DI_ASSIGN_OR_RETURN(
      const PlacementOptions placement,
      ParsePlacement(options.experts, options.engram, options.expert_cache_bytes, has_image));
  if (options.num_threads < 0) {
    return InvalidArgument("num_threads: found ", options.num_threads, ", expected at least 0");
  }
  auto engine = std::unique_ptr<LoadedEngine>(new LoadedEngine());
  engine->threads_ = std::make_unique<ThreadPool>(
      options.num_threads > 0 ? options.num_threads : DefaultNumThreads(),
      ThreadPoolOptions{.pin = true});
  DI_ASSIGN_OR_RETURN(const std::string directory,
                      LocateModel(disk, options.model, {.hf_hub_cache = options.hub_cache}));
  const MonotonicTime start = RealClock().Now();
  // The fast forms' weights are looked at while they are packed.
  const bool scan_first = options.scan_weights && variant == kRefVariant;
  DI_ASSIGN_OR_RETURN(engine->checkpoint_, Checkpoint::Open(disk, directory,
                                                            {.scan_weights = scan_first,
                                                             .pool = engine->threads_.get(),
                                                             .progress = options.progress}));
  engine->load_times_.headers_s = Seconds(RealClock().Now() - start);
  const ModelConfig& config = engine->config();
  DI_ASSIGN_OR_RETURN(engine->core_options_.scheduler, MakeSchedulerOptions(options, config));
  engine->core_options_.async = options.async;
  engine->core_options_.num_step_times = options.num_step_times;
  engine->variant_ = variant;
  engine->rng_ = &rng;
  engine->index_scratch_bytes_ = options.index_scratch_bytes;
  DI_RETURN_IF_ERROR(engine->LoadTokens(disk, options));
  DI_RETURN_IF_ERROR(engine->LoadWeights(options, placement, disk, variant));
  DI_RETURN_IF_ERROR(engine->LoadTokenClasses(disk));
  DI_RETURN_IF_ERROR(engine->PlanKvMemory(options));
  DI_ASSIGN_OR_RETURN(engine->instance_,
                      engine->NewInstance(engine->core_options_, engine->kv_sizes_));
  engine->info_ = {.model_directory = directory,
                   .vocab_size = config.vocab_size,
                   .max_model_len = engine->core_options_.scheduler.max_model_len,
                   .has_tokenizer = engine->tokenizer_ != nullptr,
                   .random_weights = disk.IsFile(directory + "/generator.json")};
  engine->load_times_.total_s = Seconds(RealClock().Now() - start);
  LogInfo(ToText(engine->load_times_));
  return engine;
}

Status LoadedEngine::LoadTokens(Disk& disk, const EngineOptions& options) {
  const std::string& directory = checkpoint_->directory();
  const std::string path = directory + "/tokenizer.json";
  if (!disk.IsFile(path)) {
    LogInfo(directory, ": no tokenizer.json; this checkpoint takes and gives token ids only");
    return OkStatus();
  }
  DI_ASSIGN_OR_RETURN(tokenizer_, Tokenizer::Load(disk, path));
  if (tokenizer_->vocab_size() > config().vocab_size) {
    return FailedPrecondition(path, ": ", tokenizer_->vocab_size(), " ids, the model has ",
                              config().vocab_size,
                              ": tokenizer and weights do not belong together");
  }
  prompt_texts_ = LoadPromptTexts(
      disk, directory,
      {.official = IsRealTokenizer(tokenizer_->sha256()), .unchecked = options.encoding_unchecked});
  return OkStatus();
}

Status LoadedEngine::LoadWeights(const EngineOptions& options, PlacementOptions placement,
                                 Disk& disk, VariantId variant) {
  if (variant != kRefVariant) {
    auto packed =
        PackedWeights::Load(*checkpoint_, {.pool = threads_.get(),
                                           .progress = options.progress,
                                           .scan = options.scan_weights,
                                           .cache_directory = options.weights_cache,
                                           .disk = &disk,
                                           .keep_experts = placement.experts == WeightPlace::kRam});
    if (!packed.ok()) return WithAdvice(packed.status(), placement);
    packed_ = *std::move(packed);
    load_times_.weights = packed_->times();
  }
  placement.progress = options.progress;
  DI_ASSIGN_OR_RETURN(placed_, PlacedWeights::Place(disk, *checkpoint_, packed_.get(), placement));
  LogInfo(placed_->Description());
  return OkStatus();
}

Status LoadedEngine::LoadTokenClasses(Disk& disk) {
  if (config().engram_layer_ids.empty()) return OkStatus();
  DI_ASSIGN_OR_RETURN(token_classes_,
                      LoadEngramClasses(disk, checkpoint_->directory(), tokenizer_.get(),
                                        {.vocab_size = config().vocab_size,
                                         .num_classes = config().engram_compressed_vocab_size,
                                         .pad_id = config().engram_pad_token_id}));
  return OkStatus();
}

StatusOr<std::unique_ptr<EngineInstance>> LoadedEngine::NewInstance(
    const EngineCoreOptions& options, const KvMemorySizes& sizes, ThreadPool* threads) {
  return EngineInstance::Create({.config = &config(),
                                 .weights = &placed_->weights(),
                                 .token_classes = &token_classes_,
                                 .engram_source = placed_->engram_source(),
                                 .expert_source = placed_->expert_source(),
                                 .tokenizer = tokenizer_.get(),
                                 .threads = threads != nullptr ? threads : threads_.get(),
                                 .variant = variant_,
                                 .rng = rng_,
                                 .index_scratch_bytes = index_scratch_bytes_},
                                options, sizes);
}

Status LoadedEngine::PlanKvMemory(const EngineOptions& options) {
  const KvShape shape = MakeKvShape(config());
  const SchedulerOptions& scheduling = core_options_.scheduler;
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
  kv_sizes_ = {.num_pages = pages_in(bytes),
               .num_states = num_seqs,
               .num_host_pages =
                   pages_in(options.host_cache_bytes >= 0 ? options.host_cache_bytes : bytes / 4),
               .num_saves = num_seqs / 4 + 1,
               .num_slots = !options.prefix_cache    ? 0
                            : options.swa_slots >= 0 ? options.swa_slots
                                                     : 4 * num_seqs,
               .num_snapshot_rings = exact ? shape.num_rings : scheduling.shape.num_encoder_layers};
  const ScratchPlan scratch =
      Model::PlanScratch(config(),
                         {.backend = {.variant = variant_, .threads = threads_.get()},
                          .index_scratch_bytes = index_scratch_bytes_},
                         ScratchShape(scheduling));
  const auto text = [](int64_t num_bytes) { return BytesText(static_cast<double>(num_bytes)); };
  LogInfo("memory: weights ", text(placed_->memory_bytes()), " of ",
          text(checkpoint_->census().total.num_bytes), " stored, KV pages ",
          text(kv_sizes_.num_pages * page_bytes), " (",
          int64_t{kv_sizes_.num_pages} * kTokensPerPage, " tokens) and ",
          text(kv_sizes_.num_host_pages * page_bytes), " of copies, window state ",
          text(num_seqs * StateBytes(shape)), " for ", num_seqs, " sequences, ",
          text(kv_sizes_.num_saves * StateBytes(shape)), " for preempted ones, ",
          text(kv_sizes_.num_slots * SnapshotBytes(shape, kv_sizes_.num_snapshot_rings)), " for ",
          kv_sizes_.num_slots, " prefix hits, scratch ", text(scratch.total_bytes()), " for ",
          scheduling.max_num_batched_tokens, " rows a step");
  return OkStatus();
}

Status LoadedEngine::NeedTokenizer() const {
  if (tokenizer_ != nullptr) return OkStatus();
  return FailedPrecondition(checkpoint_->directory(),
                            ": no tokenizer.json, so text cannot be read or written; give token "
                            "ids (--token-ids)");
}

StatusOr<std::vector<int32_t>> LoadedEngine::EncodeText(std::string_view text) const {
  DI_RETURN_IF_ERROR(NeedTokenizer());
  std::vector<int32_t> ids = {config().bos_token_id};
  const int32_t image_id = config().image_token_id;
  const std::vector<int32_t> rest = tokenizer_->Encode(text, {.plain_ids = {&image_id, 1}});
  ids.insert(ids.end(), rest.begin(), rest.end());
  return ids;
}

StatusOr<std::string> LoadedEngine::Decode(const std::vector<int32_t>& ids) const {
  DI_RETURN_IF_ERROR(NeedTokenizer());
  return tokenizer_->Decode(ids);
}

StatusOr<EncodedChat> LoadedEngine::EncodeChat(const Conversation& conversation) const {
  DI_RETURN_IF_ERROR(NeedTokenizer());
  if (!prompt_texts_->ok()) return prompt_texts_->status();
  DI_ASSIGN_OR_RETURN(const RenderedPrompt rendered, RenderPrompt(conversation, **prompt_texts_));
  if (!rendered.image_urls.empty()) {
    return Unimplemented("messages: ", rendered.image_urls.size(),
                         " images; this version takes text only");
  }
  DI_ASSIGN_OR_RETURN(EncodedPrompt encoded, EncodePrompt(rendered, *tokenizer_));
  return EncodedChat{std::move(encoded.ids), rendered.in_thinking};
}

}  // namespace deepinfer
