// engine/sequence_run.h: what executing steps needs of one sequence. Private to engine/.
//
// Made by the planning thread, then touched by the executing thread only, until the scheduler has
// forgotten the sequence; `stop` alone is shared, and `masks`, which says by whom.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "cache/sequence_kv.h"
#include "engine/sequence_masks.h"
#include "model/sampler.h"

namespace deepinfer {

struct SequenceRun {
  SequenceRun(std::span<const int32_t> prompt, int32_t max_output_tokens, std::vector<int32_t> ends,
              SequenceSampling sampling_state)
      : tokens(prompt.begin(), prompt.end()),
        num_prompt(static_cast<int32_t>(prompt.size())),
        max_output(max_output_tokens),
        end_ids(std::move(ends)),
        sampling(std::move(sampling_state)),
        num_tokens(num_prompt) {}

  // Room for output and drafts, when it starts: what waits holds memory for its prompt only.
  void TakeOutputMemory() {
    tokens.resize(static_cast<size_t>(num_prompt) + static_cast<size_t>(max_output) + kMaxDrafts);
  }

  // Prompt, output, then the drafts being verified.
  std::vector<int32_t> tokens;
  const int32_t num_prompt;
  const int32_t max_output;                // 0: the prompt is only computed
  const std::vector<int32_t> end_ids;      // tokens that end the output, once min_tokens are there
  std::optional<int32_t> prompt_logprobs;  // top n; of every prompt token
  SequenceSampling sampling;
  std::shared_ptr<SequenceMasks> masks;  // null: the output is free

  int32_t num_tokens;         // known
  int32_t num_computed = 0;   // positions whose KV is present
  int32_t num_scored = 0;     // prompt positions whose log-probabilities were given
  int32_t num_drafts = 0;     // tokens[num_tokens ... num_tokens + num_drafts) are guesses
  int32_t num_draftings = 0;  // so far
  bool ended = false;         // by EOS, a stop id, length or a failure: no more rows
  Status failure;             // why
  bool lost = false;          // its KV is useless: no rows until it starts anew
  bool runs_alone = false;    // in passes of its own: it was in one that failed, and may be why
  std::optional<SequenceKv> kv;
  int32_t state = -1;

  // Set by the planning thread when the sequence ends for another reason; rows that are still
  // planned are dropped.
  std::atomic<bool> stop{false};

  bool Ends(int32_t token) const {
    return std::find(end_ids.begin(), end_ids.end(), token) != end_ids.end();
  }
};

}  // namespace deepinfer
