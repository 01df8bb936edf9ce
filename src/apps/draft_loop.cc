#include "apps/draft_loop.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/check.h"
#include "cache/standalone_kv.h"

namespace deepinfer {
namespace {

// Of equal ones the lowest id, as the engine's sampler.
int32_t ArgMax(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// One answer in the making.
struct Run {
  Run(const KvShape& shape, const DraftPrompt& prompt, DraftedAnswer& answer)
      : kv(shape, std::ssize(prompt.ids) + prompt.max_output),
        num_prompt(static_cast<int32_t>(prompt.ids.size())),
        num_tokens(num_prompt),
        max_tokens(num_prompt + prompt.max_output),
        tokens(prompt.ids.begin(), prompt.ids.end()),
        answer(answer) {
    tokens.resize(static_cast<size_t>(max_tokens));
  }

  void Take(int32_t token, int32_t eos_id) {
    tokens[static_cast<size_t>(num_tokens++)] = token;
    answer.ids.push_back(token);
    ended = token == eos_id || num_tokens == max_tokens;
  }
  int32_t anchor() const { return tokens[static_cast<size_t>(num_tokens) - 1]; }

  StandaloneKv kv;
  const int32_t num_prompt;
  int32_t num_tokens;  // known; all but the newest are in `kv`
  const int32_t max_tokens;
  std::vector<int32_t> tokens;  // [max_tokens]: known ones, then drafts
  int32_t num_drafts = 0;       // of the step
  bool ended = false;
  DraftedAnswer& answer;
};

class Loop {
 public:
  Loop(Model& model, const DraftLoopOptions& options)
      : model_(model), options_(options), vocab_(static_cast<size_t>(model.config().vocab_size)) {}

  StatusOr<std::vector<DraftedAnswer>> Answer(std::span<const DraftPrompt> prompts) {
    std::vector<DraftedAnswer> answers(prompts.size());
    for (size_t next = 0; next < prompts.size() || !runs_.empty();) {
      for (; next < prompts.size() && std::ssize(runs_) < options_.max_together; ++next) {
        DI_RETURN_IF_ERROR(Start(prompts[next], answers[next]));
      }
      DropEnded();
      if (runs_.empty()) continue;
      DI_RETURN_IF_ERROR(Propose());
      DI_RETURN_IF_ERROR(Verify());
      DropEnded();
    }
    return answers;
  }

 private:
  // Computes the prompt and takes the first token.
  Status Start(const DraftPrompt& prompt, DraftedAnswer& answer) {
    CHECK(!prompt.ids.empty() && prompt.max_output >= 1);
    Run& run = *runs_.emplace_back(std::make_unique<Run>(model_.kv_shape(), prompt, answer));
    std::span<const float> logits;
    for (int32_t begin = 0; begin < run.num_prompt; begin += options_.chunk_rows) {
      const int32_t end = std::min(run.num_prompt, begin + options_.chunk_rows);
      DI_ASSIGN_OR_RETURN(logits, Forward({{Segment(run, begin, end, run.num_prompt - 1)}}));
      if (options_.load != nullptr) options_.load->Count(0, end - begin);
    }
    run.Take(ArgMax(logits), options_.eos_id);
    return OkStatus();
  }

  static ForwardSegment Segment(Run& run, int32_t begin, int32_t end, int32_t logits_begin) {
    return {.kv = &run.kv.kv(),
            .tokens = run.tokens.data(),
            .begin = begin,
            .end = end,
            .logits_begin = logits_begin};
  }

  StatusOr<std::span<const float>> Forward(const ForwardBatch& batch) {
    return model_.Forward(batch, options_.load);
  }

  // Puts drafts behind every run's newest token: as many as there is room for beside the token that
  // comes after them.
  Status Propose() {
    for (auto& run : runs_) run->num_drafts = 0;
    if (model_.config().num_nextn_predict_layers == 0) return OkStatus();
    std::vector<DraftRequest> requests;
    for (auto& run : runs_) requests.push_back({&run->kv.kv(), run->anchor(), run->num_tokens - 1});
    drafts_.resize(runs_.size());
    DI_RETURN_IF_ERROR(options_.propose ? options_.propose(requests, drafts_)
                                        : ProposeGreedily(requests));
    for (size_t i = 0; i < runs_.size(); ++i) {
      Run& run = *runs_[i];
      for (const float confidence : drafts_[i].confidences) {
        if (!std::isfinite(confidence)) {
          return DataLoss("drafts behind position ", run.num_tokens - 1, ": confidence ",
                          confidence, ", expected a number; the draft blocks are damaged");
        }
      }
      run.num_drafts = std::min(static_cast<int32_t>(drafts_[i].tokens.size()),
                                run.max_tokens - run.num_tokens - 1);
      std::copy_n(drafts_[i].tokens.begin(), run.num_drafts, run.tokens.begin() + run.num_tokens);
    }
    return OkStatus();
  }

  Status ProposeGreedily(std::span<const DraftRequest> requests) {
    const auto choose = [](int32_t, int32_t, std::span<const float> logits) {
      return ArgMax(logits);
    };
    return model_.Propose(requests, choose, drafts_);
  }

  // One pass over all newest tokens and their drafts.
  Status Verify() {
    ForwardBatch batch;
    for (auto& run : runs_) {
      const int32_t newest = run->num_tokens - 1;
      batch.segments.push_back(Segment(*run, newest, newest + 1 + run->num_drafts, newest));
    }
    DI_ASSIGN_OR_RETURN(std::span<const float> logits, Forward(batch));
    int32_t row = 0;
    for (size_t i = 0; i < runs_.size(); ++i) {
      const int32_t num_rows = 1 + runs_[i]->num_drafts;
      const int32_t num_kept = Accept(*runs_[i], i, logits.first(num_rows * vocab_));
      if (options_.load != nullptr) options_.load->Count(row, row + num_kept);
      logits = logits.subspan(num_rows * vocab_);
      row += num_rows;
    }
    return OkStatus();
  }

  // Takes the model's choice of row after row while it is the next row's draft. Returns how many
  // rows were of tokens that the answer has.
  int32_t Accept(Run& run, size_t run_idx, std::span<const float> logits) {
    DraftStep& step = run.answer.steps.emplace_back();
    for (int32_t row = 0;; ++row) {
      const int32_t token = ArgMax(logits.subspan(static_cast<size_t>(row) * vocab_, vocab_));
      const bool judged = row < run.num_drafts;
      const bool accepted = judged && run.tokens[static_cast<size_t>(run.num_tokens)] == token;
      step.num_judged += judged ? 1 : 0;
      step.num_accepted += accepted ? 1 : 0;
      run.Take(token, options_.eos_id);
      if (accepted && !run.ended) continue;
      if (step.num_judged > 0) {
        const std::vector<float>& all = drafts_[run_idx].confidences;
        step.confidences.assign(all.begin(), all.begin() + step.num_judged);
      }
      return row + 1;
    }
  }

  void DropEnded() {
    const auto ended = [&](const std::unique_ptr<Run>& run) {
      if (run->ended && options_.progress) options_.progress(run->num_tokens);
      return run->ended;
    };
    std::erase_if(runs_, ended);
  }

  Model& model_;
  const DraftLoopOptions& options_;
  const size_t vocab_;
  std::vector<std::unique_ptr<Run>> runs_;
  std::vector<Draft> drafts_;  // one a run
};

}  // namespace

StatusOr<std::vector<DraftedAnswer>> RunDraftLoop(Model& model,
                                                  std::span<const DraftPrompt> prompts,
                                                  const DraftLoopOptions& options) {
  return Loop(model, options).Answer(prompts);
}

}  // namespace deepinfer
