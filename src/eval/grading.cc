#include "eval/grading.h"

#include "base/check.h"
#include "eval/gloss_check.h"
#include "eval/json_equality.h"

namespace deepinfer {
namespace {

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kWhiteSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kWhiteSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kWhiteSpace) - begin + 1);
}

bool IsRightText(const Exercise& exercise, const ParsedAnswer& answer) {
  return answer.calls.empty() &&
         Trimmed(answer.content) == Trimmed(TextOfMessage(exercise.answer()));
}

bool HasGlossWords(const Exercise& exercise, const ParsedAnswer& answer) {
  CHECK(!exercise.gloss_words.empty());
  return answer.calls.empty() && 2 * NumContentWordsFound(answer.content, exercise.gloss_words) >=
                                     exercise.gloss_words.size();
}

}  // namespace

bool IsRight(const Exercise& exercise, const ParsedAnswer& answer) {
  if (!answer.ended || answer.num_malformed > 0) return false;
  switch (exercise.grading) {
    case Grading::kExactText:
      return IsRightText(exercise, answer);
    case Grading::kGlossWords:
      return HasGlossWords(exercise, answer);
    case Grading::kJson:
      return answer.calls.empty() &&
             IsSameJsonText(answer.content, TextOfMessage(exercise.answer()));
    case Grading::kCalls:
      if (exercise.answer().tool_calls.empty()) return IsRightText(exercise, answer);
      return SameCalls(answer.calls, exercise.answer().tool_calls);
  }
  CHECK(false);
}

}  // namespace deepinfer
