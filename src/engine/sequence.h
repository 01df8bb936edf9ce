// engine/sequence.h: one stream of tokens being generated, and the request it belongs to. Private
// to engine/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/reserved_pages.h"
#include "deepinfer/request.h"
#include "engine/text_output.h"
#include "model/sampler.h"

namespace deepinfer {

// A request that passed every check. Shared by its choices.
struct AdmittedRequest {
  RequestId id;
  Request request;
  uint64_t seed = 0;             // of choice 0
  int32_t max_output = 0;        // tokens, after all limits
  std::vector<int32_t> end_ids;  // tokens that end the output
  bool ready_sent = false;

  bool Ends(int32_t token) const {
    return std::find(end_ids.begin(), end_ids.end(), token) != end_ids.end();
  }
  int32_t num_prompt() const { return static_cast<int32_t>(request.prompt_ids.size()); }
  // Positions whose KV is ever computed: the last output token is not fed back.
  int32_t max_rows() const { return num_prompt() + std::max(0, max_output - 1); }
};

// One choice of a request. KV pages are held from admission to the end.
struct Sequence {
  std::shared_ptr<AdmittedRequest> owner;
  int32_t choice = 0;
  std::vector<int32_t> tokens;  // prompt, then output
  int32_t num_computed = 0;     // tokens whose KV is present
  SequenceSampling sampling;
  TextOutput text;
  std::unique_ptr<ReservedKv> kv;  // null while waiting
  std::vector<PositionLogprobs> prompt_logprobs;
  bool ended = false;

  int32_t num_tokens() const { return static_cast<int32_t>(tokens.size()); }
  // Only the first choice computes them; the others have the same prompt.
  bool wants_prompt_logprobs() const {
    return choice == 0 && owner->request.prompt_logprobs.has_value();
  }
};

}  // namespace deepinfer
