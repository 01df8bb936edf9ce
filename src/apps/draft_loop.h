// apps/draft_loop.h: greedy answers by a plain draft-and-verify loop, with nothing of the engine:
// what the drafts are worth, and a second opinion on the engine's answers.
//
// A step proposes for the newest token and runs it with its drafts as one pass; drafts are kept up
// to the first that is not the model's own choice, which then stands in its place. Source:
// serving.md 11.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "apps/routing_load.h"
#include "base/status.h"
#include "model/model.h"

namespace deepinfer {

struct DraftPrompt {
  std::span<const int32_t> ids;
  int32_t max_output = 0;  // tokens, EOS included, >= 1
};

// Drafts behind the answer's end are not looked at, so those that are form a prefix: the accepted
// ones, then at most one that is not.
struct DraftStep {
  int32_t num_judged = 0, num_accepted = 0;
  std::vector<float> confidences;  // [num_judged] logits
};

struct DraftedAnswer {
  std::vector<int32_t> ids;      // ends with EOS, unless max_output came first
  std::vector<DraftStep> steps;  // all but the first token come from these
};

// Model::Propose with a choice of tokens. Tests put in another.
using ProposeFn = std::function<Status(std::span<const DraftRequest>, std::span<Draft>)>;

struct DraftLoopOptions {
  int32_t eos_id = 0;
  int32_t max_together = 16;    // answers that are made at the same time
  int32_t chunk_rows = 2048;    // rows of a prompt in one pass
  ProposeFn propose;            // empty: the model's drafts, greedily
  RoutingLoad* load = nullptr;  // sees the rows of prompts and answers; may be null
  std::function<void(int64_t tokens)> progress;  // of prompt and answer, as an answer is done
};

// Every row runs every layer. A model without draft blocks makes steps without drafts. Errors: as
// Model::Forward; kDataLoss for a confidence that is not finite.
StatusOr<std::vector<DraftedAnswer>> RunDraftLoop(Model& model,
                                                  std::span<const DraftPrompt> prompts,
                                                  const DraftLoopOptions& options);

}  // namespace deepinfer
