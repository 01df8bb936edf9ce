// The input is an answer of the model; bit 0 of its first byte says that it begins in its thinking.
#include "fuzz.h"
#include "tokens/answer_parser.h"
#include "tokens/control_tokens.h"
#include "tokens/json.h"
#include "tokens/utf8.h"

namespace deepinfer::fuzz {
namespace {

constexpr int32_t kOrdinaryToken = 500;

std::vector<AnswerToken> Unknown(const std::vector<std::string_view>& pieces) {
  std::vector<AnswerToken> tokens;
  for (const std::string_view piece : pieces) tokens.push_back({kUnknownToken, piece});
  return tokens;
}

// Control tokens by their ids, each other byte a token.
std::vector<AnswerToken> Known(std::string_view text) {
  const AnswerTokens ids;
  const std::pair<std::string_view, int32_t> controls[] = {{kDsmlToken, ids.dsml},
                                                           {kThinkStartToken, ids.think_start},
                                                           {kThinkEndToken, ids.think_end},
                                                           {kEosToken, ids.eos}};
  std::vector<AnswerToken> tokens;
  while (!text.empty()) {
    AnswerToken token{kOrdinaryToken, text.substr(0, 1)};
    for (const auto& [literal, id] : controls) {
      if (text.starts_with(literal)) token = {id, text.substr(0, literal.size())};
    }
    tokens.push_back(token);
    text.remove_prefix(token.text.size());
  }
  return tokens;
}

// Whether a bar is left once the markers are taken out: what is dropped between two pieces of a
// marker could join them.
bool HasLooseBar(std::string text) {
  for (const std::string_view literal : {kDsmlToken, kEosToken}) {
    for (size_t at; (at = text.find(literal)) != text.npos;) text.replace(at, literal.size(), "#");
  }
  return text.find("｜") != text.npos;
}

void CheckAnswer(const ParsedAnswer& answer, bool may_have_bars) {
  for (const std::string* text : {&answer.reasoning, &answer.content}) {
    CHECK(IsUtf8(*text));
    CHECK(may_have_bars || text->find("｜") == text->npos);
  }
  CHECK_EQ(answer.num_malformed > 0, !answer.first_problem.empty());
  if (answer.num_malformed > 0) CheckLine(answer.first_problem);
  for (const ParsedCall& call : answer.calls) {
    const auto arguments = ParseJson(call.arguments);
    CHECK(arguments.ok() && arguments->IsObject());
    CHECK(call.name.find("::") == call.name.npos);
    CHECK(may_have_bars || call.arguments.find("｜") == call.arguments.npos);
  }
}

}  // namespace
}  // namespace deepinfer::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace deepinfer;
  if (size == 0) return 0;
  const bool in_thinking = (data[0] & 1) != 0;
  std::string repaired;
  const std::string text(RepairUtf8(fuzz::AsText(data + 1, size - 1), repaired));

  const ParsedAnswer whole = ParseAnswer(text, in_thinking);
  fuzz::CheckAnswer(whole, fuzz::HasLooseBar(text));
  for (const uint64_t salt : {1, 2}) {
    const auto pieces = fuzz::Unknown(fuzz::Cut(text, salt));
    CHECK(ParseAnswer(pieces, AnswerTokens(), in_thinking) == whole);
  }
  CHECK(ParseAnswer(fuzz::Known(text), AnswerTokens(), in_thinking) == whole);

  // Spelled by ordinary tokens, markers are text like any other.
  const ParsedAnswer ordinary =
      ParseAnswer({{fuzz::kOrdinaryToken, text}}, AnswerTokens(), in_thinking);
  fuzz::CheckAnswer(ordinary, /*may_have_bars=*/true);
  CHECK(ordinary.calls.empty() && ordinary.num_malformed == 0 && !ordinary.ended);
  CHECK_EQ(in_thinking ? ordinary.reasoning : ordinary.content, text);
  return 0;
}
