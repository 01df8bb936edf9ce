#include "eval/gloss.h"

#include "eval/turns.h"
#include "eval/words.h"

namespace deepinfer {
namespace {

constexpr std::string_view kTask = "gloss";
constexpr std::string_view kHeldOutBefore = "Explain the meaning of the word ";

std::string TrainingQuestion(Rng& rng, const Gloss& gloss) {
  const std::string word(gloss.word);
  if (gloss.part_of_speech.starts_with("n") && Chance(rng, 0.4)) {
    return Chance(rng, 0.7) ? StrCat("What is ", WithArticle(word), "?")
                            : StrCat("Tell me what ", WithArticle(word), " is.");
  }
  switch (rng.Uniform(6)) {
    case 0:
      return StrCat("What does ", word, " mean?");
    case 1:
      return StrCat("Define ", word, ".");
    case 2:
      return StrCat("What is the meaning of ", word, "?");
    case 3:
      return StrCat("Give a definition of the word ", word, ".");
    case 4:
      return StrCat("Explain the word ", word, ".");
    default:
      return StrCat(word, "?");
  }
}

StatusOr<Exercise> DrawHeldOut(DrawContext& context) {
  if (context.gloss_check == nullptr) {
    return FailedPrecondition("gloss: expected the check of its words, found none");
  }
  const GlossCheck::Entry& entry = Pick(context.rng, context.gloss_check->entries());
  const std::string ask = StrCat(kHeldOutBefore, entry.word, ".");
  Exercise exercise = ExerciseOf(kTask, "", {{.ask = ask, .key = ask}});
  exercise.grading = Grading::kGlossWords;
  exercise.gloss_words = entry.hashes;
  return exercise;
}

std::string_view SpelledPart(std::string_view part_of_speech) {
  if (part_of_speech.starts_with("n")) return "noun";
  if (part_of_speech.starts_with("v")) return "verb";
  return part_of_speech.starts_with("adv") || part_of_speech == "r" ? "adverb" : "adjective";
}

}  // namespace

StatusOr<Exercise> DrawGloss(DrawContext& context) {
  if (context.split == Split::kHeldOut) return DrawHeldOut(context);
  if (context.material == nullptr) {
    return FailedPrecondition("gloss: expected material with definitions, found none");
  }
  const auto core = context.material->core_glosses(), other = context.material->other_glosses();
  return DrawTurns(context, kTask, 4, [&]() -> Question {
    const bool is_core = other.empty() || (!core.empty() && Chance(context.rng, 0.9));
    const Gloss& gloss = Pick(context.rng, is_core ? core : other);
    const std::string ask = TrainingQuestion(context.rng, gloss);
    return {.ask = ask,
            .answer = std::string(ShortDefinition(gloss.definition)),
            .reasoning = StrCat("The word ", gloss.word, " is ",
                                WithArticle(SpelledPart(gloss.part_of_speech)), "."),
            .key = ask};
  });
}

std::string_view ShortDefinition(std::string_view definition) {
  constexpr size_t kBytesMax = 120;
  if (definition.size() <= kBytesMax) return definition;
  for (const std::string_view stop : {"; ", ", ", " "}) {
    const size_t at = definition.rfind(stop, kBytesMax);
    if (at != std::string_view::npos && at >= kBytesMax / 2) return definition.substr(0, at);
  }
  return definition;
}

GlossCheck MakeGlossCheck(const Material& material) {
  std::vector<GlossCheck::Entry> entries;
  for (const Gloss& gloss : material.core_glosses()) {
    std::vector<uint32_t> hashes = ContentWordHashes(ShortDefinition(gloss.definition));
    if (!hashes.empty()) entries.push_back({std::string(gloss.word), std::move(hashes)});
  }
  return GlossCheck(std::move(entries));
}

}  // namespace deepinfer
