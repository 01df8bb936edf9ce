#include "schedule/waiting_queue.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace deepinfer {

WaitingQueue::WaitingQueue(int32_t capacity, const WaitingQueueOptions& options)
    : capacity_(capacity), options_(options) {
  CHECK_GT(capacity, 0);
  CHECK_GT(options.aging.count(), 0);
  const auto n = static_cast<size_t>(capacity);
  nodes_.reserve(n);
  flows_.reserve(n);
  classes_.reserve(n);
  ReserveLikeNodes();
}

// Each of these holds a node, or a flow and so a node, once at most.
void WaitingQueue::ReserveLikeNodes() {
  free_nodes_.reserve(nodes_.capacity());
  held_.reserve(nodes_.capacity());
  expired_.reserve(nodes_.capacity());
  heap_.reserve(nodes_.capacity());
  skipped_.reserve(nodes_.capacity());
}

// ---- Coming and going

Status WaitingQueue::Push(const WaitingEntry& entry) {
  if (num_waiting_ >= capacity_) {
    return ResourceExhausted("waiting queue holds ", num_waiting_, " requests, its limit is ",
                             capacity_, "; retry later or raise the limit");
  }
  Place(entry, ++num_placed_);
  return OkStatus();
}

void WaitingQueue::Requeue(const WaitingEntry& entry) { Place(entry, -++num_placed_); }

bool WaitingQueue::Remove(int64_t id) {
  CHECK(!visiting_);
  const int32_t node = Find(id);
  if (node == kNone) return false;
  Unlink(node);
  return true;
}

void WaitingQueue::Charge(int32_t tenant, int64_t cost) {
  CHECK(tenant >= 0 && tenant < std::ssize(tenants_));
  TenantAt(tenant).service += cost;
}

void WaitingQueue::ForgetTenant(int32_t tenant) {
  if (tenant >= std::ssize(tenants_)) return;  // it never waited
  CHECK_EQ(TenantAt(tenant).num_waiting, 0);
  TenantAt(tenant).service = 0;  // raised to what the others have when it comes
}

void WaitingQueue::RemoveExpired(MonotonicTime now) {
  CHECK(!visiting_);
  expired_.clear();
  for (const Flow& flow : flows_) {
    int32_t node = flow.first;
    // A due is never after the deadline.
    while (node != kNone && NodeAt(node).due <= now) {
      const int32_t next = NodeAt(node).next;
      if (NodeAt(node).entry.deadline <= now) {
        expired_.push_back(NodeAt(node).entry.id);
        Unlink(node);
      }
      node = next;
    }
  }
}

void WaitingQueue::Place(const WaitingEntry& entry, int64_t order) {
  CHECK_GE(entry.tenant, 0);
  CHECK_EQ(Find(entry.id), kNone);
  const int32_t node = TakeNode();
  Activate(entry.tenant);
  const MonotonicTime due =
      entry.deadline == kNoDeadline ? entry.arrival + options_.patience : entry.deadline;
  NodeAt(node) = {.entry = entry, .due = due, .order = order, .flow = FlowFor(entry)};
  Insert(node);
  ++TenantAt(entry.tenant).num_waiting;
  ++ClassAt(FlowAt(NodeAt(node).flow).priority_class).num_waiting;
  ++num_waiting_;
}

int32_t WaitingQueue::TakeNode() {
  if (free_nodes_.empty()) {
    nodes_.emplace_back();
    ReserveLikeNodes();
    return static_cast<int32_t>(nodes_.size()) - 1;
  }
  const int32_t node = free_nodes_.back();
  free_nodes_.pop_back();
  return node;
}

void WaitingQueue::Activate(int32_t tenant) {
  if (tenant >= std::ssize(tenants_)) tenants_.resize(static_cast<size_t>(tenant) + 1);
  Tenant& t = TenantAt(tenant);
  if (t.num_waiting > 0) return;
  UpdateVirtualTime();
  t.service = std::max(t.service, virtual_time_);
}

// To the service of the least served tenant that waits.
void WaitingQueue::UpdateVirtualTime() {
  if (num_waiting_ == 0) return;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const Flow& flow : flows_) {
    if (flow.first != kNone) least = std::min(least, TenantAt(flow.tenant).service);
  }
  virtual_time_ = least;
}

