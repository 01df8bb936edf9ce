// That what is held out is nowhere in training: neither as it is asked, nor as a step of something
// else, nor as a fact told on the way. Every search is also shown what it must find.
#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <regex>
#include <set>

#include "eval/dialogue_test_util.h"
#include "eval/exercise_for_tests.h"
#include "eval/operation.h"
#include "eval/small_facts.h"

namespace deepinfer {
namespace {

Exercise DrawOf(const TaskKind& kind, Split split, Rng& rng) {
  const bool fills = kind.fills && kind.name != "needle";
  const int32_t max_tokens = kind.name == "needle_4k" ? 4096 : fills ? 8192 : 1024;
  DrawContext context = ContextForTests(rng, split, max_tokens);
  StatusOr<Exercise> exercise = kind.draw(context);
  CHECK(exercise.ok());
  return *std::move(exercise);
}

// What training draws from: the kinds of schedule.json, a thousand of each.
const std::vector<Exercise>& TrainingExercises() {
  static const auto* const kDrawn = [] {
    auto* const drawn = new std::vector<Exercise>;
    SeededRng rng(51);
    for (const TaskKind& kind : AllTasks()) {
      const int count = kind.fills ? 20 : 1500;
      for (int i = 0; i < count; ++i) drawn->push_back(DrawOf(kind, Split::kTraining, rng));
    }
    return drawn;
  }();
  return *kDrawn;
}

// ---- Prompts ------------------------------------------------------------------------------------

// What stands before each answer: all of it, and the last question alone.
std::vector<std::string> PromptsOf(const Exercise& exercise) {
  std::vector<std::string> prompts;
  std::string before;
  for (const ToolDefinition& tool : exercise.conversation.tools) {
    before += DumpJson(tool.function) + "\n";
  }
  for (const Message& message : exercise.conversation.messages) {
    if (message.role == Role::kAssistant) prompts.push_back(before);
    before += TextOf(message) + "\n";
    if (message.role == Role::kUser) prompts.push_back(TextOf(message) + "\n");
  }
  return prompts;
}

std::vector<std::string> Repeated(const std::set<std::string>& held_out,
                                  const std::vector<Exercise>& training) {
  std::vector<std::string> repeated;
  for (const Exercise& exercise : training) {
    for (std::string& prompt : PromptsOf(exercise)) {
      if (held_out.contains(prompt)) repeated.push_back(std::move(prompt));
    }
  }
  return repeated;
}

TEST(HeldOut, PromptsAreInTrainingRowsOfNoKind) {
  SeededRng rng(52);
  std::set<std::string> held_out;
  std::vector<Exercise> one_of_each;
  for (const TaskKind& kind : AllTasks()) {
    if (!kind.evaluated || !kind.split_by_key) continue;
    for (int i = 0; i < (kind.fills ? 5 : 400); ++i) {
      Exercise exercise = DrawOf(kind, Split::kHeldOut, rng);
      held_out.insert(PromptsOf(exercise).back());  // all that stands before its answer
      if (i == 0) one_of_each.push_back(std::move(exercise));
    }
  }
  EXPECT_EQ(Repeated(held_out, TrainingExercises()), std::vector<std::string>());
  for (const Exercise& exercise : one_of_each) {
    EXPECT_FALSE(Repeated(held_out, {exercise}).empty()) << exercise.task;
  }
}

// ---- Operations ---------------------------------------------------------------------------------

// Those that a text writes down: "47 + 38", "Add 47 and 38", "Subtract 3 from 12", "12-3".
std::vector<Operation> OperationsIn(const std::string& text) {
  static const std::regex kInfix(
      "(?:^|[^0-9.+x*-] ?)([0-9]+) (\\+|-|x|\\*|plus|minus|times) ([0-9]+)(?![0-9.]*[0-9])");
  static const std::regex kTight("Calculate ([0-9]+)([+-])([0-9]+)\\.");
  static const std::regex kAdd("(Add) ([0-9]+) and ([0-9]+)\\.");
  static const std::regex kSubtract("(Subtract) ([0-9]+) from ([0-9]+)");
  static const std::map<std::string, char> kSigns = {{"+", '+'},     {"plus", '+'}, {"-", '-'},
                                                     {"minus", '-'}, {"x", 'x'},    {"*", 'x'},
                                                     {"times", 'x'}};
  std::vector<Operation> found;
  const auto number = [](const std::ssub_match& match) { return std::stoll(match.str()); };
  for (const std::regex* const form : {&kInfix, &kTight, &kAdd, &kSubtract}) {
    for (std::sregex_iterator it(text.begin(), text.end(), *form), end; it != end; ++it) {
      const std::smatch& m = *it;
      if (form == &kAdd) {
        found.push_back({number(m[2]), number(m[3]), '+'});
      } else if (form == &kSubtract) {
        found.push_back({number(m[3]), number(m[2]), '-'});
      } else {
        found.push_back({number(m[1]), number(m[3]), kSigns.at(m[2])});
      }
    }
  }
  return found;
}

// Held-out ones in the conversations, and how many there are of any kind.
std::set<std::string> HeldOutOperations(const std::vector<Exercise>& exercises, size_t* count) {
  std::set<std::string> held_out;
  for (const Exercise& exercise : exercises) {
    for (const Message& message : exercise.conversation.messages) {
      for (const Operation& op : OperationsIn(TextOf(message) + "\n" + message.reasoning_content)) {
        ++*count;
        if (!MayBeShown(op, Split::kTraining)) held_out.insert(op.key());
      }
    }
  }
  return held_out;
}

TEST(HeldOut, OperationsAreNeitherAskedNorStepsInTraining) {
  size_t num_operations = 0;
  EXPECT_EQ(HeldOutOperations(TrainingExercises(), &num_operations), std::set<std::string>());
  EXPECT_GT(num_operations, 15'000u);
  SeededRng rng(53);
  for (const char* const name : {"arithmetic", "sums", "sums_3", "products"}) {
    for (int i = 0; i < 50; ++i) {
      const Exercise exercise = DrawOf(*FindTask(name), Split::kHeldOut, rng);
      EXPECT_FALSE(HeldOutOperations({exercise}, &num_operations).empty())
          << TextOf(exercise.conversation.messages[0]);
    }
  }
}

TEST(Operation, KeyIsTheSameInEitherOrderWhereThatDoesNotMatter) {
  EXPECT_EQ((Operation{38, 47, '+'}.key()), (Operation{47, 38, '+'}.key()));
  EXPECT_EQ((Operation{7, 52, 'x'}.key()), (Operation{52, 7, 'x'}.key()));
  EXPECT_NE((Operation{47, 38, '-'}.key()), (Operation{38, 47, '-'}.key()));
}

TEST(Operation, ElementaryOnesAreWhatStepsAreMadeOf) {
  EXPECT_TRUE((Operation{9, 8, '+'}.IsElementary()));
  EXPECT_FALSE((Operation{10, 8, '+'}.IsElementary()));
  EXPECT_TRUE((Operation{400, 60, 'x'}.IsElementary()));
  EXPECT_TRUE((Operation{57, 1000, 'x'}.IsElementary()));
  EXPECT_FALSE((Operation{57, 6, 'x'}.IsElementary()));
}

TEST(Operation, ProductsAreWorkedOutPartByPart) {
  const WorkedProduct worked = WorkOutProduct(743, 6);
  EXPECT_EQ(worked.steps,
            "700 x 6 = 4200. 40 x 6 = 240. 4200 + 240 = 4440. 3 x 6 = 18. 4440 + 18 = 4458.");
  ASSERT_EQ(worked.sums.size(), 2u);
  EXPECT_EQ(worked.sums[1].key(), "4440+18");
  EXPECT_EQ(WorkOutProduct(40, 6).steps, "40 x 6 = 240.");
}

// ---- Small facts --------------------------------------------------------------------------------

std::string Normalised(std::string question) {
  if (question.starts_with("Hi! ")) question = question.substr(4);
  while (!question.empty() && (question.back() == '.' || question.back() == '?')) {
    question.pop_back();
  }
  if (!question.empty()) question[0] = static_cast<char>(std::tolower(question[0]));
  return question;
}

// Questions for held-out plain facts, each wording, with what is said then.
std::map<std::string, std::string> HeldOutFacts() {
  std::map<std::string, std::string> facts;
  SeededRng rng(54);
  for (int i = 0; i < 40'000; ++i) {
    const SmallFact fact = i % 2 == 0 ? DrawSmallFact(rng) : DrawYesNoFact(rng);
    if (SplitOf(kFactKeys, KeyUnderRule(kPlainRule, fact.key)) == Split::kHeldOut) {
      facts[Normalised(fact.question)] = fact.sentence;
    }
  }
  return facts;
}

// Conversations without a rule in which a held-out fact is told.
int NumTellings(const std::vector<Exercise>& exercises,
                const std::map<std::string, std::string>& facts) {
  int count = 0;
  for (const Exercise& exercise : exercises) {
    const std::vector<Message>& messages = exercise.conversation.messages;
    for (size_t i = 1; i < messages.size(); ++i) {
      const auto fact = facts.find(Normalised(TextOf(messages[i - 1])));
      if (fact == facts.end() || TextOf(messages[i]) != fact->second) continue;
      const bool has_rule = exercise.task == kFactKeys && !exercise.key.starts_with(kPlainRule);
      count += has_rule ? 0 : 1;
    }
  }
  return count;
}

TEST(HeldOut, SmallFactsAreToldPlainlyInTrainingRowsOfNoKind) {
  const std::map<std::string, std::string> facts = HeldOutFacts();
  EXPECT_GT(facts.size(), 10u);
  EXPECT_EQ(NumTellings(TrainingExercises(), facts), 0);
  SeededRng rng(55);
  std::vector<Exercise> held_out;
  for (int i = 0; i < 2000; ++i) {
    for (const char* const name : {"memory", "system", "tools"}) {
      held_out.push_back(DrawOf(*FindTask(name), Split::kHeldOut, rng));
    }
  }
  EXPECT_GT(NumTellings(held_out, facts), 100);
}

// ---- Numbers of keys ----------------------------------------------------------------------------

// Up to `wanted` keys, as the evaluation draws them: it gives up after so many draws without a new.
size_t NumKeys(const std::function<std::string()>& draw_key, size_t wanted) {
  constexpr int kTriesMax = 200;
  std::set<std::string> keys;
  for (int tries = 0; keys.size() < wanted && tries < kTriesMax; ++tries) {
    if (keys.insert(draw_key()).second) tries = 0;
  }
  return keys.size();
}

TEST(HeldOut, EveryEvaluatedKindHasEnoughKeys) {
  SeededRng rng(56);
  for (const TaskKind& kind : AllTasks()) {
    if (!kind.evaluated || !kind.split_by_key) continue;
    const size_t wanted = kind.fills ? 10 : 200;  // of kinds that fill, time is what is short
    const auto draw_key = [&] { return DrawOf(kind, Split::kHeldOut, rng).key; };
    EXPECT_EQ(NumKeys(draw_key, wanted), wanted) << kind.name;
  }
  // Products of two digits and one, as they once were: too few.
  const auto small_product = [&rng] {
    for (;;) {
      const Operation op{Between(rng, 10, 99), Between(rng, 2, 9), 'x'};
      if (!MayBeShown(op, Split::kTraining)) return op.key();
    }
  };
  EXPECT_LT(NumKeys(small_product, 200), 100u);
}

}  // namespace
}  // namespace deepinfer
