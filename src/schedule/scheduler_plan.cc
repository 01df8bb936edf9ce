// schedule/scheduler_plan.cc: one plan: decode rows, what comes back, what starts, prefill chunks.
#include <algorithm>
#include <limits>
#include <tuple>

#include "base/check.h"
#include "schedule/chunk.h"
#include "schedule/scheduler_entry.h"

namespace deepinfer {

bool Scheduler::Plan(MonotonicTime now, int32_t num_in_flight, StepPlan& plan) {
  plan.Clear();
  plan.number = ++num_plans_;
  plan_ = &plan;
  now_ = now;
  num_scored_rows_ = 0;
  load_ = {};
  PlanPageSaves();
  PlanPreemptions();
  do {
    PlanDecodeRows();
    if (PlanResumes()) PlanDecodeRows();  // of those that came back
    PlanStarts(now);
    PlanPrefillRows();
  } while (plan.rows.empty() && num_in_flight == 0 && BreakDeadlock());
  ++stats_.num_plans;
  stats_.rows += plan.num_rows;
  stats_.replay_rows += plan.num_replay_rows;
  return !plan.rows.empty() || !plan.copies.empty();
}

// Copies of published pages go to the host tier behind the steps that wrote them.
void Scheduler::PlanPageSaves() {
  int32_t left = options_.max_page_saves;
  size_t done = 0;
  for (; done < pending_saves_.size() && left > 0; ++done) {
    const auto [page, key] = pending_saves_[done];
    if (pages_.Find(key) != page || host_.Find(key) >= 0) continue;  // gone, or there meanwhile
    const int32_t copy = host_.Insert(key, pages_.IsExact(page));
    if (copy < 0) break;  // everything is pinned
    AddCopy({.kind = CopyKind::kSavePage, .from = page, .to = copy}, nullptr);
    ++stats_.pages_saved;
    --left;
  }
  pending_saves_.erase(pending_saves_.begin(), pending_saves_.begin() + static_cast<int64_t>(done));
}

void Scheduler::PlanPreemptions() {
  for (size_t i = 0; i < running_.size();) {
    Entry& entry = *running_[i];
    if (std::exchange(entry.preempt_requested, false)) {
      if (Preempt(entry)) continue;
      if (entry.in_flight == 0) {
        PreemptByRecompute(entry);
        continue;
      }
    }
    ++i;
  }
}

// ---- decode

// Drafts displace neither a replay nor the least chunk of a prompt: else they could take every row
// of every step.
int32_t Scheduler::RowsKeptFromDrafts() const {
  const bool replays = options_.prefix_cache && options_.replay != ReplayMode::kExact;
  const int32_t kept = replays ? options_.shape.keep : 0;
  const bool may_start = !queue_.empty() && std::ssize(running_) < options_.max_num_seqs;
  const bool prefills =
      may_start || !preempted_.empty() ||
      std::any_of(running_.begin(), running_.end(), [](const Entry* e) { return e->prefilling(); });
  return prefills ? std::max(kept, ChunkLimits{}.min_tokens) : kept;
}

void Scheduler::PlanDecodeRows() {
  batch_.clear();
  for (Entry* entry : running_) {
    if (entry->prefilling() || entry->resting() || entry->planned_in == plan_->number) continue;
    batch_.push_back(entry);
  }
  // Who has rows in the plan keeps its pages, so who gives way last comes first.
  std::sort(batch_.begin(), batch_.end(), [](const Entry* a, const Entry* b) {
    return std::tuple(-a->spec.priority, a->order) < std::tuple(-b->spec.priority, b->order);
  });
  const int32_t kept_free = RowsKeptFromDrafts();
  auto left = static_cast<int32_t>(std::ssize(batch_));
  for (Entry* entry : batch_) {
    --left;
    if (entry->state != State::kRunning || RowsLeft() <= 0) continue;  // it gave way meanwhile
    const int32_t output_left =
        entry->spec.num_prompt + entry->spec.max_output - entry->tokens_min();
    if (output_left <= 0) continue;
    const int32_t spare = std::max(0, RowsLeft() - 1 - left - kept_free);
    const int32_t drafts = std::min({options_.num_drafts, output_left - 1, spare});
    const int32_t begin = entry->tokens_min() - 1;
    const int32_t reach = std::min(entry->tokens_max() + drafts, entry->max_rows());
    const auto old_pages = static_cast<int32_t>(entry->pages.size());
    if (!GrowPages(*entry, reach)) continue;
    PlannedRows rows = {.sequence = {entry->id},
                        .kind = RowsKind::kDecode,
                        .begin = begin,
                        .end = begin + 1 + drafts,
                        .samples = true};
    const int32_t page_end = PageFloor(begin) + kTokensPerPage;  // the first that it may pass
    if (page_end <= reach) AttachSnapshot(rows, page_end);
    stats_.decode_rows += rows.num_rows();
    queue_.Charge(entry->spec.tenant, rows.num_rows());  // a prompt was charged when it started
    AddRows(*entry, rows, old_pages);
  }
}

// ---- what comes back, what starts

bool Scheduler::PlanResumes() {
  bool any = false;
  for (size_t i = 0; i < preempted_.size() && RowsLeft() > 0;) {
    Entry& entry = *preempted_[i];
    if (entry.resting()) {
      ++i;
      continue;
    }
    if (entry.planned_in == plan_->number || !Resume(entry)) break;
    any = true;
  }
  return any;
}

void Scheduler::PlanStarts(MonotonicTime now) {
  const bool any_comes_back = !std::all_of(preempted_.begin(), preempted_.end(),
                                           [](const Entry* entry) { return entry->resting(); });
  if (any_comes_back || RowsLeft() <= 0) return;  // who was here before goes first
  queue_.Visit(now, [this](int64_t id) {
    if (std::ssize(running_) >= options_.max_num_seqs || states_.num_free() == 0) {
      return VisitAnswer::kStop;
    }
    Entry& entry = *entries_[static_cast<size_t>(id)];
    if (entry.in_flight > 0) return VisitAnswer::kNotReady;
    return Start(entry) ? VisitAnswer::kStart : VisitAnswer::kSkip;
  });
}

// ---- prefill

void Scheduler::PlanPrefillRows() {
  batch_.clear();
  for (Entry* entry : running_) {
    if (entry->prefilling() && entry->planned_in != plan_->number) batch_.push_back(entry);
  }
  // Higher priority first, which ages as in the queue; then who has waited longest for a chunk: a
  // short prompt does not stand behind all chunks of a long one.
  const auto level = [this](const Entry* entry) {
    return entry->spec.priority + (now_ - entry->rows_at) / WaitingQueueOptions{}.aging;
  };
  std::sort(batch_.begin(), batch_.end(), [&](const Entry* a, const Entry* b) {
    return std::tuple(-level(a), a->last_chunk, a->order) <
           std::tuple(-level(b), b->last_chunk, b->order);
  });
  bool first = true;
  for (Entry* entry : batch_) {
    int32_t count = ChunkOf(*entry, first);
    const auto old_pages = static_cast<int32_t>(entry->pages.size());
    // Others ahead took what was promised: go on with what is left.
    const int64_t room = int64_t{old_pages + pages_.num_available()} * kTokensPerPage;
    count = static_cast<int32_t>(std::min<int64_t>(count, room - entry->next_row));
    const ReplayPlan& replay = entry->replay;
    const bool replaying = entry->next_row < replay.num_cached;
    if (replaying && replay.separate_replay) {
      const int32_t whole = replay.num_cached - entry->next_row;
      if (RowsLeft() < whole) continue;  // runs in one pass or not at all
      count = whole;
    }
    if (count <= 0) continue;
    PlannedRows rows = {.sequence = {entry->id},
                        .kind = RowsKind::kPrefill,
                        .begin = entry->next_row,
                        .end = entry->next_row + count};
    rows.samples = rows.end == entry->prefill_end;
    CHECK(GrowPages(*entry, rows.end));
    const int32_t page_end = PageFloor(entry->spec.num_prompt - 1);
    // A hit without a snapshot leaves one behind, so that the next need not be replayed.
    const bool known = replay.uses_slot && page_end <= replay.num_cached;
    if (rows.begin < page_end && page_end <= rows.end && !known) {
      AttachSnapshot(rows, page_end);
    }
    entry->next_row = rows.end;
    entry->last_chunk = plan_->number;
    ++stats_.chunks;
    if (entry->spec.scores_prompt) num_scored_rows_ += count;
    if (replaying) {
      plan_->num_replay_rows += std::min(rows.end, replay.num_cached) - rows.begin;
    }
    AddRows(*entry, rows, old_pages);
    first = false;
  }
}

int32_t Scheduler::ChunkOf(const Entry& entry, bool first) const {
  ChunkLimits limits = {.step_tokens = options_.max_num_batched_tokens,
                        .page_tokens = kTokensPerPage};
  if (entry.spec.scores_prompt) {
    const int32_t scored_left = options_.max_scored_rows - num_scored_rows_;
    limits.step_tokens = std::min(limits.step_tokens, plan_->num_rows + scored_left);
  }
  // Time is short only while others decode: a prompt alone takes the whole step.
  double target_s = std::numeric_limits<double>::infinity();
  if (plan_->rows.size() > 0 && plan_->rows[0].kind == RowsKind::kDecode) {
    const int32_t context = entry.spec.num_prompt;
    const int tier = context < 16384 ? 0 : context < 65536 ? 1 : context < 262144 ? 2 : 3;
    target_s = options_.target_step_s[tier];
  }
  return ChunkTokens(cost_model_.coefficients(), limits, load_, target_s,
                     {.begin = entry.next_row, .end = entry.prefill_end, .is_first = first});
}

// ---- common to all rows

// Fills in what follows from the sequence, and takes the rows into the plan.
void Scheduler::AddRows(Entry& entry, PlannedRows rows, int32_t num_old_pages) {
  const ReplayPlan& replay = entry.replay;
  const bool replaying = rows.begin < replay.num_cached;
  rows.window_begin = replaying ? replay.replay_window_begin : replay.window_begin;
  rows.decoder_begin = replay.decoder_begin;
  rows.decoder_window_begin = replay.decoder_window_begin;
  rows.keep_entries_below = replay.num_cached;
  rows.keep_rings_below = replay.separate_replay ? replay.num_cached : 0;
  rows.first_page = static_cast<int32_t>(plan_->pages.size());
  rows.num_pages = static_cast<int32_t>(entry.pages.size()) - num_old_pages;
  plan_->pages.insert(plan_->pages.end(), entry.pages.begin() + num_old_pages, entry.pages.end());
  plan_->num_rows += rows.num_rows();
  load_.Add(rows.num_rows(), rows.begin);
  entry.planned_in = plan_->number;
  entry.rows_at = now_;
  entry.has_started = true;
  ++entry.in_flight;
  entry.in_flight_min += entry.GivesMin(rows);
  entry.in_flight_max += entry.GivesMax(rows);
  plan_->rows.push_back(rows);
}

void Scheduler::AttachSnapshot(PlannedRows& rows, int32_t end) {
  if (!options_.prefix_cache || snapshots_.num_slots() == 0) return;
  rows.snapshot_slot = snapshots_.Acquire();
  rows.snapshot_end = end;
  if (rows.snapshot_slot >= 0) rows.snapshot_generation = snapshots_.generation(rows.snapshot_slot);
}

// Besides those that rest.
bool Scheduler::AnyWouldRun() const {
  const auto would = [](const Entry* entry) { return !entry->resting(); };
  return !queue_.empty() || std::any_of(running_.begin(), running_.end(), would) ||
         std::any_of(preempted_.begin(), preempted_.end(), would);
}

// Nothing can run although nothing is in flight: one that rests gives way, else the newest.
bool Scheduler::BreakDeadlock() {
  if (running_.empty() || !AnyWouldRun()) return false;
  for (size_t i = running_.size(); i-- > 0;) {
    if (running_[i]->resting() && Preempt(*running_[i])) return true;
  }
  Entry* newest = nullptr;
  for (Entry* entry : running_) {
    if (entry->resting()) continue;
    const bool later = newest == nullptr || std::tuple(-entry->spec.priority, entry->order) >
                                                std::tuple(-newest->spec.priority, newest->order);
    if (later) newest = entry;
  }
  if (newest == nullptr) return false;
  CHECK_GT(running_.size() + preempted_.size(), 1u);  // alone, a sequence always fits
  if (!Preempt(*newest)) PreemptByRecompute(*newest);
  return true;
}

}  // namespace deepinfer