int32_t WaitingQueue::FlowFor(const WaitingEntry& entry) {
  const int32_t priority_class = ClassFor(entry);
  int32_t free = kNone;
  for (int32_t i = 0; i < std::ssize(flows_); ++i) {
    const Flow& flow = FlowAt(i);
    if (flow.first == kNone) {
      free = i;
    } else if (flow.tenant == entry.tenant && flow.priority_class == priority_class) {
      return i;
    }
  }
  if (free == kNone) {
    free = static_cast<int32_t>(flows_.size());
    flows_.emplace_back();
  }
  FlowAt(free) = {.tenant = entry.tenant, .priority_class = priority_class};
  return free;
}

int32_t WaitingQueue::ClassFor(const WaitingEntry& entry) {
  int32_t free = kNone;
  for (int32_t i = 0; i < std::ssize(classes_); ++i) {
    const PriorityClass& c = ClassAt(i);
    if (c.num_waiting == 0) {
      free = i;
    } else if (c.priority == entry.priority) {
      return i;
    }
  }
  if (free == kNone) {
    free = static_cast<int32_t>(classes_.size());
    classes_.emplace_back();
  }
  // What is put back may have arrived long ago, but only now does it wait again.
  ClassAt(free) = {.priority = entry.priority, .since = std::max(entry.arrival, now_)};
  return free;
}

bool WaitingQueue::Before(const Node& a, const Node& b) const {
  return std::tie(a.due, a.entry.arrival, a.order) < std::tie(b.due, b.entry.arrival, b.order);
}

// From the back: most come in order.
void WaitingQueue::Insert(int32_t node) {
  Node& n = NodeAt(node);
  Flow& flow = FlowAt(n.flow);
  n.previous = flow.last;
  while (n.previous != kNone && Before(n, NodeAt(n.previous))) {
    n.next = n.previous;
    n.previous = NodeAt(n.previous).previous;
  }
  (n.previous == kNone ? flow.first : NodeAt(n.previous).next) = node;
  (n.next == kNone ? flow.last : NodeAt(n.next).previous) = node;
}

void WaitingQueue::Unlink(int32_t node) {
  Node& n = NodeAt(node);
  Flow& flow = FlowAt(n.flow);
  (n.previous == kNone ? flow.first : NodeAt(n.previous).next) = n.next;
  (n.next == kNone ? flow.last : NodeAt(n.next).previous) = n.previous;
  --TenantAt(flow.tenant).num_waiting;
  --ClassAt(flow.priority_class).num_waiting;
  --num_waiting_;
  if (n.held) std::erase(held_, node);
  n.flow = kNone;
  free_nodes_.push_back(node);
}

int32_t WaitingQueue::Find(int64_t id) const {
  for (int32_t i = 0; i < std::ssize(nodes_); ++i) {
    if (NodeAt(i).flow != kNone && NodeAt(i).entry.id == id) return i;
  }
  return kNone;
}

// ---- A visit

void WaitingQueue::BeginVisit(MonotonicTime now) {
  CHECK(!visiting_);
  CHECK_GE(now.ns, now_.ns);
  visiting_ = true;
  now_ = now;
  ++visit_;
  UpdateVirtualTime();
  heap_built_ = false;
  next_held_ = 0;
  num_started_ = 0;
  starts_allowed_ = std::numeric_limits<int32_t>::max();
  skipped_.clear();
}

// Heap order: the best flow is in front, so "less" is what is offered later.
bool WaitingQueue::OfferedLater(int32_t a, int32_t b) const {
  const Flow& x = FlowAt(a);
  const Flow& y = FlowAt(b);
  if (x.level != y.level) return x.level < y.level;
  if (x.service != y.service) return x.service > y.service;
  return Before(NodeAt(y.cursor), NodeAt(x.cursor));
}

void WaitingQueue::BuildHeap() {
  heap_built_ = true;
  heap_.clear();
  for (int32_t i = 0; i < std::ssize(flows_); ++i) {
    Flow& flow = FlowAt(i);
    flow.cursor = flow.first;
    if (flow.cursor == kNone) continue;
    RefreshKey(flow);
    heap_.push_back(i);
  }
  std::make_heap(heap_.begin(), heap_.end(), HeapOrder());
}

// False if the key was that already.
bool WaitingQueue::RefreshKey(Flow& flow) {
  const PriorityClass& c = ClassAt(flow.priority_class);
  const int64_t waited_ns = std::max<int64_t>(0, now_.ns - c.since.ns);
  const int64_t level = c.priority + waited_ns / options_.aging.count();
  const int64_t service = TenantAt(flow.tenant).service;
  if (flow.level == level && flow.service == service) return false;
  flow.level = level;
  flow.service = service;
  return true;
}

