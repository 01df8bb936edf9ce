#include "eval/small_facts.h"

#include <array>
#include <string_view>

#include "base/strings.h"
#include "eval/dialogue.h"
#include "eval/words.h"

namespace deepinfer {
namespace {

using Pair = std::array<std::string_view, 2>;

constexpr Pair kCapitals[] = {
    {"France", "Paris"},           {"Spain", "Madrid"},      {"Italy", "Rome"},
    {"Germany", "Berlin"},         {"Austria", "Vienna"},    {"Norway", "Oslo"},
    {"Sweden", "Stockholm"},       {"Finland", "Helsinki"},  {"Denmark", "Copenhagen"},
    {"Poland", "Warsaw"},          {"Portugal", "Lisbon"},   {"Greece", "Athens"},
    {"Ireland", "Dublin"},         {"Japan", "Tokyo"},       {"China", "Beijing"},
    {"India", "New Delhi"},        {"Egypt", "Cairo"},       {"Kenya", "Nairobi"},
    {"Canada", "Ottawa"},          {"Peru", "Lima"},         {"Cuba", "Havana"},
    {"Russia", "Moscow"},          {"Turkey", "Ankara"},     {"Hungary", "Budapest"},
    {"Belgium", "Brussels"},       {"Vietnam", "Hanoi"},     {"Thailand", "Bangkok"},
    {"Argentina", "Buenos Aires"}, {"Iceland", "Reykjavik"}, {"England", "London"},
};

constexpr Pair kColours[] = {
    {"grass", "green"},     {"snow", "white"},      {"coal", "black"},         {"blood", "red"},
    {"milk", "white"},      {"a lemon", "yellow"},  {"the clear sky", "blue"}, {"a tomato", "red"},
    {"a carrot", "orange"}, {"a frog", "green"},    {"a crow", "black"},       {"a swan", "white"},
    {"chocolate", "brown"}, {"a banana", "yellow"}, {"a cloud", "white"},      {"ash", "grey"},
};

constexpr Pair kOpposites[] = {
    {"hot", "cold"},    {"big", "small"},      {"old", "young"},      {"fast", "slow"},
    {"high", "low"},    {"long", "short"},     {"early", "late"},     {"full", "empty"},
    {"light", "dark"},  {"hard", "soft"},      {"rich", "poor"},      {"strong", "weak"},
    {"wet", "dry"},     {"open", "closed"},    {"happy", "sad"},      {"loud", "quiet"},
    {"clean", "dirty"}, {"near", "far"},       {"thick", "thin"},     {"left", "right"},
    {"up", "down"},     {"day", "night"},      {"first", "last"},     {"true", "false"},
    {"good", "bad"},    {"easy", "difficult"}, {"inside", "outside"}, {"winter", "summer"},
};

constexpr Pair kCounts[] = {
    {"days are in a week", "7"},       {"months are in a year", "12"},
    {"hours are in a day", "24"},      {"minutes are in an hour", "60"},
    {"seconds are in a minute", "60"}, {"legs has a dog", "4"},
    {"legs has a spider", "8"},        {"legs has a bee", "6"},
    {"legs has a bird", "2"},          {"legs has a snake", "0"},
    {"sides has a triangle", "3"},     {"sides has a square", "4"},
    {"cents are in a euro", "100"},    {"letters are in the English alphabet", "26"},
    {"wheels has a bicycle", "2"},     {"wheels has a car", "4"},
    {"fingers are on a hand", "5"},    {"seasons are in a year", "4"},
    {"eggs are in a dozen", "12"},     {"years are in a century", "100"},
};

constexpr Pair kYoung[] = {
    {"dog", "puppy"}, {"cat", "kitten"}, {"cow", "calf"},      {"horse", "foal"}, {"sheep", "lamb"},
    {"hen", "chick"}, {"bear", "cub"},   {"duck", "duckling"}, {"goat", "kid"},   {"pig", "piglet"},
};

constexpr Pair kSounds[] = {
    {"dog", "barks"},   {"cat", "meows"},    {"cow", "moos"},      {"horse", "neighs"},
    {"duck", "quacks"}, {"bee", "buzzes"},   {"lion", "roars"},    {"frog", "croaks"},
    {"wolf", "howls"},  {"snake", "hisses"}, {"mouse", "squeaks"}, {"owl", "hoots"},
};

SmallFact NextOf(Rng& rng, WordList words) {
  const size_t idx = rng.Uniform(words.size());
  const std::string_view next = words[(idx + 1) % words.size()];
  return {StrCat(Chance(rng, 0.5) ? "What comes after " : "What follows ", words[idx], "?"),
          std::string(next), StrCat("After ", words[idx], " comes ", next, "."),
          StrCat("after ", words[idx])};
}

SmallFact CapitalFact(Rng& rng) {
  const auto& [country, city] = Pick(rng, kCapitals);
  constexpr std::string_view kWordings =
      "What is the capital of {country}?|"
      "Which city is the capital of {country}?|"
      "Name the capital of {country}.";
  return {Filled(PickAlternative(rng, kWordings), {{"country", std::string(country)}}),
          std::string(city), StrCat("The capital of ", country, " is ", city, "."),
          StrCat("capital of ", country)};
}

SmallFact ColourFact(Rng& rng) {
  const auto& [thing, colour] = Pick(rng, kColours);
  constexpr std::string_view kWordings =
      "What color is {thing}?|Which color has {thing}?|"
      "Tell me the color of {thing}.";
  return {Filled(PickAlternative(rng, kWordings), {{"thing", std::string(thing)}}),
          Capitalised(colour), StrCat(Capitalised(thing), " is ", colour, "."),
          StrCat("color of ", thing)};
}

SmallFact OppositeFact(Rng& rng) {
  const Pair& pair = Pick(rng, kOpposites);
  const size_t asked = rng.Uniform(2);
  const std::string_view word = pair[asked], other = pair[1 - asked];
  constexpr std::string_view kWordings =
      "What is the opposite of {word}?|"
      "Which word is the opposite of {word}?|"
      "Tell me the opposite of {word}.";
  return {Filled(PickAlternative(rng, kWordings), {{"word", std::string(word)}}),
          Capitalised(other), StrCat("The opposite of ", word, " is ", other, "."),
          StrCat("opposite of ", word)};
}

SmallFact CountFact(Rng& rng) {
  const auto& [what, number] = Pick(rng, kCounts);
  return {StrCat("How many ", what, "?"), std::string(number), StrCat("It is ", number, "."),
          StrCat("how many ", what)};
}

SmallFact YoungFact(Rng& rng) {
  const auto& [animal, young] = Pick(rng, kYoung);
  return {StrCat(Chance(rng, 0.5) ? "What is a young " : "What do you call a young ", animal, "?"),
          Capitalised(young), StrCat("A young ", animal, " is a ", young, "."),
          StrCat("young ", animal)};
}

SmallFact SoundFact(Rng& rng) {
  const auto& [animal, sound] = Pick(rng, kSounds);
  return {StrCat(Chance(rng, 0.5) ? "What does " : "And what does ", WithArticle(animal),
                 " do when it makes a sound?"),
          Capitalised(sound), StrCat(Capitalised(WithArticle(animal)), " ", sound, "."),
          StrCat("sound of ", animal)};
}

// What an animal can do: bit by bit of kAbilities.
constexpr std::string_view kAbilities[] = {"fly", "swim", "climb trees", "lay eggs"};
struct Able {
  std::string_view animal;
  std::array<bool, 4> can;
};
constexpr Able kAble[] = {
    {"duck", {true, true, false, true}},      {"owl", {true, false, false, true}},
    {"crow", {true, false, false, true}},     {"whale", {false, true, false, false}},
    {"dolphin", {false, true, false, false}}, {"cow", {false, true, false, false}},
    {"squirrel", {false, true, true, false}}, {"cat", {false, true, true, false}},
    {"monkey", {false, true, true, false}},   {"bee", {true, false, false, true}},
    {"frog", {false, true, false, true}},     {"turtle", {false, true, false, true}},
    {"eagle", {true, false, false, true}},    {"swan", {true, true, false, true}},
    {"penguin", {false, true, false, true}},  {"goose", {true, true, false, true}},
    {"seal", {false, true, false, false}},    {"sparrow", {true, false, false, true}},
};

struct Statement {
  std::string_view subject, rest;
  bool holds;
};
constexpr Statement kStatements[] = {
    {"the sun", "hot", true},         {"ice", "cold", true},
    {"fire", "cold", false},          {"snow", "black", false},
    {"water", "wet", true},           {"a stone", "soft", false},
    {"a feather", "light", true},     {"an elephant", "small", false},
    {"a mouse", "small", true},       {"the sea", "dry", false},
    {"the night", "dark", true},      {"sugar", "sweet", true},
    {"a lemon", "sour", true},        {"the moon", "a planet", false},
    {"a rose", "a flower", true},     {"a dog", "a plant", false},
    {"an oak", "a tree", true},       {"a violin", "an instrument", true},
    {"a hammer", "a tool", true},     {"a whale", "a fish", false},
    {"a bee", "an insect", true},     {"bread", "a drink", false},
    {"Paris", "a city", true},        {"Monday", "a month", false},
    {"March", "a month", true},       {"seven", "a number", true},
    {"red", "a color", true},         {"iron", "a metal", true},
    {"cheese", "made of milk", true}, {"a desert", "full of water", false},
};

}  // namespace

SmallFact DrawSmallFact(Rng& rng) {
  switch (rng.Uniform(8)) {
    case 0:
      return CapitalFact(rng);
    case 1:
      return ColourFact(rng);
    case 2:
      return OppositeFact(rng);
    case 3:
      return CountFact(rng);
    case 4:
      return YoungFact(rng);
    case 5:
      return SoundFact(rng);
    case 6:
      return NextOf(rng, Weekdays());
    default:
      return NextOf(rng, Months());
  }
}

SmallFact DrawYesNoFact(Rng& rng) {
  if (Chance(rng, 0.5)) {
    const auto& [subject, rest, holds] = Pick(rng, kStatements);
    return {StrCat("Is ", subject, " ", rest, "?"), holds ? "Yes" : "No",
            StrCat(holds ? "Yes, " : "No, ", subject, holds ? " is " : " is not ", rest, "."),
            StrCat("is ", subject, " ", rest)};
  }
  const Able& able = Pick(rng, kAble);
  const size_t ability = rng.Uniform(std::size(kAbilities));
  const std::string animal = WithArticle(able.animal);
  const bool can = able.can[ability];
  return {
      StrCat("Can ", animal, " ", kAbilities[ability], "?"), can ? "Yes" : "No",
      StrCat(can ? "Yes, " : "No, ", animal, can ? " can " : " cannot ", kAbilities[ability], "."),
      StrCat("can ", animal, " ", kAbilities[ability])};
}

std::string KeyUnderRule(std::string_view rule, std::string_view fact_key) {
  return StrCat(rule, ": ", fact_key);
}

SmallFact DrawPlainFact(DrawContext& context, double yes_no) {
  for (;;) {
    SmallFact fact =
        Chance(context.rng, yes_no) ? DrawYesNoFact(context.rng) : DrawSmallFact(context.rng);
    const std::string key = KeyUnderRule(kPlainRule, fact.key);
    if (SplitOf(kFactKeys, key) == context.split) return fact;
  }
}

}  // namespace deepinfer
