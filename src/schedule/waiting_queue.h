// schedule/waiting_queue.h: who of those that wait is offered a place first.
//
// Order:
//   1. the higher level: the priority, plus 1 for every `aging` in which its priority waited and
//      nothing of it started. So a priority is strict, and yet none waits for ever. What ages is
//      the priority as a whole: a tenant's backlog must not age past other tenants' new requests.
//   2. the tenant with the least service, in rows: start-time fair queueing. A tenant that comes
//      back from idleness gets at least the service of the least served tenant that waits, so it
//      saved up nothing. Source of the rule: Goyal, Vin, Cheng, "Start-time fair queueing", 1996.
//   3. the earliest due: its deadline, or without one `patience` after its arrival (a stream of
//      deadlines must not starve those without); then arrival.
// An entry that cannot start yet lets others pass, kMaxBypass at most; then it is held for: offered
// before all others, and while it still cannot start nothing else does. So what never fits an idle
// engine has no place here.
//
// Threads: the planning thread only. Memory for `capacity` entries is taken at construction; only
// Push and Requeue may take more.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace deepinfer {

inline constexpr MonotonicTime kNoDeadline = {std::numeric_limits<int64_t>::max()};

struct WaitingEntry {
  int64_t id = 0;
  int32_t tenant = 0;    // >= 0; small numbers, they index a table
  int32_t priority = 0;  // higher first
  MonotonicTime arrival;
  MonotonicTime deadline = kNoDeadline;
  int64_t cost = 0;  // rows; what its start adds to the tenant's service
};

enum class VisitAnswer : uint8_t {
  kStart,     // it leaves the queue
  kSkip,      // it lacks room, which others that start may take from it: at most kMaxBypass will
  kNotReady,  // it waits for something that no other start delays
  kStop,      // it stays; nobody else is offered
};

struct WaitingQueueOptions {
  Duration aging = std::chrono::seconds(10);
  Duration patience = std::chrono::seconds(60);
};

class WaitingQueue {
 public:
  static constexpr int32_t kMaxBypass = 16;

  explicit WaitingQueue(int32_t capacity, const WaitingQueueOptions& options = {});

  // Requires: no entry has this id. Errors: kResourceExhausted if `capacity` entries wait.
  Status Push(const WaitingEntry& entry);
  // Puts back one that had started, before those of the same due and arrival. Never refused.
  void Requeue(const WaitingEntry& entry);
  // False if it does not wait here.
  bool Remove(int64_t id);

  // Offers entries in order: fn(id) -> VisitAnswer. `now` does not fall between calls. fn may call
  // Push, Requeue and Charge, which take effect at the next visit at the latest.
  template <typename Fn>
  void Visit(MonotonicTime now, Fn&& fn) {
    BeginVisit(now);
    while (OfferNext() && Apply(fn(offered_id()))) {
    }
    EndVisit();
  }

  // Adds service that no entry's cost contained. Less than 0: gives back.
  void Charge(int32_t tenant, int64_t cost);
  // The number may be given to another tenant, who begins like one that was never here.
  // Requires: nothing of it waits.
  void ForgetTenant(int32_t tenant);

  // Removes the entries whose deadline is not after `now`, then calls fn(id) for each.
  template <typename Fn>
  void TakeExpired(MonotonicTime now, Fn&& fn) {
    RemoveExpired(now);
    for (const int64_t id : expired_) fn(id);
  }

  int32_t size() const { return num_waiting_; }
  int32_t capacity() const { return capacity_; }
  bool empty() const { return num_waiting_ == 0; }
  // Entries that are held for.
  int32_t num_held() const { return static_cast<int32_t>(held_.size()); }
  void CheckInvariants() const;

 private:
  static constexpr int32_t kNone = -1;

  struct Node {
    WaitingEntry entry;
    MonotonicTime due;
    int64_t order = 0;                       // of equal due and arrival the lower goes first
    int32_t flow = kNone;                    // kNone: the node is free
    int32_t previous = kNone, next = kNone;  // in the flow
    int32_t num_bypassed = 0;
    bool held = false;
    int64_t offered_in = 0;  // visit
  };
  // The waiting entries of one tenant and priority, by due, arrival and order. Empty: free.
  struct Flow {
    int32_t tenant = 0;
    int32_t priority_class = 0;
    int32_t first = kNone, last = kNone;
    // In a visit: the next node to offer, and the key under which it lies in the heap.
    int32_t cursor = kNone;
    int64_t level = 0;
    int64_t service = 0;
  };
  struct PriorityClass {
    int32_t priority = 0;
    int32_t num_waiting = 0;  // 0: free
    MonotonicTime since;      // the last start, or when the first of those who wait came
  };
  struct Tenant {
    int64_t service = 0;
    int32_t num_waiting = 0;
  };
  struct Skipped {
    int32_t node;
    int32_t num_started;  // in this visit, before it was skipped
  };

  Node& NodeAt(int32_t i) { return nodes_[static_cast<size_t>(i)]; }
  const Node& NodeAt(int32_t i) const { return nodes_[static_cast<size_t>(i)]; }
  Flow& FlowAt(int32_t i) { return flows_[static_cast<size_t>(i)]; }
  const Flow& FlowAt(int32_t i) const { return flows_[static_cast<size_t>(i)]; }
  Tenant& TenantAt(int32_t i) { return tenants_[static_cast<size_t>(i)]; }
  PriorityClass& ClassAt(int32_t i) { return classes_[static_cast<size_t>(i)]; }

  void Place(const WaitingEntry& entry, int64_t order);
  int32_t TakeNode();
  void ReserveLikeNodes();
  void Activate(int32_t tenant);
  int32_t FlowFor(const WaitingEntry& entry);
  int32_t ClassFor(const WaitingEntry& entry);
  void Insert(int32_t node);
  void Unlink(int32_t node);
  int32_t Find(int64_t id) const;
  bool Before(const Node& a, const Node& b) const;
  void UpdateVirtualTime();

  void BeginVisit(MonotonicTime now);
  bool OfferedLater(int32_t flow_a, int32_t flow_b) const;
  auto HeapOrder() const {
    return [this](int32_t a, int32_t b) { return OfferedLater(a, b); };
  }
  void BuildHeap();
  bool RefreshKey(Flow& flow);
  int32_t PopFlow();
  void PushFlow(int32_t flow);
  bool OfferNext();
  void Offer(int32_t node);
  int64_t offered_id() const { return NodeAt(offered_).entry.id; }
  bool Apply(VisitAnswer answer);
  void StartOffered();
  void EndVisit();
  void RemoveExpired(MonotonicTime now);

  const int32_t capacity_;
  const WaitingQueueOptions options_;
  std::vector<Node> nodes_;
  std::vector<int32_t> free_nodes_;
  std::vector<Flow> flows_;
  std::vector<PriorityClass> classes_;
  std::vector<Tenant> tenants_;
  std::vector<int32_t> held_;  // nodes, in the order in which they came to be held for
  std::vector<int64_t> expired_;
  int32_t num_waiting_ = 0;
  int64_t num_placed_ = 0;
  int64_t virtual_time_ = 0;  // what the service of a tenant that begins to wait is raised to
  MonotonicTime now_;

  // Of the visit.
  bool visiting_ = false;
  int64_t visit_ = 0;
  std::vector<int32_t> heap_;  // flows with something to offer; the best is in front
  bool heap_built_ = false;
  size_t next_held_ = 0;
  int32_t offered_ = kNone;
  int32_t num_started_ = 0;
  int32_t starts_allowed_ = 0;
  std::vector<Skipped> skipped_;
};

}  // namespace deepinfer
