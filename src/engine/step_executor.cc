#include "engine/step_executor.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "model/logprobs.h"

namespace deepinfer {
namespace {

bool Samples(const PlannedRows& rows, const SequenceRun& run) {
  return rows.samples && !run.ended && run.max_output > 0;
}

// Of a segment's logits [rows that asked, V]: of every row that is verified, or of the last.
std::span<const float> SampledLogits(const PlannedRows& rows, std::span<const float> logits,
                                     size_t vocab) {
  return rows.kind == RowsKind::kDecode ? logits : logits.last(vocab);
}

}  // namespace

StepExecutor::StepExecutor(ExecutorBackend backend) : backend_(std::move(backend)) {
  const int num_threads = backend_.threads == nullptr ? 1 : backend_.threads->num_threads();
  samplers_.resize(static_cast<size_t>(num_threads));
}

void StepExecutor::Run(StepJob& job) {
  const MonotonicTime start = backend_.clock->Now();
  // Outcomes keep their memory from step to step.
  if (job.outcomes.size() < job.plan.rows.size()) job.outcomes.resize(job.plan.rows.size());
  job.failed_copies.clear();
  job.load = {};
  RunCopies(job);
  MakeBatch(job);
  waiting_.clear();
  const MonotonicTime pass_start = backend_.clock->Now();
  if (!batch_.segments.empty()) RunTogether(job);
  if (!waiting_.empty()) AdvanceWaiting(job, backend_.clock->Now() - pass_start);
  for (const Alone& alone : alone_) RunAlone(job, alone.rows_idx, alone.segment);
  job.seconds = Seconds(backend_.clock->Now() - start);
}

void StepExecutor::RunTogether(StepJob& job) {
  StatusOr<std::span<const float>> logits = backend_.forward(batch_);
  if (!logits.ok() && batch_.segments.size() > 1) return RunApart(job);
  if (logits.ok()) SampleFirstRows(job, *logits);
  for (size_t i = 0; i < batch_.segments.size(); ++i) {
    const auto at = static_cast<size_t>(batch_rows_[i]);
    SequenceRun& run = *job.row_runs[at];
    if (!logits.ok()) {
      Fail(run, job.outcomes[at], logits.status());
      continue;
    }
    const ForwardSegment& segment = batch_.segments[i];
    FirstRow& first = first_rows_[i];
    job.load.Add(segment.end - segment.begin, segment.begin);
    if (job.plan.rows[at].samples && run.masks != nullptr && !run.masks->ready()) {
      waiting_.push_back({i, first.logits});
    } else {
      Advance(job.plan.rows[at], segment, run, job.outcomes[at], first.logits, &first);
    }
  }
}

// On all threads. Not for what has a grammar, whose masks may come meanwhile.
void StepExecutor::SampleFirstRows(const StepJob& job, std::span<const float> logits) {
  const auto vocab = static_cast<size_t>(backend_.vocab_size);
  const size_t count = batch_.segments.size();
  if (first_rows_.size() < count) first_rows_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    first_rows_[i].logits = TakeLogits(batch_.segments[i], logits);
    first_rows_[i].sampled.reset();
  }
  CHECK(logits.empty());
  const auto sample = [&](size_t i, Sampler& sampler) {
    const auto at = static_cast<size_t>(batch_rows_[i]);
    const PlannedRows& rows = job.plan.rows[at];
    const SequenceRun& run = *job.row_runs[at];
    if (!Samples(rows, run) || run.masks != nullptr) return;
    FirstRow& first = first_rows_[i];
    first.sampled =
        sampler.Sample(run.sampling, SampledLogits(rows, first.logits, vocab).first(vocab),
                       run.num_tokens);
  };
  const auto num_parts = static_cast<int64_t>(std::min(samplers_.size(), count));
  const auto run_parts = [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const auto p = static_cast<size_t>(part), parts = static_cast<size_t>(num_parts);
      for (size_t i = p * count / parts; i < (p + 1) * count / parts; ++i) sample(i, samplers_[p]);
    }
  };
  if (num_parts == 1) return run_parts(0, 1);
  backend_.threads->ParallelFor(num_parts, 1, run_parts);
}

