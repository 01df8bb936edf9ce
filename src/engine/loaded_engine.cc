#include "engine/loaded_engine.h"

#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "base/cpu_topology.h"
#include "base/large_block.h"
#include "base/log.h"
#include "base/progress.h"
#include "model/hf_cache.h"
#include "tokens/engram_classes.h"
#include "tokens/prompt_encoder.h"

namespace deepinfer {
namespace {

// Says what takes less memory where experts in memory do not fit.
Status WithAdvice(const Status& status, const PlacementOptions& placement) {
  if (status.code() != StatusCode::kResourceExhausted || placement.experts != WeightPlace::kRam) {
    return status;
  }
  return ResourceExhausted(MessageOf(status),
                           "; --experts disk or mmap with --weights-cache DIR takes less");
}

// "memory: 22.0 MB for weights, packed, 1.1 GB for KV pages (...), ..., 1.5 GB together"
std::string MemoryText(const StartPlan& plan) {
  std::string text = "memory: ";
  for (const EngineMemory::Part& part : DescribeStart(plan).parts) {
    if (part.num_bytes == 0) continue;
    text += StrCat(BytesText(static_cast<double>(part.num_bytes)), " for ", part.title,
                   part.about.empty() ? "" : StrCat(" (", part.about, ")"), ", ");
  }
  return StrCat(text, BytesText(static_cast<double>(plan.total_bytes())), " together");
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

StatusOr<std::unique_ptr<LoadedEngine>> LoadedEngine::Load(const EngineOptions& options, Disk& disk,
                                                           Rng& rng) {
  DI_ASSIGN_OR_RETURN(const VariantId variant, ChooseVariant(options.variant));
  if (options.num_threads < 0) {
    return InvalidArgument("num_threads: found ", options.num_threads, ", expected at least 0");
  }
  if (options.grammar_workers < 0) {
    return InvalidArgument("grammar_workers: found ", options.grammar_workers,
                           ", expected at least 0");
  }
  if (options.mask_threads < 1) {
    return InvalidArgument("mask_threads: found ", options.mask_threads, ", expected at least 1");
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
  DI_ASSIGN_OR_RETURN(engine->start_plan_,
                      PlanStart(options, config,
                                {.num_threads = engine->threads_->num_threads(),
                                 .free_bytes = AvailableMemoryBytes(disk)}));
  const StartPlan& plan = engine->start_plan_;
  engine->core_options_.scheduler = plan.scheduler;
  engine->core_options_.async = options.async;
  engine->core_options_.num_step_times = options.num_step_times;
  engine->core_options_.masks.num_threads = options.mask_threads;
  engine->core_options_.min_pass_time = FromSeconds(options.scripted_pass_s);
  if (options.scripted_drafts > 0) {
    engine->scripted_drafter_ =
        std::make_unique<ScriptedDrafter>(options.scripted_drafts, config.vocab_size);
  }
  engine->rng_ = &rng;
  DI_RETURN_IF_ERROR(engine->LoadTokens(disk, options));
  DI_RETURN_IF_ERROR(engine->StartGrammars(options));  // forks: before there is much to copy
  DI_RETURN_IF_ERROR(engine->LoadWeights(options, disk));
  DI_RETURN_IF_ERROR(engine->LoadTokenClasses(disk));
  LogInfo(MemoryText(plan));
  DI_ASSIGN_OR_RETURN(engine->instance_, engine->NewInstance(engine->core_options_, plan.kv_sizes));
  engine->info_ = {.model_directory = directory,
                   .vocab_size = config.vocab_size,
                   .max_model_len = plan.scheduler.max_model_len,
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

Status LoadedEngine::StartGrammars(const EngineOptions& options) {
  if (tokenizer_ == nullptr || options.grammar_workers == 0) return OkStatus();
  DI_ASSIGN_OR_RETURN(auto vocabulary, GrammarVocabulary::Create(*tokenizer_, config().vocab_size,
                                                                 {config().eos_token_id}));
  DI_ASSIGN_OR_RETURN(
      grammar_service_,
      GrammarService::Start(std::move(vocabulary),
                            {.workers = options.grammar_workers,
                             .limits = {.cpu_s = options.grammar_cpu_seconds,
                                        .memory_bytes = options.grammar_memory_bytes},
                             .cache_bytes = options.grammar_cache_bytes}));
  grammars_ = std::make_unique<GrammarConstraints>(grammar_service_.get());
  return OkStatus();
}

Status LoadedEngine::LoadWeights(const EngineOptions& options, Disk& disk) {
  PlacementOptions placement = start_plan_.placement;
  if (start_plan_.variant != kRefVariant) {
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
    const EngineCoreOptions& options, const KvMemorySizes& sizes, ThreadPool* threads,
    ConstraintSource* grammars) {
  return EngineInstance::Create({.config = &config(),
                                 .weights = &placed_->weights(),
                                 .token_classes = &token_classes_,
                                 .engram_source = placed_->engram_source(),
                                 .expert_source = placed_->expert_source(),
                                 .tokenizer = tokenizer_.get(),
                                 .grammars = grammars != nullptr ? grammars : grammars_.get(),
                                 .drafter = scripted_drafter_.get(),
                                 .threads = threads != nullptr ? threads : threads_.get(),
                                 .variant = start_plan_.variant,
                                 .rng = rng_,
                                 .index_scratch_bytes = start_plan_.index_scratch_bytes},
                                options, sizes);
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
