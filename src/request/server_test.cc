// The whole front over real sockets: probes, keys, limits, states, common headers.
#include "request/server.h"

#include <gtest/gtest.h>

#include <atomic>

#include "request/testing/loop_thread.h"
#include "request/testing/raw_client.h"
#include "tokens/json.h"

namespace deepinfer {
namespace {

using namespace std::chrono_literals;
using testing::Eventually;
using testing::Fetch;
using testing::GetText;
using testing::LoopThread;
using testing::PostText;
using testing::RawAnswer;
using testing::RawClient;

// An engine that says of itself what the test says.
struct SaidEngine : EngineClient {
  const ServedModel& model() const override { return served; }
  RequestId Submit(Request, Handler) override { return {}; }
  void Cancel(RequestId) override {}
  EngineSnapshot Snapshot() const override { return snapshot; }

  ServedModel served{.names = {"deepseek-flash"}};
  EngineSnapshot snapshot{.max_waiting = 4};
};

// POST /run is an inference route whose replies wait in running_; /run/ready also starts it.
class ServerTest : public ::testing::Test {
 protected:
  ~ServerTest() override {
    thread_.Do([this] {
      server_->Close();
      running_.clear();
      server_.reset();
    });
    thread_.Stop();
  }
  void Start(ServerOptions options = {}, bool loaded = true) {
    options.http.port = 0;
    options.version = "1.2.3";
    thread_.Do([&] {
      auto server = Server::Listen(thread_.loop(), RealClock(), RealRng(), std::move(options));
      ASSERT_TRUE(server.ok()) << server.status();
      server_ = *std::move(server);
      port_ = std::stoi(server_->url().substr(server_->url().rfind(':') + 1));
      if (loaded) Load();
    });
  }
  void Load() {
    const auto run = [this](HttpRequest request, std::shared_ptr<HttpReply> reply) {
      if (request.path == "/run/ready") request.observer->OnReady(3, 0);
      tenant_ = request.tenant;
      running_.push_back(std::move(reply));
      ++num_started_;
    };
    server_->router().Add("POST", "/run", RouteAccess::kInference, run);
    server_->router().Add("POST", "/run/ready", RouteAccess::kInference, run);
    server_->SetEngine(&engine_);
  }
  // Sends a request that is not answered, and waits until it runs.
  RawClient RunOne(const std::string& path = "/run", const std::string& headers = "") {
    const int before = num_started_;
    RawClient client(port_);
    client.Send(PostText(path, "{}", headers));
    EXPECT_TRUE(Eventually([&] { return num_started_ > before; }));
    return client;
  }
  static ServerOptions WithKeys() {
    ServerOptions options;
    EXPECT_TRUE(options.keys.Add("ka=alice").ok());
    EXPECT_TRUE(options.keys.Add("kb=bob").ok());
    return options;
  }