// After a pass of several that failed. Its layers may have written some of its rows already. Up to
// verify_width rows overwrite nothing that they read themselves (cache/sequence_kv.h), so those run
// again, each alone. More rows have overwritten window rows: such a sequence starts anew and runs
// alone until its prompt is computed, so that it fails by itself or not at all.
void StepExecutor::RunApart(StepJob& job) {
  for (size_t i = 0; i < batch_.segments.size(); ++i) {
    const int32_t rows_idx = batch_rows_[i];
    ForwardSegment segment = batch_.segments[i];
    segment.snapshot = {};  // its slack rows, which nobody reads, may be overwritten
    if (segment.end - segment.begin <= backend_.memory->shape().verify_width) {
      alone_.push_back({rows_idx, segment});
      continue;
    }
    SequenceRun& run = *job.row_runs[static_cast<size_t>(rows_idx)];
    run.lost = run.runs_alone = true;
    RowsOutcome& outcome = job.outcomes[static_cast<size_t>(rows_idx)];
    outcome.dropped = outcome.starts_anew = true;
  }
}

// Masks that are not ready are not waited for: such rows sit the step out.
void StepExecutor::RunAlone(StepJob& job, int32_t rows_idx, const ForwardSegment& segment) {
  const auto at = static_cast<size_t>(rows_idx);
  SequenceRun& run = *job.row_runs[at];
  alone_batch_.segments.assign(1, segment);
  const StatusOr<std::span<const float>> logits = backend_.forward(alone_batch_);
  if (!logits.ok()) return Fail(run, job.outcomes[at], logits.status());
  job.load.Add(segment.end - segment.begin, segment.begin);
  run.runs_alone = run.runs_alone && !job.plan.rows[at].samples;
  Advance(job.plan.rows[at], segment, run, job.outcomes[at], *logits);
}

