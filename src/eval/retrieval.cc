#include "eval/retrieval.h"

#include <cmath>
#include <set>

#include "eval/hay.h"
#include "eval/turns.h"
#include "eval/words.h"

namespace deepinfer {
namespace {

constexpr std::string_view kTask = "needle";
constexpr int32_t kTokensMin = 256;

struct Fact {
  std::string subject;  // "lamp code of Anna"
  std::string value;
  std::string key;
};

// ---- Facts --------------------------------------------------------------------------------------

std::string DrawSubject(DrawContext& context) {
  constexpr std::string_view kKinds[] = {"code", "number", "password", "label"};
  Rng& rng = context.rng;
  const std::string_view thing = Chance(rng, 0.7) ? Pick(rng, Objects()) : DrawWord(context);
  const std::string_view owner = Chance(rng, 0.6)   ? Pick(rng, FirstNames())
                                 : Chance(rng, 0.6) ? Pick(rng, Cities())
                                                    : DrawWord(context);
  return StrCat(thing, " ", Pick(rng, kKinds), " of ", owner);
}

std::string DrawValue(DrawContext& context) {
  switch (context.rng.Uniform(4)) {
    case 0:
      return std::string(DrawWord(context));
    case 1:
      return DrawCode(context.rng);
    default:
      return DrawNumber(context.rng, static_cast<int>(Between(context.rng, 5, 7)));
  }
}

// A subject that `taken` does not hold yet; it does afterwards.
Fact DrawFact(DrawContext& context, std::set<std::string>& taken) {
  const Fact fact = DrawInSplit(context, kTask, [&] {
    Fact drawn{DrawSubject(context), DrawValue(context), {}};
    while (taken.contains(drawn.subject)) drawn.subject = DrawSubject(context);
    drawn.key = StrCat(drawn.subject, "|", drawn.value);
    return drawn;
  });
  taken.insert(fact.subject);
  return fact;
}

std::string Statement(Rng& rng, const Fact& fact) {
  switch (rng.Uniform(6)) {
    case 0:
      return StrCat("Remember that the ", fact.subject, " is ", fact.value, ".");
    case 1:
      return StrCat("Note: the ", fact.subject, " is ", fact.value, ".");
    case 2:
      return StrCat("It was decided that the ", fact.subject, " is now ", fact.value, ".");
    case 3:
      return StrCat("The ", fact.subject, " was set to ", fact.value, ".");
    default:
      return StrCat("The ", fact.subject, " is ", fact.value, ".");
  }
}

Question QuestionOf(Rng& rng, const Fact& fact) {
  constexpr std::string_view kBefore[] = {"What is the ", "What is the ",
                                          "Tell me the ", "According to the text, what is the ",
                                          "Find the ",    "Give me the "};
  const std::string_view before = Pick(rng, kBefore);
  const bool asks = before.find("hat is") != std::string_view::npos;
  return {.ask = StrCat(before, fact.subject, asks ? "?" : "."),
          .answer = fact.value,
          .reasoning = StrCat("The text says that the ", fact.subject, " is ", fact.value, "."),
          .key = fact.key};
}

// Only in training, where repeating the subject makes the value easier to find: a first step.
Question QuestionForSentence(const Fact& fact) {
  return {.ask = StrCat("In one sentence, what is the ", fact.subject, "?"),
          .answer = StrCat("The ", fact.subject, " is ", fact.value, "."),
          .reasoning = "The text says it.",
          .key = fact.key};
}

// ---- The text -----------------------------------------------------------------------------------

int32_t StatementCost(const Tokenizer& tokenizer, const std::string& statement) {
  return 1 + NumTokens(tokenizer, " " + statement);  // and a line's end
}

// Hay of about num_tokens and not more, and the statements, in random order, at random places in
// it.
std::string BuryInHay(DrawContext& context, std::vector<std::string> statements,
                      int32_t num_tokens) {
  Shuffle(context.rng, statements);
  std::vector<HaySentence> sentences;
  for (HaySource source(context); num_tokens > 0;) {
    HaySentence sentence = source.Next();
    num_tokens -= NumTokens(context.tokenizer, " " + sentence.text) + sentence.ends_paragraph;
    if (num_tokens >= 0) sentences.push_back(std::move(sentence));
  }
  // How many sentences of hay stand before each statement.
  std::vector<size_t> places;
  for (size_t i = 0; i < statements.size(); ++i) {
    places.push_back(context.rng.Uniform(sentences.size() + 1));
  }
  std::sort(places.begin(), places.end());
  std::string text;
  size_t next = 0;
  for (size_t i = 0; i <= sentences.size(); ++i) {
    for (; next < places.size() && places[next] == i; ++next) {
      text += StrCat(statements[next], Chance(context.rng, 0.2) ? "\n" : " ");
    }
    if (i == sentences.size()) break;
    text += StrCat(sentences[i].text, sentences[i].ends_paragraph ? "\n" : " ");
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.pop_back();
  return text;
}

struct Shape {
  int32_t num_tokens;  // of the whole conversation
  int64_t num_facts, num_questions;
};

// Fewer facts and questions than asked for where they do not fit.
StatusOr<Exercise> MakeNeedle(DrawContext& context, const Shape& shape) {
  const Tokenizer& tokenizer = context.tokenizer;
  std::set<std::string> taken;
  std::vector<std::string> statements;
  std::vector<Question> questions;
  int32_t room = shape.num_tokens - NumFrameTokens(tokenizer) - 2;  // and the blank line
  for (int64_t i = 0; i < shape.num_facts; ++i) {
    const Fact fact = DrawFact(context, taken);
    std::string statement = Statement(context.rng, fact);
    const bool as_sentence = context.split == Split::kTraining && Chance(context.rng, 0.15);
    Question question = as_sentence ? QuestionForSentence(fact) : QuestionOf(context.rng, fact);
    // Only the last turn's reasoning is part of a prompt.
    if (!questions.empty()) question.reasoning.clear();
    const bool is_asked = i < shape.num_questions;
    const int32_t cost =
        StatementCost(tokenizer, statement) + (is_asked ? NumTurnTokens(tokenizer, question) : 0);
    if (cost > room && !questions.empty()) break;
    if (cost > room) return TooShort(context, kTask, shape.num_tokens + cost - room);
    room -= cost;
    statements.push_back(std::move(statement));
    if (is_asked) questions.push_back(std::move(question));
  }
  std::swap(questions.front(), questions.back());  // the one with its reasoning is the last
  return ExerciseOf(kTask, BuryInHay(context, std::move(statements), room), std::move(questions));
}

Shape EvaluationShape(int32_t num_tokens) {
  return {.num_tokens = num_tokens, .num_facts = 5, .num_questions = 1};
}

// A fact and its question take about 40 tokens, so a third of a text and more stays hay.
Shape DenseShape(Rng& rng, int32_t num_tokens) {
  const int64_t num_facts = std::max<int64_t>(1, num_tokens / Between(rng, 64, 160));
  return {num_tokens, num_facts, std::max<int64_t>(1, num_facts - Between(rng, 0, num_facts / 4))};
}

StatusOr<Exercise> DrawNeedleOfLength(DrawContext& context, int32_t num_tokens) {
  if (context.max_tokens < num_tokens) return TooShort(context, kTask, num_tokens);
  return MakeNeedle(context, EvaluationShape(num_tokens));
}

}  // namespace

StatusOr<Exercise> DrawNeedle(DrawContext& context) {
  if (context.max_tokens < kTokensMin) return TooShort(context, kTask, kTokensMin);
  Rng& rng = context.rng;
  int32_t num_tokens = context.max_tokens;
  if (Chance(rng, 0.5)) {  // a length between, every octave as often
    const double octaves = std::log2(static_cast<double>(num_tokens) / kTokensMin);
    num_tokens = static_cast<int32_t>(kTokensMin * std::exp2(octaves * rng.UniformDouble()));
  }
  if (context.split == Split::kTraining && Chance(rng, 0.6)) {
    return MakeNeedle(context, DenseShape(rng, num_tokens));
  }
  Shape shape = EvaluationShape(num_tokens);
  if (context.split == Split::kTraining) {
    shape.num_facts = Between(rng, 1, 6);
    shape.num_questions = Between(rng, 1, shape.num_facts);
  }
  return MakeNeedle(context, shape);
}

StatusOr<Exercise> DrawNeedle4k(DrawContext& context) { return DrawNeedleOfLength(context, 4096); }

StatusOr<Exercise> DrawNeedle8k(DrawContext& context) { return DrawNeedleOfLength(context, 8192); }

}  // namespace deepinfer