  LoopThread thread_;
  SaidEngine engine_;
  std::unique_ptr<Server> server_;
  std::vector<std::shared_ptr<HttpReply>> running_;
  std::atomic<int> num_started_ = 0;
  std::string tenant_;
  int32_t port_ = 0;
};

constexpr char kAlice[] = "Authorization: Bearer ka\r\n";
constexpr char kBob[] = "x-api-key: kb\r\n";

TEST_F(ServerTest, TellsItsStates) {
  Start({}, /*loaded=*/false);
  EXPECT_EQ(Fetch(port_, "/health").status, 200);
  EXPECT_EQ(Fetch(port_, "/ready").status, 503);
  EXPECT_EQ(Fetch(port_, "/ready").body, R"({"status":"loading"})");
  EXPECT_EQ(Fetch(port_, "/run", "{}").status, 503);
  EXPECT_EQ(Fetch(port_, "/run", "{}").Header("retry-after"), "5");
  EXPECT_EQ(Fetch(port_, "/metrics").status, 200);
  EXPECT_EQ(Fetch(port_, "/stats").status, 200);
  thread_.Do([this] { Load(); });
  EXPECT_EQ(Fetch(port_, "/ready").status, 200);
  EXPECT_EQ(Fetch(port_, "/nothing").status, 404);
  EXPECT_EQ(Fetch(port_, "/version").body, R"({"version":"1.2.3"})");
}

TEST_F(ServerTest, AnEngineThatStandsStillIsNotReady) {
  Start({.stall_timeout = 10s});
  thread_.Do([this] { engine_.snapshot.seconds_since_step = 9.9; });
  EXPECT_EQ(Fetch(port_, "/ready").status, 200);
  thread_.Do([this] { engine_.snapshot.seconds_since_step = 10.1; });
  EXPECT_EQ(Fetch(port_, "/ready").body, R"({"status":"stalled"})");
  EXPECT_EQ(Fetch(port_, "/ready").status, 503);
  EXPECT_EQ(Fetch(port_, "/health").status, 200);
  EXPECT_EQ(Fetch(port_, "/run", "{}").status, 503);
  thread_.Do([this] { engine_.snapshot.seconds_since_step = 0; });
  EXPECT_EQ(Fetch(port_, "/ready").status, 200);
}

TEST_F(ServerTest, AFullQueueIsToldBeforeAnyWork) {
  Start();
  thread_.Do([this] { engine_.snapshot.num_waiting = 4; });
  const RawAnswer answer = Fetch(port_, "/run", "{}");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.Header("retry-after"), "1");
  EXPECT_NE(answer.body.find("overloaded"), std::string::npos);
  EXPECT_EQ(num_started_, 0);
}

TEST_F(ServerTest, LongBodiesThatAreOfNoUseAreNotRead) {
  Start(WithKeys());
  const auto answer_to_head = [this](const std::string& path, const std::string& headers) {
    RawClient client(port_);
    client.Send(StrCat("POST ", path, " HTTP/1.1\r\nHost: x\r\n", headers, "\r\n"));
    return client.ReadAnswer().value_or(RawAnswer{});
  };
  const std::string length = "Content-Length: 1000000\r\n", expect = "Expect: 100-continue\r\n";
  const RawAnswer stranger = answer_to_head("/run", length);
  EXPECT_EQ(stranger.status, 401);
  EXPECT_EQ(stranger.Header("connection"), "close");
  EXPECT_EQ(stranger.Header("www-authenticate"), "Bearer");
  EXPECT_EQ(answer_to_head("/run", "Transfer-Encoding: chunked\r\n").status, 401);
  EXPECT_EQ(answer_to_head("/run", "Content-Length: 5\r\n" + expect).status, 401);
  EXPECT_EQ(answer_to_head("/run", length + expect + kAlice).status, 100);
  thread_.Do([this] { engine_.snapshot.num_waiting = 4; });
  EXPECT_EQ(answer_to_head("/run", length + kAlice).status, 503);
  EXPECT_EQ(num_started_, 0);
}

TEST_F(ServerTest, ARefusedShortBodyLeavesTheConnection) {
  Start(WithKeys());
  RawClient client(port_);
  client.Send(PostText("/run", "{}") + GetText("/health"));
  EXPECT_EQ(client.ReadAnswer().value_or(RawAnswer{}).status, 401);
  EXPECT_EQ(client.ReadAnswer().value_or(RawAnswer{}).status, 200);
}

TEST_F(ServerTest, KeysAreAskedForWhereTheyAreNeeded) {
  Start(WithKeys());
  EXPECT_EQ(Fetch(port_, "/health").status, 200);
  EXPECT_EQ(Fetch(port_, "/ready").status, 200);
  EXPECT_EQ(Fetch(port_, "/version").status, 200);
  for (const char* path : {"/metrics", "/stats"}) {
    EXPECT_EQ(Fetch(port_, path).status, 401) << path;
    EXPECT_EQ(Fetch(port_, path, "", "Authorization: Bearer wrong\r\n").status, 401) << path;
    EXPECT_EQ(Fetch(port_, path, "", kAlice).status, 200) << path;
  }
  const RawAnswer refused = Fetch(port_, "/run", "{}");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.Header("www-authenticate"), "Bearer");
  EXPECT_NE(refused.body.find("invalid_api_key"), std::string::npos);
  const RawClient client = RunOne("/run", kBob);
  thread_.Do([this] { EXPECT_EQ(tenant_, "bob"); });
}

