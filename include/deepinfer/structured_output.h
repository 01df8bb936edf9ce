// deepinfer/structured_output.h: what the output of a request must match. Plain data.
//
// What is accepted and what is refused: tokens/grammar.h. The names of `trigger_token_ids` and
// `bound_token_id` are DeepInfer's.
//
// Beside the fields of SamplingParams, once the grammar applies:
//   EOS               only where the output may end, and then it does end, even with ignore_eos
//   min_tokens        keeps it from ending where it may go on, not where it must end
//   stop, stop_token_ids, max_tokens   cut it as they cut any output
//   banned_token_ids  are not sampled; if nothing else is allowed, the choice fails
//   logit_bias        brings nothing back that is forbidden
//   forced_token_ids  only those that are allowed
//   logprobs          are of the model's own distribution, forbidden tokens included
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace deepinfer {

struct StructuredOutput {
  enum class Kind {
    kNone,        // anything
    kJsonObject,  // any JSON object
    kJsonSchema,  // `text` is a JSON Schema
    kRegex,       // `text` is a regular expression that the whole output matches
    kGrammar,     // `text` is EBNF (GBNF-compatible), its first rule is `root`
    kToolCalls,   // `text` is the JSON of tokens/tool_grammar.h: calls of the given tools
  };

  Kind kind = Kind::kNone;
  std::string text;
  // The output is free until these ids, in this order, stand in it; the grammar starts behind them.
  // Empty: it starts at once.
  std::vector<int32_t> trigger_token_ids;
  // The output is free until this token (the end of thinking); the grammar starts behind it. With
  // trigger_token_ids: these are forced behind it, then comes the grammar.
  std::optional<int32_t> bound_token_id;

  bool operator==(const StructuredOutput&) const = default;
};

}  // namespace deepinfer
