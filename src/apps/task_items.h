// apps/task_items.h: the exercises that `eval tasks` asks: drawn from a seed, held out, each once.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/loaded_engine.h"
#include "eval/exercise.h"
#include "eval/gloss_check.h"
#include "model/checkpoint.h"

namespace deepinfer {

struct TaskItem {
  Exercise exercise;
  EncodedChat prompt;  // the conversation up to its last answer
};

struct TaskItems {
  const TaskKind* kind = nullptr;
  std::vector<TaskItem> items;
  // The split check, made anew over what was drawn, of kinds that are split by key: items of which
  // a key belongs to training. 0, or the draw is wrong.
  int32_t num_in_training = 0;

  int64_t num_prompt_tokens() const;
};

struct DrawOptions {
  int32_t num_items = 0;  // fewer come if the kind has no more held-out keys
  uint64_t seed = 0;      // every kind draws from it alone, whatever other kinds are drawn
  const GlossCheck* gloss_check = nullptr;  // null: items of kind "gloss" cannot be drawn
  std::span<const std::string_view> published_tools = {};  // none: nor items of kind "tools_real"
};

// Errors: as the kind's draw and EncodeChat.
StatusOr<TaskItems> DrawItems(const TaskKind& kind, const LoadedEngine& engine,
                              const DrawOptions& options);

// A seed that nobody could know before the weights were final: 53 bits (a JSON number holds them)
// of the SHA-256 over the digests of all weight files, in the order of their names. Reads all of
// them. Errors: as ReadableFile::Map.
StatusOr<uint64_t> SeedOfWeights(const Checkpoint& checkpoint);

}  // namespace deepinfer
