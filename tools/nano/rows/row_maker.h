// tools/nano/rows/row_maker.h: exercises become the rows that the trainer reads.
//
// A row holds conversations of one task one after the other, each from its own BOS; the last one is
// cut where the row ends. Conversations are rendered and tokenised as the engine does it, so the
// model is trained on exactly what it will be shown.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "eval/exercise.h"
#include "eval/material.h"
#include "tokens/prompt_texts.h"
#include "tokens/tokenizer.h"

namespace deepinfer {

// What a token is as something to predict. The values are the stream's.
enum TargetWeight : uint8_t {
  kNoTarget = 0,  // BOS
  kContext = 1,
  kAnswer = 2,  // of the assistant: reasoning, content, calls and EOS
};

struct WeightedIds {
  std::vector<int32_t> ids;
  std::vector<uint8_t> weights;  // weights[i] belongs to ids[i] as a target
};

struct ControlIds {
  int32_t bos, eos, assistant;
  // Errors: kFailedPrecondition if the tokenizer lacks one, or has ids that 16 bits do not hold.
  static StatusOr<ControlIds> Of(const Tokenizer& tokenizer);
};

// Errors: as RenderPrompt and EncodePrompt.
StatusOr<WeightedIds> EncodeExercise(const Exercise& exercise, const Tokenizer& tokenizer,
                                     const ControlIds& control, const PromptTexts& texts);

struct MixPart {
  const TaskKind* kind;
  double share;  // of the rows; the shares add up to 1
};
// "needle=0.2,copy=0.1". Errors: kInvalidArgument for a name that is no task or stands twice, a
// share that is no number above 0, more than 256 parts.
StatusOr<std::vector<MixPart>> ParseMix(std::string_view text);

struct Row {
  uint8_t mix_idx = 0;
  WeightedIds tokens;  // row_tokens of each
  // The conversations in it; the last may be cut.
  std::vector<Exercise> exercises;
};

struct RowOptions {
  std::vector<MixPart> mix;
  int32_t row_tokens = 2048;
  uint64_t seed = 0;
};

// Same options and inputs, same rows.
class RowMaker {
 public:
  // Everything given must outlive it; `material` may be null.
  RowMaker(RowOptions options, const Tokenizer& tokenizer, const ControlIds& control,
           const PromptTexts& texts, const Material* material);
  // Errors: as the generators and EncodeExercise, naming the task.
  StatusOr<Row> Next();

 private:
  size_t DrawPart();
  StatusOr<Exercise> DrawConversation(const TaskKind& kind, int32_t num_left);

  const RowOptions options_;
  const Tokenizer& tokenizer_;
  const ControlIds control_;
  const PromptTexts& texts_;
  const Material* const material_;
  SeededRng rng_;
};

}  // namespace deepinfer
