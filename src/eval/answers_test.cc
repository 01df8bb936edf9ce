// The right answers, worked out from the questions by other means than the generators'.
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <regex>
#include <set>
#include <sstream>

#include "eval/exercise_for_tests.h"
#include "eval/sums.h"

namespace deepinfer {
namespace {

int64_t NumberOf(const std::string& text) {
  int64_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<int64_t> NumbersIn(const std::string& text) {
  static const std::regex kDigits("[0-9]+");
  std::vector<int64_t> numbers;
  for (std::sregex_iterator it(text.begin(), text.end(), kDigits), end; it != end; ++it) {
    numbers.push_back(NumberOf(it->str()));
  }
  return numbers;
}

// What stands behind the last ": ", cut at separators.
std::vector<std::string> ListIn(std::string text) {
  text = text.substr(text.rfind(": ") + 2);
  std::replace(text.begin(), text.end(), ',', ' ');
  std::erase(text, '?');
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::string JoinWords(const std::vector<std::string>& words, std::string_view separator) {
  return Join(words, separator);
}

bool Has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

// ---- Expected answers by task -------------------------------------------------------------------

std::string Calculated(const std::string& ask) {
  const std::vector<int64_t> numbers = NumbersIn(ask);
  if (numbers.size() != 2) return "two numbers expected";
  if (Has(ask, "Subtract")) return StrCat(numbers[1] - numbers[0]);
  if (Has(ask, "minus") || Has(ask, "-")) return StrCat(numbers[0] - numbers[1]);
  if (Has(ask, " x ") || Has(ask, "times") || Has(ask, "*")) return StrCat(numbers[0] * numbers[1]);
  return StrCat(numbers[0] + numbers[1]);
}

std::string Compared(const std::string& ask) {
  const std::vector<int64_t> numbers = NumbersIn(ask);
  return StrCat(Has(ask, "largest") ? *std::max_element(numbers.begin(), numbers.end())
                                    : *std::min_element(numbers.begin(), numbers.end()));
}

std::string Counted(const std::string& ask) {
  const std::vector<std::string> list = ListIn(ask);
  std::smatch match;
  if (!std::regex_search(ask, match, std::regex("does ([^ ]+) occur"))) return StrCat(list.size());
  return StrCat(std::count(list.begin(), list.end(), match[1].str()));
}

std::string Copied(const std::string& ask) { return ask.substr(ask.find(": ") + 2); }

std::string Sorted(const std::string& ask) {
  std::vector<std::string> list = ListIn(ask);
  if (Has(ask, "words")) {
    std::sort(list.begin(), list.end());
  } else if (Has(ask, "large to small")) {
    std::sort(list.begin(), list.end(),
              [](const auto& a, const auto& b) { return NumberOf(a) > NumberOf(b); });
  } else {
    std::sort(list.begin(), list.end(),
              [](const auto& a, const auto& b) { return NumberOf(a) < NumberOf(b); });
  }
  return JoinWords(list, ", ");
}

std::string Reversed(const std::string& ask) {
  std::vector<std::string> list = ListIn(ask);
  std::reverse(list.begin(), list.end());
  return JoinWords(list, " ");
}

struct Solved {
  std::string task;
  std::string (*solve)(const std::string& ask);
};

class Answers : public ::testing::TestWithParam<Solved> {};

TEST_P(Answers, OfEveryTurnAreRight) {
  const TaskKind* const kind = FindTask(GetParam().task);
  ASSERT_NE(kind, nullptr);
  SeededRng rng(5);
  for (int i = 0; i < 500; ++i) {
    const Split split = i % 4 == 0 ? Split::kHeldOut : Split::kTraining;
    DrawContext context = ContextForTests(rng, split, 1024);
    const StatusOr<Exercise> exercise = kind->draw(context);
    ASSERT_TRUE(exercise.ok());
    const std::vector<Message>& messages = exercise->conversation.messages;
    ASSERT_EQ(messages.size(), 2 * (exercise->earlier_keys.size() + 1));
    if (split == Split::kHeldOut) {
      EXPECT_EQ(messages.size(), 2u);
    }
    for (size_t turn = 0; turn < messages.size(); turn += 2) {
      const std::string ask = TextOfMessage(messages[turn]);
      EXPECT_EQ(TextOfMessage(messages[turn + 1]), GetParam().solve(ask)) << ask;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, Answers,
                         ::testing::Values(Solved{"arithmetic", Calculated},
                                           Solved{"sums", Calculated}, Solved{"sums_3", Calculated},
                                           Solved{"sums_4", Calculated},
                                           Solved{"products", Calculated},
                                           Solved{"compare", Compared}, Solved{"count", Counted},
                                           Solved{"copy", Copied}, Solved{"sort", Sorted},
                                           Solved{"reverse", Reversed}),
                         [](const auto& info) { return info.param.task; });

// ---- Steps --------------------------------------------------------------------------------------

TEST(ColumnSteps, CarryAndBorrow) {
  EXPECT_EQ(ColumnSteps(482, '+', 379),
            "2 + 9 = 11, write 1, carry 1. 8 + 7 + 1 = 16, write 6, carry 1. "
            "4 + 3 + 1 = 8, write 8.");
  EXPECT_EQ(ColumnSteps(503, '-', 128),
            "3 - 8 = -5, write 5, borrow 1. 0 - 2 - 1 = -3, write 7, borrow 1. "
            "5 - 1 - 1 = 3, write 3.");
}

// The last column's carry is written too, and the digits written are the result's.
TEST(ColumnSteps, WrittenDigitsAreTheResult) {
  static const std::regex kWritten("write ([0-9])");
  SeededRng rng(6);
  for (int i = 0; i < 500; ++i) {
    const int64_t right = Between(rng, 0, 9999), left = Between(rng, right, 9999);
    for (const char sign : {'+', '-'}) {
      const std::string steps = ColumnSteps(left, sign, right);
      int64_t result = 0, place = 1;
      for (std::sregex_iterator it(steps.begin(), steps.end(), kWritten), end; it != end; ++it) {
        result += place * NumberOf((*it)[1]);
        place *= 10;
      }
      if (steps.ends_with("carry 1.")) result += place;
      EXPECT_EQ(result, sign == '+' ? left + right : left - right) << steps;
    }
  }
}

// ---- Look-ups -----------------------------------------------------------------------------------

// Every "name: value" and so on of the list, whatever its form.
std::vector<std::pair<std::string, std::string>> PairsIn(const std::string& list) {
  static const std::regex kPair(
      R"re("([^"]+)": "([^"]+)"|\| (\S+) \| (\S+) \||([^\s{"]+): ([^\s"]+)|(\S+) = (\S+)|([^,\s]+),(\S+))re");
  std::vector<std::pair<std::string, std::string>> pairs;
  for (std::sregex_iterator it(list.begin(), list.end(), kPair), end; it != end; ++it) {
    for (size_t group = 1; group < it->size(); group += 2) {
      if ((*it)[group].matched) pairs.emplace_back((*it)[group], (*it)[group + 1]);
    }
  }
  return pairs;
}

TEST(KeyValue, EveryLookUpHasOneAnswerInTheList) {
  SeededRng rng(7);
  for (int i = 0; i < 300; ++i) {
    const Split split = i % 4 == 0 ? Split::kHeldOut : Split::kTraining;
    DrawContext context = ContextForTests(rng, split, 1024);
    const StatusOr<Exercise> exercise = FindTask("keyval")->draw(context);
    ASSERT_TRUE(exercise.ok());
    const std::vector<Message>& messages = exercise->conversation.messages;
    const std::string first = TextOfMessage(messages[0]);
    const size_t end_of_list = first.rfind("\n\n");
    const auto pairs = PairsIn(first.substr(0, end_of_list));
    if (split == Split::kHeldOut) {
      EXPECT_GE(pairs.size(), 16u) << first;
    }
    for (size_t turn = 0; turn < messages.size(); turn += 2) {
      std::string ask = TextOfMessage(messages[turn]);
      if (turn == 0) ask = ask.substr(end_of_list + 2);
      const std::string subject = ask.substr(ask.rfind(' ') + 1, ask.size() - ask.rfind(' ') - 2);
      std::vector<std::string> found;
      for (const auto& [name, value] : pairs) {
        if (name == subject) found.push_back(value);
        if (value == subject) found.push_back(name);
      }
      ASSERT_EQ(found.size(), 1u) << first << "\n" << ask;
      EXPECT_EQ(found[0], TextOfMessage(messages[turn + 1]));
    }
  }
}

// "lamp code of Anna" out of a question.
std::string SubjectOf(const std::string& ask) {
  const size_t begin = ask.rfind(" the ") + 5;
  return ask.substr(begin, ask.size() - begin - 1);
}

void ExpectOneStatementEach(const Exercise& exercise) {
  const std::vector<Message>& messages = exercise.conversation.messages;
  const std::string first = TextOfMessage(messages[0]);
  const std::string text = first.substr(0, first.rfind("\n\n"));
  for (size_t turn = 0; turn < messages.size(); turn += 2) {
    const std::string ask = TextOfMessage(messages[turn]);
    const std::string subject = SubjectOf(ask), answer = TextOfMessage(messages[turn + 1]);
    std::smatch match;
    const std::regex statement(" the " + subject + " (?:is|is now|was set to) ([^ \n]+)\\.",
                               std::regex::icase);
    const std::string padded = StrCat(" ", std::regex_replace(text, std::regex("\n"), " "));
    ASSERT_TRUE(std::regex_search(padded, match, statement)) << subject << "\n" << text;
    const bool as_sentence = ask.find("In one sentence") != ask.npos;
    EXPECT_EQ(as_sentence ? StrCat("The ", subject, " is ", match[1].str(), ".") : match[1].str(),
              answer);
    EXPECT_FALSE(std::regex_search(match.suffix().first, match.suffix().second, statement));
  }
}

TEST(Needle, EveryQuestionHasOneStatement) {
  SeededRng rng(8);
  for (int i = 0; i < 60; ++i) {
    DrawContext context = ContextForTests(rng, Split::kTraining, 600);
    const StatusOr<Exercise> exercise = FindTask("needle")->draw(context);
    ASSERT_TRUE(exercise.ok());
    ExpectOneStatementEach(*exercise);
  }
}

TEST(Needle, SubjectsDiffer) {
  SeededRng rng(11);
  for (int i = 0; i < 60; ++i) {  // up to 128 facts each
    DrawContext context = ContextForTests(rng, Split::kTraining, 8192);
    const StatusOr<Exercise> exercise = FindTask("needle")->draw(context);
    ASSERT_TRUE(exercise.ok());
    std::set<std::string> subjects;
    for (const Message& message : exercise->conversation.messages) {
      if (message.role != Role::kUser) continue;
      EXPECT_TRUE(subjects.insert(SubjectOf(TextOfMessage(message))).second);
    }
  }
}

TEST(Needle, EvaluationFillsItsLengthAndAsksOnce) {
  SeededRng rng(9);
  for (const auto& [name, num_tokens] : {std::pair("needle_4k", 4096), {"needle_8k", 8192}}) {
    for (int i = 0; i < 5; ++i) {
      DrawContext context = ContextForTests(rng, Split::kHeldOut, 8192);
      StatusOr<Exercise> exercise = FindTask(name)->draw(context);
      ASSERT_TRUE(exercise.ok());
      EXPECT_EQ(exercise->conversation.messages.size(), 2u);
      ExpectOneStatementEach(*exercise);
      exercise->conversation.thinking.enabled = false;
      const auto length = std::ssize(IdsOf(exercise->conversation));
      EXPECT_LE(length, num_tokens);
      EXPECT_GE(length, num_tokens - 192);
    }
    DrawContext context = ContextForTests(rng, Split::kHeldOut, num_tokens - 1);
    const StatusOr<Exercise> refused = FindTask(name)->draw(context);
    EXPECT_EQ(MessageOf(refused.status()),
              StrCat("needle: expected room for ", num_tokens, " tokens, found max_tokens ",
                     num_tokens - 1, "; a longer row or --max-model-len has it"));
  }
}

TEST(Needle, StandsAnywhereInTheText) {
  SeededRng rng(10);
  int num_early = 0, num_late = 0;
  for (int i = 0; i < 60; ++i) {
    DrawContext context = ContextForTests(rng, Split::kHeldOut, 4096);
    const StatusOr<Exercise> exercise = FindTask("needle_4k")->draw(context);
    ASSERT_TRUE(exercise.ok());
    const std::string text = TextOfMessage(exercise->conversation.messages[0]);
    const size_t at = text.find(TextOfMessage(exercise->answer()));
    num_early += at < text.size() / 3;
    num_late += at > text.size() * 2 / 3;
  }
  EXPECT_GT(num_early, 8);
  EXPECT_GT(num_late, 8);
}

}  // namespace
}  // namespace deepinfer
