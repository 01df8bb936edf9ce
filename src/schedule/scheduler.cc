// schedule/scheduler.cc: how sequences come, what results change, how they go.
#include "schedule/scheduler.h"

#include <algorithm>

#include "base/check.h"
#include "schedule/scheduler_entry.h"

namespace deepinfer {

Status CheckSchedulerOptions(const SchedulerOptions& options) {
  constexpr int32_t kMinModelLen = 2;
  if (options.max_model_len < kMinModelLen) {
    return InvalidArgument("max_model_len: found ", options.max_model_len, ", expected at least ",
                           kMinModelLen, " (one prompt token and one output token)");
  }
  if (options.max_num_seqs < 1) {
    return InvalidArgument("max_num_seqs: found ", options.max_num_seqs, ", expected at least 1");
  }
  if (options.max_num_batched_tokens < options.max_num_seqs) {
    return InvalidArgument("max_num_batched_tokens: found ", options.max_num_batched_tokens,
                           ", expected at least max_num_seqs, ", options.max_num_seqs);
  }
  if (options.max_waiting < 1 || options.max_waiting > kMaxWaiting) {
    return InvalidArgument("max_waiting: found ", options.max_waiting, ", expected 1..",
                           kMaxWaiting);
  }
  const int32_t drafts = options.shape.verify_width - 1;
  if (options.num_drafts < 0 || options.num_drafts > drafts) {
    return InvalidArgument("num_drafts: found ", options.num_drafts, ", the model drafts 0..",
                           drafts);
  }
  if (options.replay != ReplayMode::kExact) return CheckReplayShape(options.shape);
  return OkStatus();
}

Scheduler::Scheduler(const SchedulerOptions& options, const CacheSizes& sizes)
    : options_(options),
      pages_(sizes.num_pages),
      host_(sizes.num_host_pages),
      snapshots_(sizes.num_slots),
      states_(sizes.num_states),
      saves_(sizes.num_saves),
      queue_(options.max_waiting) {
  CHECK(CheckSchedulerOptions(options).ok());
  CHECK_GE(sizes.num_states, options.max_num_seqs);
  const auto num_seqs = static_cast<size_t>(options.max_num_seqs);
  running_.reserve(num_seqs);
  preempted_.reserve(num_seqs);
  batch_.reserve(num_seqs);
  scratch_pages_.reserve(static_cast<size_t>(sizes.num_pages));
  pending_saves_.reserve(static_cast<size_t>(sizes.num_host_pages));
}

Scheduler::~Scheduler() = default;

Scheduler::Entry& Scheduler::At(SequenceId id) {
  CHECK_LT(static_cast<size_t>(id.v), entries_.size());
  return *entries_[static_cast<size_t>(id.v)];
}

const Scheduler::Entry& Scheduler::At(SequenceId id) const {
  CHECK_LT(static_cast<size_t>(id.v), entries_.size());
  return *entries_[static_cast<size_t>(id.v)];
}

// ---- coming

StatusOr<SequenceId> Scheduler::Add(const SequenceSpec& spec) {
  const int32_t max_rows = spec.num_prompt + std::max(0, spec.max_output - 1);
  if (PagesFor(max_rows) > pages_.num_pages()) {
    return ResourceExhausted("request: prompt of ", spec.num_prompt, " and up to ", spec.max_output,
                             " output tokens need ", PagesFor(max_rows),
                             " KV pages, the cache has ", pages_.num_pages(),
                             "; lower max_tokens or raise kv_cache_bytes");
  }
  if (queue_room() == 0) {
    return ResourceExhausted("waiting queue holds ", queue_.size() + num_blocked_,
                             " sequences, its limit is ", queue_.capacity(),
                             "; retry later or raise max_waiting");
  }
  if (free_entries_.empty()) {
    free_entries_.push_back(static_cast<int32_t>(entries_.size()));
    entries_.push_back(std::make_unique<Entry>());
    entries_.back()->id = free_entries_.back();
    free_entries_.reserve(entries_.size());
  }
  Entry& entry = *entries_[static_cast<size_t>(free_entries_.back())];
  const bool blocked = spec.after.v >= 0 && Exists(spec.after) && !At(spec.after).prompt_done;
  if (blocked) {
    ++num_blocked_;
  } else {
    DI_RETURN_IF_ERROR(queue_.Push({.id = entry.id,
                                    .tenant = spec.tenant,
                                    .priority = spec.priority,
                                    .arrival = spec.arrival,
                                    .deadline = spec.start_deadline,
                                    .cost = spec.num_prompt}));
  }
  free_entries_.pop_back();
  entry.spec = spec;
  entry.state = blocked ? State::kBlocked : State::kWaiting;
  entry.prefill_end = spec.num_prompt;
  entry.num_tokens = spec.num_prompt;
  return SequenceId{entry.id};
}

bool Scheduler::Exists(SequenceId sequence) const {
  return sequence.v >= 0 && sequence.v < std::ssize(entries_) && At(sequence).state != State::kFree;
}

int32_t Scheduler::num_cached(SequenceId sequence) const { return At(sequence).replay.num_cached; }

bool Scheduler::HasWork() const {
  return !queue_.empty() || !running_.empty() || !preempted_.empty();
}

void Scheduler::TakeExpired(MonotonicTime now, std::vector<SequenceId>& expired) {
  queue_.TakeExpired(now, [&](int64_t id) { expired.push_back({static_cast<int32_t>(id)}); });
  for (const std::vector<Entry*>* const started : {&running_, &preempted_}) {
    for (const Entry* entry : *started) {
      if (entry->deadline() <= now) expired.push_back({entry->id});
    }
  }
}

void Scheduler::Release(SequenceId sequence) { At(sequence).spec.held = false; }

void Scheduler::RequestPreemption(SequenceId sequence) { At(sequence).preempt_requested = true; }

void Scheduler::ClearCache() {
  pages_.Clear();
  pending_saves_.clear();
  host_.Clear();
  snapshots_.Clear();
}

// ---- results

void Scheduler::CommitCopies(const StepPlan& plan) {
  for (const PlannedCopy& copy : plan.copies) {
    if (copy.sequence.v < 0) continue;
    Entry& entry = At(copy.sequence);
    CHECK_GT(entry.copies_in_flight, 0);
    --entry.copies_in_flight;
    if (entry.state == State::kEnded && !entry.is_named()) Free(entry);
  }
}

void Scheduler::Commit(const PlannedRows& rows, const RowsResult& result) {
  Entry& entry = At(rows.sequence);
  CHECK_GT(entry.in_flight, 0);
  --entry.in_flight;
  entry.in_flight_min -= entry.GivesMin(rows);
  entry.in_flight_max -= entry.GivesMax(rows);
  const bool counts = result.ok && entry.state != State::kEnded;
  if (counts) {
    entry.num_computed = result.num_computed;
    entry.num_tokens = result.num_tokens;
    // What was loaded since is found only once a step has shown that the loads went well.
    if (entry.in_flight_before == 0) PublishPages(entry);
  }
  entry.in_flight_before = std::max(0, entry.in_flight_before - 1);
  if (rows.snapshot_slot >= 0) {
    if (counts && result.snapshot_taken) {
      TakeSnapshot(entry, rows);
    } else {
      snapshots_.Drop(rows.snapshot_slot);
    }
  }
  if (counts && !entry.prompt_done && entry.num_computed >= entry.spec.num_prompt) {
    entry.prompt_done = true;
    Unblock(rows.sequence);
  }
  if (entry.state == State::kEnded && !entry.is_named()) Free(entry);
}

void Scheduler::TakeSnapshot(Entry& entry, const PlannedRows& rows) {
  const int32_t end = rows.snapshot_end;
  const auto page = static_cast<size_t>(end / kTokensPerPage - 1);
  const PageKey& key = entry.spec.keys->keys()[page];
  snapshots_.Publish(rows.snapshot_slot,
                     {.key = key,
                      .end = end,
                      .first_valid = std::max(entry.replay.window_begin, end - RingRows()),
                      .exact = entry.replay.exact});
  const bool found = snapshots_.Find(key) == rows.snapshot_slot;  // else there was one already
  stats_.snapshots_taken += found;
  if (end <= PageFloor(entry.spec.num_prompt - 1)) return;  // of the prompt: stays
  // The newest of the output replaces the one before, unless that is the same: two plans in a row
  // may have provided for one page end.
  const int32_t former = entry.output_slot;
  if (former >= 0 && snapshots_.Find(entry.output_key) == former) {
    if (entry.output_key == key) return;
    snapshots_.Drop(former);
  }
  entry.output_key = key;
  entry.output_slot = found ? rows.snapshot_slot : -1;
}

// Further choices of the request whose prompt is now in the cache, or given up.
void Scheduler::Unblock(SequenceId first) {
  for (const auto& other : entries_) {
    if (other->state != State::kBlocked || !(other->spec.after == first)) continue;
    other->state = State::kWaiting;
    --num_blocked_;
    if (At(first).has_started) other->spec.start_deadline = kNoDeadline;  // so has the request
    queue_.Requeue({.id = other->id,
                    .tenant = other->spec.tenant,
                    .priority = other->spec.priority,
                    .arrival = other->spec.arrival,
                    .deadline = other->spec.start_deadline,
                    .cost = other->spec.num_prompt});
  }
}

void Scheduler::Forget(const PlannedCopy& copy) {
  if (copy.kind == CopyKind::kLoadPage && host_.HasKey(copy.from)) host_.Forget(copy.from);
  if (copy.kind == CopyKind::kLoadSnapshot && snapshots_.IsReady(copy.from)) {
    snapshots_.Drop(copy.from);
  }
}

void Scheduler::Distrust(SequenceId sequence) {
  const Entry& entry = At(sequence);
  const std::span<const PageKey> keys = entry.spec.keys->keys();
  for (auto i = static_cast<size_t>(entry.replay.num_cached / kTokensPerPage); i < keys.size();
       ++i) {
    const int32_t page = pages_.Find(keys[i]);
    if (page >= 0) pages_.Unpublish(page);
    const int32_t copy = host_.Find(keys[i]);
    if (copy >= 0) host_.Forget(copy);
    const int32_t slot = snapshots_.Find(keys[i]);
    if (slot >= 0) snapshots_.Drop(slot);
  }
}

void Scheduler::Lose(SequenceId sequence) {
  Entry& entry = At(sequence);
  if (entry.state != State::kRunning && entry.state != State::kPreempted) return;
  if (!entry.prompt_done) stats_.cached_tokens -= entry.replay.num_cached;
  entry.replay = {};
  WaitAnew(entry);
  ++stats_.lost;
}

void Scheduler::Learn(const StepLoad& load, double seconds) {
  if (load.rows > 0 && seconds > 0) cost_model_.Add(load, seconds);
}

// ---- going

void Scheduler::Finish(SequenceId sequence) {
  Entry& entry = At(sequence);
  if (entry.state == State::kFree || entry.state == State::kEnded) return;
  if (entry.state == State::kWaiting) queue_.Remove(entry.id);
  num_blocked_ -= entry.state == State::kBlocked;
  ReleaseMemory(entry);
  std::erase(running_, &entry);
  std::erase(preempted_, &entry);
  entry.state = State::kEnded;
  if (!entry.prompt_done) Unblock(sequence);
  if (!entry.is_named()) Free(entry);
}

void Scheduler::Free(Entry& entry) {
  CHECK(entry.pages.empty() && entry.saved_pages.empty() && entry.state_slot < 0 && entry.save < 0);
  entry = Entry{.id = entry.id};  // and its memory
  free_entries_.push_back(entry.id);
}

// ---- checks

SchedulerStats Scheduler::stats() const {
  SchedulerStats stats = stats_;
  stats.num_waiting = static_cast<int32_t>(
      std::count_if(entries_.begin(), entries_.end(), [](const std::unique_ptr<Entry>& entry) {
        return entry->state == State::kWaiting || entry->state == State::kBlocked;
      }));
  stats.num_running = static_cast<int32_t>(std::ssize(running_));
  stats.num_preempted = static_cast<int32_t>(std::ssize(preempted_));
  return stats;
}

void Scheduler::CheckInvariants() const {
  pages_.CheckInvariants();
  host_.CheckInvariants();
  snapshots_.CheckInvariants();
  std::vector<int32_t> holders(static_cast<size_t>(pages_.num_pages()), 0);
  int32_t states = 0, saves = 0, in_flight = 0, blocked = 0;
  for (const auto& entry : entries_) {
    CHECK_EQ(entry->state == State::kRunning, entry->state_slot >= 0);
    CHECK_GE(entry->in_flight, 0);
    CHECK_GE(entry->in_flight_min, 0);
    CHECK_LE(entry->in_flight_min, entry->in_flight_max);
    if (entry->state != State::kRunning) CHECK(entry->pages.empty());
    if (entry->state != State::kPreempted) CHECK(entry->saved_pages.empty());
    states += entry->state_slot >= 0;
    saves += entry->save >= 0;
    blocked += entry->state == State::kBlocked;
    in_flight += entry->in_flight;
    for (const int32_t page : entry->pages) ++holders[static_cast<size_t>(page)];
  }
  const auto num_held =
      std::count_if(holders.begin(), holders.end(), [](int32_t n) { return n > 0; });
  CHECK_EQ(num_held, int64_t{pages_.num_held()});
  CHECK_EQ(states, states_.size() - states_.num_free());
  CHECK_EQ(saves, saves_.size() - saves_.num_free());
  CHECK_EQ(blocked, num_blocked_);
  if (in_flight == 0) CHECK_EQ(snapshots_.num_writing(), 0);
  if (running_.empty() && preempted_.empty()) {
    CHECK_EQ(pages_.num_held(), 0);
    CHECK_EQ(host_.num_pinned(), 0);
  }
}

}  // namespace deepinfer
