#include "engine/step_executor.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "model/logprobs.h"

namespace deepinfer {

void StepExecutor::Run(StepJob& job) {
  const MonotonicTime start = backend_.clock->Now();
  // Outcomes keep their memory from step to step.
  if (job.outcomes.size() < job.plan.rows.size()) job.outcomes.resize(job.plan.rows.size());
  job.failed_copies.clear();
  job.load = {};
  RunCopies(job);
  MakeBatch(job);
  StatusOr<std::span<const float>> logits = std::span<const float>();
  if (!batch_.segments.empty()) logits = backend_.forward(batch_);
  for (size_t i = 0; i < batch_.segments.size(); ++i) {
    const auto at = static_cast<size_t>(batch_rows_[i]);
    SequenceRun& run = *job.row_runs[at];
    if (logits.ok()) {
      const ForwardSegment& segment = batch_.segments[i];
      job.load.Add(segment.end - segment.begin, segment.begin);
      Advance(job.plan.rows[at], segment, run, job.outcomes[at], *logits);
    } else {
      Fail(run, job.outcomes[at], logits.status());
    }
  }
  if (logits.ok()) CHECK(logits->empty());
  job.seconds = Seconds(backend_.clock->Now() - start);
}

// ---- copies

void StepExecutor::RunCopies(StepJob& job) {
  for (size_t i = 0; i < job.plan.copies.size(); ++i) {
    SequenceRun* const run = job.copy_runs[i];
    const Status status = RunCopy(job.plan, job.plan.copies[i], run);
    if (status.ok()) continue;
    job.failed_copies.push_back(static_cast<int32_t>(i));
    CHECK(run != nullptr);
    run->lost = true;
    LogWarning(MessageOf(status));
  }
}

Status StepExecutor::RunCopy(const StepPlan& plan, const PlannedCopy& copy, SequenceRun* run) {
  KvMemory& memory = *backend_.memory;
  const auto set_pages = [&] {
    run->state = copy.to;
    std::vector<int32_t> table;  // keeps its memory when a sequence resumes
    if (run->kv) table = std::move(run->kv->page_table());
    table.reserve(static_cast<size_t>((run->num_prompt + run->max_output + kTokensPerPage - 1) /
                                      kTokensPerPage));
    const auto first = plan.pages.begin() + copy.first_page;
    table.assign(first, first + copy.num_pages);
    run->kv.emplace(memory.SequenceOf(copy.to));
    run->kv->page_table() = std::move(table);
  };
  switch (copy.kind) {
    case CopyKind::kSavePage:
      memory.SavePage(copy.from, copy.to);
      break;
    case CopyKind::kLoadPage:
      return memory.LoadPage(copy.from, copy.to);
    case CopyKind::kSaveState:
      memory.SaveState(copy.from, copy.to);
      break;
    case CopyKind::kNewState:
      memory.ClearState(copy.to);
      run->TakeOutputMemory();
      run->lost = false;
      set_pages();
      break;
    case CopyKind::kLoadState:
      memory.LoadState(copy.from, copy.to);
      set_pages();
      break;
    case CopyKind::kLoadSnapshot:
      return memory.LoadSnapshot(copy.from, copy.end, copy.to, copy.generation);
  }
  return OkStatus();
}

// ---- rows

void StepExecutor::MakeBatch(StepJob& job) {
  batch_.segments.clear();
  batch_rows_.clear();
  for (size_t i = 0; i < job.plan.rows.size(); ++i) {
    const PlannedRows& rows = job.plan.rows[i];
    SequenceRun& run = *job.row_runs[i];
    RowsOutcome& outcome = job.outcomes[i];
    outcome.status = run.failure;
    outcome.dropped = run.ended || run.lost || run.stop.load(std::memory_order_relaxed);
    outcome.snapshot_taken = false;
    outcome.num_new = outcome.num_drafts = 0;
    outcome.num_computed = run.num_computed;
    outcome.num_tokens = run.num_tokens;
    outcome.logprobs.clear();
    outcome.prompt_logprobs.clear();
    if (outcome.dropped) continue;
    const auto first = job.plan.pages.begin() + rows.first_page;
    run.kv->page_table().insert(run.kv->page_table().end(), first, first + rows.num_pages);
    batch_.segments.push_back(MakeSegment(rows, run));
    batch_rows_.push_back(static_cast<int32_t>(i));
  }
}

ForwardSegment StepExecutor::MakeSegment(const PlannedRows& rows, SequenceRun& run) {
  ForwardSegment segment = {.kv = &*run.kv,
                            .tokens = run.tokens.data(),
                            .begin = rows.begin,
                            .end = rows.end,
                            .decoder_begin = rows.decoder_begin,
                            .window_begin = rows.window_begin,
                            .decoder_window_begin = rows.decoder_window_begin,
                            .keep_entries_below = rows.keep_entries_below,
                            .keep_rings_below = rows.keep_rings_below};
  if (rows.kind == RowsKind::kDecode) {
    const int32_t most = std::min(rows.num_rows() - 1, run.num_drafts);
    segment.begin = segment.logits_begin = run.num_tokens - 1;
    segment.end = run.num_tokens + most;
  } else if (run.prompt_logprobs && rows.begin < run.num_prompt) {
    segment.logits_begin = rows.begin;
  } else if (rows.samples) {
    segment.logits_begin = rows.end - 1;
  }
  // A step that was in flight when this was planned may have passed the page end already.
  if (rows.snapshot_slot >= 0 && segment.begin <= rows.snapshot_end &&
      rows.snapshot_end <= segment.end) {
    segment.snapshot = backend_.memory->Snapshot(rows.snapshot_slot, rows.snapshot_end);
  }
  return segment;
}

// Takes the sequence's logits from the front of `logits`.
void StepExecutor::Advance(const PlannedRows& rows, const ForwardSegment& segment, SequenceRun& run,
                           RowsOutcome& outcome, std::span<const float>& logits) {
  const int32_t asked = std::max(0, segment.end - std::max(segment.begin, segment.logits_begin));
  const auto vocab = static_cast<size_t>(backend_.vocab_size);
  const std::span<const float> mine = logits.first(static_cast<size_t>(asked) * vocab);
  logits = logits.subspan(mine.size());
  run.num_computed = segment.end;
  if (run.prompt_logprobs && asked > 0) ScorePrompt(segment, run, outcome, mine);
  if (rows.samples && !run.ended && run.max_output > 0) {
    const bool verifies = rows.kind == RowsKind::kDecode;
    SampleAndVerify(run, outcome, verifies ? mine : mine.last(vocab));
  }
  outcome.num_computed = run.num_computed;
  outcome.num_tokens = run.num_tokens;
  if (outcome.status.ok() && segment.snapshot.rows != nullptr &&
      run.num_computed >= rows.snapshot_end) {
    backend_.memory->SealSnapshot(rows.snapshot_slot, run.state, rows.snapshot_end,
                                  rows.snapshot_generation);
    outcome.snapshot_taken = true;
  }
}

// Log-probabilities of prompt tokens; each once, also when rows run again.
void StepExecutor::ScorePrompt(const ForwardSegment& segment, SequenceRun& run,
                               RowsOutcome& outcome, std::span<const float> logits) {
  const auto vocab = static_cast<size_t>(backend_.vocab_size);
  const int32_t end = std::min(segment.end, run.num_prompt - 1);
  for (int32_t p = std::max(segment.begin, run.num_scored); p < end; ++p) {
    const auto row = logits.subspan(static_cast<size_t>(p - segment.begin) * vocab, vocab);
    if (const Status status = CheckFinite(row); !status.ok()) {
      return Fail(run, outcome, Annotate(status, "prompt position ", p));
    }
    const int32_t next = run.tokens[static_cast<size_t>(p) + 1];
    outcome.prompt_logprobs.push_back(RawLogprobs(row, next, *run.prompt_logprobs));
    run.num_scored = p + 1;
  }
}

// One row a verified draft, and one for the token after the last accepted one.
void StepExecutor::SampleAndVerify(SequenceRun& run, RowsOutcome& outcome,
                                   std::span<const float> logits) {
  const auto vocab = static_cast<size_t>(backend_.vocab_size);
  const auto num_rows = static_cast<int32_t>(logits.size() / vocab);
  outcome.num_drafts = num_rows - 1;
  for (int32_t i = 0; i < num_rows && !run.ended; ++i) {
    const auto row = logits.subspan(static_cast<size_t>(i) * vocab, vocab);
    auto sampled = sampler_.Sample(run.sampling, row, run.num_tokens);
    if (!sampled.ok()) {
      Fail(run, outcome, Annotate(sampled.status(), "position ", run.num_tokens));
      return;
    }
    const int32_t output_idx = run.sampling.num_output();
    int32_t& place = run.tokens[static_cast<size_t>(run.num_tokens)];
    const bool accepted = i + 1 < num_rows && place == sampled->id;
    place = sampled->id;
    ++run.num_tokens;
    run.sampling.Accept(sampled->id);
    outcome.tokens[outcome.num_new++] = sampled->id;
    if (sampled->logprobs) outcome.logprobs.push_back(*std::move(sampled->logprobs));
    const bool may_end = output_idx >= run.sampling.params().min_tokens;
    run.ended = (may_end && run.Ends(sampled->id)) || output_idx + 1 == run.max_output;
    if (!accepted) break;
  }
  run.num_computed = run.num_tokens - 1;
  run.num_drafts = 0;
  const int32_t left = run.num_prompt + run.max_output - run.num_tokens;
  if (backend_.drafter != nullptr && !run.ended && left > 1) {
    run.num_drafts = backend_.drafter->Draft(run, std::min(left - 1, kMaxDrafts));
  }
}

void StepExecutor::Fail(SequenceRun& run, RowsOutcome& outcome, const Status& status) {
  run.ended = true;
  run.failure = outcome.status = status;
}

}  // namespace deepinfer
