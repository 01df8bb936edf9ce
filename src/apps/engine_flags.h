// apps/engine_flags.h: the flags of every command that loads a model, and the loading.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "apps/command.h"
#include "apps/options.h"
#include "base/progress.h"
#include "engine/loaded_engine.h"
#include "model/hf_cache.h"

namespace deepinfer {

struct EngineFlags {
  EngineOptions engine;
  std::string log_level = "info";

  void AddTo(OptionSet& options);
  // The parts of it: which model, and how it is kept in memory; how requests are run; the replay
  // mode, for commands that do not run both; structured output.
  void AddLoadingTo(OptionSet& options);
  void AddSizesTo(OptionSet& options);  // of those: what decides how much memory the model takes
  void AddServingTo(OptionSet& options);
  void AddReplayTo(OptionSet& options);
  void AddGrammarsTo(OptionSet& options);
};

void AddModelOption(OptionSet& options, std::string* model);
void AddLogOption(OptionSet& options, std::string* log_level);
void ApplyLogLevel(const std::string& log_level);

// The variables that say where Hugging Face keeps models.
CacheEnvironment HubEnvironment(const Environment& environment);

// Shows on stderr how far work on the weights has come. Call with bytes done and in all.
class WeightProgress {
 public:
  explicit WeightProgress(Clock& clock, std::string what = "reading weights")
      : clock_(clock), what_(std::move(what)) {}
  void operator()(int64_t done_bytes, int64_t total_bytes);

 private:
  Clock& clock_;
  const std::string what_;
  std::optional<Progress> progress_;
  int64_t shown_bytes_ = 0;
};

// Loads with progress on stderr, and says so if the weights are random.
StatusOr<std::unique_ptr<LoadedEngine>> LoadWithProgress(EngineFlags flags,
                                                         const CommandContext& context);

}  // namespace deepinfer
