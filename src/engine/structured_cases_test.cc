// What broke structured output in other engines, with scripted decoding: which tokens come, what is
// drafted and how much of it is accepted. Cases: cases/serving.md C, A05.
#include <gtest/gtest.h>

#include <regex>

#include "base/rng.h"
#include "engine/grammar_constraints.h"
#include "engine/scripted_drafter.h"
#include "engine/testing/fake_engine.h"
#include "tokens/small_tokenizer_for_tests.h"

namespace deepinfer {
namespace {

using testing::Answer;
using testing::Answers;
using testing::FakeEngine;
using testing::FakeModel;
using testing::FakeOptions;
using testing::RunAll;

constexpr int32_t kEos = 1, kThinkEnd = 4, kMarker = 5;

const Tokenizer& SmallTokenizer() {
  static const Tokenizer* const tokenizer = [] {
    auto parsed = Tokenizer::Parse(SmallTokenizerJson(), "small");
    CHECK(parsed.ok());
    return parsed->release();
  }();
  return *tokenizer;
}

std::vector<int32_t> Bytes(std::string_view text) {
  std::vector<int32_t> ids;
  for (const char c : text) ids.push_back(kSmallByteId + static_cast<uint8_t>(c));
  return ids;
}

std::vector<int32_t> Join(std::initializer_list<std::vector<int32_t>> parts) {
  std::vector<int32_t> ids;
  for (const auto& part : parts) ids.insert(ids.end(), part.begin(), part.end());
  return ids;
}

StructuredOutput Regex(std::string text) {
  return {.kind = StructuredOutput::Kind::kRegex, .text = std::move(text)};
}

StructuredOutput BehindThinking(StructuredOutput structured) {
  structured.bound_token_id = kThinkEnd;
  return structured;
}

// As ScriptedDrafter, but of as many drafts as `length` says: rows for the others stay unused.
class RaggedDrafter : public Drafter {
 public:
  RaggedDrafter(int32_t num_drafts, std::function<int32_t()> length)
      : scripted_(num_drafts, kSmallVocabSize), length_(std::move(length)) {}
  int32_t Draft(SequenceRun& run, int32_t most) override {
    return scripted_.Draft(run, std::min(most, length_()));
  }

 private:
  ScriptedDrafter scripted_;
  const std::function<int32_t()> length_;
};

// An engine that verifies up to `num_drafts` drafts a step.
class Scripted {
 public:
  explicit Scripted(int32_t num_drafts, std::function<int32_t()> length = nullptr)
      : drafter_(
            num_drafts, length ? length : [num_drafts] { return num_drafts; }),
        source_(Vocabulary()),
        grammars_(&source_),
        engine_(Options(num_drafts)) {}

  Answer Run(const StructuredOutput& structured, std::vector<int32_t> forced,
             std::vector<int32_t> accepted = {}, int32_t max_tokens = 60, bool ignore_eos = false) {
    Request request = {.prompt_ids = {0, 70, 71},
                       .max_tokens = max_tokens,
                       .sampling = {.ignore_eos = ignore_eos,
                                    .forced_token_ids = std::move(forced),
                                    .forced_drafts = std::move(accepted)},
                       .structured = structured,
                       .skip_special_tokens = false,
                       .seed = 7};
    const auto id = engine_.core().Submit(request);
    EXPECT_TRUE(id.ok()) << id.status();
    Answers answers = RunAll(engine_.core());
    EXPECT_TRUE(answers.order_faults.empty());
    EXPECT_EQ(engine_.pages().num_held(), 0);
    EXPECT_FALSE(answers.Of(*id).failure) << answers.Of(*id).failure->message;
    return answers.Of(*id);
  }
  // Tokens that a constraint of its own, fed one by one, refuses.
  int CountIllegal(const StructuredOutput& structured, const std::vector<int32_t>& ids) {
    std::unique_ptr<TokenConstraint> constraint;
    grammars_.Build(structured, [&](StatusOr<ConstraintMaker> maker) { constraint = (*maker)(); });
    int count = 0;
    for (const int32_t id : ids) count += !constraint->Accept(id);
    return count;
  }
  EngineStats stats() { return engine_.core().stats(); }
  FakeEngine& engine() { return engine_; }

 private:
  FakeOptions Options(int32_t num_drafts) {
    FakeOptions options;
    options.vocab_size = kSmallVocabSize;
    options.tokenizer = &SmallTokenizer();
    options.scheduler.num_drafts = num_drafts;
    options.drafter = &drafter_;
    options.grammars = &grammars_;
    return options;
  }

  static std::shared_ptr<const GrammarVocabulary> Vocabulary() {
    auto vocabulary = GrammarVocabulary::Create(SmallTokenizer(), kSmallVocabSize, {kEos});
    CHECK(vocabulary.ok());
    return *vocabulary;
  }

