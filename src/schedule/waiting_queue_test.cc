#include "schedule/waiting_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "base/rng.h"

namespace deepinfer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Ids = std::vector<int64_t>;

MonotonicTime At(int64_t s) { return MonotonicTime{} + seconds(s); }

class WaitingQueueTest : public testing::Test {
 protected:
  void Push(const WaitingEntry& entry) { ASSERT_TRUE(queue_.Push(entry).ok()); }
  // Offers and starts nothing.
  Ids Order(MonotonicTime now = At(0)) {
    Ids order;
    queue_.Visit(now, [&](int64_t id) {
      order.push_back(id);
      return VisitAnswer::kNotReady;
    });
    return order;
  }
  // Starts up to `count`, but those in `lacking_room` are skipped.
  Ids Start(int count, MonotonicTime now = At(0), const std::set<int64_t>& lacking_room = {}) {
    Ids started;
    queue_.Visit(now, [&](int64_t id) {
      if (std::ssize(started) == count) return VisitAnswer::kStop;
      if (lacking_room.contains(id)) return VisitAnswer::kSkip;
      started.push_back(id);
      return VisitAnswer::kStart;
    });
    queue_.CheckInvariants();
    return started;
  }

  WaitingQueue queue_{1000, {.aging = seconds(10), .patience = seconds(60)}};
};

TEST_F(WaitingQueueTest, PushIsRefusedWhenFullNamingTheBound) {
  WaitingQueue queue(2);
  EXPECT_TRUE(queue.Push({.id = 1}).ok());
  EXPECT_TRUE(queue.Push({.id = 2}).ok());
  const Status status = queue.Push({.id = 3});
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(MessageOf(status),
            "waiting queue holds 2 requests, its limit is 2; retry later or raise the limit");
  EXPECT_EQ(queue.size(), 2);
  EXPECT_TRUE(queue.Remove(1));
  EXPECT_TRUE(queue.Push({.id = 3}).ok());
}

TEST_F(WaitingQueueTest, RequeueIsNeverRefused) {
  WaitingQueue queue(1);
  EXPECT_TRUE(queue.Push({.id = 1}).ok());
  queue.Requeue({.id = 2});
  queue.Requeue({.id = 3});
  EXPECT_EQ(queue.size(), 3);
  queue.CheckInvariants();
}

TEST_F(WaitingQueueTest, RemoveSaysWhetherItWaited) {
  Push({.id = 1});
  EXPECT_TRUE(queue_.Remove(1));
  EXPECT_FALSE(queue_.Remove(1));
  EXPECT_TRUE(queue_.empty());
}

TEST_F(WaitingQueueTest, OneTenantIsServedByDeadlineThenArrival) {
  Push({.id = 1, .arrival = At(3), .deadline = At(50)});
  Push({.id = 2, .arrival = At(2), .deadline = At(50)});
  Push({.id = 3, .arrival = At(4), .deadline = At(40)});
  Push({.id = 4, .arrival = At(1)});  // due 60 s after its arrival
  Push({.id = 5, .arrival = At(0), .deadline = At(90)});
  EXPECT_EQ(Order(At(5)), (Ids{3, 2, 1, 4, 5}));
}

TEST_F(WaitingQueueTest, RequestsWithoutADeadlineAreNotStarvedByDeadlines) {
  Push({.id = 0, .arrival = At(0)});
  for (int64_t t = 1; t <= 100; ++t) {
    Push({.id = t, .arrival = At(t), .deadline = At(t + 20)});
    if (Start(1, At(t)) == Ids{0}) {
      EXPECT_EQ(t, 40);  // the first whose deadline is not before 60 s
      return;
    }
  }
  FAIL() << "starved";
}

TEST_F(WaitingQueueTest, RequeuedGoesToItsOldPlace) {
  Push({.id = 1, .arrival = At(1)});
  Push({.id = 2, .arrival = At(2)});
  Push({.id = 3, .arrival = At(2)});
  EXPECT_EQ(Start(2, At(3)), (Ids{1, 2}));
  Push({.id = 4, .arrival = At(1)});
  queue_.Requeue({.id = 2, .arrival = At(2)});
  queue_.Requeue({.id = 1, .arrival = At(1)});
  EXPECT_EQ(Order(At(3)), (Ids{1, 4, 2, 3}));
}

