// Structured output from strangers: the first byte picks the kind, the rest is its text. What the
// check passes is built by the library, and random tokens that the masks allow are accepted.
#include "fuzz.h"
#include "tokens/grammar.h"
#include "tokens/grammar_text.h"
#include "tokens/small_tokenizer_for_tests.h"

namespace deepinfer {
namespace {

using Kind = StructuredOutput::Kind;

const std::shared_ptr<const GrammarVocabulary>& Vocabulary() {
  static const auto vocabulary =
      GrammarVocabulary::Create(**Tokenizer::Parse(SmallTokenizerJson(), "small"), kSmallVocabSize,
                                {1})
          .value();
  return vocabulary;
}

constexpr size_t kMaxGrammarBytes = 4000;

// A repetition of more than 99.
bool HasLargeCount(std::string_view grammar) {
  for (size_t at = grammar.find('{'); at != std::string_view::npos;
       at = grammar.find('{', at + 1)) {
    int digits = 0;
    for (const char c : grammar.substr(at + 1)) {
      if (c == '}') break;
      digits = c == ',' ? 0 : digits + 1;
      if (digits > 2) return true;
    }
  }
  return false;
}

Kind KindOf(uint8_t byte) {
  constexpr Kind kKinds[] = {Kind::kJsonSchema, Kind::kRegex, Kind::kGrammar, Kind::kToolCalls};
  return kKinds[byte % std::size(kKinds)];
}

void Walk(const std::shared_ptr<const Grammar>& grammar, uint64_t seed) {
  GrammarMatcher matcher(grammar);
  std::vector<uint32_t> mask(static_cast<size_t>(Vocabulary()->mask_words()));
  for (int step = 0; step < 12 && !matcher.ended(); ++step) {
    const bool some = matcher.FillMask(mask);
    std::vector<int32_t> allowed;
    for (int32_t id = 0; id < kSmallVocabSize; ++id) {
      const bool bit = (mask[static_cast<size_t>(id / 32)] >> (id % 32) & 1) != 0;
      if (!some || bit) allowed.push_back(id);
    }
    if (allowed.empty()) return;  // a rule of a user's grammar that never ends
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const int32_t id = allowed[(seed >> 33) % allowed.size()];
    if (some) CHECK(matcher.Accept(id));
  }
}

}  // namespace
}  // namespace deepinfer

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace deepinfer;
  if (size == 0) return 0;
  const StructuredOutput structured{
      .kind = KindOf(data[0]),
      .text = std::string(reinterpret_cast<const char*>(data) + 1, size - 1)};
  // Large grammars are the business of the limits on a build.
  const auto text = GrammarTextOf(structured, 5);
  if (!text.ok()) {
    fuzz::CheckRefusal(text.status());
    return 0;
  }
  if (text->size() > kMaxGrammarBytes || HasLargeCount(*text)) return 0;
  const auto grammar = Grammar::Compile(structured, Vocabulary());
  if (!grammar.ok()) {
    fuzz::CheckRefusal(grammar.status());
    return 0;
  }
  Walk(*grammar, size);
  return 0;
}
