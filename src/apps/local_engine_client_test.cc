#include "apps/local_engine_client.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/cpu_time.h"
#include "engine/testing/tiny_engine.h"
#include "request/api.h"
#include "request/server.h"
#include "request/testing/loop_thread.h"
#include "request/testing/raw_client.h"

namespace deepinfer {
namespace {

using namespace std::chrono_literals;
using testing::Eventually;
using testing::Fetch;
using testing::LoadTiny;
using testing::LoopThread;
using testing::PostText;
using testing::RawAnswer;
using testing::RawClient;
using testing::TinyPrompt;

// What came of one request, in the order in which it came.
struct Told {
  int num_ready = 0, num_tokens = 0, num_finished = 0, num_failed = 0;
  std::optional<Error> error;
};

// A door in front of every step.
class Door {
 public:
  void Pass() {
    std::unique_lock lock(mutex_);
    ++num_waiting_;
    changed_.wait(lock, [this] { return open_; });
    --num_waiting_;
  }
  void Set(bool open) {
    {
      const std::lock_guard lock(mutex_);
      open_ = open;
    }
    changed_.notify_all();
  }
  bool held() {
    const std::lock_guard lock(mutex_);
    return !open_ && num_waiting_ > 0;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  int num_waiting_ = 0;
};

class LocalEngineClientTest : public ::testing::Test {
 protected:
  ~LocalEngineClientTest() override {
    door_.Set(true);
    thread_.Stop();
    server_.reset();
    client_.reset();
  }

  void Start(LocalEngineOptions options = {}) {
    engine_ = LoadTiny({.max_num_seqs = 8});
    options.before_step = [this] { door_.Pass(); };
    ServedModel model{.names = {"tiny"},
                      .fingerprint = "fp",
                      .max_model_len = engine_->info().max_model_len,
                      .vocab_size = engine_->info().vocab_size,
                      .tokenizer = engine_->tokenizer(),
                      .texts = engine_->prompt_texts()};
    client_ = std::make_unique<LocalEngineClient>(engine_->core(), std::move(model), thread_.loop(),
                                                  RealClock(), options);
    Settle();
    free_states_ = engine_->core().scheduler().num_free_states();
  }
  // An HTTP front over it.
  void StartServer(Duration stall_timeout) {
    thread_.Do([&] {
      auto server = Server::Listen(
          thread_.loop(), RealClock(), RealRng(),
          {.http = {.port = 0}, .access_log = false, .stall_timeout = stall_timeout});
      ASSERT_TRUE(server.ok()) << server.status();
      server_ = *std::move(server);
      AddApiRoutes({.engine = client_.get(),
                    .timers = &thread_.loop(),
                    .background = &thread_.loop(),
                    .clock = &RealClock(),
                    .rng = &RealRng()},
                   server_->router());
      server_->SetEngine(client_.get());
      port_ = std::stoi(server_->url().substr(server_->url().rfind(':') + 1));
    });
  }

  // Submits on the server's thread; what comes goes to `told`.
  RequestId Submit(Request request, Told& told) {
    RequestId id;
    thread_.Do([&] {
      id = client_->Submit(std::move(request),
                           [this, &told](const Event& event) { Take(event, told); });
      EXPECT_EQ(told.num_failed, 0);  // nothing comes inside Submit()
    });
    return id;
  }
  void Take(const Event& event, Told& told) {
    told.num_ready += std::holds_alternative<ReadyEvent>(event) ? 1 : 0;
    told.num_finished += std::holds_alternative<FinishEvent>(event) ? 1 : 0;
    if (const auto* tokens = std::get_if<TokensEvent>(&event)) {
      told.num_tokens += static_cast<int>(tokens->ids.size());
    }
    if (const auto* failure = std::get_if<FailureEvent>(&event)) {
      ++told.num_failed;
      told.error = failure->error;
    }
    ++num_events_;
  }
  template <typename Ready>
  bool Wait(Ready ready) {
    return Eventually([&] {
      bool now = false;
      thread_.Do([&] { now = ready(); });
      return now;
    });
  }
  // Until the engine has nothing to do.
  void Settle() {
    EXPECT_TRUE(Wait([this] {
      const EngineSnapshot now = client_->Snapshot();
      return now.num_running == 0 && now.num_waiting == 0 && now.pages_used == 0;
    }));
  }
  EngineSnapshot Snapshot() {
    EngineSnapshot now;
    thread_.Do([&] { now = client_->Snapshot(); });
    return now;
  }

