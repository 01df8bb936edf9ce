#include "request/http_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/rng.h"
#include "request/testing/loop_thread.h"
#include "request/testing/raw_client.h"

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
using Clock = std::chrono::steady_clock;

HttpServerOptions QuickOptions() {
  return {.port = 0,
          .max_header_bytes = 4096,
          .max_body_bytes = 100'000,
          .stream_buffer_bytes = 200'000,
          .header_timeout = 200ms,
          .body_timeout = 200ms,
          .idle_timeout = 5s,
          .write_timeout = 300ms};
}

// A server whose handler echoes, streams, or keeps the reply for the test:
//   /echo      method, path, query and body
//   /keep      the reply goes to kept_
//   /stream/N  N pieces of 1,000 bytes at once
//   /big/N     one body of N bytes
//   /drop      no answer; /throw: an exception
class HttpServerTest : public ::testing::Test {
 protected:
  ~HttpServerTest() override {
    thread_.Do([this] {
      kept_.clear();
      server_.reset();
    });
    thread_.Stop();
  }

  void Start(const HttpServerOptions& options = QuickOptions()) {
    thread_.Do([&] {
      auto server =
          HttpServer::Listen(thread_.loop(), rng_, options,
                             [this](HttpRequest request, std::shared_ptr<HttpReply> reply) {
                               Handle(std::move(request), std::move(reply));
                             });
      ASSERT_TRUE(server.ok()) << server.status();
      server_ = *std::move(server);
      port_ = server_->port();
    });
  }

  void Handle(HttpRequest request, std::shared_ptr<HttpReply> reply) {
    const auto number = [&](std::string_view prefix) {
      return std::stoul(request.path.substr(prefix.size()));
    };
    if (request.path == "/keep") {
      reply->OnClosed([this] { ++num_closed_; });
      kept_.push_back(std::move(reply));
      ++num_kept_;
    } else if (request.path.starts_with("/stream/")) {
      reply->BeginStream({.content_type = "text/event-stream"});
      for (size_t i = 0; i < number("/stream/"); ++i) reply->Write(std::string(1000, 'a' + i % 26));
      reply->End();
    } else if (request.path.starts_with("/big/")) {
      reply->Send({.body = std::string(number("/big/"), 'b')});
    } else if (request.path == "/throw") {
      throw std::runtime_error("a handler that throws");
    } else if (request.path != "/drop") {
      reply->Send(
          {.content_type = "text/plain",
           .body = request.method + " " + request.path + "?" + request.query + " " + request.body});
    }
  }

  HttpServerStats Stats() {
    HttpServerStats stats;
    thread_.Do([&] { stats = server_->stats(); });
    return stats;
  }
  // Waits until `count` requests have come to /keep.
  void WaitForKept(int count) {
    ASSERT_TRUE(Eventually([&] { return num_kept_ >= count; }));
  }

  LoopThread thread_;
  std::unique_ptr<HttpServer> server_;
  std::vector<std::shared_ptr<HttpReply>> kept_;
  std::atomic<int> num_kept_ = 0, num_closed_ = 0;
  Rng& rng_ = RealRng();
  int32_t port_ = 0;
};

TEST_F(HttpServerTest, AnswersARequest) {
  Start();
  const RawAnswer answer = Fetch(port_, "/echo/a%20b?c=%20d", "the body");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "POST /echo/a b?c=%20d the body");
  EXPECT_EQ(answer.Header("content-type"), "text/plain");
  EXPECT_NE(answer.Header("date"), "");
  EXPECT_NE(answer.Header("x-request-id"), "");
}

TEST_F(HttpServerTest, TakesARequestByteByByte) {
  HttpServerOptions options = QuickOptions();
  options.header_timeout = options.body_timeout = 10s;
  Start(options);
  RawClient client(port_);
  for (const char c : PostText("/echo", "a body")) client.Send({&c, 1});
  const auto answer = client.ReadAnswer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "POST /echo? a body");
}

TEST_F(HttpServerTest, TakesAChunkedBody) {
  Start();
  RawClient client(port_);
  client.Send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  client.Send("2\r\nde\r\n0\r\n\r\n");
  EXPECT_EQ(client.ReadAnswer().value_or(RawAnswer{}).body, "POST /echo? abcde");
}

