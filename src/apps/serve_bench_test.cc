#include "apps/serve_bench.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "base/simulated_disk.h"

namespace deepinfer {
namespace {

// ---- a server on a port of its own, one thread a connection

struct Received {
  std::string head, body;
  int connection = 0, idx = 0;  // idx: of the request on its connection
};

// What goes out, piece by piece; the connection is closed after it if asked.
struct Reply {
  std::vector<std::string> pieces;
  bool closes = false;
};

class FakeServer {
 public:
  using Handler = std::function<Reply(const Received&)>;

  explicit FakeServer(Handler handler) : handler_(std::move(handler)) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 64), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    url_ = StrCat("http://127.0.0.1:", ntohs(address.sin_port));
    acceptor_ = std::thread([this] { Accept(); });
  }
  ~FakeServer() {
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    for (std::thread& thread : threads_) thread.join();
    close(listener_);
  }

  const std::string& url() const { return url_; }
  int num_connections() const { return num_connections_; }
  std::vector<Received> received() const {
    std::lock_guard lock(mutex_);
    return received_;
  }

 private:
  void Accept() {
    for (int fd; (fd = accept(listener_, nullptr, nullptr)) >= 0;) {
      threads_.emplace_back([this, fd, id = num_connections_++] { Serve(fd, id); });
    }
  }

  void Serve(int fd, int id) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    std::string input;
    for (int idx = 0;; ++idx) {
      std::optional<Received> request;
      while (!(request = Take(input))) {
        char buffer[4096];
        const ssize_t n = recv(fd, buffer, sizeof buffer, 0);
        if (n <= 0) break;
        input.append(buffer, static_cast<size_t>(n));
      }
      if (!request) break;
      request->connection = id;
      request->idx = idx;
      {
        std::lock_guard lock(mutex_);
        received_.push_back(*request);
      }
      const Reply reply = handler_(*request);
      for (const std::string& piece : reply.pieces)
        send(fd, piece.data(), piece.size(), MSG_NOSIGNAL);
      if (reply.closes) break;
    }
    close(fd);
  }

  static std::optional<Received> Take(std::string& input) {
    const size_t end = input.find("\r\n\r\n");
    if (end == input.npos) return std::nullopt;
    const size_t length = input.find("Content-Length: ");
    const size_t body = length < end ? std::stoul(input.substr(length + 16)) : 0;
    if (input.size() < end + 4 + body) return std::nullopt;
    Received request{.head = input.substr(0, end), .body = input.substr(end + 4, body)};
    input.erase(0, end + 4 + body);
    return request;
  }

  const Handler handler_;
  int listener_ = -1;
  std::string url_;
  std::thread acceptor_;
  std::vector<std::thread> threads_;
  std::atomic<int> num_connections_{0};
  mutable std::mutex mutex_;
  std::vector<Received> received_;
};

std::string Whole(int status, const std::string& body, const char* type = "application/json") {
  return StrCat("HTTP/1.1 ", status, " X\r\nContent-Type: ", type,
                "\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
}

std::string Chunked(const std::vector<std::string>& pieces) {
  std::string text =
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& piece : pieces) {
    char size[16];
    std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
    text += size + piece + "\r\n";
  }
  return text + "0\r\n\r\n";
}

const std::vector<std::string> kThreeTokens = {
    "data: {\"choices\":[{\"index\":0,\"text\":\"a\"}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"text\":\"b\"}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"text\":\"c\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":8,\"completion_tokens\":3}}\n\n",
    "data: [DONE]\n\n"};

bool Asks(const Received& request, const std::string& what) {
  return request.head.starts_with(what + " ");
}

Reply Models() { return {{Whole(200, R"({"data":[{"id":"fake"}]})")}}; }

// Lists its model and answers each completion with `reply`.
FakeServer::Handler Serving(std::function<Reply(const Received&)> reply) {
  return [reply = std::move(reply)](const Received& request) {
    return Asks(request, "GET /v1/models") ? Models() : reply(request);
  };
}

StatusOr<ServeRun> Measure(ServeBenchOptions options) {
  SimulatedDisk disk;
  const Environment environment;
  return RunServeLoad(
      std::move(options),
      {.environment = environment, .disk = disk, .clock = RealClock(), .rng = RealRng()});
}