  Door door_;
  LoopThread thread_;
  std::unique_ptr<LoadedEngine> engine_;
  std::unique_ptr<LocalEngineClient> client_;
  std::unique_ptr<Server> server_;
  std::atomic<int> num_events_ = 0;
  int32_t free_states_ = 0, port_ = 0;
};

Request Prompt(int32_t length, int32_t max_tokens, int32_t salt = 1) {
  Request request{.prompt_ids = TinyPrompt(length, salt), .max_tokens = max_tokens};
  request.sampling.ignore_eos = true;
  return request;
}

TEST_F(LocalEngineClientTest, ARequestGetsItsEvents) {
  Start();
  Told first, second;
  Request many = Prompt(20, 6);
  many.num_choices = 3;
  Submit(Prompt(20, 8), first);
  Submit(std::move(many), second);
  EXPECT_TRUE(Wait([&] { return first.num_finished == 1 && second.num_finished == 3; }));
  EXPECT_EQ(first.num_ready, 1);
  EXPECT_EQ(first.num_tokens, 8);
  EXPECT_EQ(second.num_tokens, 18);
  Settle();
  const EngineSnapshot now = Snapshot();
  EXPECT_EQ(now.output_tokens, 26);
  EXPECT_GT(now.steps, 0);
  EXPECT_GT(now.step_seconds, 0);
  EXPECT_GT(now.engine_cpu_seconds, 0);
  EXPECT_EQ(now.seconds_since_step, 0);
}

TEST_F(LocalEngineClientTest, ARefusedRequestFailsOnce) {
  Start();
  Told told;
  Request request = Prompt(4, 4);
  request.prompt_ids.clear();
  request.num_choices = 3;
  Submit(std::move(request), told);
  EXPECT_TRUE(Wait([&] { return told.num_failed == 1; }));
  EXPECT_EQ(told.error->code, ErrorCode::kInvalidArgument);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(num_events_, 1);
}

TEST_F(LocalEngineClientTest, AMissedDeadlineIsOneFailure) {
  Start();
  door_.Set(false);
  Told running, late;
  Submit(Prompt(4, 4), running);
  EXPECT_TRUE(Eventually([this] { return door_.held(); }));
  Request request = Prompt(4, 4, 2);
  request.start_deadline_ms = 0;
  request.num_choices = 2;
  Submit(std::move(request), late);
  door_.Set(true);
  EXPECT_TRUE(Wait([&] { return late.num_failed == 1 && running.num_finished == 1; }));
  EXPECT_EQ(late.error->code, ErrorCode::kDeadlineExceeded);
  Settle();
  EXPECT_EQ(late.num_failed, 1);
}

TEST_F(LocalEngineClientTest, NothingComesAfterCancel) {
  Start();
  Told told;
  const RequestId id = Submit(Prompt(20, 2000), told);
  EXPECT_TRUE(Wait([&] { return told.num_tokens > 3; }));
  int events = 0;
  thread_.Do([&] {
    client_->Cancel(id);
    events = num_events_;
  });
  Settle();
  EXPECT_EQ(num_events_, events);
  EXPECT_EQ(engine_->core().scheduler().num_free_states(), free_states_);
}

TEST_F(LocalEngineClientTest, AHandlerMayCancelItsOwnRequest) {
  Start();
  RequestId id;
  int events = 0;
  thread_.Do([&] {
    id = client_->Submit(Prompt(20, 2000), [&, kept = std::make_shared<int>(7)](const Event&) {
      client_->Cancel(id);
      events += *kept == 7 ? 1 : 100;  // what the handler holds is still there
    });
  });
  Settle();
  EXPECT_EQ(events, 1);
}

TEST_F(LocalEngineClientTest, AnInboxThatIsFullRefuses) {
  Start({.max_inbox = 3});
  door_.Set(false);
  Told first, second, third, fourth;
  Submit(Prompt(4, 1), first);
  EXPECT_TRUE(Eventually([this] { return door_.held(); }));
  Submit(Prompt(4, 1), second);
  Submit(Prompt(4, 1), third);
  EXPECT_EQ(Snapshot().num_waiting, 3);
  Submit(Prompt(4, 1), fourth);
  EXPECT_TRUE(Wait([&] { return fourth.num_failed == 1; }));
  EXPECT_EQ(fourth.error->code, ErrorCode::kResourceExhausted);
  door_.Set(true);
  EXPECT_TRUE(
      Wait([&] { return first.num_finished + second.num_finished + third.num_finished == 3; }));
}

TEST_F(LocalEngineClientTest, AnIdleEngineSleeps) {
  Start();
  Told told;
  Submit(Prompt(20, 4), told);
  EXPECT_TRUE(Wait([&] { return told.num_finished == 1; }));
  Settle();
  const double before = ProcessCpuSeconds();
  std::this_thread::sleep_for(400ms);
  EXPECT_LT(ProcessCpuSeconds() - before, 0.1);
}

// G56: clients that go at any state leave pages and states as they were.
TEST_F(LocalEngineClientTest, case_56_CancelAtRandomStatesLeavesNothing) {
  Start();
  SeededRng rng(11);
  constexpr int kCount = 120;
  std::vector<std::unique_ptr<Told>> all;
  std::vector<RequestId> ids;
  for (int i = 0; i < kCount; ++i) {
    all.push_back(std::make_unique<Told>());
    Request request = Prompt(static_cast<int32_t>(4 + rng.NextU64() % 300), 40, i % 5);
    request.num_choices = static_cast<int32_t>(1 + rng.NextU64() % 3);
    ids.push_back(Submit(std::move(request), *all.back()));
    if (rng.NextU64() % 2 == 0) {
      const RequestId victim = ids[rng.NextU64() % ids.size()];
      thread_.Do([&] { client_->Cancel(victim); });
    }
    if (rng.NextU64() % 4 == 0) std::this_thread::sleep_for(1ms);
  }
  for (const RequestId id : ids) thread_.Do([&] { client_->Cancel(id); });
  Settle();
  const Scheduler& scheduler = engine_->core().scheduler();
  thread_.Stop();
  client_.reset();  // from here on this thread may look
  EXPECT_EQ(scheduler.num_free_states(), free_states_);
  EXPECT_EQ(scheduler.pages().num_held(), 0);
  EXPECT_FALSE(scheduler.HasWork());
  scheduler.CheckInvariants();
}

// H66: the step thread is held while requests run.
TEST_F(LocalEngineClientTest, case_66_AHeldStepIsNotReadyAndWaitingRequestsFail) {
  constexpr auto kStall = 1s;
  Start({.stall_timeout = kStall});
  StartServer(kStall);
  EXPECT_EQ(Fetch(port_, "/ready").status, 200);
  RawClient running(port_);
  running.Send(
      PostText("/v1/completions",
               R"({"prompt":[1,20,30],"max_tokens":100,"ignore_eos":true,"stream":true})"));
  EXPECT_NE(running.ReadUntil("data: "), "");
  door_.Set(false);
  EXPECT_TRUE(Eventually([this] { return door_.held(); }));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Fetch(port_, "/ready").status, 200);  // not yet
  const RawAnswer waiting = Fetch(port_, "/v1/completions", R"({"prompt":[1,20],"max_tokens":2})");
  EXPECT_EQ(waiting.status, 503);
  EXPECT_NE(waiting.Header("retry-after"), "");
  EXPECT_EQ(Fetch(port_, "/ready").status, 503);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5 * kStall);
  EXPECT_EQ(Fetch(port_, "/health").status, 200);
  EXPECT_EQ(Fetch(port_, "/v1/completions", R"({"prompt":[1,20],"max_tokens":2})").status, 503);
  door_.Set(true);
  EXPECT_NE(running.ReadUntil("[DONE]").find("[DONE]"), std::string::npos);
  EXPECT_TRUE(Eventually([&] { return Fetch(port_, "/ready").status == 200; }));
  EXPECT_EQ(Fetch(port_, "/v1/completions", R"({"prompt":[1,20],"max_tokens":2})").status, 200);
  Settle();
}

TEST_F(LocalEngineClientTest, ClientsThatLeaveAreCancelled) {
  Start();
  StartServer(10s);
  for (const bool stream : {false, true}) {
    RawClient client(port_);
    client.Send(PostText("/v1/completions",
                         StrCat(R"({"prompt":[1,20,30],"max_tokens":5000,"ignore_eos":true,)",
                                R"("stream":)", stream, "}")));
    EXPECT_TRUE(Wait([this] { return client_->Snapshot().num_running == 1; }));
    client.Close();
    const auto start = std::chrono::steady_clock::now();
    Settle();
    EXPECT_LT(std::chrono::steady_clock::now() - start, 100ms);
  }
}

}  // namespace
}  // namespace deepinfer
