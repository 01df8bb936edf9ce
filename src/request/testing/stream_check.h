// request/testing/stream_check.h: a strict reader of chat answers, streamed and whole. Tests only.
//
// A stream: comments and `data:` events; the same id, created, model and object in every chunk; the
// role in a choice's first delta; every other delta {} or one member that is not empty; the first
// delta of a call with id, type, name and empty arguments, later ones with arguments alone; one
// finish_reason a choice, with an empty delta, and nothing of that choice afterwards; a chunk with
// the usage and no choices if it was asked for; [DONE]. Everything else fails the test.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tokens/json.h"

namespace deepinfer::testing {

struct AssembledCall {
  std::string id, name, arguments;
  bool operator==(const AssembledCall&) const = default;
};

struct AssembledChoice {
  std::string reasoning, content;
  std::vector<AssembledCall> calls;
  std::string finish_reason;
  std::string content_logprobs, reasoning_logprobs;  // the entries as JSON, one a line
  std::string token_ids;
  bool operator==(const AssembledChoice&) const = default;
};

struct AssembledChat {
  std::string id, model, seed, fingerprint, created;
  std::map<int, AssembledChoice> choices;
  std::string usage;  // JSON; empty: none
  std::string prompt_token_ids, prompt_logprobs;
  bool operator==(const AssembledChat&) const = default;
};

AssembledChat ReadChatStream(std::string_view body, bool include_usage);
AssembledChat ReadWholeChat(std::string_view body);
// Without what differs from answer to answer: ids and `created`.
AssembledChat Comparable(AssembledChat chat);

// The `data:` events of a stream, which must be well-formed and end with [DONE].
std::vector<std::string> DataOf(std::string_view body);

}  // namespace deepinfer::testing
