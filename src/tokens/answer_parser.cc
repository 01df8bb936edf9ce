#include "tokens/answer_parser.h"

#include "tokens/answer_machine.h"
#include "tokens/answer_symbols.h"
#include "tokens/control_tokens.h"

namespace deepinfer {
namespace {

void Append(const std::vector<AnswerDelta>& deltas, ParsedAnswer& answer) {
  for (const AnswerDelta& delta : deltas) {
    switch (delta.kind) {
      case AnswerDelta::Kind::kReasoning:
        answer.reasoning += delta.text;
        break;
      case AnswerDelta::Kind::kContent:
        answer.content += delta.text;
        break;
      case AnswerDelta::Kind::kCall:
        answer.calls.push_back(delta.call);
        break;
    }
  }
}

}  // namespace

struct AnswerParser::State {
  AnswerSymbols symbols;
  AnswerMachine machine;
};

StatusOr<AnswerTokens> AnswerTokens::Of(const Tokenizer& tokenizer) {
  AnswerTokens tokens;
  const std::pair<std::string_view, int32_t*> wanted[] = {{kThinkStartToken, &tokens.think_start},
                                                          {kThinkEndToken, &tokens.think_end},
                                                          {kDsmlToken, &tokens.dsml},
                                                          {kEosToken, &tokens.eos}};
  for (const auto& [token, id] : wanted) {
    const std::optional<int32_t> found = tokenizer.IdOf(token);
    if (!found) {
      return FailedPrecondition("reading answers needs the token ", token,
                                ", which the tokenizer does not have");
    }
    *id = *found;
  }
  return tokens;
}

AnswerParser::AnswerParser(const AnswerTokens& tokens, bool in_thinking)
    : state_(new State{AnswerSymbols(tokens), AnswerMachine(in_thinking)}) {}
AnswerParser::~AnswerParser() = default;
AnswerParser::AnswerParser(AnswerParser&&) noexcept = default;

std::vector<AnswerDelta> AnswerParser::Feed(int32_t token_id, std::string_view text) {
  state_->machine.Read(state_->symbols.Feed(token_id, text));
  return state_->machine.TakeDeltas();
}

std::vector<AnswerDelta> AnswerParser::Finish() {
  state_->machine.Read(state_->symbols.Finish());
  state_->machine.Finish();
  return state_->machine.TakeDeltas();
}

bool AnswerParser::in_thinking() const { return state_->machine.in_thinking(); }
bool AnswerParser::ended() const { return state_->machine.ended(); }
int AnswerParser::num_malformed() const { return state_->machine.num_malformed(); }
const std::string& AnswerParser::first_problem() const { return state_->machine.first_problem(); }

ParsedAnswer ParseAnswer(const std::vector<AnswerToken>& answer, const AnswerTokens& tokens,
                         bool in_thinking) {
  AnswerParser parser(tokens, in_thinking);
  ParsedAnswer parsed;
  for (const AnswerToken& token : answer) Append(parser.Feed(token.id, token.text), parsed);
  Append(parser.Finish(), parsed);
  parsed.num_malformed = parser.num_malformed();
  parsed.first_problem = parser.first_problem();
  parsed.ended = parser.ended();
  return parsed;
}

ParsedAnswer ParseAnswer(std::string_view text, bool in_thinking) {
  return ParseAnswer({{kUnknownToken, text}}, AnswerTokens(), in_thinking);
}

}  // namespace deepinfer
