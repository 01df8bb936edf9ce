// engine/sequence.h: one stream of tokens being generated, and the request it belongs to, as the
// planning thread sees them. Private to engine/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/page_key.h"
#include "deepinfer/request.h"
#include "engine/sequence_run.h"
#include "engine/text_output.h"
#include "engine/token_constraint.h"
#include "schedule/step_plan.h"

namespace deepinfer {

// A request that passed every check. Shared by its choices.
struct AdmittedRequest {
  RequestId id;
  Request request;
  uint64_t seed = 0;             // of choice 0
  int32_t max_output = 0;        // tokens, after all limits
  std::vector<int32_t> end_ids;  // tokens that end the output
  bool ready_sent = false;
  bool awaits_grammar = false;  // it is being built; until then no Ready
  ConstraintMaker grammar;      // of structured output, once it is there

  int32_t num_prompt() const { return static_cast<int32_t>(request.prompt_ids.size()); }
};

// One choice of a request. Kept until the scheduler has forgotten it.
struct Sequence {
  std::shared_ptr<AdmittedRequest> owner;
  int32_t choice = 0;
  int32_t tenant = 0;  // number of owner->request.tenant
  SequenceId id;
  PageKeyChain keys;                 // of all known tokens
  std::unique_ptr<SequenceRun> run;  // the executing thread's
  TextOutput text;
  std::vector<PositionLogprobs> prompt_logprobs;  // so far
  int32_t num_output = 0;                         // tokens sent
  bool started = false;                           // has or had memory for its output
  bool ended = false;                             // its last event was sent

  // Only the first choice gives them; the others have the same prompt.
  bool wants_prompt_logprobs() const {
    return choice == 0 && owner->request.prompt_logprobs.has_value();
  }
};

}  // namespace deepinfer
