// eval/exercise.h: one exercise of the bundled model, and the table of all kinds.
//
// The same generators make the rows that the model is trained on and the items that it is measured
// with. What keeps the two apart is a hash of the item's key: one key in sixteen is held out.
// Threads: one at a time per DrawContext; everything else here is immutable.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "base/status.h"
#include "tokens/conversation.h"
#include "tokens/tokenizer.h"

namespace deepinfer {

class GlossCheck;
class Material;

enum class Split { kTraining, kHeldOut };

// How an answer is judged (eval/grading.h).
enum class Grading {
  kExactText,   // the content is the expected one, white space around it apart
  kJson,        // the content is JSON of the same value
  kCalls,       // the same calls with arguments of the same values; where none is right, the text
  kGlossWords,  // at least half of Exercise::gloss_words occur in the content
};

struct Exercise {
  std::string task;  // whose keys it has: of kind needle_4k "needle"
  // What makes two items the same item, whatever the wording: of the last answer.
  std::string key;
  // The same for the answers before it, where the conversation holds several.
  std::vector<std::string> earlier_keys;
  // Whole: ends with the assistant's right answer. Training learns every answer in it, evaluation
  // asks for the last one. reasoning_content may be set: rendered while thinking is on.
  Conversation conversation;
  Grading grading = Grading::kExactText;
  // kGlossWords: hashes of the definition's content words (eval/gloss_check.h). In evaluation the
  // answer in `conversation` is empty then, for definitions are not ours to ship.
  std::vector<uint32_t> gloss_words;

  const Message& answer() const { return conversation.messages.back(); }
};

// What a generator may use.
struct DrawContext {
  Rng& rng;
  Split split;
  // The whole conversation, prompt texts and control tokens included, must not be longer.
  // Generators that fill up to a length aim at this; the others stay short by themselves.
  int32_t max_tokens;
  const Tokenizer& tokenizer;               // to measure lengths
  const Material* material = nullptr;       // training only: texts of corpora
  const GlossCheck* gloss_check = nullptr;  // evaluation of "gloss" only
  // Evaluation of "tools_real" only: definitions as in Material::tools, of services that the
  // material leaves out.
  std::span<const std::string_view> published_tools = {};
};

struct TaskKind {
  std::string_view name;
  // The item's keys lie in the split asked for. Errors: kInvalidArgument if max_tokens is too
  // small, kFailedPrecondition without the material that the kind needs.
  StatusOr<Exercise> (*draw)(DrawContext&);
  bool evaluated = true;     // false: training only
  bool thinks = false;       // evaluated with thinking on
  bool fills = false;        // draws conversations as long as max_tokens
  bool split_by_key = true;  // false: something else keeps the two parts apart (gloss: its wording)
};

// In the order of reports; names are unique.
std::span<const TaskKind> AllTasks();
// Null if there is none.
const TaskKind* FindTask(std::string_view name);

uint64_t HashOfKey(std::string_view task, std::string_view key);
Split SplitOf(std::string_view task, std::string_view key);

// ---- For generators -----------------------------------------------------------------------------

// make() until the `key` of what it made lies in the split asked for. Requires: keys differ enough.
template <typename Make>
auto DrawInSplit(const DrawContext& context, std::string_view task, Make make) {
  constexpr int kTriesMax = 100'000;
  for (int i = 0; i < kTriesMax; ++i) {
    auto item = make();
    if (SplitOf(task, item.key) == context.split) return item;
  }
  CHECK(false);  // (15/16)^kTriesMax is nothing: the generator repeats itself
}

// Uniform in [low, high].
int64_t Between(Rng& rng, int64_t low, int64_t high);
bool Chance(Rng& rng, double probability);
// One of them. Requires: not empty.
template <typename Items>
const auto& Pick(Rng& rng, const Items& items) {
  return items[rng.Uniform(std::size(items))];
}
template <typename T>
void Shuffle(Rng& rng, std::vector<T>& items) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[rng.Uniform(i)]);
}

Message SystemMessage(std::string text);
Message UserMessage(std::string text);
Message AssistantMessage(std::string text, std::string reasoning = "");
std::string TextOfMessage(const Message& message);

}  // namespace deepinfer
