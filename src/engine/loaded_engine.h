// engine/loaded_engine.h: a checkpoint in memory with everything that turns prompts into answers.
//
// Owns the weights, the model, the tokenizer, the KV pages and the threads. include/deepinfer is a
// thin cover over this; the commands in apps/ use it directly. Threads: the step loop only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "cache/kv_memory.h"
#include "deepinfer/engine.h"
#include "engine/engine_core.h"
#include "engine/engine_instance.h"
#include "engine/grammar_constraints.h"
#include "engine/scripted_drafter.h"
#include "engine/start_plan.h"
#include "model/checkpoint.h"
#include "model/model.h"
#include "model/packed_weights.h"
#include "model/placed_weights.h"
#include "tokens/conversation.h"
#include "tokens/grammar_service.h"
#include "tokens/prompt_texts.h"
#include "tokens/tokenizer.h"

namespace deepinfer {

struct EncodedChat {
  std::vector<int32_t> ids;
  bool in_thinking = false;  // the answer begins inside the thinking that the prompt opened
};

// Where the time of loading went.
struct LoadTimes {
  double headers_s = 0;  // files opened and compared with the model; for the oracle scanned, too
  PackTimes weights;     // none for the oracle
  double total_s = 0;    // these, tokenizer, model and KV pages
};
// "loaded in 3.2 s: headers 0.1, weights 2.9 (4.10 GB/s, read, checked and packed), rest 0.2"
std::string ToText(const LoadTimes& times);

class LoadedEngine {
 public:
  // `disk` and `rng` outlive the engine. Errors: as LocateModel, Checkpoint::Open, Tokenizer::Load,
  // LoadEngramClasses; kInvalidArgument for an option out of range; kFailedPrecondition if this
  // processor cannot run the variant.
  static StatusOr<std::unique_ptr<LoadedEngine>> Load(const EngineOptions& options, Disk& disk,
                                                      Rng& rng);

  const EngineInfo& info() const { return info_; }
  const ModelConfig& config() const { return checkpoint_->config(); }
  const Tokenizer* tokenizer() const { return tokenizer_.get(); }  // null: the checkpoint has none
  // Null: this checkpoint cannot chat; EncodeChat() says why.
  const PromptTexts* prompt_texts() const {
    return prompt_texts_ && prompt_texts_->ok() ? &**prompt_texts_ : nullptr;
  }
  const KvMemory& kv_memory() const { return instance_->kv_memory(); }
  KvMemory& kv_memory_for_tests() { return instance_->kv_memory_for_tests(); }
  const LoadTimes& load_times() const { return load_times_; }
  const Checkpoint& checkpoint() const { return *checkpoint_; }
  const PackedWeights* packed_weights() const { return packed_.get(); }  // null for the oracle
  EngineCore& core() { return instance_->core(); }
  Model& model() { return instance_->model(); }
  const EngineCoreOptions& core_options() const { return core_options_; }
  const KvMemorySizes& kv_sizes() const { return start_plan_.kv_sizes; }
  const StartPlan& start_plan() const { return start_plan_; }
  // Another engine over the same weights, beside the one in core(). threads, grammars: null for
  // this engine's own. The instances take turns, and all this outlives them.
  // Errors: as EngineInstance::Create.
  StatusOr<std::unique_ptr<EngineInstance>> NewInstance(const EngineCoreOptions& options,
                                                        const KvMemorySizes& sizes,
                                                        ThreadPool* threads = nullptr,
                                                        ConstraintSource* grammars = nullptr);

  // Null: structured output is refused.
  const GrammarService* grammar_service() const { return grammar_service_.get(); }
  const PlacedWeights& placed_weights() const { return *placed_; }

  // As Engine::EncodeText and Engine::Decode.
  StatusOr<std::vector<int32_t>> EncodeText(std::string_view text) const;
  StatusOr<std::string> Decode(const std::vector<int32_t>& ids) const;
  // Errors: kFailedPrecondition without a tokenizer or encoding/; kUnimplemented for images; as
  // RenderPrompt.
  StatusOr<EncodedChat> EncodeChat(const Conversation& conversation) const;

 private:
  LoadedEngine() = default;
  Status LoadTokens(Disk& disk, const EngineOptions& options);
  Status StartGrammars(const EngineOptions& options);
  Status LoadWeights(const EngineOptions& options, Disk& disk);
  Status LoadTokenClasses(Disk& disk);
  Status NeedTokenizer() const;

  EngineInfo info_;
  EngineCoreOptions core_options_;
  StartPlan start_plan_;
  Rng* rng_ = nullptr;
  LoadTimes load_times_;
  std::unique_ptr<ThreadPool> threads_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<PackedWeights> packed_;  // none for the oracle
  std::unique_ptr<PlacedWeights> placed_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<StatusOr<PromptTexts>> prompt_texts_;  // with a tokenizer; an error: why no chat
  std::vector<int32_t> token_classes_;
  std::unique_ptr<GrammarService> grammar_service_;    // null: no structured output
  std::unique_ptr<GrammarConstraints> grammars_;       // over it
  std::unique_ptr<ScriptedDrafter> scripted_drafter_;  // for tests
  std::unique_ptr<EngineInstance> instance_;
};

}  // namespace deepinfer
