#include "eval/keyval.h"

#include <set>

#include "eval/turns.h"
#include "eval/words.h"

namespace deepinfer {
namespace {

constexpr std::string_view kTask = "keyval";

struct Pair {
  std::string name, value, key;
};

// ---- Pairs --------------------------------------------------------------------------------------

std::string DrawName(DrawContext& context) {
  Rng& rng = context.rng;
  switch (rng.Uniform(5)) {
    case 0:
      return std::string(Pick(rng, FirstNames()));
    case 1:
      return StrCat(Pick(rng, Adjectives()), "_", Pick(rng, Objects()));
    case 2:
      return DrawCode(rng);
    default:
      return std::string(DrawWord(context));
  }
}

std::string DrawValue(Rng& rng, uint64_t kind) {
  switch (kind) {
    case 0:
      return std::string(Pick(rng, CommonWords()));
    case 1:
      return DrawCode(rng);
    case 2:
      return std::string(Pick(rng, Cities()));
    case 3:
      return DrawDate(rng);
    default:
      return DrawNumber(rng, static_cast<int>(Between(rng, 2, 5)));
  }
}

// Names and values are new to `taken`: both look-ups have one answer.
Pair DrawPair(DrawContext& context, uint64_t kind, std::set<std::string>& taken) {
  const Pair pair = DrawInSplit(context, kTask, [&] {
    Pair drawn{DrawName(context), DrawValue(context.rng, kind), {}};
    while (taken.contains(drawn.name)) drawn.name = DrawName(context);
    while (taken.contains(drawn.value) || drawn.value == drawn.name) {
      drawn.value = DrawValue(context.rng, kind);
    }
    drawn.key = StrCat(drawn.name, "|", drawn.value);
    return drawn;
  });
  taken.insert(pair.name);
  taken.insert(pair.value);
  return pair;
}

// ---- The list -----------------------------------------------------------------------------------

enum class Form { kColon, kEquals, kTable, kCommas, kJson };
constexpr Form kForms[] = {Form::kColon, Form::kEquals, Form::kTable, Form::kCommas, Form::kJson};

std::string Line(const Pair& pair, Form form) {
  switch (form) {
    case Form::kColon:
      return StrCat(pair.name, ": ", pair.value, "\n");
    case Form::kEquals:
      return StrCat(pair.name, " = ", pair.value, "\n");
    case Form::kTable:
      return StrCat("| ", pair.name, " | ", pair.value, " |\n");
    case Form::kCommas:
      return StrCat(pair.name, ",", pair.value, "\n");
    case Form::kJson:
      return StrCat("\"", pair.name, "\": \"", pair.value, "\", ");
  }
  CHECK(false);
}

std::string Opening(Form form) {
  if (form == Form::kTable) return "| name | value |\n| --- | --- |\n";
  if (form == Form::kCommas) return "name,value\n";
  return form == Form::kJson ? "{" : "";
}

std::string List(const std::vector<Pair>& pairs, Form form) {
  std::string list = Opening(form);
  for (const Pair& pair : pairs) list += Line(pair, form);
  const std::string_view separator = form == Form::kJson ? ", " : "\n";
  return StrCat(std::string_view(list).substr(0, list.size() - separator.size()),
                form == Form::kJson ? "}" : "");
}

// ---- Look-ups -----------------------------------------------------------------------------------

Question ByName(Rng& rng, const Pair& pair) {
  constexpr std::string_view kBefore[] = {"What is the value of ", "What is the value of ",
                                          "Which value belongs to ", "Look up ",
                                          "Give me the value of "};
  const std::string_view before = Pick(rng, kBefore);
  return {.ask = StrCat(before, pair.name, before.starts_with("Wh") ? "?" : "."),
          .answer = pair.value,
          .reasoning = StrCat("The list has ", pair.name, " with ", pair.value, "."),
          .key = pair.key};
}

Question ByValue(Rng& rng, const Pair& pair) {
  return {.ask = StrCat(Chance(rng, 0.5) ? "Which name has the value " : "What has the value ",
                        pair.value, "?"),
          .answer = pair.name,
          .reasoning = StrCat("The list has ", pair.name, " with ", pair.value, "."),
          .key = pair.key};
}

}  // namespace

StatusOr<Exercise> DrawKeyValue(DrawContext& context) {
  Rng& rng = context.rng;
  const bool training = context.split == Split::kTraining;
  const int64_t num_pairs = training ? Between(rng, 3, 48) : Between(rng, 16, 40);
  const int64_t num_questions = training ? Between(rng, 1, std::min<int64_t>(num_pairs, 16)) : 1;
  const Form form = Pick(rng, kForms);
  const uint64_t value_kind = rng.Uniform(6);
  std::set<std::string> taken;
  std::vector<Pair> pairs;
  std::vector<Question> questions;
  int32_t num_tokens =
      NumFrameTokens(context.tokenizer) + 4 + NumTokens(context.tokenizer, Opening(form));
  while (static_cast<int64_t>(pairs.size()) < num_pairs) {
    const Pair pair = DrawPair(context, value_kind, taken);
    num_tokens += NumTokens(context.tokenizer, Line(pair, form));
    Question question = training && Chance(rng, 0.2) ? ByValue(rng, pair) : ByName(rng, pair);
    const bool is_asked = static_cast<int64_t>(questions.size()) < num_questions;
    if (is_asked) num_tokens += NumTurnTokens(context.tokenizer, question);
    if (num_tokens > context.max_tokens) break;
    pairs.push_back(pair);
    if (is_asked) questions.push_back(std::move(question));
  }
  if (questions.empty()) return TooShort(context, kTask, num_tokens);
  Shuffle(rng, pairs);
  Shuffle(rng, questions);
  return ExerciseOf(kTask, List(pairs, form), std::move(questions));
}

}  // namespace deepinfer