// Rows whose masks were not ready: everything else has been sampled meanwhile.
void StepExecutor::AdvanceWaiting(StepJob& job, Duration pass_time) {
  const bool holds_up_others = waiting_.size() < batch_.segments.size();
  const double share = holds_up_others ? backend_.mask_options.wait_share : 1;
  const auto most = Duration(static_cast<int64_t>(share * static_cast<double>(pass_time.count())));
  const MonotonicTime end =
      backend_.clock->Now() + std::max(most, backend_.mask_options.wait_least);
  for (const Waiting& waiting : waiting_) {
    const auto at = static_cast<size_t>(batch_rows_[waiting.segment]);
    SequenceRun& run = *job.row_runs[at];
    if (run.masks->begun()) {
      backend_.masks->Await(*run.masks, std::max(Duration(0), end - backend_.clock->Now()));
    }
    Advance(job.plan.rows[at], batch_.segments[waiting.segment], run, job.outcomes[at],
            waiting.logits);
  }
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
  alone_.clear();
  for (size_t i = 0; i < job.plan.rows.size(); ++i) {
    const PlannedRows& rows = job.plan.rows[i];
    SequenceRun& run = *job.row_runs[i];
    RowsOutcome& outcome = job.outcomes[i];
    outcome.status = run.failure;
    outcome.dropped = run.ended || run.lost || run.stop.load(std::memory_order_relaxed);
    outcome.snapshot_taken = false;
    outcome.num_new = outcome.num_drafts = outcome.num_masks = 0;
    outcome.ends = outcome.mask_late = outcome.starts_anew = false;
    outcome.mask_seconds = 0;
    outcome.num_computed = run.num_computed;
    outcome.num_tokens = run.num_tokens;
    outcome.logprobs.clear();
    outcome.prompt_logprobs.clear();
    if (outcome.dropped) continue;
    const auto first = job.plan.pages.begin() + rows.first_page;
    run.kv->page_table().insert(run.kv->page_table().end(), first, first + rows.num_pages);
    if (run.runs_alone) {
      alone_.push_back({static_cast<int32_t>(i), MakeSegment(rows, run)});
      continue;
    }
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

// The logits of a segment, from the front of those of the pass.
std::span<const float> StepExecutor::TakeLogits(const ForwardSegment& segment,
                                                std::span<const float>& logits) const {
  const int32_t asked = std::max(0, segment.end - std::max(segment.begin, segment.logits_begin));
  const auto vocab = static_cast<size_t>(backend_.vocab_size);
  const std::span<const float> mine = logits.first(static_cast<size_t>(asked) * vocab);
  logits = logits.subspan(mine.size());
  return mine;
}

// logits: of the segment.
void StepExecutor::Advance(const PlannedRows& rows, const ForwardSegment& segment, SequenceRun& run,
                           RowsOutcome& outcome, std::span<const float> logits,
                           FirstRow* first) {
  run.num_computed = segment.end;
  if (run.prompt_logprobs && !logits.empty()) ScorePrompt(segment, run, outcome, logits);
  if (Samples(rows, run)) {
    const auto vocab = static_cast<size_t>(backend_.vocab_size);
    if (run.masks != nullptr && !run.masks->ready()) {
      SitOut(run, outcome);
    } else {
      SampleAndVerify(run, outcome, SampledLogits(rows, logits, vocab), first);
    }
  }
  outcome.num_computed = run.num_computed;
  outcome.num_tokens = run.num_tokens;
  // The first row is right whatever became of the others.
  if (outcome.status.ok() && segment.snapshot.rows != nullptr &&
      std::max(run.num_computed, segment.begin + 1) >= rows.snapshot_end) {
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

// The newest token's row will run again, and so will those of the drafts.
void StepExecutor::SitOut(SequenceRun& run, RowsOutcome& outcome) {
  outcome.mask_late = run.masks->begun();  // else its grammar is
  run.num_computed = run.num_tokens - 1;
}

// One row a verified draft, and one for the token after the last accepted one. Drafts behind one
// that the grammar forbids are not looked at.
void StepExecutor::SampleAndVerify(SequenceRun& run, RowsOutcome& outcome,
                                   std::span<const float> logits, FirstRow* first) {
  const auto vocab = static_cast<size_t>(backend_.vocab_size);
  auto num_rows = static_cast<int32_t>(logits.size() / vocab);
  outcome.num_drafts = num_rows - 1;
  if (run.masks != nullptr) {
    if (const Status& status = run.masks->status(); !status.ok()) {
      return Fail(run, outcome, Annotate(status, "position ", run.num_tokens));
    }
    outcome.num_masks = run.masks->num_rows();
    outcome.mask_seconds = run.masks->seconds();
    num_rows = std::min(num_rows, run.masks->num_rows());
  }
  for (int32_t i = 0; i < num_rows; ++i) {
    const bool is_last = i + 1 == num_rows;
    const auto row = logits.subspan(static_cast<size_t>(i) * vocab, vocab);
    const uint32_t* const allowed = run.masks != nullptr ? run.masks->Row(i) : nullptr;
    const bool is_sampled = i == 0 && first != nullptr && first->sampled;
    auto sampled = is_sampled ? *std::move(first->sampled)
                              : samplers_[0].Sample(run.sampling, row, run.num_tokens, allowed);
    const bool is_masked = allowed != nullptr;
    if (!TakeSample(run, outcome, std::move(sampled), is_masked) || is_last || run.ended) break;
  }
  run.num_computed = run.num_tokens - 1;
  if (!run.ended) PrepareNext(run, outcome);
}

// Returns whether the token is the draft that stood there.
bool StepExecutor::TakeSample(SequenceRun& run, RowsOutcome& outcome,
                              StatusOr<SampledToken> sampled, bool is_masked) {
  if (!sampled.ok()) {
    Fail(run, outcome, Annotate(sampled.status(), "position ", run.num_tokens));
    return false;
  }
  const int32_t output_idx = run.sampling.num_output();
  int32_t& place = run.tokens[static_cast<size_t>(run.num_tokens)];
  const bool is_draft = place == sampled->id;
  place = sampled->id;
  ++run.num_tokens;
  run.sampling.Accept(sampled->id);
  outcome.tokens[outcome.num_new++] = sampled->id;
  if (sampled->logprobs) outcome.logprobs.push_back(*std::move(sampled->logprobs));
  const bool stops_count = output_idx >= run.sampling.params().min_tokens;
  const bool grammar_ends = is_masked && sampled->id == backend_.eos_id;
  outcome.ends = grammar_ends || (stops_count && run.Ends(sampled->id));
  run.ended = outcome.ends || output_idx + 1 == run.max_output;
  return is_draft;
}

// The drafts to verify next, and the masks for it.
void StepExecutor::PrepareNext(SequenceRun& run, const RowsOutcome& outcome) {
  run.num_drafts = 0;
  const int32_t left = run.num_prompt + run.max_output - run.num_tokens;
  if (backend_.drafter != nullptr && left > 1) {
    run.num_drafts = backend_.drafter->Draft(run, std::min(left - 1, kMaxDrafts));
    ++run.num_draftings;
  }
  if (run.masks == nullptr) return;
  const auto known = static_cast<size_t>(run.num_tokens);
  run.masks->Continue(std::span(outcome.tokens).first(static_cast<size_t>(outcome.num_new)),
                      std::span(run.tokens).subspan(known, static_cast<size_t>(run.num_drafts)));
  backend_.masks->Compute(run.masks);
}

void StepExecutor::Fail(SequenceRun& run, RowsOutcome& outcome, const Status& status) {
  run.ended = true;
  run.failure = outcome.status = status;
}

}  // namespace deepinfer