TEST_F(WaitingQueueTest, HigherPriorityGoesFirstWhateverItsTenantHad) {
  Push({.id = 1, .tenant = 1, .arrival = At(0)});
  Push({.id = 2, .tenant = 2, .priority = 1, .arrival = At(1)});
  Push({.id = 3, .tenant = 3, .priority = -1, .arrival = At(0), .deadline = At(9)});
  queue_.Charge(2, 1'000'000);
  EXPECT_EQ(Order(At(1)), (Ids{2, 1, 3}));
}

// 2 priorities apart: the lower one gets one start in every 20 s, and the higher one all others.
TEST_F(WaitingQueueTest, APriorityThatWaitsAgesAndDoesNotStarve) {
  int64_t next_id = 1000;
  for (int64_t id = 0; id < 5; ++id) Push({.id = id, .priority = 0, .arrival = At(0)});
  std::map<int64_t, int64_t> started_at;
  for (int64_t t = 0; t < 100; ++t) {
    Push({.id = ++next_id, .tenant = 1, .priority = 2, .arrival = At(t)});
    Push({.id = ++next_id, .tenant = 1, .priority = 2, .arrival = At(t)});
    for (const int64_t id : Start(1, At(t))) started_at[id] = t;
  }
  for (int64_t id = 0; id < 4; ++id) {
    // At the same level the tenant with less service goes first, and that is the starved one.
    EXPECT_EQ(started_at.at(id), 20 * (id + 1)) << id;
  }
}

TEST_F(WaitingQueueTest, ABacklogDoesNotAgePastOtherTenants) {
  for (int64_t id = 0; id < 100; ++id) {
    Push({.id = id, .tenant = 0, .arrival = At(0), .cost = 10});
  }
  for (int64_t t = 0; t < 50; ++t) EXPECT_EQ(Start(1, At(t)).size(), 1u);
  Push({.id = 1000, .tenant = 1, .arrival = At(50), .cost = 1});
  Push({.id = 1001, .tenant = 1, .arrival = At(50), .cost = 1});
  EXPECT_EQ(Start(3, At(51)), (Ids{50, 1000, 1001}));
}

TEST_F(WaitingQueueTest, TenantsOfUnequalLoadGetEqualService) {
  // Tenant 0 sends many short requests, 1 few long ones, 2 floods with middling ones.
  const int64_t cost_max[] = {100, 2000, 500};
  const int32_t num_waiting[] = {20, 4, 200};
  SeededRng rng(1);
  std::map<int64_t, WaitingEntry> waiting;
  int64_t next_id = 0;
  int64_t service[3] = {};
  const auto push = [&](int32_t tenant, int64_t t) {
    const auto bound = static_cast<uint64_t>(cost_max[tenant]);
    const WaitingEntry entry = {.id = next_id++,
                                .tenant = tenant,
                                .arrival = At(t),
                                .cost = 1 + static_cast<int64_t>(rng.Uniform(bound))};
    waiting[entry.id] = entry;
    Push(entry);
  };
  for (int32_t tenant = 0; tenant < 3; ++tenant) {
    for (int32_t i = 0; i < num_waiting[tenant]; ++i) push(tenant, 0);
  }
  for (int64_t t = 0; t < 3000; ++t) {
    for (const int64_t id : Start(1 + static_cast<int>(rng.Uniform(3)), At(t))) {
      const WaitingEntry entry = waiting.at(id);
      service[entry.tenant] += entry.cost;
      push(entry.tenant, t);
    }
  }
  const int64_t mean = (service[0] + service[1] + service[2]) / 3;
  for (const int64_t s : service) EXPECT_NEAR(s, mean, 0.05 * static_cast<double>(mean));
}

TEST_F(WaitingQueueTest, ChargedServiceCounts) {
  Push({.id = 1, .tenant = 1, .arrival = At(0)});
  Push({.id = 2, .tenant = 2, .arrival = At(1)});
  EXPECT_EQ(Order(At(1)), (Ids{1, 2}));
  queue_.Charge(1, 10);
  EXPECT_EQ(Order(At(1)), (Ids{2, 1}));
  queue_.Charge(1, -10);
  EXPECT_EQ(Order(At(1)), (Ids{1, 2}));
}

