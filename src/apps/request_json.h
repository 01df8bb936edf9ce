// apps/request_json.h: one JSON object of an input file to a Request.
//
//   what to answer   one of: prompt (text, after BOS), prompt_token_ids, messages (with tools,
//                    response_format, reasoning_effort, ... of tokens/conversation_json.h)
//   how              the fields of request/sampling_fields.h and request/structured_fields.h
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