int32_t WaitingQueue::PopFlow() {
  std::pop_heap(heap_.begin(), heap_.end(), HeapOrder());
  const int32_t flow = heap_.back();
  heap_.pop_back();
  return flow;
}

void WaitingQueue::PushFlow(int32_t flow) {
  heap_.push_back(flow);
  std::push_heap(heap_.begin(), heap_.end(), HeapOrder());
}

// Sets offered_. False: nothing is left to offer.
bool WaitingQueue::OfferNext() {
  if (num_started_ >= starts_allowed_) return false;  // the rest is held back for a skipped one
  if (next_held_ < held_.size()) {
    Offer(held_[next_held_++]);
    return true;
  }
  if (!heap_built_) BuildHeap();
  while (!heap_.empty()) {
    const int32_t best = PopFlow();
    Flow& flow = FlowAt(best);
    // A start makes keys of its tenant and priority worse, never better: once the best key is up to
    // date, flows behind it under an old key are behind it.
    if (RefreshKey(flow)) {
      PushFlow(best);
      continue;
    }
    const int32_t node = flow.cursor;
    flow.cursor = NodeAt(node).next;
    if (flow.cursor != kNone) PushFlow(best);
    if (NodeAt(node).offered_in == visit_) continue;
    Offer(node);
    return true;
  }
  return false;
}

void WaitingQueue::Offer(int32_t node) {
  NodeAt(node).offered_in = visit_;
  offered_ = node;
}

// False: the visit is over.
bool WaitingQueue::Apply(VisitAnswer answer) {
  const Node& node = NodeAt(offered_);
  switch (answer) {
    case VisitAnswer::kStart:
      StartOffered();
      return true;
    case VisitAnswer::kSkip:
      if (node.held) return false;
      skipped_.push_back({.node = offered_, .num_started = num_started_});
      starts_allowed_ = std::min(starts_allowed_, num_started_ + kMaxBypass - node.num_bypassed);
      return true;
    case VisitAnswer::kNotReady:
      return true;
    case VisitAnswer::kStop:
      return false;
  }
  return false;
}

void WaitingQueue::StartOffered() {
  const Node& node = NodeAt(offered_);
  const Flow& flow = FlowAt(node.flow);
  TenantAt(flow.tenant).service += node.entry.cost;
  ClassAt(flow.priority_class).since = now_;
  ++num_started_;
  if (node.held) --next_held_;  // those behind it move up
  Unlink(offered_);
}

void WaitingQueue::EndVisit() {
  visiting_ = false;
  for (const Skipped& skipped : skipped_) {
    Node& node = NodeAt(skipped.node);
    node.num_bypassed += num_started_ - skipped.num_started;
    if (node.num_bypassed < kMaxBypass) continue;
    node.held = true;
    held_.push_back(skipped.node);
  }
}

void WaitingQueue::CheckInvariants() const {
  int32_t num_linked = 0;
  for (int32_t i = 0; i < std::ssize(flows_); ++i) {
    const Flow& flow = FlowAt(i);
    int32_t previous = kNone;
    for (int32_t node = flow.first; node != kNone; node = NodeAt(node).next) {
      CHECK_EQ(NodeAt(node).flow, i);
      CHECK_EQ(NodeAt(node).previous, previous);
      CHECK(previous == kNone || !Before(NodeAt(node), NodeAt(previous)));
      CHECK_LE(NodeAt(node).num_bypassed, kMaxBypass);
      previous = node;
      ++num_linked;
    }
    CHECK_EQ(flow.last, previous);
  }
  CHECK_EQ(num_linked, num_waiting_);
  CHECK_EQ(num_linked + std::ssize(free_nodes_), std::ssize(nodes_));
  int32_t by_tenant = 0, by_class = 0;
  for (const Tenant& tenant : tenants_) by_tenant += tenant.num_waiting;
  for (const PriorityClass& c : classes_) by_class += c.num_waiting;
  CHECK_EQ(by_tenant, num_waiting_);
  CHECK_EQ(by_class, num_waiting_);
  for (const int32_t node : held_) CHECK(NodeAt(node).held && NodeAt(node).flow != kNone);
}

}  // namespace deepinfer
