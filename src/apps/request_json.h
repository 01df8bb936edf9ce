// apps/request_json.h: one JSON object of an input file to a Request.
//
//   what to answer   one of: prompt (text, after BOS), prompt_token_ids, messages (with tools,
//                    response_format, reasoning_effort, ... of tokens/conversation_json.h)
//   how              max_tokens (or max_completion_tokens), temperature, top_p, top_k, min_p,
//                    repetition_penalty, presence_penalty, frequency_penalty, logit_bias, seed, n,
//                    stop, stop_token_ids, include_stop_str_in_output, skip_special_tokens,
//                    min_tokens, ignore_eos, banned_token_ids, forced_token_ids, logprobs (a
//                    number, or true with top_logprobs), prompt_logprobs
//   whose            id or custom_id: repeated in the answer
// Absent ones keep the value of the flags. Other keys are ignored but listed, except those that
// would change the answer: best_of > 1.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "deepinfer/request.h"
#include "engine/loaded_engine.h"
#include "tokens/json.h"

namespace deepinfer {

struct ParsedRequest {
  Request request;
  bool is_chat = false;      // the answer has reasoning, content and calls
  bool in_thinking = false;  // and begins inside the thinking
  std::vector<std::string> ignored_keys;
};

// Errors: kInvalidArgument starting with the key; as EncodeText and EncodeChat.
StatusOr<ParsedRequest> ReadRequest(const JsonValue& root, const Request& defaults,
                                    const Thinking& thinking, const LoadedEngine& engine);

}  // namespace deepinfer
