#include "eval/story_exercises.h"

#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "eval/dialogue.h"
#include "eval/story_plots.h"
#include "eval/words.h"

namespace deepinfer {
namespace {

constexpr std::string_view kTask = "stories";

constexpr std::string_view kGirls =
    "Anna|Clara|Elena|Grace|Iris|Karin|Mira|Olga|Rosa|Tara|Wanda|Zoe|Diana|Hana|Julia|Laura|Nadia|"
    "Sofia|Vera|Bella|Frida|Helen|Lena|Nina|Petra|Sara|Viola|Ella|Greta|Ines";
constexpr std::string_view kBoys =
    "Ben|David|Felix|Henry|Jonas|Liam|Noah|Paul|Simon|Victor|Yusuf|Carlos|Emil|George|Ivan|Marco|"
    "Oscar|Ravi|Tomas|Walter|Adam|Colin|Edwin|Gustav|Igor|Martin|Otto|Robert|Theo|Hugo";

struct Hero {
  bool is_girl;
  std::string name;
  std::string kind;    // "fox", "baker"
  std::string a_kind;  // "a brave fox"
};

Hero DrawHero(Rng& rng) {
  constexpr std::string_view kTraits =
      "brave|young|clever|curious|small|happy|patient|polite|old|quiet|gentle|tired|hungry|proud";
  Hero hero;
  hero.is_girl = Chance(rng, 0.5);
  hero.name = std::string(PickAlternative(rng, hero.is_girl ? kGirls : kBoys));
  hero.kind = std::string(Chance(rng, 0.75) ? Pick(rng, Animals()) : Pick(rng, Jobs()));
  hero.a_kind = WithArticle(StrCat(PickAlternative(rng, kTraits), " ", hero.kind));
  return hero;
}

// Everything that stays the same through a story.
struct Cast {
  Hero hero, friend_of_hero;
  std::string thing, food, place, far_place, colour;
};

Cast DrawCast(Rng& rng) {
  Cast cast{.hero = DrawHero(rng), .friend_of_hero = DrawHero(rng)};
  while (cast.friend_of_hero.name == cast.hero.name || cast.friend_of_hero.kind == cast.hero.kind) {
    cast.friend_of_hero = DrawHero(rng);
  }
  cast.thing = std::string(Pick(rng, Objects()));
  cast.food = std::string(PickAlternative(rng, "bread|cheese|soup|rice|honey|cake|salad|butter"));
  cast.place = std::string(Pick(rng, Places()));
  do {
    cast.far_place = std::string(Pick(rng, Places()));
  } while (cast.far_place == cast.place);
  cast.colour = std::string(Pick(rng, Colours()));
  return cast;
}

Fillings FillingsOf(const Cast& cast) {
  const Hero& hero = cast.hero;
  const Hero& other = cast.friend_of_hero;
  return {{"hero", hero.name},
          {"kind", hero.kind},
          {"a kind", hero.a_kind},
          {"friend", other.name},
          {"friend kind", other.kind},
          {"a friend kind", other.a_kind},
          {"he", hero.is_girl ? "she" : "he"},
          {"He", hero.is_girl ? "She" : "He"},
          {"his", hero.is_girl ? "her" : "his"},
          {"him", hero.is_girl ? "her" : "him"},
          {"thing", cast.thing},
          {"a thing", WithArticle(cast.thing)},
          {"food", cast.food},
          {"place", cast.place},
          {"far place", cast.far_place},
          {"colour", cast.colour},
          {"plain kind", WithArticle(hero.kind)},
          {"plain friend kind", WithArticle(other.kind)}};
}

std::string TellStory(Rng& rng, const Fillings& fillings) {
  std::vector<std::string> sentences;
  for (const std::string_view wordings : Pick(rng, StoryPlots())) {
    sentences.push_back(Capitalised(Filled(PickAlternative(rng, wordings), fillings)));
  }
  return Join(sentences, " ");
}

// Names nothing that the story does not hold.
std::string DrawTitle(Rng& rng, const Cast& cast, const std::string& story) {
  const bool has_thing = story.find(cast.thing) != std::string::npos;
  switch (rng.Uniform(has_thing ? 3 : 2)) {
    case 0:
      return StrCat(cast.hero.name, " and ", cast.friend_of_hero.name);
    case 1:
      return StrCat("The ", Capitalised(cast.hero.kind), " and the ",
                    Capitalised(cast.friend_of_hero.kind));
    default:
      return StrCat(cast.hero.name, " and the ", Capitalised(cast.thing));
  }
}

std::string DrawRequest(Rng& rng, const Fillings& fillings, bool with_title) {
  constexpr std::string_view kWordings =
      "Tell me a story.|Please tell me a story.|Can you write a short story?|"
      "I want to hear a story.|"
      "Tell me a story about {plain kind} and {plain friend kind}.|"
      "Write a short story about {plain kind} and {plain friend kind}.|"
      "A story about {plain kind} and {plain friend kind}, please.|"
      "Tell me a story about {plain kind}.|Please tell me a bedtime story about {plain kind}.|"
      "Write a story about {hero} the {kind}.|Tell me a story about {hero} and {friend}.|"
      "I would like a story about {hero} and {friend}.|Write a story about {plain kind} called "
      "{hero}.|Can you tell me a story about the {kind} {hero} and the {friend kind} {friend}?";
  std::string request = Filled(PickAlternative(rng, kWordings), fillings);
  if (with_title) request += PickAlternative(rng, " Give it a title.| With a title, please.");
  return request;
}

}  // namespace

StatusOr<Exercise> DrawStory(DrawContext& context) {
  struct Drawn {
    std::string key;
    Cast cast;
  };
  Rng& rng = context.rng;
  const Drawn story = DrawInSplit(context, kTask, [&] {
    Cast cast = DrawCast(rng);
    std::string text = TellStory(rng, FillingsOf(cast));
    return Drawn{std::move(text), std::move(cast)};
  });
  const Fillings fillings = FillingsOf(story.cast);
  const bool with_title = Chance(rng, 0.3);
  std::string answer =
      with_title ? StrCat(DrawTitle(rng, story.cast, story.key), "\n\n", story.key) : story.key;
  Exercise exercise;
  exercise.task = kTask;
  exercise.key = story.key;
  exercise.conversation.messages = {
      UserMessage(DrawRequest(rng, fillings, with_title)),
      AssistantMessage(
          std::move(answer),
          Filled("The story has {hero} the {kind} and {friend} the {friend kind}.", fillings))};
  MaybeAddNeutralSystem(rng, exercise.conversation);
  return exercise;
}

}  // namespace deepinfer
