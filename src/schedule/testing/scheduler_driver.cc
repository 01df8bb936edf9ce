#include "schedule/testing/scheduler_driver.h"

#include <algorithm>

#include "base/check.h"

namespace deepinfer::testing {
namespace {

constexpr uint64_t kNothing = 0;  // what a new state holds

uint64_t NextHash(uint64_t hash, int32_t token) {
  hash = (hash ^ static_cast<uint64_t>(token + 1)) * 0x9e3779b97f4a7c15;
  return (hash ^ (hash >> 29)) | 1;
}

uint64_t HashBefore(const DriverSequence& sequence, int32_t position) {
  return position == 0 ? kNothing : sequence.hashes[static_cast<size_t>(position) - 1];
}

void Append(DriverSequence& sequence, int32_t token) {
  sequence.hashes.push_back(NextHash(HashBefore(sequence, sequence.num_tokens()), token));
  sequence.tokens.push_back(token);
  sequence.keys.Append(token);
}

}  // namespace

std::vector<int32_t> MakePrompt(int32_t seed, int32_t count) {
  std::vector<int32_t> prompt(static_cast<size_t>(count));
  for (int32_t i = 0; i < count; ++i) {  // unsigned: may wrap
    prompt[static_cast<size_t>(i)] =
        static_cast<int32_t>(static_cast<uint32_t>(seed) * 100'000u + static_cast<uint32_t>(i));
  }
  return prompt;
}

DriverSequence::DriverSequence(const DriverRequest& r, const PageKey& root)
    : request(r), keys(root, static_cast<int32_t>(r.prompt.size()) + r.max_output) {
  tokens.reserve(r.prompt.size() + static_cast<size_t>(r.max_output));
  hashes.reserve(tokens.capacity());
  pages.reserve(tokens.capacity() / kTokensPerPage + 1);
  for (const int32_t token : r.prompt) Append(*this, token);
}

SchedulerDriver::SchedulerDriver(const SchedulerOptions& options, const CacheSizes& sizes)
    : options_(options),
      sizes_(sizes),
      scheduler_(options, sizes),
      pages_(static_cast<size_t>(sizes.num_pages), PageContent(kTokensPerPage)),
      host_pages_(static_cast<size_t>(sizes.num_host_pages), PageContent(kTokensPerPage)),
      states_(static_cast<size_t>(sizes.num_states)),
      saves_(static_cast<size_t>(sizes.num_saves)),
      slots_(static_cast<size_t>(sizes.num_slots)) {}

StatusOr<int> SchedulerDriver::TryAdd(const DriverRequest& request) {
  auto sequence = std::make_unique<DriverSequence>(request, root_);
  SequenceSpec spec = {.tenant = request.tenant,
                       .priority = request.priority,
                       .arrival = now_,
                       .num_prompt = sequence->num_prompt(),
                       .max_output = request.max_output,
                       .keys = &sequence->keys,
                       .whole_prompt = request.whole_prompt,
                       .scores_prompt = request.scores_prompt,
                       .held = request.held};
  if (request.deadline_ms >= 0) {
    spec.start_deadline = now_ + std::chrono::milliseconds(request.deadline_ms);
  }
  if (request.after >= 0 && At(request.after).alive()) spec.after = At(request.after).id;
  DI_ASSIGN_OR_RETURN(sequence->id, scheduler_.Add(spec));
  const auto id = static_cast<size_t>(sequence->id.v);
  if (handles_.size() <= id) handles_.resize(id + 1, -1);
  handles_[id] = num_sequences();
  sequences_.push_back(std::move(sequence));
  ended_.reserve(sequences_.size());
  return num_sequences() - 1;
}

int SchedulerDriver::Add(const DriverRequest& request) {
  const StatusOr<int> handle = TryAdd(request);
  CHECK(handle.ok());
  return *handle;
}

void SchedulerDriver::End(int handle, DriverEnd how) {
  DriverSequence& sequence = At(handle);
  CHECK(sequence.alive());
  sequence.num_cached = scheduler_.num_cached(sequence.id);
  sequence.end = how;
  ended_.push_back(handle);
  scheduler_.Finish(sequence.id);
}

void SchedulerDriver::Cancel(int handle) {
  if (At(handle).alive()) End(handle, DriverEnd::kCancelled);
}

void SchedulerDriver::Preempt(int handle) {
  if (At(handle).alive()) scheduler_.RequestPreemption(At(handle).id);
}

void SchedulerDriver::Release(int handle) {
  At(handle).request.held = false;
  if (At(handle).alive()) scheduler_.Release(At(handle).id);
}

// ---- steps

bool SchedulerDriver::Plan() {
  CHECK_LT(num_in_flight_, 2);
  expired_.clear();
  scheduler_.TakeExpired(now_, expired_);
  for (const SequenceId id : expired_) End(HandleOf(id), DriverEnd::kExpired);
  if (!scheduler_.Plan(now_, num_in_flight_, plans_[newest_ ^ 1])) return false;
  newest_ ^= 1;
  ++num_in_flight_;
  return true;
}

bool SchedulerDriver::Step() {
  if (!Plan()) return false;
  Execute();
  Commit();
  return true;
}

bool SchedulerDriver::StepAhead() {
  while (num_in_flight_ < 2 && Plan()) {
  }
  if (num_in_flight_ == 0) return false;
  Execute();
  Commit();
  return true;
}

void SchedulerDriver::Run() {
  while (Step()) {
  }
  CHECK(!scheduler_.HasWork());
}

void SchedulerDriver::Execute() {
  CHECK_GT(num_in_flight_, 0);
  const StepPlan& plan = plans_[num_in_flight_ == 2 ? newest_ ^ 1 : newest_];
  results_.clear();
  lost_copies_.clear();
  for (const PlannedCopy& copy : plan.copies) {
    if (LosesLoad(copy)) {
      lost_copies_.push_back(copy);
    } else {
      RunCopy(plan, copy);
    }
  }
  int32_t num_rows = 0;
  for (const PlannedRows& rows : plan.rows) {
    num_rows += rows.num_rows();
    results_.push_back(RunRows(plan, rows));
  }
  CHECK_EQ(num_rows, plan.num_rows);
  CHECK_LE(num_rows, options_.max_num_batched_tokens);
}

void SchedulerDriver::Commit() {
  const StepPlan& plan = plans_[num_in_flight_ == 2 ? newest_ ^ 1 : newest_];
  --num_in_flight_;
  CHECK_EQ(results_.size(), plan.rows.size());
  for (const PlannedCopy& copy : lost_copies_) scheduler_.Forget(copy);
  scheduler_.CommitCopies(plan);
  for (size_t i = 0; i < results_.size(); ++i) {
    const int handle = HandleOf(plan.rows[i].sequence);
    DriverSequence& sequence = At(handle);
    const bool failed = sequence.alive() && !sequence.full && !sequence.lost && !results_[i].ok;
    scheduler_.Commit(plan.rows[i], results_[i]);
    if (sequence.alive() && (sequence.full || failed)) {
      End(handle, failed ? DriverEnd::kFailed : DriverEnd::kDone);
    }
  }
  for (const PlannedCopy& copy : lost_copies_) {
    if (Of(copy.sequence).alive()) scheduler_.Lose(copy.sequence);
  }
}

const PlannedRows* SchedulerDriver::RowsOf(int handle) const {
  for (const PlannedRows& rows : plan().rows) {
    if (HandleOf(rows.sequence) == handle) return &rows;
  }
  return nullptr;
}

// ---- shadows

bool SchedulerDriver::LosesLoad(const PlannedCopy& copy) {
  if (copy.kind != CopyKind::kLoadPage && copy.kind != CopyKind::kLoadSnapshot) return false;
  DriverSequence& sequence = Of(copy.sequence);
  if (!std::exchange(sequence.loses_load, false)) return false;
  sequence.lost = true;
  return true;
}

void SchedulerDriver::RunCopy(const StepPlan& plan, const PlannedCopy& copy) {
  const auto from = static_cast<size_t>(copy.from), to = static_cast<size_t>(copy.to);
  const auto begin = [&](uint64_t state_hash) {
    DriverSequence& sequence = Of(copy.sequence);
    const auto first = plan.pages.begin() + copy.first_page;
    sequence.pages.assign(first, first + copy.num_pages);
    sequence.state = copy.to;
    states_[to] = state_hash;
  };
  switch (copy.kind) {
    case CopyKind::kSavePage:
      host_pages_[to] = pages_[from];
      break;
    case CopyKind::kLoadPage:
      pages_[to] = host_pages_[from];
      break;
    case CopyKind::kSaveState:
      CHECK_EQ(Of(copy.sequence).state, copy.from);
      saves_[to] = states_[from];
      break;
    case CopyKind::kNewState:
      begin(kNothing);
      Of(copy.sequence).state_hash = kNothing;
      Of(copy.sequence).lost = false;
      break;
    case CopyKind::kLoadState:
      begin(saves_[from]);
      break;
    case CopyKind::kLoadSnapshot: {
      DriverSequence& sequence = Of(copy.sequence);
      CHECK_EQ(sequence.state, copy.to);
      sequence.state_hash = HashBefore(sequence, copy.end);
      CHECK_EQ(slots_[from], sequence.state_hash);  // a snapshot of these tokens, at this end
      states_[to] = slots_[from];
      break;
    }
  }
}

RowsResult SchedulerDriver::RunRows(const StepPlan& plan, const PlannedRows& rows) {
  DriverSequence& sequence = Of(rows.sequence);
  const auto result = [&](bool ok, bool snapshot_taken) {
    return RowsResult{.ok = ok,
                      .snapshot_taken = snapshot_taken,
                      .num_computed = sequence.num_computed,
                      .num_tokens = sequence.num_tokens()};
  };
  if (!sequence.alive() || sequence.full || sequence.lost) return result(false, false);
  // It fails when all is done, so that its numbers look good.
  const bool fails = sequence.fail_in >= 0 && sequence.fail_in-- == 0;
  const auto first = plan.pages.begin() + rows.first_page;
  sequence.pages.insert(sequence.pages.end(), first, first + rows.num_pages);
  int32_t begin = rows.begin, end = rows.end;
  if (rows.kind == RowsKind::kDecode) {
    begin = sequence.num_tokens() - 1;
    end = begin + 1 + std::min(sequence.num_drafts, rows.num_rows() - 1);
  }
  ReadAndWrite(rows, sequence, begin, end);
  sequence.num_computed = end;
  if (rows.samples && sequence.request.max_output > 0) Sample(rows, sequence, end - begin);
  if (sequence.request.max_output == 0 && end == sequence.num_prompt()) sequence.full = true;
  sequence.state_hash = HashBefore(sequence, sequence.num_computed);
  states_[static_cast<size_t>(sequence.state)] = sequence.state_hash;
  // The first row is right whatever became of the others.
  const bool passed = rows.snapshot_slot >= 0 && begin <= rows.snapshot_end &&
                      rows.snapshot_end <= std::max(sequence.num_computed, begin + 1);
  if (passed) {
    slots_[static_cast<size_t>(rows.snapshot_slot)] = HashBefore(sequence, rows.snapshot_end);
  }
  if (fails) sequence.full = false;
  return result(!fails, passed);
}

// Rows [begin, end): the pages before them hold this sequence's tokens, their own are written
// unless a hit keeps them.
void SchedulerDriver::ReadAndWrite(const PlannedRows& rows, DriverSequence& sequence, int32_t begin,
                                   int32_t end) {
  CHECK_LE(static_cast<size_t>(end), sequence.pages.size() * kTokensPerPage);  // reserved
  CHECK_EQ(states_[static_cast<size_t>(sequence.state)], sequence.state_hash);
  for (int32_t p = 0; p < end; ++p) {
    PageContent& page = pages_[static_cast<size_t>(sequence.pages[static_cast<size_t>(p) / 64])];
    uint64_t& entry = page[static_cast<size_t>(p) % 64];
    const auto at = static_cast<size_t>(p);
    if (p < begin || p < rows.keep_entries_below) {
      CHECK_EQ(entry, sequence.hashes[at]);
    } else {
      entry = at < sequence.hashes.size() ? sequence.hashes[at] : kNothing;  // a draft
    }
  }
}

// The newest token, and as many drafts as the test lets be right. Drafts that are right are written
// as what they are.
void SchedulerDriver::Sample(const PlannedRows& rows, DriverSequence& sequence, int32_t num_rows) {
  if (sequence.request.held || sequence.sits_out > 0) {  // the same rows run again
    sequence.sits_out -= !sequence.request.held;
    sequence.num_computed = sequence.num_tokens() - 1;
    return;
  }
  const int32_t left = sequence.request.max_output - sequence.num_output();
  const bool decodes = rows.kind == RowsKind::kDecode;
  const int32_t accepted = decodes ? std::min(sequence.request.accepts, num_rows - 1) : 0;
  const int32_t num_new = std::min(left, accepted + 1);
  for (int32_t i = 0; i < num_new; ++i) {
    const int32_t p = sequence.num_tokens();
    Append(sequence, -1 - HandleOf(rows.sequence) * 10'000 - sequence.num_output());
    if (!decodes || i + 1 == num_new) continue;  // the last one's KV comes in the next step
    pages_[static_cast<size_t>(sequence.pages[static_cast<size_t>(p) / 64])]
          [static_cast<size_t>(p) % 64] = sequence.hashes.back();
  }
  sequence.num_computed = sequence.num_tokens() - 1;
  sequence.full = sequence.num_output() == sequence.request.max_output;
  sequence.num_drafts = std::min(options_.num_drafts, left - num_new - 1);
}

void SchedulerDriver::CheckNothingHeld() const {
  scheduler_.CheckInvariants();
  CHECK_EQ(num_in_flight_, 0);
  CHECK(!scheduler_.HasWork());
  CHECK_EQ(scheduler_.pages().num_held(), 0);
  CHECK_EQ(scheduler_.host().num_pinned(), 0);
  CHECK_EQ(scheduler_.snapshots().num_writing(), 0);
  CHECK_EQ(scheduler_.snapshots().num_pinned(), 0);
  CHECK_EQ(scheduler_.num_free_states(), sizes_.num_states);
  CHECK_EQ(scheduler_.num_free_saves(), sizes_.num_saves);
  for (const auto& sequence : sequences_) {
    CHECK(!sequence->alive() && !scheduler_.Exists(sequence->id));
  }
}

}  // namespace deepinfer::testing
