#include "eval/chat_exercises.h"

#include <utility>

#include "base/strings.h"
#include "eval/dialogue.h"
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

// As people type: sometimes without capitals, end marks or with a greeting in front.
std::string Typed(Rng& rng, std::string ask) {
  if (Chance(rng, 0.1)) ask = WithLowerStart(ask);
  if (Chance(rng, 0.1) && (ask.back() == '.' || ask.back() == '?' || ask.back() == '!')) {
    ask.pop_back();
  }
  if (Chance(rng, 0.05)) ask = StrCat("Hi! ", ask);
  return ask;
}

Turn MiddleTurn(Rng& rng) {
  if (Chance(rng, 0.7)) return FromTalk(rng, Talk());
  const SmallFact fact = Chance(rng, 0.7) ? DrawSmallFact(rng) : DrawYesNoFact(rng);
  return {fact.question, fact.sentence, "I know this."};
}

std::vector<Turn> DrawTurnsOfTalk(Rng& rng) {
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
      turn = MiddleTurn(rng);
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
    Drawn talk{.turns = DrawTurnsOfTalk(context.rng)};
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
