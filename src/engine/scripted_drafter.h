// engine/scripted_drafter.h: drafts with accepted lengths that somebody chose. For tests, also over
// HTTP: see EngineOptions::scripted_drafts.
//
// Together with forced_token_ids it scripts decoding whole: which tokens come, what is drafted and
// how much of it is accepted. Where a grammar forbids a forced token, drafts go on as if it had
// come: they are wrong then.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "engine/step_executor.h"

namespace deepinfer {

class ScriptedDrafter : public Drafter {
 public:
  // How many of the drafts after the newest token are to be accepted. Not given: by the request's
  // forced_drafts.
  using AcceptFn = std::function<int32_t(const SequenceRun& run)>;

  ScriptedDrafter(int32_t num_drafts, int32_t vocab_size, AcceptFn accept = ForcedDrafts)
      : num_drafts_(num_drafts), vocab_size_(vocab_size), accept_(std::move(accept)) {}

  int32_t Draft(SequenceRun& run, int32_t most) override {
    const int32_t count = std::min(num_drafts_, most);
    const int32_t right = accept_(run);
    const std::vector<int32_t>& forced = run.sampling.params().forced_token_ids;
    for (int32_t i = 0; i < count; ++i) {
      const auto next = static_cast<size_t>(run.sampling.num_output() + i);
      const int32_t truth = next < forced.size() ? forced[next] : 2;
      const int32_t wrong = (truth + 1) % vocab_size_;
      run.tokens[static_cast<size_t>(run.num_tokens + i)] = i < right ? truth : wrong;
    }
    return count;
  }

  static int32_t ForcedDrafts(const SequenceRun& run) {
    const std::vector<int32_t>& accepted = run.sampling.params().forced_drafts;
    if (accepted.empty()) return kMaxDrafts;
    return accepted[static_cast<size_t>(run.num_draftings) % accepted.size()];
  }

 private:
  const int32_t num_drafts_;
  const int32_t vocab_size_;
  const AcceptFn accept_;
};

}  // namespace deepinfer
