#include "apps/engine_flags.h"

#include <functional>

#include "apps/bundled_model.h"
#include "base/log.h"
#include "kernels/device/device.h"

namespace deepinfer {

void AddModelOption(OptionSet& options, std::string* model) {
  options.Add(
      {.flag = "model",
       .environment = "DEEPINFER_HF_MODEL_DIR",
       .help = "checkpoint directory, or org/name in the local Hugging Face cache; none: the "
               "bundled model",
       .unit = "DIR"},
      model);
}

void AddLogOption(OptionSet& options, std::string* log_level) {
  options.Add({.flag = "log-level",
               .help = "what is told on stderr",
               .choices = {"debug", "info", "warning", "error", "off"}},
              log_level);
}

void ApplyLogLevel(const std::string& log_level) {
  SetLogLevel(log_level == "debug"     ? LogLevel::kDebug
              : log_level == "info"    ? LogLevel::kInfo
              : log_level == "warning" ? LogLevel::kWarning
              : log_level == "error"   ? LogLevel::kError
                                       : LogLevel::kOff);
}

void EngineFlags::AddTo(OptionSet& options) {
  AddLoadingTo(options);
  AddServingTo(options);
  AddReplayTo(options);
  AddGrammarsTo(options);
}

void EngineFlags::AddLoadingTo(OptionSet& options) {
  AddModelOption(options, &engine.model);
  AddSizesTo(options);
  options.Add({.flag = "scan-weights", .help = "look at every weight for damage before use"},
              &engine.scan_weights);
  options.Add({.flag = "encoding-unchecked",
               .help = "take a checkpoint's chat texts although they are not DeepSeek's"},
              &engine.encoding_unchecked);
  AddLogOption(options, &log_level);
}

void EngineFlags::AddSizesTo(OptionSet& options) {
  options.Add({.flag = "max-model-len",
               .help = "prompt and output together; 0: the model's own limit",
               .unit = "tokens",
               .min = 0},
              &engine.max_model_len);
  options.Add(
      {.flag = "replay-keep",
       .environment = "DEEPINFER_YOCO_PREFILL_KEEP_TOKENS",
       .help = "last prompt rows that run the decoder half; 0: 140, or what the window needs",
       .unit = "tokens",
       .min = 0},
      &engine.replay_keep);
  options.Add({.flag = "index-scratch-bytes",
               .environment = "DEEPINFER_INDEX_ATTN_MEMORY_LIMIT",
               .help = "memory for choosing index entries, all threads together; less is slower at "
                       "long context, results are the same",
               .unit = "bytes",
               .min = 1},
              &engine.index_scratch_bytes);
  options.Add({.flag = "variant",
               .help = "form of the ops",
               .choices = {"auto", "cpu", "avx2", "avx512", "amx", "ref"}},
              &engine.variant);
  options.Add(
      {.flag = "weights-cache",
       .help = "keep the packed weights there for the next start; takes at most as much space "
               "as the checkpoint",
       .unit = "DIR"},
      &engine.weights_cache);
  options.Add(
      {.flag = "experts",
       .help = "where routed experts live: memory, the mapped --weights-cache (checksums are not "
               "compared), or read from it when needed (they are)",
       .choices = {"ram", "mmap", "disk"}},
      &engine.experts);
  options.Add({.flag = "engram",
               .help = "where engram tables live: memory, the mapped checkpoint, or read from it "
                       "when needed",
               .choices = {"ram", "mmap", "disk"}},
              &engine.engram);
  options.Add({.flag = "expert-cache",
               .help = "memory for --experts disk; 0: a quarter of what is free",
               .unit = "bytes",
               .min = 0},
              &engine.expert_cache_bytes);
}

void EngineFlags::AddGrammarsTo(OptionSet& options) {
  options.Add({.flag = "grammar-workers",
               .help = "grammars of structured output built at the same time; 0: none ever",
               .min = 0,
               .max = 64},
              &engine.grammar_workers);
  options.Add({.flag = "grammar-cpu-seconds",
               .help = "processor time of a grammar's build; what needs more is refused",
               .unit = "s",
               .min = 1},
              &engine.grammar_cpu_seconds);
  options.Add({.flag = "grammar-memory-bytes",
               .help = "memory of a grammar's build; what needs more is refused",
               .unit = "bytes",
               .min = 64 << 20},
              &engine.grammar_memory_bytes);
  options.Add({.flag = "grammar-cache-bytes",
               .help = "grammars that are kept for the next request",
               .unit = "bytes",
               .min = 0},
              &engine.grammar_cache_bytes);
  options.Add({.flag = "mask-threads",
               .help = "threads beside the forward pass that find what a grammar allows: so many "
                       "for first masks, for quick ones, and for slow ones",
               .min = 1,
               .max = 64},
              &engine.mask_threads);
}

void EngineFlags::AddReplayTo(OptionSet& options) {
  options.Add({.flag = "replay",
               .environment = "DEEPINFER_YOCO_PREFILL_TRUNCATION_MODE",
               .help = "which prompt rows run which layers. exact: all; a prefix hit equals a cold "
                       "run. bounded: the decoder half on the last --replay-keep rows, and hits "
                       "replay a window. mask: bounded, checked the long way. DeepInfer's names: "
                       "off, compact, mask",
               .choices = {"exact", "bounded", "mask", "off", "compact"}},
              &engine.replay);
}

void EngineFlags::AddServingTo(OptionSet& options) {
  options.Add({.flag = "max-num-seqs", .help = "answers computed at the same time", .min = 1},
              &engine.max_num_seqs);
  options.Add({.flag = "max-num-batched-tokens",
               .help = "rows of one forward pass; at least max-num-seqs",
               .unit = "tokens",
               .min = 1},
              &engine.max_num_batched_tokens);
  options.Add({.flag = "kv-cache-bytes",
               .help = "memory for KV; 0: what max-num-seqs full sequences need, at most 1 GiB",
               .unit = "bytes",
               .min = 0},
              &engine.kv_cache_bytes);
  options.Add({.flag = "prefix-cache", .help = "compute prompts that begin alike once"},
              &engine.prefix_cache);
  options.Add({.flag = "host-cache-bytes",
               .help = "memory for copies of KV pages and for preempted answers; -1: a quarter of "
                       "the KV memory",
               .unit = "bytes",
               .min = -1},
              &engine.host_cache_bytes);
  options.Add({.flag = "swa-slots",
               .help = "window states kept for prefix hits; -1: 4 for each of max-num-seqs",
               .min = -1,
               .max = 1 << 20},
              &engine.swa_slots);
  options.Add({.flag = "max-waiting",
               .help = "answers that may wait; more are refused",
               .min = 1,
               .max = kMaxWaiting},
              &engine.max_waiting);
  options.Add({.flag = "async",
               .environment = "DEEPINFER_ZERO_OVERHEAD_SCHEDULING",
               .help = "plan the next step while one runs; results are the same"},
              &engine.async);
  options.Add({.flag = "threads",
               .help = "0: one for each core this process may use",
               .min = 0,
               .max = 1024},
              &engine.num_threads);
}

CacheEnvironment HubEnvironment(const Environment& environment) {
  const auto value = [&](const char* name) {
    const auto at = environment.find(name);
    return at == environment.end() ? std::string() : at->second;
  };
  return {.hf_hub_cache = value("HF_HUB_CACHE"),
          .hf_home = value("HF_HOME"),
          .xdg_cache_home = value("XDG_CACHE_HOME"),
          .home = value("HOME")};
}

void WeightProgress::operator()(int64_t done_bytes, int64_t total_bytes) {
  if (!progress_ || done_bytes < shown_bytes_) {  // the first work, or the next one
    progress_.emplace(what_, "bytes", total_bytes, clock_);
    shown_bytes_ = 0;
  }
  progress_->Add(done_bytes - shown_bytes_);
  shown_bytes_ = done_bytes;
}

StatusOr<std::unique_ptr<LoadedEngine>> LoadWithProgress(EngineFlags flags,
                                                         const CommandContext& context) {
  ApplyLogLevel(flags.log_level);
  if (IsCudaBuild()) LogInfo(AcceleratorNote());
  DI_RETURN_IF_ERROR(ChooseModel(context.disk, &flags.engine.model));
  flags.engine.hub_cache = HubCacheFolder(HubEnvironment(context.environment));
  WeightProgress progress(context.clock);
  flags.engine.progress = std::ref(progress);
  DI_ASSIGN_OR_RETURN(auto engine, LoadedEngine::Load(flags.engine, context.disk, context.rng));
  if (engine->info().random_weights) {
    LogWarning(engine->info().model_directory, ": weights are random; text is noise");
  }
  return engine;
}

}  // namespace deepinfer