ServeBenchOptions Asking(const std::string& url, int64_t num_requests = 4) {
  return {
      .base_url = url,
      .random = {.num_requests = num_requests, .prompt = {.typical = 8}, .output = {.typical = 3}},
      .max_concurrency = 2,
      .timeout_s = 20};
}

std::string MistakeOf(const ServeBenchOptions& options) {
  const auto run = Measure(options);
  EXPECT_FALSE(run.ok());
  return MessageOf(run.status());
}

// ---- the load

TEST(ServeLoad, ServesAllOnAsManyConnectionsAsRunTogether) {
  FakeServer server(Serving([](const Received&) { return Reply{{Chunked(kThreeTokens)}}; }));
  ServeBenchOptions options = Asking(server.url(), 20);
  options.api_key = "secret";
  const auto run = Measure(options);
  ASSERT_TRUE(run.ok()) << run.status();
  ServeFigures figures = FiguresOf(*run);
  EXPECT_EQ(figures.num_served, 20);
  EXPECT_EQ(figures.output_tokens, 60);
  EXPECT_EQ(figures.prompt_tokens, 160);
  EXPECT_EQ(run->model, "fake");
  EXPECT_LE(server.num_connections(), 2);
  EXPECT_EQ(run->num_connections, server.num_connections());
  EXPECT_GT(run->generator_cpu_s, 0);
  for (const Received& request : server.received()) {
    EXPECT_NE(request.head.find("\r\nAuthorization: Bearer secret"), std::string::npos);
  }
}

TEST(ServeLoad, ReadsAnswersCutAnywhere) {
  const std::string answer = Chunked(kThreeTokens);
  std::atomic<size_t> cut{0};
  FakeServer server(Serving([&](const Received&) {
    const size_t at = cut++ % answer.size();
    return Reply{{answer.substr(0, at), answer.substr(at)}};
  }));
  const auto run = Measure(Asking(server.url(), static_cast<int64_t>(answer.size())));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(FiguresOf(*run).output_tokens, 3 * std::ssize(answer)) << FiguresOf(*run).first_error;
}

TEST(ServeLoad, ConnectionsStandBeforeTheClockStarts) {
  FakeServer server(Serving([](const Received&) { return Reply{{Chunked(kThreeTokens)}}; }));
  ServeBenchOptions options = Asking(server.url(), 1);
  options.num_connections = 30;
  ASSERT_TRUE(Measure(options).ok());
  EXPECT_EQ(server.num_connections(), 30);
}

// The server may close a connection that lies idle; nothing is lost by that.
TEST(ServeLoad, SendsAgainWhatMetAClosedConnection) {
  FakeServer server(Serving([](const Received& request) {
    return Reply{.pieces = {Chunked(kThreeTokens)}, .closes = request.idx > 0};
  }));
  const auto run = Measure(Asking(server.url(), 12));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(FiguresOf(*run).num_served, 12) << FiguresOf(*run).first_error;
}

TEST(ServeLoad, CountsWhatFailed) {
  std::mutex mutex;
  std::map<std::string, size_t> known;  // prompts, which may come again, by their first coming
  FakeServer server(Serving([&](const Received& request) -> Reply {
    std::lock_guard lock(mutex);
    switch (known.emplace(request.body, known.size()).first->second % 4) {
      case 0:
        return {{Whole(429, R"({"error":{"message":"slow down"}})")}};
      case 1:
        return {{Chunked({kThreeTokens[0]})}};  // no [DONE]
      case 2:
        return {.pieces = {}, .closes = true};
      default:
        return {{Chunked(kThreeTokens)}};
    }
  }));
  ServeBenchOptions options = Asking(server.url(), 8);
  options.max_concurrency = 1;
  const auto run = Measure(options);
  ASSERT_TRUE(run.ok()) << run.status();
  ServeFigures figures = FiguresOf(*run);
  EXPECT_EQ(figures.outcomes["429"], 2);
  EXPECT_EQ(figures.outcomes["200, then failed"], 2);
  EXPECT_EQ(figures.outcomes["no answer"], 2);
  EXPECT_EQ(figures.outcomes["200"], 2);
  EXPECT_EQ(figures.first_error, "HTTP 429: slow down");
  EXPECT_EQ(figures.ttft_s.count, static_cast<size_t>(figures.num_served));
}

