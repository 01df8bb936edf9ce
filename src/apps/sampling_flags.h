// apps/sampling_flags.h: the flags of every command that samples: the fields of a Request.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/options.h"
#include "base/status.h"
#include "deepinfer/request.h"

namespace deepinfer {

struct SamplingFlags {
  Request request;
  int32_t max_tokens = 256;
  int32_t logprobs = -1;
  int32_t prompt_logprobs = -1;
  std::vector<std::string> logit_bias, banned_token_ids, stop_token_ids, forced_token_ids;

  void AddTo(OptionSet& options);
  // The request that the flags describe, without a prompt. Errors: kInvalidArgument naming the
  // flag.
  StatusOr<Request> ToRequest() const;
};

// "1,2,3" -> {1, 2, 3}. Errors: kInvalidArgument starting with `where`.
StatusOr<std::vector<int32_t>> ParseTokenIds(const std::string& text, std::string_view where);

}  // namespace deepinfer
