#include "eval/hay.h"

#include "eval/material.h"
#include "eval/words.h"

namespace deepinfer {
namespace {

std::string Thing(Rng& rng) {
  return Chance(rng, 0.5) ? std::string(Pick(rng, Objects()))
                          : StrCat(Pick(rng, Adjectives()), " ", Pick(rng, Objects()));
}

std::string Person(Rng& rng) {
  return Chance(rng, 0.6) ? std::string(Pick(rng, FirstNames()))
                          : StrCat("the ", Pick(rng, Jobs()));
}

}  // namespace

std::string DrawSentence(Rng& rng) {
  const std::string person = Person(rng), thing = Thing(rng), other = Thing(rng);
  const std::string_view verb = Pick(rng, PastVerbs()), place = Pick(rng, Places()),
                         animal = Pick(rng, Animals()), city = Pick(rng, Cities());
  switch (rng.Uniform(10)) {
    case 0:
      return Capitalised(StrCat(person, " ", verb, " the ", thing, " near ", place, "."));
    case 1:
      return StrCat("The ", Pick(rng, Adjectives()), " ", animal, " slept behind ", place, " for ",
                    Between(rng, 2, 90), " days.");
    case 2:
      return StrCat("On ", Pick(rng, Weekdays()), ", ", person, " ", verb, " ", WithArticle(thing),
                    " and ", WithArticle(other), ".");
    case 3:
      return StrCat("In ", Pick(rng, Months()), ", ", city, " was ", Pick(rng, Adjectives()),
                    " and ", Pick(rng, Adjectives()), ".");
    case 4:
      return Capitalised(
          StrCat(person, " travelled from ", city, " to ", Pick(rng, Cities()), " by train."));
    case 5:
      return StrCat("There were ", Between(rng, 2, 400), " ", Pick(rng, Plants()), " trees beside ",
                    place, ".");
    case 6:
      return StrCat("Nobody in ", city, " ", verb, " the ", thing, " of ", person, ".");
    case 7:
      return Capitalised(StrCat(WithArticle(animal), " and ", WithArticle(Pick(rng, Animals())),
                                " shared some ", Pick(rng, Foods()), " at ", place, "."));
    case 8:
      return Capitalised(StrCat(person, " said that the ", Pick(rng, Colours()), " ",
                                Pick(rng, Objects()), " cost ", Between(rng, 3, 950), " coins."));
    default:
      return Capitalised(StrCat("after lunch, ", person, " ", verb, " some ", Pick(rng, Foods()),
                                " for the ", animal, "."));
  }
}

HaySource::HaySource(DrawContext& context)
    : context_(context), from_material_(context.material != nullptr && Chance(context.rng, 0.7)) {
  if (from_material_) paragraph_idx_ = context.rng.Uniform(context.material->hay().size());
}

HaySentence HaySource::Next() {
  if (from_material_) return NextOfMaterial();
  return {DrawSentence(context_.rng), Chance(context_.rng, 0.12)};
}

HaySentence HaySource::NextOfMaterial() {
  const auto paragraphs = context_.material->hay();
  const std::string_view paragraph = paragraphs[paragraph_idx_];
  const size_t stop = paragraph.find(". ", at_);
  HaySentence sentence;
  if (stop == std::string_view::npos) {
    sentence = {std::string(paragraph.substr(at_)), true};
    paragraph_idx_ = (paragraph_idx_ + 1) % paragraphs.size();
    at_ = 0;
  } else {
    sentence = {std::string(paragraph.substr(at_, stop + 1 - at_)), false};
    at_ = stop + 2;
  }
  return sentence;
}

}  // namespace deepinfer