TEST_F(ServerTest, ATenantHasItsOwnPlaces) {
  ServerOptions options = WithKeys();
  options.limits = {.max_running = 2, .max_waiting = 1};
  Start(std::move(options));
  RawClient first = RunOne("/run/ready", kAlice);
  RawClient second = RunOne("/run", kAlice);
  RawAnswer refused = Fetch(port_, "/run", "{}", kAlice);
  EXPECT_EQ(refused.status, 429);
  EXPECT_NE(refused.Header("retry-after"), "");
  EXPECT_NE(refused.body.find("rate_limit_exceeded"), std::string::npos);
  EXPECT_NE(refused.body.find("tenant alice: 2 "), std::string::npos) << refused.body;
  const RawClient other = RunOne("/run", kBob);
  refused = Fetch(port_, "/run", "{}", kBob);
  EXPECT_EQ(refused.status, 429);
  EXPECT_NE(refused.body.find("tenant bob: 1 "), std::string::npos) << refused.body;
  first.Close();  // gives its place back
  EXPECT_TRUE(Eventually([&] {
    return Fetch(port_, "/stats", "", kAlice).body.find("\"cancelled\":1") != std::string::npos;
  }));
  thread_.Do([this] { running_[1]->Send({.body = "done"}); });
  EXPECT_EQ(second.ReadAnswer().value_or(RawAnswer{}).body, "done");
  const RawClient again = RunOne("/run", kAlice);
}

TEST_F(ServerTest, EveryAnswerHasItsIdAndItsOrigin) {
  ServerOptions options;
  options.cors_origins = {"https://a.example"};
  Start(std::move(options));
  constexpr char kOrigin[] = "Origin: https://a.example\r\nX-Request-Id: mine\r\n";
  for (const char* path : {"/health", "/nothing"}) {
    const RawAnswer answer = Fetch(port_, path, "", kOrigin);
    EXPECT_EQ(answer.Header("access-control-allow-origin"), "https://a.example") << path;
    EXPECT_EQ(answer.Header("x-request-id"), "mine") << path;
  }
  RawClient client(port_);
  client.Send(
      "OPTIONS /run HTTP/1.1\r\nHost: x\r\nOrigin: https://a.example\r\n"
      "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: x-a\r\n\r\n");
  const auto preflight = client.ReadAnswer();
  ASSERT_TRUE(preflight);
  EXPECT_EQ(preflight->status, 204);
  EXPECT_EQ(preflight->Header("access-control-allow-headers"), "x-a");
  EXPECT_EQ(preflight->Header("access-control-allow-origin"), "https://a.example");
}

TEST_F(ServerTest, MetricsAreOfThisServer) {
  Start();
  RawClient client = RunOne("/run/ready");
  thread_.Do([this] { running_[0]->Send({}); });
  EXPECT_TRUE(client.ReadAnswer());
  const RawAnswer answer = Fetch(port_, "/metrics");
  EXPECT_EQ(answer.Header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_NE(answer.body.find("deepinfer_requests_total{outcome=\"ok\"} 1\n"), std::string::npos);
  EXPECT_NE(answer.body.find("deepinfer_http_connections 2\n"), std::string::npos);
  EXPECT_NE(answer.body.find("model=\"deepseek-flash\""), std::string::npos);
  EXPECT_TRUE(ParseJson(Fetch(port_, "/stats").body).ok());
}

TEST_F(ServerTest, DrainStartsNothingMore) {
  Start();
  RawClient open(port_);
  open.Send(GetText("/ready"));
  EXPECT_EQ(open.ReadAnswer().value_or(RawAnswer{}).status, 200);
  RawClient running = RunOne();
  std::atomic<bool> drained = false;
  thread_.Do([&] { server_->Drain([&drained] { drained = true; }); });
  open.Send(PostText("/run", "{}"));
  EXPECT_EQ(open.ReadAnswer().value_or(RawAnswer{}).status, 503);
  EXPECT_FALSE(drained);
  thread_.Do([this] { running_[0]->Send({.body = "done"}); });
  EXPECT_EQ(running.ReadAnswer().value_or(RawAnswer{}).body, "done");
  EXPECT_TRUE(Eventually([&] { return drained.load(); }));
}

}  // namespace
}  // namespace deepinfer
