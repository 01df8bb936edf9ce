// schedule/scheduler_memory.cc: who has which pages, states and slots; how a sequence starts, is
// preempted and resumes.
#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "schedule/scheduler_entry.h"

namespace deepinfer {
namespace {

// How far back from the end of a hit a snapshot is looked for, pages.
constexpr int32_t kMaxPagesBack = 256;

}  // namespace

struct Scheduler::Hit {
  ReplayPlan plan;
  int32_t slot = -1;
};

// ---- what the cache has of a prompt

Scheduler::Hit Scheduler::FindHit(const Entry& entry) const {
  const int32_t num_prompt = entry.spec.num_prompt;
  const auto plan = [&](const PrefixHit& hit) {
    return PlanReplay(entry.spec.whole_prompt ? ReplayMode::kExact : options_.replay,
                      options_.shape, num_prompt, hit);
  };
  Hit best{.plan = plan({})};
  if (!options_.prefix_cache || entry.spec.whole_prompt || entry.recompute) return best;

  const std::span<const PageKey> keys = entry.spec.keys->keys();
  const int32_t limit = (num_prompt - 1) / kTokensPerPage;
  int32_t num_pages = 0, num_exact = 0;
  for (; num_pages < limit; ++num_pages) {
    const PageKey& key = keys[static_cast<size_t>(num_pages)];
    const int32_t page = pages_.Find(key);
    const int32_t host_page = page < 0 ? host_.Find(key) : -1;
    if (page < 0 && host_page < 0) break;
    const bool exact = page >= 0 ? pages_.IsExact(page) : host_.IsExact(host_page);
    if (exact && num_exact == num_pages) ++num_exact;
    if (!exact && options_.replay == ReplayMode::kExact) break;
  }
  // The end of the hit, replayed if need be, or the nearest snapshot before it: the fewer rows, the
  // better; then the truer.
  const auto consider = [&](int32_t pages, int32_t slot) {
    PrefixHit hit = {.num_tokens = pages * kTokensPerPage, .pages_exact = num_exact >= pages};
    if (slot >= 0) {
      hit.has_slot = true;
      hit.slot_first_valid = snapshots_.At(slot).first_valid;
      hit.slot_exact = snapshots_.At(slot).exact;
    }
    const ReplayPlan found = plan(hit);
    // Such a replay runs in one step, whatever else does.
    if (found.separate_replay && found.num_cached - found.begin > MaxReplayRows()) return;
    const auto rank = [](const ReplayPlan& p) {
      return std::tuple(p.begin, p.uses_slot, p.num_cached);
    };
    if (found.num_cached > 0 && rank(found) > rank(best.plan)) best = {found, slot};
  };
  if (num_pages == 0) return best;
  consider(num_pages, -1);
  for (int32_t p = num_pages; p > std::max(0, num_pages - kMaxPagesBack); --p) {
    const int32_t slot = snapshots_.Find(keys[static_cast<size_t>(p - 1)]);
    if (slot < 0) continue;
    consider(p, slot);
    break;
  }
  return best;
}

// Pages that running sequences will still take for what they have to compute.
int32_t Scheduler::PromisedPages() const {
  int32_t promised = 0;
  for (const Entry* entry : running_) {
    const auto held = static_cast<int32_t>(entry->pages.size());
    promised += entry->prefilling() ? std::max(0, PagesFor(entry->prefill_end) - held) : 1;
  }
  return promised;
}

// ---- start

bool Scheduler::Start(Entry& entry) {
  CHECK_EQ(entry.in_flight, 0);
  const Hit hit = FindHit(entry);
  const std::span<const PageKey> keys = entry.spec.keys->keys();
  const int32_t num_hit = hit.plan.num_cached / kTokensPerPage;
  // Holds what the device has before anything is evicted to make room. In the scratch: what does
  // not start takes no memory.
  scratch_pages_.clear();
  for (int32_t i = 0; i < num_hit; ++i) {
    const int32_t page = pages_.Find(keys[static_cast<size_t>(i)]);
    if (page >= 0) pages_.AddReference(page);
    scratch_pages_.push_back(page);
  }
  const auto num_held =
      std::count_if(scratch_pages_.begin(), scratch_pages_.end(), [](int32_t p) { return p >= 0; });
  const int64_t needed = PagesFor(entry.prefill_end) - num_held;
  if (needed > pages_.num_available() - PromisedPages()) {
    for (; !scratch_pages_.empty(); scratch_pages_.pop_back()) {
      if (scratch_pages_.back() >= 0) pages_.Release(scratch_pages_.back());
    }
    return false;
  }
  entry.pages = scratch_pages_;
  scratch_pages_.clear();
  CHECK(pages_.Acquire(num_hit - static_cast<int32_t>(num_held), scratch_pages_));
  for (int32_t& page : entry.pages) {
    if (page >= 0) continue;
    page = scratch_pages_.back();
    scratch_pages_.pop_back();
  }
  BeginRunning(entry, hit.plan);
  AddCopy({.kind = CopyKind::kNewState, .sequence = {entry.id}, .to = entry.state_slot}, &entry);
  if (hit.plan.uses_slot) {
    AddCopy({.kind = CopyKind::kLoadSnapshot,
             .sequence = {entry.id},
             .from = hit.slot,
             .to = entry.state_slot,
             .end = hit.plan.num_cached,
             .generation = snapshots_.generation(hit.slot)},
            nullptr);
    snapshots_.Pin(hit.slot);  // counts as use
    snapshots_.Unpin(hit.slot);
  }
  entry.num_published = num_hit;
  for (int32_t i = 0; i < num_hit; ++i) {
    const PageKey& key = keys[static_cast<size_t>(i)];
    if (pages_.Find(key) == entry.pages[static_cast<size_t>(i)]) continue;
    entry.num_published = std::min(entry.num_published, i);
    LoadHostPage(entry, i, host_.Find(key));
  }
  return true;
}

void Scheduler::BeginRunning(Entry& entry, const ReplayPlan& replay) {
  // Only now: what waits shall not hold memory for its output.
  entry.pages.reserve(static_cast<size_t>(PagesFor(entry.max_rows())));
  entry.saved_pages.reserve(entry.pages.capacity());
  entry.state_slot = states_.Take();
  entry.state = State::kRunning;
  entry.rows_at = now_;
  entry.next_row = replay.begin;
  entry.num_computed = replay.begin;
  entry.replay = replay;
  // One that is computed again keeps its place and was counted already.
  if (!std::exchange(entry.recompute, false)) {
    entry.order = next_order_++;
    stats_.prompt_tokens += entry.spec.num_prompt;
    stats_.cached_tokens += replay.num_cached;
    queue_.Charge(entry.spec.tenant, -replay.begin);  // rows that do not run
    if (replay.num_cached > 0) ++(replay.uses_slot ? stats_.hits_with_slot : stats_.hits_replayed);
  }
  const auto at =
      std::upper_bound(running_.begin(), running_.end(), &entry,
                       [](const Entry* a, const Entry* b) { return a->order < b->order; });
  running_.insert(at, &entry);
}

// Page `i` of the sequence comes from host memory.
void Scheduler::LoadHostPage(Entry& entry, int32_t i, int32_t host_page) {
  CHECK_GE(host_page, 0);
  host_.Touch(host_page);
  AddCopy({.kind = CopyKind::kLoadPage,
           .sequence = {entry.id},
           .from = host_page,
           .to = entry.pages[static_cast<size_t>(i)]},
          nullptr);
  ++stats_.pages_loaded;
}

// `with_pages`: the copy sets this sequence's page table.
void Scheduler::AddCopy(PlannedCopy copy, const Entry* with_pages) {
  if (with_pages != nullptr) {
    copy.first_page = static_cast<int32_t>(plan_->pages.size());
    copy.num_pages = static_cast<int32_t>(with_pages->pages.size());
    plan_->pages.insert(plan_->pages.end(), with_pages->pages.begin(), with_pages->pages.end());
  }
  if (copy.sequence.v >= 0) ++At(copy.sequence).copies_in_flight;
  plan_->copies.push_back(copy);
}

// ---- growth and preemption

// Makes room for positions [0, num_tokens), if need be by preempting what came later.
bool Scheduler::GrowPages(Entry& entry, int32_t num_tokens) {
  const int32_t needed = PagesFor(num_tokens) - static_cast<int32_t>(entry.pages.size());
  if (needed <= 0) return true;
  while (!pages_.Acquire(needed, entry.pages)) {
    Entry* victim = nullptr;
    while ((victim = NextVictim(entry, victim)) != nullptr && !Preempt(*victim)) {
    }
    if (victim == nullptr || victim == &entry) return false;
  }
  return true;
}

// The sequence that gives way for `entry`: lower priority first, then the newest, at last itself.
// after: the last one tried. Sequences with rows in this plan keep their pages.
Scheduler::Entry* Scheduler::NextVictim(const Entry& entry, const Entry* after) const {
  const auto worse = [](const Entry* a, const Entry* b) {
    if (a->spec.priority != b->spec.priority) return a->spec.priority < b->spec.priority;
    return a->order > b->order;
  };
  Entry* best = nullptr;
  for (Entry* candidate : running_) {
    if (candidate->planned_in == plan_->number) continue;
    if (worse(&entry, candidate)) continue;
    if (after != nullptr && !worse(after, candidate)) continue;
    if (best == nullptr || worse(candidate, best)) best = candidate;
  }
  return best;
}

// Saves everything to host memory. False, and nothing changed, if that has no room.
bool Scheduler::Preempt(Entry& entry) {
  if (saves_.num_free() == 0) return false;
  int32_t num_new = 0;
  entry.saved_pages.clear();
  for (const int32_t page : entry.pages) {
    const int32_t copy = pages_.IsPublished(page) ? host_.Find(pages_.KeyOf(page)) : -1;
    if (copy >= 0) host_.Pin(copy);
    entry.saved_pages.push_back(copy);
    num_new += copy < 0;
  }
  if (num_new > host_.num_free() + host_.num_evictable()) {
    for (const int32_t copy : entry.saved_pages) {
      if (copy >= 0) host_.Unpin(copy);
    }
    entry.saved_pages.clear();
    return false;
  }
  for (size_t i = 0; i < entry.pages.size(); ++i) {
    int32_t& copy = entry.saved_pages[i];
    if (copy >= 0) continue;
    const int32_t page = entry.pages[i];
    const bool keyed = pages_.IsPublished(page) && host_.Find(pages_.KeyOf(page)) < 0;
    if (keyed) {
      copy = host_.Insert(pages_.KeyOf(page), pages_.IsExact(page));
      host_.Pin(copy);
    } else {
      copy = host_.InsertAnonymous();
    }
    CHECK_GE(copy, 0);
    AddCopy({.kind = CopyKind::kSavePage, .from = page, .to = copy}, nullptr);
    ++stats_.pages_saved;
  }
  entry.save = saves_.Take();
  AddCopy({.kind = CopyKind::kSaveState,
           .sequence = {entry.id},
           .from = entry.state_slot,
           .to = entry.save},
          nullptr);
  ReleaseDevice(entry);
  std::erase(running_, &entry);
  const auto at =
      std::upper_bound(preempted_.begin(), preempted_.end(), &entry,
                       [](const Entry* a, const Entry* b) { return a->order < b->order; });
  preempted_.insert(at, &entry);
  entry.state = State::kPreempted;
  ++stats_.preempted;
  return true;
}

// The last resort: nothing is saved.
void Scheduler::PreemptByRecompute(Entry& entry) {
  CHECK_EQ(entry.in_flight, 0);
  WaitAnew(entry);
  ++stats_.preempted;
  ++stats_.preempt_recomputed;
}

// A sequence that started waits again and computes everything anew, as a miss.
void Scheduler::WaitAnew(Entry& entry) {
  ReleaseMemory(entry);
  std::erase(running_, &entry);
  std::erase(preempted_, &entry);
  entry.state = State::kWaiting;
  entry.recompute = true;
  entry.prefill_end = entry.num_tokens;
  entry.next_row = entry.num_computed = entry.num_published = 0;
  queue_.Requeue({.id = entry.id,
                  .tenant = entry.spec.tenant,
                  .priority = entry.spec.priority,
                  .arrival = entry.spec.arrival,
                  .deadline = entry.deadline()});
}

bool Scheduler::Resume(Entry& entry) {
  if (states_.num_free() == 0) return false;
  const auto num_pages = static_cast<int32_t>(entry.saved_pages.size());
  const int32_t wanted = std::max(PagesFor(entry.prefill_end), num_pages + 1);
  const int32_t room = pages_.num_available() - PromisedPages();
  if (std::min(wanted, PagesFor(entry.max_rows())) > room) return false;
  scratch_pages_.clear();
  CHECK(pages_.Acquire(num_pages, scratch_pages_));
  entry.pages = scratch_pages_;
  for (size_t i = 0; i < entry.pages.size(); ++i) {
    AddCopy({.kind = CopyKind::kLoadPage,
             .sequence = {entry.id},
             .from = entry.saved_pages[i],
             .to = entry.pages[i]},
            nullptr);
    host_.Unpin(entry.saved_pages[i]);
    ++stats_.pages_loaded;
  }
  entry.saved_pages.clear();
  entry.num_published = 0;  // offered again
  entry.in_flight_before = entry.in_flight;
  entry.state_slot = states_.Take();
  AddCopy({.kind = CopyKind::kLoadState,
           .sequence = {entry.id},
           .from = entry.save,
           .to = entry.state_slot},
          &entry);
  saves_.GiveBack(entry.save);
  entry.save = -1;
  entry.state = State::kRunning;
  std::erase(preempted_, &entry);
  const auto at =
      std::upper_bound(running_.begin(), running_.end(), &entry,
                       [](const Entry* a, const Entry* b) { return a->order < b->order; });
  running_.insert(at, &entry);
  ++stats_.resumed;
  return true;
}

// ---- what others may find

// Offers the full pages that results have shown to be computed.
void Scheduler::PublishPages(Entry& entry) {
  if (!options_.prefix_cache || entry.state != State::kRunning) return;
  const std::span<const PageKey> keys = entry.spec.keys->keys();
  const int32_t full =
      std::min({entry.num_computed / kTokensPerPage, static_cast<int32_t>(keys.size()),
                static_cast<int32_t>(entry.pages.size())});
  for (; entry.num_published < full; ++entry.num_published) {
    const auto i = static_cast<size_t>(entry.num_published);
    if (pages_.IsPublished(entry.pages[i])) continue;
    if (!pages_.Publish(entry.pages[i], keys[i], entry.replay.exact)) continue;
    if (host_.num_pages() > 0 && pending_saves_.size() < pending_saves_.capacity()) {
      pending_saves_.push_back({entry.pages[i], keys[i]});
    }
  }
}

void Scheduler::ReleaseDevice(Entry& entry) {
  while (!entry.pages.empty()) {
    pages_.Release(entry.pages.back());
    entry.pages.pop_back();
  }
  if (entry.state_slot >= 0) states_.GiveBack(std::exchange(entry.state_slot, -1));
}

void Scheduler::ReleaseMemory(Entry& entry) {
  ReleaseDevice(entry);
  for (const int32_t page : entry.saved_pages) host_.Unpin(page);
  entry.saved_pages.clear();
  if (entry.save >= 0) saves_.GiveBack(std::exchange(entry.save, -1));
}

}  // namespace deepinfer
