// request/answer_json.h: the parts that the answers of several endpoints share, as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "deepinfer/request.h"
#include "request/json_writer.h"
#include "tokens/tokenizer.h"

namespace deepinfer {

// The same in every chunk of an answer.
struct AnswerHead {
  std::string id;  // "chatcmpl-..."
  std::string_view object;
  int64_t created = 0;  // Unix seconds
  std::string model;
  std::string fingerprint;
};

// Opens an object with these members, for the caller to go on.
void WriteHead(const AnswerHead& head, JsonWriter& out);

// Adds up over the prompts and choices of one HTTP request.
struct Usage {
  int64_t prompt_tokens = 0, cached_tokens = 0;
  int64_t output_tokens = 0, reasoning_tokens = 0;
};
// OpenAI's names and DeepSeek's: prompt_tokens = hit + miss.
void WriteUsage(const Usage& usage, JsonWriter& out);

void WriteIds(const std::vector<int32_t>& ids, JsonWriter& out);

// The text of one token. Half a character has none; it is then "bytes:" and \xNN for each byte.
std::string TokenLabel(int32_t id, const Tokenizer& tokenizer);
// JSON has no -infinity; as vLLM, nothing is below this.
inline constexpr double kLeastLogprob = -9999;
void WriteLogprob(double logprob, JsonWriter& out);

// [{"token":, "logprob":, "bytes": [..], "top_logprobs": [..]}, ..]
void WriteChatLogprobs(const std::vector<PositionLogprobs>& positions, const Tokenizer& tokenizer,
                       JsonWriter& out);
// vLLM's: [null, {"<id>": {"logprob":, "rank":, "decoded_token":}, ..}, ..], the token itself
// first. rank is null where it is not among the likeliest that were asked for. tokenizer: null = no
// text.
void WritePromptLogprobs(const std::vector<PositionLogprobs>& positions, const Tokenizer* tokenizer,
                         JsonWriter& out);
// The stop string or stop id that ended a choice; nothing for EOS and other ends.
void WriteStopReason(const FinishEvent& finish, int32_t eos, JsonWriter& out);

}  // namespace deepinfer
