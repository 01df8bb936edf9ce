#include "eval/sequences.h"

#include <algorithm>
#include <set>

#include "eval/hay.h"
#include "eval/turns.h"
#include "eval/words.h"

namespace deepinfer {
namespace {

constexpr int kTurnsMax = 4;

std::string DrawSmallNumber(Rng& rng) {
  return DrawNumber(rng, static_cast<int>(Between(rng, 1, 3)));
}

// `count` different ones.
template <typename Draw>
std::vector<std::string> DrawList(int64_t count, Draw draw) {
  std::vector<std::string> list;
  std::set<std::string> taken;
  while (std::ssize(list) < count) {
    std::string item = draw();
    if (taken.insert(item).second) list.push_back(std::move(item));
  }
  return list;
}

// ---- Copy ---------------------------------------------------------------------------------------

struct Copying {
  std::string text, key;
};

Copying DrawCopying(DrawContext& context) {
  Rng& rng = context.rng;
  Copying copying;
  switch (rng.Uniform(4)) {
    case 0:
      copying.text = DrawSentence(rng);
      break;
    case 1:
      copying.text = Join(DrawList(Between(rng, 2, 12), [&] { return DrawCode(rng); }), " ");
      break;
    case 2:
      copying.text = Join(DrawList(Between(rng, 3, 16), [&] { return DrawSmallNumber(rng); }), " ");
      break;
    default:
      copying.text =
          Join(DrawList(Between(rng, 3, 24), [&] { return std::string(DrawWord(context)); }), " ");
  }
  copying.key = copying.text;
  return copying;
}

Question QuestionOf(Rng& rng, Copying copying) {
  constexpr std::string_view kBefore[] = {
      "Repeat: ", "Copy this text: ", "Say exactly this: ", "Write this again: "};
  return {.ask = StrCat(Pick(rng, kBefore), copying.text),
          .answer = copying.text,
          .reasoning = "I write the same text again.",
          .key = copying.key};
}

// ---- Sort ---------------------------------------------------------------------------------------

struct Sorting {
  bool numbers, ascending;
  std::vector<std::string> list;
  std::string key;
};

Sorting DrawSorting(DrawContext& context) {
  Rng& rng = context.rng;
  Sorting sorting{.numbers = Chance(rng, 0.5), .ascending = true};
  if (sorting.numbers) sorting.ascending = Chance(rng, 0.6);
  sorting.list = DrawList(Between(rng, 3, 8), [&] {
    return sorting.numbers ? DrawSmallNumber(rng) : std::string(Pick(rng, CommonWords()));
  });
  sorting.key = StrCat(sorting.ascending, "|", Join(sorting.list, " "));
  return sorting;
}

bool IsLessNumber(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;  // no leading zeros
}

Question QuestionOf(Rng& rng, const Sorting& sorting) {
  std::vector<std::string> sorted = sorting.list;
  if (sorting.numbers) {
    std::sort(sorted.begin(), sorted.end(), IsLessNumber);
  } else {
    std::sort(sorted.begin(), sorted.end());
  }
  if (!sorting.ascending) std::reverse(sorted.begin(), sorted.end());
  const std::string list = Join(sorting.list, ", ");
  std::string ask;
  if (!sorting.numbers) {
    ask = StrCat(Chance(rng, 0.5) ? "Sort these words by the alphabet: "
                                  : "Put these words in alphabetical order: ",
                 list);
  } else if (sorting.ascending) {
    ask = StrCat(Chance(rng, 0.5) ? "Sort these numbers: " : "Sort from small to large: ", list);
  } else {
    ask = StrCat("Sort from large to small: ", list);
  }
  return {.ask = ask,
          .answer = Join(sorted, ", "),
          .reasoning = StrCat("First comes ", sorted.front(), ", last comes ", sorted.back(), "."),
          .key = sorting.key};
}

// ---- Reverse ------------------------------------------------------------------------------------

struct Reversing {
  std::string_view what;  // in the question
  std::vector<std::string> list;
  std::string key;
};

std::vector<std::string> LettersOf(std::string_view word) {
  std::vector<std::string> letters;
  for (const char c : word) letters.emplace_back(1, c);
  return letters;
}

Reversing DrawReversing(DrawContext& context) {
  Rng& rng = context.rng;
  Reversing reversing;
  switch (rng.Uniform(3)) {
    case 0:
      reversing = {"letters", LettersOf(Pick(rng, CommonWords())), {}};
      break;
    case 1:
      reversing = {
          "numbers", DrawList(Between(rng, 3, 8), [&] { return DrawSmallNumber(rng); }), {}};
      break;
    default:
      reversing = {"words",
                   DrawList(Between(rng, 3, 8), [&] { return std::string(DrawWord(context)); }),
                   {}};
  }
  reversing.key = Join(reversing.list, " ");
  return reversing;
}

Question QuestionOf(Rng& rng, const Reversing& reversing) {
  const std::vector<std::string> reversed(reversing.list.rbegin(), reversing.list.rend());
  const std::string list = Join(reversing.list, " ");
  const std::string ask = Chance(rng, 0.5)
                              ? StrCat("Reverse these ", reversing.what, ": ", list)
                              : StrCat("Write these ", reversing.what, " backwards: ", list);
  return {.ask = ask,
          .answer = Join(reversed, " "),
          .reasoning = StrCat("I begin with the last one, ", reversed.front(), "."),
          .key = reversing.key};
}

template <typename Draw>
StatusOr<Exercise> DrawQuestions(DrawContext& context, std::string_view task, Draw draw) {
  return DrawTurns(context, task, kTurnsMax, [&] {
    return QuestionOf(context.rng, DrawInSplit(context, task, [&] { return draw(context); }));
  });
}

}  // namespace

StatusOr<Exercise> DrawCopy(DrawContext& context) {
  return DrawQuestions(context, "copy", DrawCopying);
}

StatusOr<Exercise> DrawSort(DrawContext& context) {
  return DrawQuestions(context, "sort", DrawSorting);
}

StatusOr<Exercise> DrawReverse(DrawContext& context) {
  return DrawQuestions(context, "reverse", DrawReversing);
}

}  // namespace deepinfer
