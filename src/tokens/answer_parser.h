// tokens/answer_parser.h: what the model writes, as reasoning, content and tool calls.
//
// One machine for streamed and whole answers: it is fed token by token, and the deltas joined are
// the same for every way of cutting the text. What it reads, M being the token ｜DSML｜:
//
//   reasoning</think>content
//
//   <M calls>
//   <M invoke name="f">
//   <M parameter name="k" string="true">text</M parameter>
//   <M parameter name="n" string="false">JSON</M parameter>
//   </M invoke>
//   </M calls>EOS
//
// Control tokens are known by their ids. The same characters spelled by ordinary tokens are text,
// in content and in parameters alike. Without ids (kUnknownToken) the literal text is the token.
//
// The one policy for everything else, the same streamed or not:
// - A call exists from its closing tag on, whole or not at all, so a call that is reported always
//   has valid JSON. It is malformed, dropped and counted if the answer, its block or another call's
//   beginning ends it first; and on a repeated parameter, a parameter that is not closed, a head
//   that is not as above, JSON that does not parse, a name that is neither "name" nor
//   "namespace::name", other text between its parameters, or a control token in a value. The calls
//   around it stay.
// - The block tag may be missing, or spelled function_calls or tool_calls. <M invoke name="f"/> is
//   a whole call without parameters. White space around tags is free.
// - A block or a call that begins inside thinking ends the thinking.
// - Text between and after calls is content: white space behind a tag is dropped, and two newlines
//   separate it from earlier content. Before a tag at most two newlines are dropped.
// - Any other tag, a lone marker and think tags out of place are left out.
// - EOS ends the answer; what follows is ignored. Thinking that never ends is reasoning only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokens/tokenizer.h"

namespace deepinfer {

// For text whose tokens are not known; cuts may then fall anywhere, also inside a control token's
// literal.
inline constexpr int32_t kUnknownToken = -1;

// Ids of the control tokens that the parser knows.
struct AnswerTokens {
  int32_t think_start = 128821;
  int32_t think_end = 128822;
  int32_t dsml = 128825;
  int32_t eos = 1;

  // Errors: kFailedPrecondition if the tokenizer lacks one of them.
  static StatusOr<AnswerTokens> Of(const Tokenizer& tokenizer);
};

struct ParsedCall {
  std::string name_space;  // empty = none
  std::string name;        // any text, may be empty
  std::string arguments;   // a JSON object: strings escaped, other values as the model wrote them

  bool operator==(const ParsedCall&) const = default;
};

struct ParsedAnswer {
  std::string reasoning;
  std::string content;
  std::vector<ParsedCall> calls;
  int num_malformed = 0;      // calls that were dropped
  std::string first_problem;  // why the first of them was
  bool ended = false;         // EOS was read

  bool operator==(const ParsedAnswer&) const = default;
};

// A piece of the answer, to be appended to what came before it.
struct AnswerDelta {
  enum class Kind {
    kReasoning,  // text
    kContent,    // text
    kCall,       // call: whole, the next in order
  };
  Kind kind = Kind::kContent;
  std::string text;
  ParsedCall call;
};

// Threads: one at a time.
class AnswerParser {
 public:
  // in_thinking: the prompt ended inside thinking (RenderedPrompt::in_thinking).
  AnswerParser(const AnswerTokens& tokens, bool in_thinking);
  ~AnswerParser();
  AnswerParser(AnswerParser&&) noexcept;

  // `text` is what the detokenizer gave for this token: UTF-8; for a control token its spelling, or
  // nothing, after whatever was held of the tokens before it. Returns what became certain.
  std::vector<AnswerDelta> Feed(int32_t token_id, std::string_view text);
  // The end, for whatever reason: held text becomes certain, an unfinished call is dropped.
  std::vector<AnswerDelta> Finish();

  // The next text is reasoning, as far as is certain.
  bool in_thinking() const;
  bool ended() const;  // EOS was read
  int num_malformed() const;
  const std::string& first_problem() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A whole answer at once, from text or from ids with the text of each.
ParsedAnswer ParseAnswer(std::string_view text, bool in_thinking);
struct AnswerToken {
  int32_t id;
  std::string_view text;
};
ParsedAnswer ParseAnswer(const std::vector<AnswerToken>& answer, const AnswerTokens& tokens,
                         bool in_thinking);

}  // namespace deepinfer
