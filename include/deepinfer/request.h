// deepinfer/request.h: what a client asks of an engine, and the events that answer it. Plain data.
//
// Of every accepted request come one Ready, then Tokens, and exactly one Finish or Failure for each
// of its choices, the last event of that choice. A request that is cancelled or fails before it was
// computed has no Ready. One whose grammar cannot be built has no Ready and one Failure in all, of
// its first choice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "deepinfer/sampling.h"
#include "deepinfer/structured_output.h"

namespace deepinfer {

struct RequestId {
  int64_t v = 0;
  bool operator==(const RequestId&) const = default;
  auto operator<=>(const RequestId&) const = default;
};

struct Request {
  std::vector<int32_t> prompt_ids;  // as it stands: BOS and chat markup are already in it
  // Most output tokens. Prompt and output together never pass the engine's max_model_len: a larger
  // value is cut to what fits. Not set: what fits. 0: only scores the prompt (prompt_logprobs).
  std::optional<int32_t> max_tokens;
  SamplingParams sampling;
  StructuredOutput structured;    // what the output must match
  std::vector<std::string> stop;  // ends the output where one of these texts appears
  bool include_stop = false;      // the text of what ended the output is part of the output
  bool skip_special_tokens = true;
  std::optional<uint64_t> seed;  // not set: drawn at admission and reported
  int32_t num_choices = 1;       // choice i uses seed + i
  // Set: the log-probability of every prompt token but the first, and of the n likeliest, 0..1000.
  // At most 4,194,304 of them in all. The prompt runs exact, in every choice; if the first choice
  // fails before they are there, all do.
  std::optional<int32_t> prompt_logprobs;

  // ---- who asks, and how soon
  // Tenants share the machine fairly and never find each other's cached prompts.
  std::string tenant;
  std::string cache_salt;  // cached prompts are found only by requests with the same salt
  int32_t priority = 0;    // -1000..1000; higher ones start first
  // Fails if its first row is not planned within this time; at most a year.
  std::optional<int64_t> start_deadline_ms;
};

enum class ErrorCode {
  kOk,
  kInvalidArgument,     // the request or an option is wrong
  kUnsupportedSchema,   // a grammar or schema that cannot be enforced, or is too large
  kNotFound,            // a file or model is missing
  kFailedPrecondition,  // the checkpoint lacks what was asked for
  kResourceExhausted,   // does not fit, or too many wait
  kDeadlineExceeded,    // did not start in time
  kDataLoss,            // damaged weights, or a forward pass that gave no usable numbers
  kInternal,
};
// "invalid_argument" and so on; "" for a value that is none of them.
constexpr std::string_view ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOk:
      return "ok";
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kUnsupportedSchema:
      return "unsupported_schema";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kFailedPrecondition:
      return "failed_precondition";
    case ErrorCode::kResourceExhausted:
      return "resource_exhausted";
    case ErrorCode::kDeadlineExceeded:
      return "deadline_exceeded";
    case ErrorCode::kDataLoss:
      return "data_loss";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "";
}

struct Error {
  ErrorCode code = ErrorCode::kOk;
  std::string message;  // one line: what, where, expected, found
};

struct ReadyEvent {  // the prompt is accepted; with prompt_logprobs: has been computed
  RequestId request;
  uint64_t seed = 0;
  int32_t prompt_tokens = 0;
  // Whose KV was found in a cache. In bounded mode the last --replay-keep rows of the prompt run
  // all the same, and those before them may be replayed for their windows.
  int32_t cached_tokens = 0;
  std::vector<PositionLogprobs> prompt_logprobs;  // of prompt token 1 and on, if asked for
};

struct TokensEvent {
  RequestId request;
  int32_t choice = 0;
  int32_t first_idx = 0;  // of ids[0] in the output
  std::vector<int32_t> ids;
  // What may be shown now. An unfinished character or a possible beginning of a stop string is held
  // back, so texts may come later than their tokens. Empty without a tokenizer.
  std::string text;
  std::vector<std::string> pieces;         // the same, by id: what came with each
  std::vector<PositionLogprobs> logprobs;  // one an id, if asked for
};

enum class FinishReason {
  kStop,       // EOS, a stop id or a stop string; a grammar ends with EOS
  kLength,     // max_tokens or max_model_len
  kCancelled,  // Cancel()
};

struct FinishEvent {
  RequestId request;
  int32_t choice = 0;
  FinishReason reason = FinishReason::kStop;
  std::string matched_stop;                 // the stop string that ended it, if one did
  std::optional<int32_t> matched_token_id;  // the stop id that ended it (EOS too), if one did
};

struct FailureEvent {
  RequestId request;
  int32_t choice = 0;
  Error error;
};

using Event = std::variant<ReadyEvent, TokensEvent, FinishEvent, FailureEvent>;

}  // namespace deepinfer