  RaggedDrafter drafter_;
  DirectGrammarSource source_;
  GrammarConstraints grammars_;
  FakeEngine engine_;
};

// What comes behind the end of thinking, without EOS.
std::string TextBehind(const std::vector<int32_t>& ids, int32_t marker) {
  const auto at = std::find(ids.begin(), ids.end(), marker);
  EXPECT_NE(at, ids.end());
  std::vector<int32_t> rest(at == ids.end() ? at : at + 1, ids.end());
  if (!rest.empty() && rest.back() == kEos) rest.pop_back();
  return SmallTokenizer().Decode(rest);
}

// The prompt's step gives one token, each later one num_drafts + 1: so long a thinking puts its end
// at this place of the second block.
std::vector<int32_t> Thinking(int32_t num_drafts, int32_t place) {
  return Bytes(std::string(static_cast<size_t>(1 + num_drafts + 1 + place), 'x'));
}

TEST(StructuredCases, case_22_TheEndOfThinkingAtEachPlaceOfABlockStartsTheGrammar) {
  const StructuredOutput structured = BehindThinking(Regex("[a-c]{6}"));
  for (int32_t k = 0; k <= 5; ++k) {
    Scripted scripted(k);
    for (int32_t place = 0; place <= k; ++place) {
      SCOPED_TRACE(k * 10 + place);
      // What is drafted behind it is forbidden; without the grammar it would come.
      const auto forced = Join({Thinking(k, place), {kThinkEnd}, Bytes("xyzxyzxyz")});
      const Answer answer = scripted.Run(structured, forced);
      EXPECT_EQ(scripted.CountIllegal(structured, answer.ids), 0);
      EXPECT_TRUE(std::regex_match(TextBehind(answer.ids, kThinkEnd), std::regex("[a-c]{6}")));
      EXPECT_EQ(answer.finish->reason, FinishReason::kStop);
      // What is allowed comes as it was drafted.
      const auto legal = Join({Thinking(k, place), {kThinkEnd}, Bytes("abcabc"), {kEos}});
      EXPECT_EQ(scripted.Run(structured, legal).ids, legal);
    }
    EXPECT_GE(scripted.stats().drafts_accepted, 10 * k);
  }
}

TEST(StructuredCases, case_22_AThousandRandomScriptsHaveNoIllegalToken) {
  SeededRng rng(22);
  const auto below = [&rng](uint64_t n) { return static_cast<int32_t>(rng.Uniform(n)); };
  const std::vector<std::string> patterns = {"[a-c]{2,9}", "(ab|abc|b)+d", "x*y{3}",
                                             "hello ?world"};
  int illegal = 0, finished = 0, in_grammar = 0;
  std::vector<std::unique_ptr<Scripted>> engines;
  for (int32_t k = 0; k <= 5; ++k) {
    engines.push_back(std::make_unique<Scripted>(
        k, [&below, k] { return below(4) == 0 ? below(static_cast<uint64_t>(k) + 1) : k; }));
  }
  for (int i = 0; i < 1000; ++i) {
    Scripted& scripted = *engines[static_cast<size_t>(below(6))];
    StructuredOutput structured = Regex(patterns[static_cast<size_t>(below(4))]);
    if (below(4) > 0) structured = BehindThinking(structured);
    std::vector<int32_t> forced = Bytes(std::string(static_cast<size_t>(below(20)), 'q'));
    forced.push_back(kThinkEnd);
    for (int32_t n = below(20); n > 0; --n) {
      constexpr std::string_view kLetters = "abcdxyhelo w";
      forced.push_back(below(12) == 0 ? kEos : Bytes(kLetters)[static_cast<size_t>(below(12))]);
    }
    std::vector<int32_t> accepted;
    for (int32_t n = below(4); n > 0; --n) accepted.push_back(below(6));
    const Answer answer = scripted.Run(structured, forced, accepted, 40);
    illegal += scripted.CountIllegal(structured, answer.ids);
    finished += answer.finish->reason == FinishReason::kStop;
    in_grammar += answer.ids.size() > forced.size() / 2;
  }
  EXPECT_EQ(illegal, 0);
  EXPECT_GT(finished, 500);
  EXPECT_GT(in_grammar, 500);
}

TEST(StructuredCases, case_23_AnEosAtEachDraftEndsCleanly) {
  for (int32_t k = 1; k <= 5; ++k) {
    Scripted scripted(k);
    for (int32_t place = 0; place <= k; ++place) {
      SCOPED_TRACE(k * 10 + place);
      const auto text = Bytes(std::string(static_cast<size_t>(1 + k + 1 + place), 'a'));
      const auto forced = Join({text, {kEos}, Bytes("aaaaaa")});
      for (const bool ignore_eos : {false, true}) {
        const Answer answer = scripted.Run(Regex("a+"), forced, {}, 60, ignore_eos);
        EXPECT_EQ(answer.ids, Join({text, {kEos}}));
        EXPECT_EQ(answer.finish->reason, FinishReason::kStop);
        EXPECT_EQ(answer.finish->matched_token_id, kEos);
      }
      // Nothing of the dropped drafts is left: what goes on from here is as if they had never been.
      const auto next = scripted.engine().core().Submit(
          {.prompt_ids = Join({{0, 70, 71}, text, Bytes("b")}), .max_tokens = 8, .seed = 3});
      Scripted fresh(k);
      const auto same = fresh.engine().core().Submit(
          {.prompt_ids = Join({{0, 70, 71}, text, Bytes("b")}), .max_tokens = 8, .seed = 3});
      EXPECT_EQ(RunAll(scripted.engine().core()).Of(*next).ids,
                RunAll(fresh.engine().core()).Of(*same).ids);
    }
  }
}

// The engine's half: the grammar of calls begins behind its marker, wherever in a block that is.
TEST(StructuredCases, case_05_EndOfThinkingAndMarkerInOneBlock) {
  StructuredOutput structured = Regex("calf");
  structured.trigger_token_ids = {kMarker};
  for (int32_t k = 1; k <= 5; ++k) {
    Scripted scripted(k);
    for (int32_t place = 0; place <= k; ++place) {
      SCOPED_TRACE(k * 10 + place);
      const auto before = Join({Thinking(k, place), {kThinkEnd, kMarker}});
      const Answer answer = scripted.Run(structured, Join({before, Bytes("garbage")}));
      EXPECT_EQ(answer.ids, Join({before, Bytes("calf"), {kEos}}));
    }
  }
}

// The trigger is forced behind the end of thinking, then comes the grammar.
TEST(StructuredCases, case_05_TheMarkerIsForcedBehindTheEndOfThinking) {
  StructuredOutput structured = BehindThinking(Regex("calf"));
  structured.trigger_token_ids = {kMarker};
  for (int32_t place = 0; place <= 3; ++place) {
    Scripted scripted(3);
    const auto before = Join({Thinking(3, place), {kThinkEnd}});
    const Answer answer = scripted.Run(structured, Join({before, Bytes("garbage")}));
    EXPECT_EQ(answer.ids, Join({before, {kMarker}, Bytes("calf"), {kEos}}));
  }
}

// vllm#48516: a token accepted behind the marker in the marker's own block was not told to the
// matcher, which then asked for it again.
TEST(StructuredCases, TheBraceBehindTheMarkerInItsBlockComesOnce) {
  const StructuredOutput structured = BehindThinking({.kind = StructuredOutput::Kind::kJsonObject});
  for (int32_t k = 0; k <= 5; ++k) {
    Scripted scripted(k);
    for (int32_t place = 0; place <= k; ++place) {
      SCOPED_TRACE(k * 10 + place);
      const auto json = Bytes("{\"a\": 1}");
      const auto forced = Join({Thinking(k, place), {kThinkEnd}, json, {kEos}});
      EXPECT_EQ(scripted.Run(structured, forced).ids, forced);
      const auto doubled = Join({Thinking(k, place), {kThinkEnd}, Bytes("{{{{{{{{{{")});
      const Answer answer = scripted.Run(structured, doubled);
      EXPECT_EQ(scripted.CountIllegal(structured, answer.ids), 0);
      EXPECT_NE(TextBehind(answer.ids, kThinkEnd).substr(0, 2), "{{");
    }
  }
}

// vllm#44297: with fewer drafts than rows the row behind the last one went unmasked.
TEST(StructuredCases, WithFewerDraftsThanRowsTheLastRowIsMasked) {
  int32_t length = 0;
  Scripted scripted(5, [&length] { return length++ % 6; });
  const StructuredOutput structured = Regex("[a-c]{12}");
  const Answer answer = scripted.Run(structured, Bytes("abcxyzabcxyzabcxyz"));
  EXPECT_EQ(scripted.CountIllegal(structured, answer.ids), 0);
  EXPECT_EQ(answer.text.substr(0, 3), "abc");
  EXPECT_EQ(answer.finish->reason, FinishReason::kStop);
}

TEST(StructuredCases, case_27_AGrammarThatIsBrokenEndsItsRequestOnly) {
  Scripted scripted(2);
  const std::vector<StructuredOutput> broken = {
      Regex("("), {.kind = StructuredOutput::Kind::kGrammar, .text = "root ::= nothing"}};
  for (const StructuredOutput& structured : broken) {
    const auto id = scripted.engine().core().Submit(
        {.prompt_ids = {0, 70}, .max_tokens = 9, .structured = structured});
    Answers answers = RunAll(scripted.engine().core());
    EXPECT_TRUE(answers.ready.empty());
    ASSERT_TRUE(answers.Of(*id).failure.has_value());
    EXPECT_EQ(answers.Of(*id).failure->code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(scripted.Run(Regex("abc"), {}).ids, Join({Bytes("abc"), {kEos}}));
  }
}

}  // namespace
}  // namespace deepinfer
