#include "eval/memory_exercises.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "eval/dialogue.h"
#include "eval/drawn_values.h"
#include "eval/small_facts.h"
#include "eval/turns.h"
#include "eval/words.h"

namespace deepinfer {
namespace {

constexpr std::string_view kTask = "memory";

struct MemoryKind {
  std::string_view tell;    // "My name is {}.|I am {}."
  std::string_view ask;     // "What is my name?|..."
  std::string_view answer;  // "Your name is {}."
  Domain domain;
};

constexpr MemoryKind kKinds[] = {
    {"My name is {}.|I am called {}.|Hello, I am {}.|Call me {}.",
     "What is my name?|Who am I?|Do you remember my name?|How am I called?", "Your name is {}.",
     Domain::kFirstName},
    {"I live in {}.|My home is in {}.|I am at home in {}.|My city is {}.",
     "Where do I live?|In which city do I live?|Which city is my home?", "You live in {}.",
     Domain::kCity},
    {"I am {} years old.|My age is {}.|I turned {} this year.",
     "How old am I?|What is my age?|Do you know how old I am?", "You are {} years old.",
     Domain::kAge},
    {"My favorite color is {}.|I like the color {} best.|The color that I love is {}.",
     "What is my favorite color?|Which color do I like best?|Do you remember my color?",
     "Your favorite color is {}.", Domain::kColour},
    {"I work as {a}.|I am {a} by profession.|My job: {}.",
     "What is my job?|What do I work as?|Do you remember my job?", "You work as {a}.",
     Domain::kJob},
    {"My lucky number is {}.|The number {} brings me luck.|Remember my lucky number, {}.",
     "What is my lucky number?|Which number brings me luck?|My lucky number?",
     "Your lucky number is {}.", Domain::kAmount},
    {"The code of my door is {}.|My door opens with {}.|Please remember the door code {}.",
     "What is the code of my door?|How does my door open?|What was the door code?",
     "The code of your door is {}.", Domain::kCode},
    {"My dog is called {}.|I have a dog, {}.|The name of my dog is {}.",
     "What is my dog called?|What is the name of my dog?|Who is my dog?", "Your dog is called {}.",
     Domain::kFirstName},
    {"My sister is called {}.|I have a sister, {}.|The name of my sister is {}.",
     "What is my sister called?|What is the name of my sister?|Who is my sister?",
     "Your sister is called {}.", Domain::kFirstName},
    {"My birthday is on {}.|I was born on {}.|My date of birth is {}.",
     "When is my birthday?|When was I born?|What is my date of birth?", "You were born on {}.",
     Domain::kDate},
    {"I like to eat {}.|My favorite food is {}.|The food that I love is {}.",
     "What do I like to eat?|What is my favorite food?|Which food do I like?",
     "You like to eat {}.", Domain::kFood},
    {"I am looking for my {}.|I lost my {}.|I cannot find my {}.",
     "What am I looking for?|What did I lose?|What can I not find?", "You are looking for your {}.",
     Domain::kObject},
    {"My appointment is at {}.|I have an appointment at {}.|Remember my appointment at {}.",
     "When is my appointment?|At what time is my appointment?|What time is it, my appointment?",
     "Your appointment is at {}.", Domain::kTime},
    {"My mail address is {}.|You can write to me at {}.|I read mail at {}.",
     "What is my mail address?|Where do I read mail?|How can people write to me?",
     "Your mail address is {}.", Domain::kMail},
};

struct Fact {
  size_t kind;
  std::string value;
};

std::string Say(std::string_view text, const std::string& value) {
  return Filled(text, {{"", value}, {"a", WithArticle(value)}});
}

// ---- What is said before the question -----------------------------------------------------------

std::vector<Fact> DrawFacts(Rng& rng) {
  std::vector<size_t> kinds;
  for (size_t i = 0; i < std::size(kKinds); ++i) kinds.push_back(i);
  Shuffle(rng, kinds);
  kinds.resize(1 + rng.Uniform(5));
  std::vector<Fact> facts;
  for (const size_t kind : kinds)
    facts.push_back({kind, DrawValue(rng, kKinds[kind].domain).spoken});
  if (Chance(rng, 0.15)) {
    const size_t kind = Pick(rng, facts).kind;
    facts.push_back({kind, DrawValue(rng, kKinds[kind].domain).spoken});
  }
  return facts;
}

void AddTold(Rng& rng, const std::vector<Fact>& facts, std::vector<Message>& messages) {
  for (size_t i = 0; i < facts.size();) {
    // One or two facts a turn.
    std::string told = Say(PickAlternative(rng, kKinds[facts[i].kind].tell), facts[i].value);
    const bool only_name = facts[i].kind == 0;
    const bool two = i + 1 < facts.size() && Chance(rng, 0.3);
    if (two) {
      const Fact& next = facts[i + 1];
      told += StrCat(" ", Say(PickAlternative(rng, kKinds[next.kind].tell), next.value));
    }
    messages.push_back(UserMessage(told));
    messages.push_back(AssistantMessage(only_name && !two
                                            ? StrCat("Nice to meet you, ", facts[i].value, ".")
                                            : "I will remember that.",
                                        "The user tells me something."));
    i += two ? 2 : 1;
  }
}

void MaybeAddOtherTalk(DrawContext& context, std::vector<Message>& messages) {
  for (int i = 0; i < 2; ++i) {
    if (Chance(context.rng, 0.6)) continue;
    const SmallFact fact = DrawPlainFact(context, 0);
    messages.push_back(UserMessage(fact.question));
    messages.push_back(AssistantMessage(fact.sentence, "I know this."));
  }
}

// ---- Questions ----------------------------------------------------------------------------------

// Of a fact that was told, the last telling counts; one question in ten is about another.
Question DrawQuestion(Rng& rng, const std::vector<Fact>& facts) {
  const bool untold = Chance(rng, 0.1);
  const size_t kind = untold ? rng.Uniform(std::size(kKinds)) : Pick(rng, facts).kind;
  const auto fact = std::find_if(facts.rbegin(), facts.rend(),
                                 [&](const Fact& told) { return told.kind == kind; });
  Question question;
  question.ask = std::string(PickAlternative(rng, kKinds[kind].ask));
  for (const Fact& told : facts) question.key += StrCat(told.kind, "=", told.value, ";");
  question.key += StrCat(kind);
  if (fact == facts.rend()) {
    question.answer = "You have not told me that.";
    question.reasoning = "The user did not say this.";
  } else {
    question.answer = Say(kKinds[kind].answer, fact->value);
    question.reasoning = StrCat("The user told me: ", fact->value, ".");
  }
  return question;
}

}  // namespace

StatusOr<Exercise> DrawMemory(DrawContext& context) {
  struct Drawn {
    std::string key;
    std::vector<Fact> facts;
    Question question;
  };
  Rng& rng = context.rng;
  Drawn last = DrawInSplit(context, kTask, [&] {
    std::vector<Fact> facts = DrawFacts(rng);
    Question question = DrawQuestion(rng, facts);
    return Drawn{question.key, std::move(facts), std::move(question)};
  });
  Exercise exercise;
  exercise.task = kTask;
  std::vector<Message>& messages = exercise.conversation.messages;
  AddTold(rng, last.facts, messages);
  MaybeAddOtherTalk(context, messages);
  const size_t num_before = context.split == Split::kTraining ? rng.Uniform(3) : 0;
  for (size_t i = 0; i < num_before; ++i) {
    Question question = DrawQuestion(rng, last.facts);
    if (SplitOf(kTask, question.key) != context.split) continue;
    messages.push_back(UserMessage(question.ask));
    messages.push_back(AssistantMessage(question.answer, question.reasoning));
    exercise.earlier_keys.push_back(std::move(question.key));
  }
  messages.push_back(UserMessage(last.question.ask));
  messages.push_back(AssistantMessage(last.question.answer, last.question.reasoning));
  exercise.key = std::move(last.key);
  MaybeAddNeutralSystem(rng, exercise.conversation);
  return exercise;
}

}  // namespace deepinfer
