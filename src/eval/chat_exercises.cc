#include "eval/chat_exercises.h"

#include <utility>

#include "base/strings.h"
#include "eval/dialogue.h"
#include "eval/drawn_values.h"
#include "eval/small_facts.h"
#include "eval/small_talk.h"
#include "eval/words.h"

namespace deepinfer {
namespace {

constexpr std::string_view kTask = "chat";

struct Turn {
  std::string ask;
  std::string answer;
  std::string reasoning = "This is small talk, so I answer shortly.";
};

Turn FromTalk(Rng& rng, std::span<const SmallTalk> talk) {
  const SmallTalk& chosen = Pick(rng, talk);
  const std::string object(Pick(rng, Objects())), animal(Pick(rng, Animals()));
  Fillings fillings = {{"object", object},
                       {"an object", WithArticle(object)},
                       {"animal", animal},
                       {"an animal", WithArticle(animal)},
                       {"An animal", Capitalised(WithArticle(animal))}};
  fillings.emplace_back("name", Pick(rng, FirstNames()));
  fillings.emplace_back("city", Pick(rng, Cities()));
  fillings.emplace_back("food", Pick(rng, Foods()));
  fillings.emplace_back("colour", Pick(rng, Colours()));
  fillings.emplace_back("weekday", Pick(rng, Weekdays()));
  std::string ask = Filled(PickAlternative(rng, chosen.asks), fillings);
  return {std::move(ask), Filled(PickAlternative(rng, chosen.answers), fillings)};
}

// What a model of this size cannot do, asked in whatever words.
Turn Beyond(DrawContext& context) {
  constexpr std::string_view kAsks =
      "Write {a text} about {topic}.|Explain {topic}.|Explain {topic} in simple words.|"
      "How does {topic} work?|Why is {topic} {adjective}?|Tell me about {topic}.|"
      "What do you know about {topic}?|How do I {verb} {topic}?|How can I {verb} {topic}?|"
      "What is the best way to {verb} {topic}?|Where can I find {topic}?|Who invented {topic}?|"
      "When did {name} {verb} {topic}?|Translate \"{topic}\" into {language}.|"
      "Summarize the history of {topic}.|Give me ten ideas for {topic}.|Who was {person}?|"
      "What is the population of {city}?|Plan a trip from {city} to {place}.|"
      "Compare {topic} and {other}.|What is the difference between {topic} and {other}?|"
      "Is {topic} better than {other}?|Write code for {topic}.|Fix my {topic}.|Draw {topic}.|"
      "{name} has {topic} and {other}. What should {name} do?|Which {topic} should I buy?|"
      "I need help with {topic}.|Let us talk about {topic}.|Can you teach me {topic}?";
  constexpr std::string_view kAnswers =
      "I am sorry, I do not know enough about that.|I am sorry, that is too hard for a small "
      "model.|I do not know that. I am a very small model.|I am too small a model for that. Ask me "
      "for a sum, a word or a story.";
  Rng& rng = context.rng;
  const auto topic = [&] {
    const std::string word(DrawWord(context));
    return Chance(rng, 0.5) ? word : StrCat(DrawWord(context), " ", word);
  };
  const Fillings fillings = {
      {"a text", std::string(PickAlternative(rng,
                                             "a poem|an essay|a haiku|a song|a long letter|"
                                             "a report|a speech|a script"))},
      {"topic", topic()},
      {"other", topic()},
      {"adjective", std::string(Pick(rng, Adjectives()))},
      {"verb", std::string(PickAlternative(
                   rng, "make|find|use|build|repair|clean|learn|sell|improve|understand|choose"))},
      {"language", std::string(PickAlternative(rng, "French|German|Spanish|Chinese|Italian"))},
      {"name", std::string(Pick(rng, FirstNames()))},
      {"person", DrawFullName(rng)},
      {"city", std::string(Pick(rng, Cities()))},
      {"place", std::string(Pick(rng, Cities()))}};
  return {Filled(PickAlternative(rng, kAsks), fillings),
          std::string(PickAlternative(rng, kAnswers)), "That is beyond what I can do."};
}

// "Say this is a test." -> "This is a test."
Turn Repeated(Rng& rng) {
  constexpr std::string_view kAsks =
      "Say {words}.|Say \"{words}\".|Say: {words}|Say '{words}'.|Please say {words}.|"
      "Repeat after me: {words}|Just say {words}.|Reply with {words}.|Can you say {words}?";
  constexpr std::string_view kWords =
      "this is a test|hello|hi|hello world|good morning|yes|no|thank you|OK|I am ready|"
      "that is all|it works|welcome|goodbye|{phrase}|{phrase}|{phrase}|{phrase}";
  const Fillings phrase = {{"phrase", DrawValue(rng, Domain::kPhrase).spoken}};
  const std::string words = Filled(PickAlternative(rng, kWords), phrase);
  const bool is_greeting = words == "hello" || words == "hi";
  return {Filled(PickAlternative(rng, kAsks), {{"words", words}}),
          StrCat(Capitalised(words), is_greeting ? "!" : "."), "I say what I am asked to say."};
}

// As people type: sometimes without capitals, end marks or with a greeting in front.
std::string Typed(Rng& rng, std::string ask) {
  if (Chance(rng, 0.1)) ask = WithLowerStart(ask);
  if (Chance(rng, 0.1) && (ask.back() == '.' || ask.back() == '?' || ask.back() == '!')) {
    ask.pop_back();
  }
  if (Chance(rng, 0.05)) ask = StrCat("Hi! ", ask);
  return ask;
}

Turn MiddleTurn(DrawContext& context) {
  const double kind = context.rng.UniformDouble();
  if (kind < 0.6) return FromTalk(context.rng, Talk());
  if (kind < 0.7) return Beyond(context);
  if (kind < 0.75) return Repeated(context.rng);
  const SmallFact fact = DrawPlainFact(context, 0.3);
  return {fact.question, fact.sentence, "I know this."};
}

std::vector<Turn> DrawTurnsOfTalk(DrawContext& context) {
  Rng& rng = context.rng;
  const size_t num_turns = 1 + rng.Uniform(4);
  std::vector<Turn> turns;
  while (turns.size() < num_turns) {
    const bool first = turns.empty(), last = turns.size() + 1 == num_turns;
    Turn turn;
    if (first && Chance(rng, 0.35)) {
      turn = FromTalk(rng, Greetings());
    } else if (last && Chance(rng, 0.2)) {
      turn = FromTalk(rng, Partings());
    } else {
      turn = MiddleTurn(context);
    }
    turn.ask = Typed(rng, std::move(turn.ask));
    turns.push_back(std::move(turn));
  }
  return turns;
}

}  // namespace

StatusOr<Exercise> DrawChat(DrawContext& context) {
  struct Drawn {
    std::string key;
    std::vector<Turn> turns;
  };
  Drawn drawn = DrawInSplit(context, kTask, [&] {
    Drawn talk{.turns = DrawTurnsOfTalk(context)};
    for (const Turn& turn : talk.turns) talk.key += StrCat(turn.ask, "\n", turn.answer, "\n");
    return talk;
  });
  Exercise exercise;
  exercise.task = kTask;
  exercise.key = std::move(drawn.key);
  for (Turn& turn : drawn.turns) {
    exercise.conversation.messages.push_back(UserMessage(std::move(turn.ask)));
    exercise.conversation.messages.push_back(
        AssistantMessage(std::move(turn.answer), std::move(turn.reasoning)));
  }
  MaybeAddNeutralSystem(context.rng, exercise.conversation);
  return exercise;
}

}  // namespace deepinfer
