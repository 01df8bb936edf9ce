// request/sampling_fields.h: the fields of a request that say how it is answered, wherever it comes
// from: a line of an input file or the body of an HTTP request.
//
//   max_tokens (or max_completion_tokens; both only if equal), temperature, top_p, top_k, min_p,
//   repetition_penalty, presence_penalty, frequency_penalty, logit_bias, seed, n, stop,
//   stop_token_ids, include_stop_str_in_output, skip_special_tokens, min_tokens, ignore_eos,
//   banned_token_ids, forced_token_ids, forced_drafts, logprobs (a number, or true with
//   top_logprobs), prompt_logprobs, cache_salt, priority
// and in files alone: tenant, start_deadline_ms.
#pragma once

#include "base/status.h"
#include "deepinfer/request.h"
#include "request/field_reader.h"

namespace deepinfer {

struct SamplingRules {
  // An HTTP body: OpenAI's ranges (temperature 0..2, at most 16 stops, 20 top_logprobs), a priority
  // that is served sooner the lower it is (vLLM's meaning; in files higher ones start first), and
  // none of the fields that speak for others.
  bool http = false;
  // Takes what scripts decoding (forced_token_ids, forced_drafts).
  bool scripted = true;
};

// Fields that are absent keep what `request` holds. Errors: kInvalidArgument starting with the key.
Status ReadSamplingFields(FieldReader& reader, const SamplingRules& rules, Request& request);

}  // namespace deepinfer