TEST_F(HttpServerTest, OneConnectionTakesManyRequests) {
  Start();
  RawClient client(port_);
  for (int i = 0; i < 3; ++i) {
    client.Send(GetText("/echo/" + std::to_string(i)));
    const auto answer = client.ReadAnswer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->body, "GET /echo/" + std::to_string(i) + "? ");
    EXPECT_EQ(answer->Header("connection"), "keep-alive");
  }
  client.Send(GetText("/echo", "Connection: close\r\n"));
  EXPECT_EQ(client.ReadAnswer().value_or(RawAnswer{}).Header("connection"), "close");
  EXPECT_EQ(client.ReadToEnd(), "");
}

TEST_F(HttpServerTest, PipelinedRequestsAreAnsweredInTheirOrder) {
  Start();
  RawClient client(port_);
  client.Send(GetText("/keep") + PostText("/echo", "second") + GetText("/echo/third"));
  WaitForKept(1);
  thread_.Do([this] { kept_[0]->Send({.body = "first"}); });
  EXPECT_EQ(client.ReadAnswer().value_or(RawAnswer{}).body, "first");
  EXPECT_EQ(client.ReadAnswer().value_or(RawAnswer{}).body, "POST /echo? second");
  EXPECT_EQ(client.ReadAnswer().value_or(RawAnswer{}).body, "GET /echo/third? ");
}

// More than is read ahead while an answer is made.
TEST_F(HttpServerTest, ManyPipelinedRequestsWaitTheirTurn) {
  HttpServerOptions options = QuickOptions();
  options.write_timeout = 10s;
  Start(options);
  RawClient client(port_);
  constexpr int kCount = 20;
  std::string all = GetText("/keep");
  for (int i = 0; i < kCount; ++i) all += PostText("/echo", std::string(20'000, 'x'));
  std::thread sender([&] { client.Send(all); });
  WaitForKept(1);
  std::this_thread::sleep_for(20ms);
  thread_.Do([this] { kept_[0]->Send({.body = "first"}); });
  EXPECT_EQ(client.ReadAnswer().value_or(RawAnswer{}).body, "first");
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ(client.ReadAnswer().value_or(RawAnswer{}).body.size(), 12 + 20'000u) << i;
  }
  sender.join();
}

TEST_F(HttpServerTest, AStreamComesInChunks) {
  Start();
  RawClient client(port_);
  client.Send(GetText("/keep"));
  WaitForKept(1);
  thread_.Do([this] {
    kept_[0]->BeginStream({.content_type = "text/event-stream"});
    kept_[0]->Write("data: 1\n\n");
  });
  const std::string first = client.ReadUntil("data: 1\n\n\r\n");
  EXPECT_NE(first.find("Transfer-Encoding: chunked"), std::string::npos) << first;
  EXPECT_NE(first.find("\r\n9\r\ndata: 1\n\n\r\n"), std::string::npos) << first;
  thread_.Do([this] {
    kept_[0]->Write("data: 2\n\n");
    kept_[0]->End();
  });
  EXPECT_EQ(client.ReadUntil("0\r\n\r\n"), "9\r\ndata: 2\n\n\r\n0\r\n\r\n");
  client.Send(GetText("/echo"));  // the connection lives on
  EXPECT_TRUE(client.ReadAnswer());
}

TEST_F(HttpServerTest, AStreamToAnOldClientEndsWithTheConnection) {
  Start();
  RawClient client(port_);
  client.Send("GET /stream/3 HTTP/1.0\r\n\r\n");
  const auto answer = client.ReadAnswer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body.size(), 3000u);
  EXPECT_EQ(answer->Header("transfer-encoding"), "");
}

TEST_F(HttpServerTest, HeadHasNoBody) {
  Start();
  RawClient client(port_);
  client.Send("HEAD /big/1000 HTTP/1.1\r\nHost: x\r\n\r\n" + GetText("/echo"));
  const auto head = client.ReadAnswer(/*to_head=*/true);
  ASSERT_TRUE(head);
  EXPECT_EQ(head->Header("content-length"), "1000");
  EXPECT_EQ(client.ReadAnswer().value_or(RawAnswer{}).body, "GET /echo? ");
  client.Send("HEAD /stream/2 HTTP/1.1\r\nHost: x\r\n\r\n" + GetText("/echo"));
  EXPECT_TRUE(client.ReadAnswer(/*to_head=*/true));
  EXPECT_EQ(client.ReadAnswer().value_or(RawAnswer{}).body, "GET /echo? ");
}

TEST_F(HttpServerTest, AClientThatAsksBeforeSendingIsToldToGoOn) {
  Start();
  RawClient client(port_);
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.ReadAnswer().value_or(RawAnswer{}).status, 100);
  client.Send("body");
  EXPECT_EQ(client.ReadAnswer().value_or(RawAnswer{}).body, "POST /echo? body");
}

