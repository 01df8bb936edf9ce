#include "eval/turns.h"

namespace deepinfer {

int32_t NumTokens(const Tokenizer& tokenizer, std::string_view text) {
  return static_cast<int32_t>(tokenizer.Encode(text, {.added_tokens = false}).size());
}

int32_t NumFrameTokens(const Tokenizer& tokenizer) {
  // The longest that PromptEncoder writes, its tags included.
  return 4 +
         NumTokens(tokenizer,
                   "Reasoning Effort: 100 (range 1-100, the higher the value, the more thorough "
                   "the reasoning)\n\n");
}

int32_t NumTurnTokens(const Tokenizer& tokenizer, const Question& question) {
  constexpr int32_t kControlTokens = 5;  // user, assistant, two think tags, end
  return kControlTokens + NumTokens(tokenizer, question.ask) +
         NumTokens(tokenizer, question.answer) + NumTokens(tokenizer, question.reasoning);
}

Exercise ExerciseOf(std::string_view task, std::string text, std::vector<Question> questions) {
  CHECK(!questions.empty());
  Exercise exercise{.task = std::string(task)};
  std::vector<Message>& messages = exercise.conversation.messages;
  for (Question& question : questions) {
    const bool first = messages.empty() && !text.empty();
    messages.push_back(UserMessage(first ? StrCat(text, "\n\n", question.ask) : question.ask));
    messages.push_back(AssistantMessage(std::move(question.answer), std::move(question.reasoning)));
    exercise.earlier_keys.push_back(std::move(question.key));
  }
  exercise.key = std::move(exercise.earlier_keys.back());
  exercise.earlier_keys.pop_back();
  return exercise;
}

StatusOr<Exercise> DrawTurns(DrawContext& context, std::string_view task, int max_turns,
                             const std::function<Question()>& draw) {
  // Half of the conversations have one turn, as in evaluation.
  const bool one = context.split == Split::kHeldOut || max_turns == 1 || Chance(context.rng, 0.5);
  const int64_t num_turns = one ? 1 : Between(context.rng, 2, max_turns);
  int32_t num_tokens = NumFrameTokens(context.tokenizer);
  std::vector<Question> questions;
  while (static_cast<int64_t>(questions.size()) < num_turns) {
    Question question = draw();
    num_tokens += NumTurnTokens(context.tokenizer, question);
    if (num_tokens > context.max_tokens) break;
    questions.push_back(std::move(question));
  }
  if (questions.empty()) return TooShort(context, task, num_tokens);
  return ExerciseOf(task, "", std::move(questions));
}

Status TooShort(const DrawContext& context, std::string_view task, int32_t needed) {
  return InvalidArgument(task, ": expected room for ", needed, " tokens, found max_tokens ",
                         context.max_tokens, "; a longer row or --max-model-len has it");
}

}  // namespace deepinfer
