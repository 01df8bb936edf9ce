#include "apps/local_engine_client.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/cpu_time.h"
#include "base/log.h"

namespace deepinfer {
namespace {

RequestId IdOf(const Event& event) {
  return std::visit([](const auto& e) { return e.request; }, event);
}

bool EndsChoice(const Event& event) {
  return std::holds_alternative<FinishEvent>(event) || std::holds_alternative<FailureEvent>(event);
}

}  // namespace

LocalEngineClient::LocalEngineClient(EngineCore& core, ServedModel model, EventLoop& loop,
                                     Clock& clock, LocalEngineOptions options)
    : core_(core),
      model_(std::move(model)),
      loop_(loop),
      clock_(clock),
      options_(std::move(options)) {
  Publish();
  thread_ = std::thread([this] { Loop(); });
  pthread_setname_np(thread_.native_handle(), "di-engine");
}

LocalEngineClient::~LocalEngineClient() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

// ---- server's thread

RequestId LocalEngineClient::Submit(Request request, Handler handler) {
  const RequestId id{next_id_++};
  if (live_.empty()) live_since_ = clock_.Now();
  live_[id.v] = std::make_shared<Live>(
      Live{.handler = std::move(handler),
           .num_unfinished = std::max(request.num_choices, 1),
           .structured = request.structured.kind != StructuredOutput::Kind::kNone});
  bool full = false;
  {
    const std::lock_guard lock(mutex_);
    full = num_submissions_ >= options_.max_inbox;
  }
  if (full) {
    FailSoon(id, {ErrorCode::kResourceExhausted,
                  StrCat(options_.max_inbox, " requests wait for the engine already")});
  } else {
    SendOrder(Submission{id, std::move(request)});
  }
  if (watch_ == nullptr) WatchSteps();
  return id;
}

void LocalEngineClient::Cancel(RequestId request) {
  if (live_.erase(request.v) > 0) SendOrder(request);
}

void LocalEngineClient::SendOrder(Order order) {
  {
    const std::lock_guard lock(mutex_);
    num_submissions_ += std::holds_alternative<Submission>(order) ? 1 : 0;
    inbox_.push_back(std::move(order));
  }
  changed_.notify_all();
}

void LocalEngineClient::FailSoon(RequestId request, Error error) {
  loop_.Post([this, request, error = std::move(error)] {
    DeliverOne(FailureEvent{.request = request, .error = error});
  });
}

void LocalEngineClient::Deliver(const std::vector<Event>& events) {
  {
    const std::lock_guard lock(mutex_);
    --num_batches_;
  }
  changed_.notify_all();
  for (const Event& event : events) DeliverOne(event);
}

void LocalEngineClient::DeliverOne(const Event& event) {
  const auto at = live_.find(IdOf(event).v);
  if (at == live_.end()) return;                  // cancelled
  const std::shared_ptr<Live> live = at->second;  // the handler may cancel it
  live->ready |= std::holds_alternative<ReadyEvent>(event);
  if (EndsChoice(event)) {
    --live->num_unfinished;
    // A failure without a Ready is the request's, whatever choice it came with.
    const bool refused = std::holds_alternative<FailureEvent>(event) && !live->ready;
    if (refused && live->num_unfinished > 0) SendOrder(IdOf(event));
    if (refused || live->num_unfinished == 0) live_.erase(at);
  }
  live->handler(event);
}

// Grammars are built beside the steps, and take their time: nothing else may be there to run.
bool LocalEngineClient::OnlyGrammarsWait() const {
  return std::all_of(live_.begin(), live_.end(), [](const auto& entry) {
    return entry.second->structured && !entry.second->ready;
  });
}

EngineSnapshot LocalEngineClient::Snapshot() const {
  EngineSnapshot snapshot;
  {
    const std::lock_guard lock(mutex_);
    snapshot = snapshot_;
    snapshot.num_waiting += num_submissions_;
  }
  if (live_.empty()) return snapshot;
  const int64_t last = OnlyGrammarsWait() ? last_round_ns_ : last_step_ns_;
  const MonotonicTime since{std::max(last, live_since_.ns)};
  snapshot.seconds_since_step = std::max(0.0, Seconds(clock_.Now() - since));
  return snapshot;
}

// Only while requests are there.
void LocalEngineClient::WatchSteps() {
  if (Snapshot().seconds_since_step > Seconds(options_.stall_timeout)) FailWaiting();
  if (live_.empty()) {
    watch_ = nullptr;
    return;
  }
  watch_ =
      loop_.RunAfter(std::max<Duration>(options_.stall_timeout / 10, std::chrono::milliseconds(10)),
                     [this] { WatchSteps(); });
}

// Whoever has begun goes on waiting: it may still get its answer.
void LocalEngineClient::FailWaiting() {
  std::vector<RequestId> waiting;
  for (const auto& [id, live] : live_) {
    if (!live->ready) waiting.push_back({id});
  }
  const double seconds = Snapshot().seconds_since_step;
  if (!waiting.empty()) {
    LogError("no step of the engine has ended for ", seconds, " s; ", waiting.size(),
             " waiting requests fail");
  }
  for (const RequestId id : waiting) {
    DeliverOne(FailureEvent{.request = id,
                            .error = {ErrorCode::kResourceExhausted,
                                      StrCat("no step of the engine has ended for ", seconds,
                                             " s; try again later, or elsewhere")}});
    SendOrder(id);
  }
}

// ---- engine's thread

void LocalEngineClient::Loop() {
  std::vector<Order> orders;
  std::vector<Event> events;
  bool idle_step = false;  // nothing came of the last one: do not run in circles
  while (true) {
    {
      std::unique_lock lock(mutex_);
      const auto something = [this] { return stopping_ || !inbox_.empty(); };
      if (!core_.HasWork()) {
        changed_.wait(lock, something);
      } else if (idle_step) {
        changed_.wait_for(lock, std::chrono::milliseconds(1), something);
      }
      changed_.wait(lock, [this] { return stopping_ || num_batches_ < kMaxBatches; });
      if (stopping_) break;
      orders = std::exchange(inbox_, {});
    }
    events.clear();
    for (Order& order : orders) Obey(order, events);
    const int64_t steps = core_.stats().steps;
    if (core_.HasWork()) {
      if (options_.before_step) options_.before_step();
      std::vector<Event> stepped = core_.Step();
      Translate(stepped);
      std::move(stepped.begin(), stepped.end(), std::back_inserter(events));
    }
    const int64_t now_ns = clock_.Now().ns;
    idle_step = events.empty() && core_.stats().steps == steps;
    if (core_.stats().steps != steps || !core_.HasWork()) last_step_ns_ = now_ns;
    last_round_ns_ = now_ns;
    Publish(
        static_cast<int32_t>(std::count_if(orders.begin(), orders.end(), [](const Order& order) {
          return std::holds_alternative<Submission>(order);
        })));
    if (!events.empty()) Send(std::exchange(events, {}));
  }
  EndAll();
}

void LocalEngineClient::Obey(Order& order, std::vector<Event>& events) {
  if (const auto* cancelled = std::get_if<RequestId>(&order)) {
    const auto at = engine_id_.find(cancelled->v);
    if (at != engine_id_.end()) core_.Cancel(at->second);
    return;
  }
  auto& [client_id, request] = std::get<Submission>(order);
  const int32_t num_choices = request.num_choices;
  const auto id = core_.Submit(std::move(request));
  if (!id.ok()) {
    FailureEvent failure{.request = client_id, .error = ToError(id.status())};
    events.emplace_back(std::move(failure));
    return;
  }
  running_[id->v] = {.client_id = client_id, .num_unfinished = num_choices};
  engine_id_[client_id.v] = *id;
}

// Gives events the client's ids, and forgets requests with their last one.
void LocalEngineClient::Translate(std::vector<Event>& events) {
  for (Event& event : events) {
    const auto at = running_.find(IdOf(event).v);
    CHECK(at != running_.end());
    const RequestId client_id = at->second.client_id;
    std::visit([&](auto& e) { e.request = client_id; }, event);
    if (EndsChoice(event) && --at->second.num_unfinished == 0) {
      engine_id_.erase(client_id.v);
      running_.erase(at);
    }
  }
}

void LocalEngineClient::Send(std::vector<Event> events) {
  {
    const std::lock_guard lock(mutex_);
    ++num_batches_;
  }
  loop_.Post([this, events = std::move(events)] { Deliver(events); });
}

void LocalEngineClient::Publish(int32_t num_taken) {
  const EngineStats stats = core_.stats();
  const Scheduler& scheduler = core_.scheduler();
  const SchedulerStats& planned = stats.scheduler;
  EngineSnapshot now;
  now.num_running = planned.num_running;
  now.num_waiting = planned.num_waiting;
  now.num_preempted = planned.num_preempted;
  now.max_num_seqs = core_.options().max_num_seqs;
  now.max_waiting = core_.options().max_waiting;
  now.pages_used = scheduler.pages().num_held();
  now.pages_cached = scheduler.pages().num_cached();
  now.pages_total = scheduler.pages().num_pages();
  now.steps = stats.steps;
  now.step_seconds = stats.step_seconds;
  now.prompt_tokens = planned.prompt_tokens;
  now.cached_tokens = planned.cached_tokens;
  now.output_tokens = stats.output_tokens;
  now.prefill_rows = planned.rows - planned.decode_rows - planned.replay_rows;
  now.decode_rows = planned.decode_rows;
  now.replay_rows = planned.replay_rows;
  now.preempted = planned.preempted;
  now.resumed = planned.resumed;
  now.drafts_verified = stats.drafts_verified;
  now.drafts_accepted = stats.drafts_accepted;
  now.masks = stats.masks;
  now.mask_seconds = stats.mask_seconds;
  now.masks_late = stats.masks_late;
  now.engine_cpu_seconds = ThreadCpuSeconds();
  if (options_.fill_snapshot) options_.fill_snapshot(now);
  const std::lock_guard lock(mutex_);
  num_submissions_ -= num_taken;
  snapshot_ = now;
}

// Nobody listens any more; memory is given back as after any end.
void LocalEngineClient::EndAll() {
  for (const auto& [id, running] : running_) core_.Cancel({id});
  while (core_.HasWork()) core_.Step();
}

}  // namespace deepinfer