TEST_F(HttpServerTest, AClientThatAsksForTooMuchIsNotToldToGoOn) {
  Start();
  RawClient client(port_);
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100001\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.ReadAnswer().value_or(RawAnswer{}).status, 413);
}

TEST_F(HttpServerTest, TooLargeBodiesAreRefused) {
  Start();
  EXPECT_EQ(Fetch(port_, "/echo", std::string(100'000, 'x')).status, 200);
  const RawAnswer refused = Fetch(port_, "/echo", std::string(100'001, 'x'));
  EXPECT_EQ(refused.status, 413);
  EXPECT_EQ(refused.Header("connection"), "close");
  EXPECT_NE(refused.body.find("100000"), std::string::npos) << refused.body;
  RawClient client(port_);
  client.Send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n186a1\r\n");
  client.Send(std::string(0x186a1, 'x'));
  EXPECT_EQ(client.ReadAnswer().value_or(RawAnswer{}).status, 413);
}

TEST_F(HttpServerTest, BodiesAreBoundedTogether) {
  HttpServerOptions options = QuickOptions();
  options.body_timeout = 10s;
  options.max_all_bodies_bytes = 150'000;
  Start(options);
  const std::string most(90'000, 'x');
  const std::string head =
      StrCat("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: ", most.size(), "\r\n\r\n");
  {
    RawClient first(port_);  // all but one byte
    first.Send(head + most.substr(1));
    ASSERT_TRUE(Eventually([&] { return Stats().bytes_in > std::ssize(most); }));
    const RawAnswer refused = Fetch(port_, "/echo", most);
    EXPECT_EQ(refused.status, 503);
    EXPECT_EQ(refused.Header("retry-after"), "1");
    EXPECT_EQ(Fetch(port_, "/echo", "short").status, 200);
    first.Send("x");
    EXPECT_EQ(first.ReadAnswer().value_or(RawAnswer{}).status, 200);
    const int64_t before = Stats().bytes_in;
    first.Send(head + most.substr(1));
    ASSERT_TRUE(Eventually([&] { return Stats().bytes_in >= before + std::ssize(most); }));
  }  // leaves in the middle
  EXPECT_TRUE(Eventually([&] { return Fetch(port_, "/echo", most).status == 200; }));
}

TEST_F(HttpServerTest, TooLargeHeadersAreRefused) {
  Start();
  const std::string fits(3500, 'a'), too_large(5000, 'a');
  EXPECT_EQ(Fetch(port_, "/echo", "", "A: " + fits + "\r\n").status, 200);
  EXPECT_EQ(Fetch(port_, "/echo", "", "A: " + too_large + "\r\n").status, 431);
  EXPECT_EQ(Fetch(port_, "/" + too_large).status, 431);
}

TEST_F(HttpServerTest, WhatIsNotHttpIsRefused) {
  Start();
  for (const std::string& text : {
           std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),  // TLS
           std::string("nonsense\r\n\r\n"),
           std::string("GET /a HTTP/2.0\r\nHost: x\r\n\r\n"),
           std::string("GET /a HTTP/1.1\r\nHost x\r\n\r\n"),
           std::string("GET /a HTTP/1.1\r\n\r\n"),                        // no Host
           std::string("GET /a HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"),  // two
           std::string("GET a HTTP/1.1\r\nHost: x\r\n\r\n"),
           std::string("GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n"),
           std::string("GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n"),
           std::string("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
                       "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
           std::string("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n"),
           std::string("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
                       "Content-Length: 6\r\n\r\nabcdef"),
           std::string("POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
       }) {
    RawClient client(port_);
    client.Send(text);
    const auto answer = client.ReadAnswer();
    ASSERT_TRUE(answer) << text;
    EXPECT_EQ(answer->status, 400) << text;
    EXPECT_NE(answer->Header("x-request-id"), "");
    EXPECT_EQ(client.ReadToEnd(), "") << text;
  }
}

TEST_F(HttpServerTest, AGoodIdOfTheClientIsKept) {
  Start();
  EXPECT_EQ(Fetch(port_, "/echo", "", "X-Request-Id: abc-1\r\n").Header("x-request-id"), "abc-1");
  const std::string ours =
      Fetch(port_, "/echo", "", "X-Request-Id: with space\r\n").Header("x-request-id");
  EXPECT_TRUE(ours.starts_with("req_")) << ours;
  EXPECT_NE(ours, Fetch(port_, "/echo").Header("x-request-id"));
}

// ---- slow clients

TEST_F(HttpServerTest, ASlowRequestIsEnded) {
  Start();
  for (const std::string& part :
       {std::string("GET /echo HT"), std::string("POST /echo HTTP/1.1\r\nHost: x\r\n"
                                                 "Content-Length: 10\r\n\r\nabc")}) {
    RawClient client(port_);
    client.Send(part);
    const auto start = Clock::now();
    const auto answer = client.ReadAnswer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 408);
    EXPECT_GE(Clock::now() - start, 190ms);
    EXPECT_EQ(client.ReadToEnd(), "");
  }
}

TEST_F(HttpServerTest, AnIdleConnectionEnds) {
  HttpServerOptions options = QuickOptions();
  options.idle_timeout = 200ms;
  Start(options);
  RawClient never(port_);
  EXPECT_EQ(never.ReadToEnd(), "");
  RawClient again(port_);
  again.Send(GetText("/echo"));
  EXPECT_TRUE(again.ReadAnswer());
  EXPECT_EQ(again.ReadToEnd(), "");
  EXPECT_TRUE(Eventually([this] { return Stats().connections == 0; }));
}

TEST_F(HttpServerTest, AnAnswerMayTakeLongerThanARequest) {
  Start();
  RawClient client(port_);
  client.Send(GetText("/keep"));
  WaitForKept(1);
  std::this_thread::sleep_for(500ms);
  thread_.Do([this] { kept_[0]->Send({.body = "late"}); });
  EXPECT_EQ(client.ReadAnswer().value_or(RawAnswer{}).body, "late");
}

TEST_F(HttpServerTest, ASlowReaderOfAStreamIsCutOffAtItsLimit) {
  HttpServerOptions options = QuickOptions();
  options.write_timeout = 1h;
  Start(options);
  RawClient client(port_);
  client.SetReceiveBuffer(4096);
  client.Send(GetText("/keep"));
  WaitForKept(1);
  thread_.Do([this] { kept_[0]->BeginStream({}); });
  int64_t written = 0;
  while (num_closed_ == 0 && written < 100'000'000) {
    thread_.Do([&] { kept_[0]->Write(std::string(10'000, 'x')); });
    written += 10'000;
  }
  EXPECT_EQ(num_closed_, 1);
  EXPECT_GE(written, 200'000);
  EXPECT_LE(written, 20'000'000);  // what the system buffers is not ours
  thread_.Do([this] {
    EXPECT_TRUE(kept_[0]->closed());
    kept_[0]->Write("ignored");
    kept_[0]->End();
  });
  EXPECT_EQ(Stats().cut_off, 1);
  EXPECT_TRUE(Eventually([this] { return Stats().connections == 0; }));
}

TEST_F(HttpServerTest, AClientThatTakesNothingIsCutOffInTime) {
  Start();
  RawClient client(port_);
  client.SetReceiveBuffer(4096);
  client.Send(GetText("/big/50000000"));
  EXPECT_TRUE(Eventually([this] { return Stats().cut_off == 1; }));
  EXPECT_TRUE(Eventually([this] { return Stats().connections == 0; }));
}

TEST_F(HttpServerTest, AClientThatReadsSlowlyGetsAll) {
  HttpServerOptions options = QuickOptions();
  options.write_timeout = 10s;
  Start(options);
  RawClient client(port_);
  client.SetReceiveBuffer(65536);
  client.Send(GetText("/big/3000000", "Connection: close\r\n"));
  std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(client.ReadAnswer().value_or(RawAnswer{}).body == std::string(3'000'000, 'b'));
}

// ---- clients that go

TEST_F(HttpServerTest, AClientThatGoesIsNoticedAtOnce) {
  Start();
  for (int how = 0; how < 6; ++how) {
    const int before = num_closed_;
    RawClient client(port_);
    client.Send(GetText("/keep") + (how >= 4 ? PostText("/echo", "waits") : ""));
    WaitForKept(how + 1);
    if (how % 2 == 1) {
      thread_.Do([this] {
        kept_.back()->BeginStream({});
        kept_.back()->Write("a piece");
      });
      client.ReadUntil("a piece");
    }
    const auto start = Clock::now();
    if (how < 2) client.Close();
    if (how == 2 || how == 3) client.Reset();
    if (how >= 4) client.ShutdownSend();  // as good as gone
    EXPECT_TRUE(Eventually([&] { return num_closed_ == before + 1; })) << how;
    EXPECT_LT(Clock::now() - start, 100ms) << how;
    thread_.Do([this] {
      EXPECT_TRUE(kept_.back()->closed());
      kept_.back()->Write("ignored");
      kept_.back()->Send({});
      kept_.back()->End();
    });
  }
  EXPECT_EQ(Stats().gone, 6);
  EXPECT_TRUE(Eventually([this] { return Stats().connections == 0; }));
}

TEST_F(HttpServerTest, AHalfClosedClientGetsWhatIsAnsweredAtOnce) {
  Start();
  RawClient client(port_);
  client.Send(GetText("/echo/1") + GetText("/echo/2"));
  client.ShutdownSend();
  EXPECT_EQ(client.ReadAnswer().value_or(RawAnswer{}).body, "GET /echo/1? ");
  EXPECT_EQ(client.ReadAnswer().value_or(RawAnswer{}).body, "GET /echo/2? ");
  EXPECT_EQ(client.ReadToEnd(), "");
}

TEST_F(HttpServerTest, ClientsThatVanishLeaveNothing) {
  HttpServerOptions options = QuickOptions();
  options.body_timeout = options.header_timeout = 5s;
  Start(options);
  SeededRng rng(7);
  for (int i = 0; i < 300; ++i) {
    RawClient client(port_);
    const std::string all = GetText("/keep") + PostText("/echo", std::string(1000, 'x')) +
                            GetText("/stream/30") + GetText("/big/100000");
    client.Send(all.substr(0, rng.NextU64() % (all.size() + 1)));
    const uint64_t how = rng.NextU64() % 4;
    if (how == 1) std::this_thread::sleep_for(1ms);
    if (how == 2) {
      thread_.Do([this] {
        for (auto& reply : kept_) reply->Send({.body = "kept"});
        kept_.clear();
      });
    }
    if (rng.NextU64() % 2 == 0) client.Reset();
  }
  EXPECT_TRUE(Eventually([this] { return Stats().connections == 0; }));
  EXPECT_EQ(Stats().answering, 0);
}

// ---- faults of ours

TEST_F(HttpServerTest, ARequestWithoutAnAnswerIs500) {
  Start();
  EXPECT_EQ(Fetch(port_, "/drop").status, 500);
  EXPECT_EQ(Fetch(port_, "/throw").status, 500);
  EXPECT_EQ(Fetch(port_, "/echo").status, 200);
}

TEST_F(HttpServerTest, AStreamThatIsDroppedEndsTheConnection) {
  Start();
  RawClient client(port_);
  client.Send(GetText("/keep"));
  WaitForKept(1);
  thread_.Do([this] {
    kept_[0]->BeginStream({});
    kept_[0]->Write("a piece");
  });
  client.ReadUntil("a piece\r\n");
  thread_.Do([this] { kept_.clear(); });
  EXPECT_EQ(client.ReadToEnd(), "");  // no last chunk, and nothing else
}

TEST_F(HttpServerTest, OnlyTheFirstAnswerCounts) {
  Start();
  RawClient client(port_);
  client.Send(GetText("/keep"));
  WaitForKept(1);
  thread_.Do([this] {
    kept_[0]->Send({.body = "first"});
    kept_[0]->Send({.body = "second"});
    kept_[0]->BeginStream({});
    kept_[0]->Write("third");
    kept_[0]->End();
  });
  client.Send(GetText("/echo"));
  EXPECT_EQ(client.ReadAnswer().value_or(RawAnswer{}).body, "first");
  EXPECT_EQ(client.ReadAnswer().value_or(RawAnswer{}).body, "GET /echo? ");
}

// ---- the port

TEST_F(HttpServerTest, TooManyConnectionsAreTold) {
  HttpServerOptions options = QuickOptions();
  options.max_connections = 2;
  Start(options);
  RawClient first(port_);
  RawClient second(port_);
  first.Send(GetText("/echo"));
  EXPECT_TRUE(first.ReadAnswer());
  EXPECT_TRUE(Eventually([this] { return Stats().connections == 2; }));
  const RawAnswer refused = Fetch(port_, "/echo");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.Header("retry-after"), "1");
  first.Close();
  EXPECT_TRUE(Eventually([this] { return Stats().connections == 1; }));
  EXPECT_EQ(Fetch(port_, "/echo").status, 200);
}

TEST_F(HttpServerTest, ListensOnTheOtherKindOfAddress) {
  HttpServerOptions options = QuickOptions();
  options.host = "::1";
  bool listens = false;
  std::string url;
  thread_.Do([&] {
    auto server =
        HttpServer::Listen(thread_.loop(), rng_, options,
                           [](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
                             reply->Send({.body = request.peer});
                           });
    listens = server.ok();
    if (!listens) return;
    server_ = *std::move(server);
    port_ = server_->port();
    url = server_->url();
  });
  if (!listens) GTEST_SKIP() << "no IPv6 here";
  EXPECT_EQ(url, "http://[::1]:" + std::to_string(port_));
  RawClient client(port_, /*v6=*/true);
  client.Send(GetText("/"));
  EXPECT_TRUE(client.ReadAnswer().value_or(RawAnswer{}).body.starts_with("[::1]:"));
}

TEST_F(HttpServerTest, AnAddressThatCannotBeHadIsOneLine) {
  Start();
  HttpServerOptions options = QuickOptions();
  options.port = port_;
  thread_.Do([&] {
    const auto taken = HttpServer::Listen(thread_.loop(), rng_, options, nullptr);
    EXPECT_EQ(
        MessageOf(taken.status()),
        StrCat("127.0.0.1 port ", port_, ": is in use by another program; choose another --port"));
    options.host = "no such host";
    const auto unknown = HttpServer::Listen(thread_.loop(), rng_, options, nullptr);
    EXPECT_TRUE(MessageOf(unknown.status()).starts_with("--host: found \"no such host\""));
  });
}

TEST_F(HttpServerTest, DrainLetsAnswersEndAndNothingBegin) {
  Start();
  RawClient idle(port_);
  idle.Send(GetText("/echo"));
  EXPECT_TRUE(idle.ReadAnswer());
  RawClient client(port_);
  client.Send(GetText("/keep"));
  WaitForKept(1);
  std::atomic<bool> drained = false;
  thread_.Do([&] { server_->Drain([&drained] { drained = true; }); });
  idle.Send(GetText("/echo"));  // an open connection is answered once more
  EXPECT_EQ(idle.ReadAnswer().value_or(RawAnswer{}).Header("connection"), "close");
  EXPECT_EQ(idle.ReadToEnd(), "");
  EXPECT_FALSE(drained);
  thread_.Do([this] {
    kept_[0]->BeginStream({});
    kept_[0]->Write("the rest");
    kept_[0]->End();
  });
  EXPECT_EQ(client.ReadAnswer().value_or(RawAnswer{}).body, "the rest");
  EXPECT_EQ(client.ReadToEnd(), "");
  EXPECT_TRUE(Eventually([&] { return drained.load(); }));
}

TEST_F(HttpServerTest, CloseEndsWhatRuns) {
  Start();
  RawClient client(port_);
  client.Send(GetText("/keep"));
  WaitForKept(1);
  thread_.Do([this] { server_->Close(); });
  EXPECT_EQ(num_closed_, 1);
  EXPECT_EQ(client.ReadToEnd(), "");
}

}  // namespace
}  // namespace deepinfer
