// eval/turns.h: short questions and answers put together as one conversation.
#pragma once

#include <functional>
#include <string>

#include "eval/exercise.h"

namespace deepinfer {

struct Question {
  std::string ask;
  std::string answer;
  std::string reasoning;  // may be empty
  std::string key;        // in the split that was asked for
};

// Tokens of a text on its own, as part of a prompt.
int32_t NumTokens(const Tokenizer& tokenizer, std::string_view text);
// What a conversation takes besides its messages: control tokens and the system text of thinking.
int32_t NumFrameTokens(const Tokenizer& tokenizer);
// What one turn takes, its control tokens and reasoning included.
int32_t NumTurnTokens(const Tokenizer& tokenizer, const Question& question);

// One conversation: `text`, if there is one, stands before the first question, a blank line
// between. Requires: at least one question.
Exercise ExerciseOf(std::string_view task, std::string text, std::vector<Question> questions);

// A conversation of at most max_turns questions in training, of one when held out: as many as fit.
// Errors: kInvalidArgument if not even one does.
StatusOr<Exercise> DrawTurns(DrawContext& context, std::string_view task, int max_turns,
                             const std::function<Question()>& draw);

// kInvalidArgument: max_tokens is less than the `needed`.
Status TooShort(const DrawContext& context, std::string_view task, int32_t needed);

}  // namespace deepinfer
