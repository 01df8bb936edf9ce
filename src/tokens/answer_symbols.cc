#include "tokens/answer_symbols.h"

#include "tokens/control_tokens.h"
#include "tokens/utf8.h"

namespace deepinfer {
namespace {

struct Literal {
  std::string_view text;
  AnswerSymbol symbol;
};

constexpr Literal kDsml = {kDsmlToken, kDsmlSymbol};
constexpr Literal kThinkEnd = {kThinkEndToken, kThinkEndSymbol};
constexpr Literal kThinkStart = {kThinkStartToken, kThinkStartSymbol};
constexpr Literal kEos = {kEosToken, kEosSymbol};
constexpr Literal kLiterals[] = {kDsml, kThinkEnd, kThinkStart, kEos};

const Literal* LiteralOf(int32_t token_id, const AnswerTokens& tokens) {
  if (token_id == tokens.dsml) return &kDsml;
  if (token_id == tokens.think_end) return &kThinkEnd;
  if (token_id == tokens.think_start) return &kThinkStart;
  if (token_id == tokens.eos) return &kEos;
  return nullptr;
}

void AppendByte(char c, std::string& out) {
  if (static_cast<unsigned char>(c) >= 0xF8) {
    out += kReplacementCharacter;
  } else {
    out += c;
  }
}

void AppendBytes(std::string_view text, std::string& out) {
  for (const char c : text) AppendByte(c, out);
}

}  // namespace

std::string AnswerSymbols::Feed(int32_t token_id, std::string_view text) {
  std::string out;
  if (token_id == kUnknownToken) {
    FeedUnknown(text, out);
    return out;
  }
  out = Finish();
  const Literal* literal = LiteralOf(token_id, tokens_);
  if (literal != nullptr && text.ends_with(literal->text)) {
    text.remove_suffix(literal->text.size());
  }
  AppendBytes(text, out);
  if (literal != nullptr) out += literal->symbol;
  return out;
}

void AnswerSymbols::FeedUnknown(std::string_view text, std::string& out) {
  held_ += text;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const Literal* whole = nullptr;
    bool is_beginning = false;
    for (const Literal& literal : kLiterals) {
      if (rest.starts_with(literal.text)) whole = &literal;
      is_beginning |= literal.text.starts_with(rest);
    }
    if (whole != nullptr) {
      out += whole->symbol;
      rest.remove_prefix(whole->text.size());
    } else if (is_beginning) {
      break;
    } else {
      AppendByte(rest[0], out);
      rest.remove_prefix(1);
    }
  }
  held_.erase(0, held_.size() - rest.size());
}

std::string AnswerSymbols::Finish() {
  std::string out;
  AppendBytes(held_, out);
  held_.clear();
  return out;
}

}  // namespace deepinfer
