#include "apps/task_items.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/sha256.h"

namespace deepinfer {
namespace {

// Draws of an item that was there before, until it is taken for all the kind has.
constexpr int kTriesMax = 200;

// Whether training may have drawn one of the exercise's answers.
bool IsInTraining(const Exercise& exercise) {
  const auto in_training = [&](const std::string& key) {
    return SplitOf(exercise.task, key) == Split::kTraining;
  };
  return in_training(exercise.key) ||
         std::any_of(exercise.earlier_keys.begin(), exercise.earlier_keys.end(), in_training);
}

StatusOr<EncodedChat> EncodeQuestion(const TaskKind& kind, const Exercise& exercise,
                                     const LoadedEngine& engine) {
  Conversation question = exercise.conversation;
  question.messages.pop_back();
  question.thinking.enabled = kind.thinks;
  return engine.EncodeChat(question);
}

}  // namespace

int64_t TaskItems::num_prompt_tokens() const {
  int64_t sum = 0;
  for (const TaskItem& item : items) sum += std::ssize(item.prompt.ids);
  return sum;
}

StatusOr<TaskItems> DrawItems(const TaskKind& kind, const LoadedEngine& engine,
                              const DrawOptions& options) {
  if (engine.tokenizer() == nullptr) {
    return FailedPrecondition(engine.info().model_directory,
                              ": no tokenizer.json, so no exercise can be asked");
  }
  SeededRng rng(options.seed ^ HashOfKey("evaluation", kind.name));
  DrawContext context = {.rng = rng,
                         .split = Split::kHeldOut,
                         .max_tokens = engine.info().max_model_len,
                         .tokenizer = *engine.tokenizer(),
                         .gloss_check = options.gloss_check,
                         .published_tools = options.published_tools};
  TaskItems drawn = {.kind = &kind};
  std::set<std::pair<std::string, std::string>> seen;
  while (std::ssize(drawn.items) < options.num_items) {
    Exercise exercise;
    bool is_new = false;
    for (int tries = 0; !is_new && tries < kTriesMax; ++tries) {
      DI_ASSIGN_OR_RETURN(exercise, kind.draw(context));
      is_new = seen.emplace(exercise.task, exercise.key).second;
    }
    if (!is_new) break;
    drawn.num_in_training += kind.split_by_key && IsInTraining(exercise) ? 1 : 0;
    DI_ASSIGN_OR_RETURN(EncodedChat prompt, EncodeQuestion(kind, exercise, engine));
    drawn.items.push_back({std::move(exercise), std::move(prompt)});
  }
  return drawn;
}

StatusOr<uint64_t> SeedOfWeights(const Checkpoint& checkpoint) {
  Sha256 all;
  std::vector<const TensorFile*> files;
  for (const TensorFile& file : checkpoint.files().files) files.push_back(&file);
  std::sort(files.begin(), files.end(),
            [](const auto* a, const auto* b) { return a->name < b->name; });
  for (const TensorFile* file : files) {
    DI_ASSIGN_OR_RETURN(const std::span<const uint8_t> bytes, file->source->Map());
    all.Update(Sha256Of(bytes));
  }
  uint64_t seed = 0;
  const Sha256Digest digest = all.Finish();
  for (int i = 0; i < 8; ++i) seed = seed << 8 | digest[static_cast<size_t>(i)];
  return seed >> 11;
}

}  // namespace deepinfer
