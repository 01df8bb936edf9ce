// Chat, system prompts, memory, units and stories.
#include <cstdlib>
#include <regex>
#include <set>

#include "eval/chat_exercises.h"
#include "eval/dialogue_test_util.h"
#include "eval/memory_exercises.h"
#include "eval/small_facts.h"
#include "eval/small_talk.h"
#include "eval/story_exercises.h"
#include "eval/system_exercises.h"
#include "eval/unit_exercises.h"
#include "eval/words.h"

namespace deepinfer {
namespace {

constexpr Split kSplits[] = {Split::kTraining, Split::kHeldOut};

size_t NumWords(const std::string& text) {
  size_t count = 1;
  for (const char c : text) count += c == ' ' || c == '\n';
  return count;
}

std::string SystemOf(const Exercise& exercise) {
  const Message& first = exercise.conversation.messages[0];
  return first.role == Role::kSystem ? TextOf(first) : "";
}

TEST(SystemExercises, SplitsAreDisjointAndRepeatable) { CheckSplits(DrawSystem, "system", 20'000); }
TEST(MemoryExercises, SplitsAreDisjointAndRepeatable) { CheckSplits(DrawMemory, "memory", 20'000); }
TEST(UnitExercises, SplitsAreDisjointAndRepeatable) { CheckSplits(DrawUnits, "units", 20'000); }
TEST(ChatExercises, SplitsAreDisjointAndRepeatable) { CheckSplits(DrawChat, "chat", 20'000); }
TEST(StoryExercises, SplitsAreDisjointAndRepeatable) { CheckSplits(DrawStory, "stories", 20'000); }

TEST(TalkExercises, TurnsAlternateAndNothingIsLeftUnfilled) {
  for (const Draw draw : {DrawSystem, DrawMemory, DrawUnits, DrawChat, DrawStory}) {
    for (const Exercise& exercise : Drawn(draw, Split::kTraining, 31, 2000)) {
      Role expected = SystemOf(exercise).empty() ? Role::kUser : Role::kSystem;
      for (const Message& message : exercise.conversation.messages) {
        EXPECT_EQ(message.role, expected);
        expected = expected == Role::kUser ? Role::kAssistant : Role::kUser;
        const std::string text = TextOf(message);
        EXPECT_FALSE(text.empty());
        EXPECT_EQ(text.find('|'), std::string::npos) << text;
        const bool is_json = text.starts_with("{\"");
        EXPECT_EQ(!is_json && text.find('{') != std::string::npos, false) << text;
      }
      EXPECT_FALSE(exercise.answer().reasoning_content.empty());
      EXPECT_LT(PromptOf(exercise).size(), 1500U);
    }
  }
}

// ---- System prompts -----------------------------------------------------------------------------

bool Follows(const std::string& system, const std::string& ask, const std::string& answer) {
  std::smatch match;
  const auto has = [&](const char* pattern) {
    return std::regex_search(system, match, std::regex(pattern));
  };
  if (has("upper case|UPPER CASE|capital letters\\.|in capitals") && !has("Never use")) {
    return answer == std::regex_replace(answer, std::regex("[a-z]"), "");
  }
  if (has("lower case|small letters|Never use capital")) {
    return answer == std::regex_replace(answer, std::regex("[A-Z]"), "");
  }
  if (has("(?:End every|Finish each) answer with (?:the word )?\"?(\\w+)")) {
    return answer.ends_with(". " + match[1].str());
  }
  if (has("(?:Start every|Begin each) answer with (?:the word )?\"?(\\w+)")) {
    return answer.starts_with(match[1].str() + " ");
  }
  if (has("(?:Call the user|user as) (\\w+)")) {
    return answer.ends_with(", " + match[1].str() + ".");
  }
  if (has("yes or no")) return answer == "Yes" || answer == "No";
  if (has("JSON.* key,? (\\w+)")) {
    const auto json = ParseJson(answer);
    return json.ok() && json->members.size() == 1 && json->members[0].key == match[1].str();
  }
  if (has("questions about a shop"))
    return ask.find('?') != std::string::npos && answer.ends_with('.');
  if (has("twice|Repeat|two times")) {
    const size_t half = answer.size() / 2;
    return answer.substr(0, half) == answer.substr(half + 1);
  }
  if (has("one word|single word|only the answer|answer itself|as short")) {
    return !answer.ends_with('.');
  }
  return true;
}

TEST(SystemExercises, AnswersFollowTheirRule) {
  for (const Split split : kSplits) {
    for (const Exercise& exercise : Drawn(DrawSystem, split, 32, 3000)) {
      const std::string system = SystemOf(exercise), answer = AnswerOf(exercise);
      EXPECT_TRUE(Follows(system, AskOf(exercise), answer)) << system << "\n" << answer;
    }
  }
}

TEST(SystemExercises, FactsOfTheShopStandInThePrompt) {
  int num_shops = 0;
  const std::regex value("(\\S+)\\.$");
  for (const Exercise& exercise : Drawn(DrawSystem, Split::kHeldOut, 33, 2000)) {
    const std::string system = SystemOf(exercise), answer = AnswerOf(exercise);
    if (system.find("questions about a shop") == std::string::npos) continue;
    ++num_shops;
    std::smatch match;
    ASSERT_TRUE(std::regex_search(answer, match, value));
    EXPECT_NE(system.find(match[1].str()), std::string::npos) << system << answer;
  }
  EXPECT_GT(num_shops, 150);
}

// ---- Memory -------------------------------------------------------------------------------------

TEST(MemoryExercises, AnswersWereToldByTheUser) {
  for (const Split split : kSplits) {
    int num_unknown = 0;
    for (const Exercise& exercise : Drawn(DrawMemory, split, 34, 2000)) {
      const std::string answer = AnswerOf(exercise);
      if (answer == "You have not told me that.") {
        ++num_unknown;
        continue;
      }
      std::string told;
      for (const Message& message : exercise.conversation.messages) {
        if (message.role == Role::kUser) told += TextOf(message) + "\n";
      }
      const bool ends_in_years = answer.ends_with(" years old.");
      const std::string rest = answer.substr(0, answer.size() - (ends_in_years ? 11 : 1));
      const std::string value = rest.substr(rest.rfind(' ') + 1);
      EXPECT_NE(told.find(value), std::string::npos) << told << answer;
    }
    EXPECT_GT(num_unknown, 80);
    EXPECT_LT(num_unknown, 300);
  }
}

// ---- Units --------------------------------------------------------------------------------------

// In the smallest unit of its kind.
double Amount(const std::string& text) {
  static const std::pair<const char*, double> kUnits[] = {
      {"km", 1e6},        {"kilometers", 1e6}, {"m", 1e3},      {"meters", 1e3},
      {"cm", 10},         {"centimeters", 10}, {"mm", 1},       {"kg", 1e6},
      {"kilograms", 1e6}, {"g", 1e3},          {"grams", 1e3},  {"mg", 1},
      {"tons", 1e9},      {"liters", 1e3},     {"ml", 1},       {"euros", 100},
      {"dollars", 100},   {"cents", 1},        {"hours", 3600}, {"hour", 3600},
      {"h", 3600},        {"min", 60},         {"minutes", 60}, {"minute", 60},
      {"seconds", 1},     {"days", 86400},     {"day", 86400},  {"weeks", 604800},
      {"week", 604800},   {"years", 1e9},      {"year", 1e9},   {"months", 1e9 / 12},
      {"dozens", 12},     {"dozen", 12},       {"pieces", 1}};
  double sum = 0;
  const std::regex quantity("([0-9.]+) ([a-z]+)");
  for (std::sregex_iterator it(text.begin(), text.end(), quantity), end; it != end; ++it) {
    double factor = -1;
    for (const auto& [name, value] : kUnits) factor = (*it)[2] == name ? value : factor;
    EXPECT_GT(factor, 0) << text;
    sum += std::atof((*it)[1].str().c_str()) * factor;
  }
  return sum;
}

TEST(UnitExercises, BothSidesAreTheSameAmount) {
  for (const Exercise& exercise : Drawn(DrawUnits, Split::kHeldOut, 35, 3000)) {
    const std::string ask = AskOf(exercise), answer = AnswerOf(exercise);
    EXPECT_NEAR(Amount(ask) / Amount(answer), 1, 1e-9) << ask << " / " << answer;
    const std::string number = answer.substr(0, answer.find(' '));
    EXPECT_NE(exercise.answer().reasoning_content.find(number), std::string::npos);
  }
}

TEST(UnitExercises, StepsOfTheReasoningAreRight) {
  const std::regex step("([0-9.]+) ([x+/-]) ([0-9.]+) = ([0-9.]*[0-9])");
  int num_steps = 0;
  for (const Exercise& exercise : Drawn(DrawUnits, Split::kTraining, 36, 2000)) {
    const std::string& text = exercise.answer().reasoning_content;
    for (std::sregex_iterator it(text.begin(), text.end(), step), end; it != end;
         ++it, ++num_steps) {
      const double a = std::atof((*it)[1].str().c_str()), b = std::atof((*it)[3].str().c_str());
      const std::string sign = (*it)[2];
      const double result = sign == "x" ? a * b : sign == "+" ? a + b : sign == "-" ? a - b : a / b;
      EXPECT_NEAR(result, std::atof((*it)[4].str().c_str()), 1e-9) << text;
    }
  }
  EXPECT_GT(num_steps, 2000);
}

// ---- Chat and stories ---------------------------------------------------------------------------

TEST(SmallTalk, HasManyFormsAndAnswers) {
  const size_t num_forms = Greetings().size() + Partings().size() + Talk().size();
  EXPECT_GE(num_forms, 60U);
  std::set<std::string_view> asks;
  for (const auto talk : {Greetings(), Partings(), Talk()}) {
    for (const SmallTalk& form : talk) EXPECT_TRUE(asks.insert(form.asks).second) << form.asks;
  }
}

TEST(SmallFacts, SayTheirWord) {
  SeededRng rng(37);
  for (int i = 0; i < 2000; ++i) {
    const SmallFact fact = i % 2 == 0 ? DrawSmallFact(rng) : DrawYesNoFact(rng);
    const std::string word = fact.word.substr(1);  // its first letter may be a capital here
    EXPECT_NE(fact.sentence.find(word), std::string::npos) << fact.sentence;
    EXPECT_TRUE(fact.sentence.ends_with('.'));
  }
}

TEST(StoryExercises, HaveTheLengthAndTheHeroesAskedFor) {
  const std::regex about("about an? (\\w+) and an? (\\w+)");
  int num_checked = 0;
  for (const Exercise& exercise : Drawn(DrawStory, Split::kTraining, 38, 3000)) {
    const std::string answer = AnswerOf(exercise), ask = AskOf(exercise);
    EXPECT_GE(NumWords(answer), 60U) << answer;
    EXPECT_LE(NumWords(answer), 160U) << answer;
    EXPECT_EQ(answer.find("\n\n") != std::string::npos, ask.find("title") != std::string::npos);
    std::smatch match;
    if (!std::regex_search(ask, match, about)) continue;
    ++num_checked;
    EXPECT_NE(answer.find(match[1].str()), std::string::npos) << ask << answer;
    EXPECT_NE(answer.find(match[2].str()), std::string::npos) << ask << answer;
  }
  EXPECT_GT(num_checked, 300);
}

TEST(StoryExercises, SayHeOrSheOfOneHeroOnly) {
  const std::regex he("\\b(he|He|his|him)\\b"), she("\\b(she|She|her)\\b");
  for (const Exercise& exercise : Drawn(DrawStory, Split::kTraining, 39, 2000)) {
    const std::string answer = AnswerOf(exercise);
    EXPECT_FALSE(std::regex_search(answer, he) && std::regex_search(answer, she)) << answer;
  }
}

}  // namespace
}  // namespace deepinfer