TEST(ServeLoad, OpenLoopKeepsItsSchedule) {
  FakeServer server(Serving([](const Received&) { return Reply{{Chunked(kThreeTokens)}}; }));
  ServeBenchOptions options = Asking(server.url(), 10);
  options.scheduled = true;
  options.max_concurrency = 0;
  options.random.requests_per_s = 100;
  options.random.constant_gaps = true;
  const auto run = Measure(options);
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_EQ(run->requests.size(), 10u);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(run->requests[i].due_s, 0.01 * static_cast<double>(i), 1e-9);
    EXPECT_GE(run->requests[i].sent_s, run->requests[i].due_s);
  }
  EXPECT_EQ(FiguresOf(*run).late_s.count, 10u);
}

TEST(ServeLoad, StopsSendingWhenItsTimeIsOver) {
  FakeServer server(Serving([](const Received&) {
    RealClock().SleepUntil(RealClock().Now() + std::chrono::milliseconds(20));
    return Reply{{Chunked(kThreeTokens)}};
  }));
  ServeBenchOptions options = Asking(server.url(), 0);
  options.duration_s = 0.2;
  const auto run = Measure(options);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_GE(run->requests.size(), 1u);
  EXPECT_LE(run->requests.size(), 24u);
  // Of the two that run at a time, each sends again only if the one before ended in time.
  const auto in_time = std::ranges::count_if(
      run->requests, [](const ServedRequest& request) { return request.end_s < 0.2; });
  EXPECT_LE(std::ssize(run->requests), in_time + 2);
}

TEST(ServeLoad, StopsSendingWhenTold) {
  FakeServer server(Serving([](const Received&) { return Reply{{Chunked(kThreeTokens)}}; }));
  ServeBenchOptions options = Asking(server.url(), 0);
  int asked = 0;
  options.is_stopped = [&] { return ++asked > 5; };
  const auto run = Measure(options);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->requests.size(), 5u);
  EXPECT_EQ(FiguresOf(*run).num_served, 5);
}

TEST(ServeLoad, GivesUpOnAServerThatDoesNotAnswer) {
  FakeServer server(Serving([](const Received&) { return Reply{{"HTTP/1.1 200 OK\r\n"}}; }));
  ServeBenchOptions options = Asking(server.url(), 2);
  options.timeout_s = 0.2;
  const auto run = Measure(options);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(FiguresOf(*run).outcomes["no answer"], 2);
  EXPECT_NE(FiguresOf(*run).first_error.find("no complete answer within 0.2 s"), std::string::npos);
}

TEST(ServeLoad, WarmupsComeBeforeTheClockAndWithOtherPrompts) {
  FakeServer server(Serving([](const Received&) { return Reply{{Chunked(kThreeTokens)}}; }));
  ServeBenchOptions options = Asking(server.url(), 2);
  options.num_warmups = 3;
  const auto run = Measure(options);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->requests.size(), 2u);
  std::set<std::string> bodies;
  for (const Received& request : server.received()) bodies.insert(request.body);
  EXPECT_EQ(bodies.size(), 6u) << "the list of models, and five prompts";
}

TEST(ServeLoad, AsksWhatWordsCost) {
  FakeServer server(Serving([](const Received& request) {
    if (request.body.find("\"stream\"") != std::string::npos) return Reply{{Chunked(kThreeTokens)}};
    const auto words = std::count(request.body.begin(), request.body.end(), ' ');
    const bool many = words > 100;
    return Reply{
        {Whole(200, StrCat(R"({"usage":{"prompt_tokens":)", many ? 12 + 528 : 12 + 16, "}}"))}};
  }));
  ServeBenchOptions options = Asking(server.url(), 1);
  options.endpoint = "/v1/chat/completions";
  options.body.api = ServeApi::kChat;
  options.random.prompt.typical = 112;
  ASSERT_TRUE(Measure(options).ok());
  const auto body = ParseJson(server.received().back().body);
  ASSERT_TRUE(body.ok());
  const std::string content = body->Find("messages")->items[0].Find("content")->text;
  EXPECT_EQ(std::count(content.begin(), content.end(), ' '), 49) << "50 words of 2 tokens and 12";
}