TEST_F(WaitingQueueTest, AnIdleTenantSavesUpNothing) {
  for (int64_t id = 0; id < 100; ++id) {
    Push({.id = id, .tenant = 0, .arrival = At(0), .cost = 10});
  }
  EXPECT_EQ(Start(50).size(), 50u);
  for (int64_t id = 1000; id < 1010; ++id) {
    Push({.id = id, .tenant = 1, .arrival = At(1), .cost = 10});
  }
  Ids started = Start(10, At(1));
  EXPECT_EQ(std::count_if(started.begin(), started.end(), [](int64_t id) { return id >= 1000; }),
            5);
}

// Also where each request starts at once, so that nobody ever waits.
TEST_F(WaitingQueueTest, AForgottenTenantsNumberBeginsAnew) {
  for (const bool forget : {false, true}) {
    WaitingQueue queue(8);
    const auto push = [&](int64_t id, int32_t tenant) {
      ASSERT_TRUE(queue.Push({.id = id, .tenant = tenant, .arrival = At(id), .cost = 10}).ok());
    };
    push(1, 0);
    push(2, 1);
    queue.Charge(1, 1'000);
    ASSERT_TRUE(queue.Remove(2));
    if (forget) queue.ForgetTenant(1);
    queue.ForgetTenant(77);  // was never here
    push(3, 0);
    push(4, 1);
    Ids order;
    queue.Visit(At(5), [&](int64_t id) {
      order.push_back(id);
      return VisitAnswer::kStart;
    });
    EXPECT_EQ(order, forget ? (Ids{1, 4, 3}) : (Ids{1, 3, 4}));
    queue.CheckInvariants();
  }
}

TEST_F(WaitingQueueTest, ATenantThatNeverHadToWaitKeepsWhatItUsed) {
  for (int64_t id = 0; id < 10; ++id) {
    Push({.id = id, .tenant = 0, .arrival = At(0), .cost = 10});
    EXPECT_EQ(Start(1), Ids{id});
  }
  Push({.id = 100, .tenant = 1, .arrival = At(1), .cost = 10});
  EXPECT_EQ(Start(1, At(1)), Ids{100});
  for (int64_t id = 200; id < 204; ++id) {
    Push({.id = id, .tenant = 1, .arrival = At(2), .cost = 10});
    Push({.id = id + 100, .tenant = 0, .arrival = At(2), .cost = 10});
  }
  // Both had 100 rows by the count that ignores idleness: they alternate.
  EXPECT_EQ(Start(4, At(2)), (Ids{200, 300, 201, 301}));
}

TEST_F(WaitingQueueTest, ExpiredRequestsAreTakenAndNoOthers) {
  Push({.id = 1, .arrival = At(0), .deadline = At(10)});
  Push({.id = 2, .tenant = 1, .arrival = At(0), .deadline = At(11)});
  Push({.id = 3, .arrival = At(0)});
  Push({.id = 4, .arrival = At(0), .deadline = At(100)});
  Ids expired;
  const auto take = [&](int64_t s) {
    expired.clear();
    queue_.TakeExpired(At(s), [&](int64_t id) {
      EXPECT_FALSE(queue_.Remove(id));  // it is gone already
      expired.push_back(id);
    });
    queue_.CheckInvariants();
    return expired;
  };
  EXPECT_EQ(take(9), Ids{});
  EXPECT_EQ(take(10), Ids{1});
  EXPECT_EQ(take(99), Ids{2});
  EXPECT_EQ(take(1000), Ids{4});  // behind 3, which was due before and has no deadline
  EXPECT_EQ(queue_.size(), 1);
}

// One that lacks room lets others run, and yet starts: after 16 of them it is waited for, and
// starts as soon as it can.
TEST_F(WaitingQueueTest, case_R05_OneThatCannotRunYetBlocksNobodyAndIsNotStarved) {
  Push({.id = 0, .arrival = At(0)});
  for (int64_t id = 1; id <= 100; ++id) Push({.id = id, .arrival = At(1)});
  EXPECT_EQ(Start(10, At(2), {0}), (Ids{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(queue_.num_held(), 0);
  EXPECT_EQ(Start(10, At(2), {0}), (Ids{11, 12, 13, 14, 15, 16}));
  EXPECT_EQ(queue_.num_held(), 1);
  EXPECT_EQ(Start(10, At(3), {0}), Ids{});
  // Even higher priorities wait now: the room that they would take is what it waits for.
  Push({.id = 200, .priority = 5, .arrival = At(4)});
  EXPECT_EQ(Start(10, At(4), {0}), Ids{});
  EXPECT_EQ(queue_.num_held(), 1);
  EXPECT_EQ(Start(3, At(5)), (Ids{0, 200, 17}));
  EXPECT_EQ(queue_.num_held(), 0);
}

TEST_F(WaitingQueueTest, case_R05_OneThatIsNotReadyHoldsUpNobodyEver) {
  Push({.id = 0, .arrival = At(0)});
  int64_t started = 0;
  for (int64_t id = 1; id <= 100; ++id) {
    Push({.id = id, .arrival = At(id)});
    queue_.Visit(At(id), [&](int64_t offered) {
      if (offered == 0) return VisitAnswer::kNotReady;
      ++started;
      return VisitAnswer::kStart;
    });
  }
  EXPECT_EQ(started, 100);
  EXPECT_EQ(Start(1, At(101)), Ids{0});
}

TEST_F(WaitingQueueTest, case_R05_SeveralThatAreHeldForStartInTheOrderInWhichTheyWereBypassed) {
  Push({.id = 0, .arrival = At(0)});
  for (int64_t id = 10; id < 14; ++id) Push({.id = id, .arrival = At(1)});
  EXPECT_EQ(Start(4, At(1), {0}).size(), 4u);
  Push({.id = 1, .arrival = At(0)});
  for (int64_t id = 20; id < 60; ++id) Push({.id = id, .arrival = At(1)});
  EXPECT_EQ(Start(100, At(1), {0, 1}).size(), 12u);  // 0 was bypassed by 16, 1 by 12
  EXPECT_EQ(queue_.num_held(), 1);
  EXPECT_EQ(Start(100, At(2), {1}).size(), 1u + 4u);  // 0 starts, then 4 more pass by 1
  EXPECT_EQ(queue_.num_held(), 1);
  EXPECT_EQ(Start(100, At(2), {1}), Ids{});
  EXPECT_TRUE(queue_.Remove(1));
  EXPECT_EQ(queue_.num_held(), 0);
  EXPECT_EQ(Start(100, At(2)).size(), 24u);
}

TEST_F(WaitingQueueTest, AVisitMayPutBackWhatItPreempts) {
  Push({.id = 1, .arrival = At(0)});
  Push({.id = 2, .arrival = At(1)});
  EXPECT_EQ(Start(1), Ids{1});
  queue_.Visit(At(2), [&](int64_t) {
    queue_.Requeue({.id = 1, .arrival = At(0)});
    return VisitAnswer::kStop;
  });
  queue_.CheckInvariants();
  EXPECT_EQ(Order(At(2)), (Ids{1, 2}));
}

// ---- Against a plain restatement ----------------------------------------------------------------

class PlainQueue {
 public:
  explicit PlainQueue(const WaitingQueueOptions& options) : options_(options) {}

  void Place(const WaitingEntry& entry, bool back) {
    const int64_t order = ++num_placed_;
    if (!HasTenant(entry.tenant)) {
      UpdateFloor();
      service_[entry.tenant] = std::max(service_[entry.tenant], floor_);
    }
    if (!HasPriority(entry.priority)) since_[entry.priority] = std::max(entry.arrival, now_);
    const MonotonicTime due =
        entry.deadline == kNoDeadline ? entry.arrival + options_.patience : entry.deadline;
    items_.push_back({entry, due, back ? -order : order});
  }
  bool Remove(int64_t id) {
    std::erase(held_, id);
    return std::erase_if(items_, [id](const Item& item) { return item.entry.id == id; }) > 0;
  }
  void Charge(int32_t tenant, int64_t cost) { service_[tenant] += cost; }

  template <typename Fn>
  void Visit(MonotonicTime now, Fn fn) {
    now_ = now;
    UpdateFloor();
    Ids offered, skipped;
    while (!AnyHeldBack(skipped)) {
      const Item* best = Best(offered);
      if (best == nullptr) break;
      const WaitingEntry entry = best->entry;
      const bool held = std::count(held_.begin(), held_.end(), entry.id) > 0;
      offered.push_back(entry.id);
      const VisitAnswer answer = fn(entry.id);
      if (answer == VisitAnswer::kStop || (answer == VisitAnswer::kSkip && held)) break;
      if (answer == VisitAnswer::kSkip) skipped.push_back(entry.id);
      if (answer != VisitAnswer::kStart) continue;
      service_[entry.tenant] += entry.cost;
      since_[entry.priority] = now;
      Remove(entry.id);
      for (const int64_t id : skipped) ++Get(id).num_bypassed;
    }
    for (const int64_t id : skipped) {
      if (Get(id).num_bypassed >= 16) held_.push_back(id);
    }
  }

  size_t size() const { return items_.size(); }

 private:
  struct Item {
    WaitingEntry entry;
    MonotonicTime due;
    int64_t order;
    int num_bypassed = 0;
  };

  Item& Get(int64_t id) {
    return *std::find_if(items_.begin(), items_.end(),
                         [id](const Item& item) { return item.entry.id == id; });
  }
  bool AnyHeldBack(const Ids& skipped) {
    return std::any_of(skipped.begin(), skipped.end(),
                       [this](int64_t id) { return Get(id).num_bypassed >= 16; });
  }
  bool HasTenant(int32_t tenant) const {
    return std::any_of(items_.begin(), items_.end(),
                       [=](const Item& item) { return item.entry.tenant == tenant; });
  }
  bool HasPriority(int32_t priority) const {
    return std::any_of(items_.begin(), items_.end(),
                       [=](const Item& item) { return item.entry.priority == priority; });
  }
  void UpdateFloor() {
    if (items_.empty()) return;
    int64_t least = service_[items_[0].entry.tenant];
    for (const Item& item : items_) least = std::min(least, service_[item.entry.tenant]);
    floor_ = least;
  }
  auto Key(const Item& item) {
    const int64_t aged = (now_.ns - since_[item.entry.priority].ns) / options_.aging.count();
    return std::tuple(-(item.entry.priority + aged), service_[item.entry.tenant], item.due,
                      item.entry.arrival, item.order);
  }
  const Item* Best(const Ids& offered) {
    for (const int64_t id : held_) {
      if (std::count(offered.begin(), offered.end(), id) == 0) return &Get(id);
    }
    const Item* best = nullptr;
    for (const Item& item : items_) {
      if (std::count(offered.begin(), offered.end(), item.entry.id) > 0) continue;
      if (best == nullptr || Key(item) < Key(*best)) best = &item;
    }
    return best;
  }

  const WaitingQueueOptions options_;
  std::vector<Item> items_;
  std::map<int32_t, int64_t> service_;
  std::map<int32_t, MonotonicTime> since_;
  Ids held_;
  int64_t floor_ = 0;
  int64_t num_placed_ = 0;
  MonotonicTime now_;
};

// Random life: requests come, are started, skipped, cancelled, put back and expire.
class RandomLife {
 public:
  explicit RandomLife(uint64_t seed) : rng_(seed) {}

  void Run(int num_steps) {
    for (int step = 0; step < num_steps && !testing::Test::HasFailure(); ++step) {
      now_ = now_ + milliseconds(Int(3000));
      for (int i = Int(5); i > 0; --i) Come();
      if (Int(4) == 0) Cancel();
      if (Int(4) == 0) PutBack();
      if (Int(8) == 0) Expire();
      if (Int(3) == 0) Charge();
      Visit();
      queue_.CheckInvariants();
      ASSERT_EQ(static_cast<size_t>(queue_.size()), plain_.size());
    }
  }
  int num_held_steps = 0;
  size_t num_started = 0;

 private:
  int Int(int bound) { return static_cast<int>(rng_.Uniform(static_cast<uint64_t>(bound))); }

  void Come() {
    WaitingEntry entry = {.id = next_id_++,
                          .tenant = Int(5),
                          .priority = Int(3) - 1,
                          .arrival = now_ - milliseconds(Int(2) * 500),
                          .cost = Int(100)};
    if (Int(2) == 0) entry.deadline = entry.arrival + seconds(1 + Int(100));
    const bool taken = queue_.Push(entry).ok();
    ASSERT_EQ(taken, plain_.size() < 60);
    if (!taken) return;
    plain_.Place(entry, false);
    entries_[entry.id] = entry;
  }
  void Cancel() {
    const int64_t id = next_id_ - 1 - Int(60);
    ASSERT_EQ(queue_.Remove(id), plain_.Remove(id));
    entries_.erase(id);
  }
  void PutBack() {
    if (running_.empty()) return;
    const auto at = running_.begin() + Int(static_cast<int>(running_.size()));
    WaitingEntry entry = *at;
    entry.cost = Int(10);
    running_.erase(at);
    queue_.Requeue(entry);
    plain_.Place(entry, true);
    entries_[entry.id] = entry;
  }
  void Expire() {
    Ids expected, expired;
    for (const auto& [id, entry] : entries_) {
      if (entry.deadline <= now_) expected.push_back(id);
    }
    queue_.TakeExpired(now_, [&](int64_t id) { expired.push_back(id); });
    std::sort(expired.begin(), expired.end());
    ASSERT_EQ(expired, expected);
    for (const int64_t id : expired) {
      plain_.Remove(id);
      entries_.erase(id);
    }
  }
  void Charge() {
    const int32_t tenant = Int(5);
    if (!known_.contains(tenant)) return;
    const int cost = Int(100) - 20;
    queue_.Charge(tenant, cost);
    plain_.Charge(tenant, cost);
  }
  void Visit() {
    const uint64_t salt = rng_.NextU64();
    const int stop_after = 1 + Int(30);
    const auto decide = [=](Ids& log, Ids& started) {
      return [=, &log, &started](int64_t id) {
        log.push_back(id);
        const uint64_t r = ((static_cast<uint64_t>(id) * 0x9e3779b97f4a7c15u) ^ salt) % 16;
        if (std::ssize(log) > stop_after) return VisitAnswer::kStop;
        if (r < 4 || (id % 11 == 3 && r < 14)) return VisitAnswer::kSkip;
        if (r < 6) return VisitAnswer::kNotReady;
        started.push_back(id);
        return VisitAnswer::kStart;
      };
    };
    num_held_steps += queue_.num_held() > 0;
    Ids log, started, plain_log, plain_started;
    queue_.Visit(now_, decide(log, started));
    plain_.Visit(now_, decide(plain_log, plain_started));
    ASSERT_EQ(log, plain_log);
    num_started += started.size();
    for (const int64_t id : started) {
      running_.push_back(entries_.at(id));
      known_.insert(entries_.at(id).tenant);
      entries_.erase(id);
    }
  }

  SeededRng rng_;
  WaitingQueueOptions options_ = {.aging = seconds(5), .patience = seconds(20)};
  WaitingQueue queue_{60, options_};
  PlainQueue plain_{options_};
  MonotonicTime now_ = At(1);
  int64_t next_id_ = 0;
  std::map<int64_t, WaitingEntry> entries_;
  std::vector<WaitingEntry> running_;
  std::set<int32_t> known_;  // tenants that had a start
};

TEST(WaitingQueueRandom, OffersInTheOrderOfThePlainRestatement) {
  int num_held_steps = 0;
  size_t num_started = 0;
  for (uint64_t seed = 1; seed <= 30 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomLife life(seed);
    life.Run(300);
    num_held_steps += life.num_held_steps;
    num_started += life.num_started;
  }
  EXPECT_GT(num_held_steps, 500);
  EXPECT_GT(num_started, 10'000u);
}

}  // namespace
}  // namespace deepinfer