// ---- mistakes

TEST(ServeLoad, TellsWhatIsWrongWithTheServer) {
  std::string free_port;
  {
    FakeServer gone([](const Received&) { return Models(); });
    free_port = gone.url();
  }
  const std::string refused = MistakeOf(Asking(free_port));
  EXPECT_NE(refused.find(free_port + "/v1/models"), std::string::npos) << refused;
  EXPECT_NE(refused.find("Connection refused; is a server running there?"), std::string::npos)
      << refused;

  FakeServer locked([](const Received&) -> Reply {
    return {{Whole(401, R"({"error":{"message":"no such key"}})")}};
  });
  const std::string key = MistakeOf(Asking(locked.url()));
  EXPECT_NE(key.find("HTTP 401, application/json: no such key; expected a key"), std::string::npos)
      << key;

  FakeServer web(
      [](const Received&) -> Reply { return {{Whole(404, "<html>Not\nfound", "text/html")}}; });
  const std::string html = MistakeOf(Asking(web.url()));
  EXPECT_NE(html.find("HTTP 404, text/html: <html>Not\\nfound; expected an OpenAI-shaped"),
            std::string::npos)
      << html;

  FakeServer other(
      [](const Received&) -> Reply { return {.pieces = {"SSH-2.0-x\r\n"}, .closes = true}; });
  EXPECT_NE(MistakeOf(Asking(other.url())).find("the answer is not HTTP"), std::string::npos);
}

TEST(HttpUrl, IsTakenApart) {
  const auto url = ParseHttpUrl("http://[::1]:8080/a/b/");
  ASSERT_TRUE(url.ok());
  EXPECT_EQ(url->host, "::1");
  EXPECT_EQ(url->port, "8080");
  EXPECT_EQ(url->path, "/a/b");
  EXPECT_EQ(ParseHttpUrl("http://host")->port, "80");
  EXPECT_EQ(ParseHttpUrl("http://host:1/")->url, "http://host:1");
  EXPECT_EQ(ParseHttpUrl("https://host").status().code(), StatusCode::kUnimplemented);
  for (const char* wrong : {"", "host:80", "http://", "http:///v1", "http://h:", "http://h:port",
                            "http://h:123456", "http://[::1", "http://[::1]80", "http://a b"}) {
    EXPECT_EQ(ParseHttpUrl(wrong).status().code(), StatusCode::kInvalidArgument) << wrong;
  }
}

// ---- figures

ServedRequest Streamed(std::vector<double> piece_s) {
  ServedRequest request{.end_s = piece_s.back(), .status = 200};
  request.piece_s = std::move(piece_s);
  return request;
}

TEST(ServeFigures, CountTokensWhileAllStreamsRun) {
  ServeRun run{.requests = {Streamed({1, 2, 3, 4, 5}), Streamed({2.5, 3.5, 4.5, 6})},
               .duration_s = 10};
  const ServeFigures figures = FiguresOf(run);
  EXPECT_EQ(figures.peak_streams, 2);
  EXPECT_DOUBLE_EQ(figures.peak_s, 2.5);
  EXPECT_DOUBLE_EQ(figures.peak_tokens_per_s, 5 / 2.5);  // at 3, 3.5, 4, 4.5 and 5
  EXPECT_DOUBLE_EQ(figures.output_tokens_per_s, 0.9);
  EXPECT_DOUBLE_EQ(figures.gap_s.max, 1.5);
  EXPECT_DOUBLE_EQ(figures.ttft_s.p50, 1);
}

TEST(ServeFigures, AnEmptyRunHasNone) {
  const ServeRun run;
  const ServeFigures figures = FiguresOf(run);
  EXPECT_EQ(figures.num_served, 0);
  EXPECT_EQ(figures.ttft_s.count, 0u);
  EXPECT_NE(ServeJson(run, figures).find("\"peak_tokens_per_s\": null"), std::string::npos);
  EXPECT_NE(ServeTable(run, figures).find("requests: 0"), std::string::npos);
  EXPECT_NE(ServePlot(run).find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace deepinfer
