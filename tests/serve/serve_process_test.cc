// `deepinfer serve` end to end: start, chat, limits, leaving clients, signals.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "request/testing/raw_client.h"
#include "serve_process.h"
#include "tokens/json.h"

namespace deepinfer {
namespace {

using namespace std::chrono_literals;
using testing::Fetch;
using testing::PostText;
using testing::RawAnswer;
using testing::RawClient;
using testing::ServeProcess;
using testing::TinyFolder;

std::vector<std::string> Tiny(std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"--model", TinyFolder() + "/tiny", "--kv-cache-bytes",
                                        "8388608", "--max-num-seqs",       "16"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

constexpr char kLongStream[] =
    R"({"prompt":[1,20,30],"max_tokens":100000,"ignore_eos":true,"stream":true})";

int64_t Number(int port, std::string_view name) {
  const auto stats = ParseJson(Fetch(port, "/stats").body);
  const JsonValue* value = stats.ok() ? stats->Find(name) : nullptr;
  return value == nullptr ? -1 : std::stoll(value->text);
}

bool Eventually(const std::function<bool()>& ready) {
  for (int i = 0; i < 1000; ++i) {
    if (ready()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

TEST(ServeProcess, TheBundledModelAnswersAChat) {
  ServeProcess server({"--max-model-len", "1024", "--max-num-seqs", "4"});
  const int port = server.Port();
  ASSERT_GT(port, 0);
  EXPECT_EQ(Fetch(port, "/ready").status, 200);
  const RawAnswer models = Fetch(port, "/v1/models");
  EXPECT_NE(models.body.find("\"deepseek-flash\""), std::string::npos) << models.body;
  EXPECT_NE(models.body.find("\"nano\""), std::string::npos) << models.body;
  // Its default is not to think, so content comes within 64 tokens.
  const RawAnswer answer = Fetch(
      port, "/v1/chat/completions",
      R"({"messages":[{"role":"user","content":"What is 12 + 7?"}],"max_tokens":64,"temperature":0})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto body = ParseJson(answer.body);
  ASSERT_TRUE(body.ok()) << answer.body;
  const JsonValue* content = body->Find("choices")->items[0].Find("message")->Find("content");
  EXPECT_NE(content->text.find("19"), std::string::npos) << answer.body;
  server.Signal(SIGTERM);
  EXPECT_EQ(server.ExitCode(), 0);
}

TEST(ServeProcess, TheAccessLogHoldsNoText) {
  ServeProcess server(Tiny({"--log-format", "json"}));
  const int port = server.Port();
  ASSERT_GT(port, 0);
  EXPECT_EQ(Fetch(port, "/v1/completions", R"({"prompt":"a secret word","max_tokens":3})").status,
            200);
  EXPECT_TRUE(
      Eventually([&] { return server.Log().find("/v1/completions") != std::string::npos; }));
  const std::string log = server.Log();
  EXPECT_EQ(log.find("secret"), std::string::npos);
  EXPECT_NE(log.find("\"output_tokens\":"), std::string::npos) << log;
  size_t at = 0;
  for (size_t end; (end = log.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string line = log.substr(at, end - at);
    EXPECT_TRUE(ParseJson(line).ok()) << line;
  }
}

TEST(ServeProcess, KeysComeFromFlagAndFile) {
  const std::string file = TinyFolder() + "/keys";
  std::ofstream(file) << "# ours\nfrom-file=team\n";
  ServeProcess server(Tiny({"--api-key", "from-flag", "--api-keys", file}));
  const int port = server.Port();
  ASSERT_GT(port, 0);
  EXPECT_EQ(Fetch(port, "/v1/models").status, 401);
  EXPECT_EQ(Fetch(port, "/v1/models", "", "Authorization: Bearer from-flag\r\n").status, 200);
  EXPECT_EQ(Fetch(port, "/v1/models", "", "x-api-key: from-file\r\n").status, 200);
  EXPECT_EQ(Fetch(port, "/").status, 200);
  EXPECT_EQ(server.Log().find("from-flag"), std::string::npos);
}

TEST(ServeProcess, ATermSignalLetsAnswersEnd) {
  ServeProcess server(Tiny());
  const int port = server.Port();
  ASSERT_GT(port, 0);
  RawClient client(port);
  client.Send(PostText("/v1/completions",
                       R"({"prompt":[1,20],"max_tokens":300,"ignore_eos":true,"stream":true})"));
  EXPECT_NE(client.ReadUntil("data: "), "");
  server.Signal(SIGTERM);
  const auto rest = client.ReadToEnd();
  ASSERT_TRUE(rest);
  EXPECT_NE(rest->find("[DONE]"), std::string::npos);
  EXPECT_EQ(server.ExitCode(), 0) << server.Log();
}

TEST(ServeProcess, ASecondSignalEndsAtOnce) {
  ServeProcess server(Tiny());
  const int port = server.Port();
  ASSERT_GT(port, 0);
  RawClient client(port);
  client.Send(PostText("/v1/completions", kLongStream));
  EXPECT_NE(client.ReadUntil("data: "), "");
  server.Signal(SIGINT);
  EXPECT_TRUE(Eventually([&] { return server.Log().find("ending: ") != std::string::npos; }));
  server.Signal(SIGINT);
  EXPECT_EQ(server.ExitCode(), 130) << server.Log();
}

TEST(ServeProcess, DrainHasAnEnd) {
  ServeProcess server(Tiny({"--drain-timeout", "0.2"}));
  const int port = server.Port();
  ASSERT_GT(port, 0);
  RawClient client(port);
  client.Send(PostText("/v1/completions", kLongStream));
  EXPECT_NE(client.ReadUntil("data: "), "");
  server.Signal(SIGTERM);
  EXPECT_EQ(server.ExitCode(), 1) << server.Log();
  EXPECT_NE(server.Log().find("--drain-timeout"), std::string::npos);
}

TEST(ServeProcess, WhatCannotStartIsOneLine) {
  ServeProcess first(Tiny());
  const int port = first.Port();
  ASSERT_GT(port, 0);
  const auto error = [](std::vector<std::string> arguments) {
    ServeProcess server(std::move(arguments));
    EXPECT_EQ(server.ExitCode().value_or(0), 1);
    const std::string log = server.Log();
    const size_t at = log.find("deepinfer serve: ");
    return at == std::string::npos ? "nothing: " + log : log.substr(at);
  };
  EXPECT_EQ(error(Tiny({"--port", std::to_string(port)})),
            "deepinfer serve: 127.0.0.1 port " + std::to_string(port) +
                ": is in use by another program; choose another --port\n");
  EXPECT_TRUE(error({"--model", "/nowhere"}).starts_with("deepinfer serve: /nowhere: "))
      << error({"--model", "/nowhere"});
  EXPECT_TRUE(error(Tiny({"--default-thinking", "maybe"}))
                  .starts_with("deepinfer serve: --default-thinking (on, off, or"));
  EXPECT_TRUE(error(Tiny({"--api-keys", "/nowhere"})).starts_with("deepinfer serve: --api-keys: "));
  EXPECT_EQ(
      error(Tiny({"--max-all-bodies-mib", "1"})),
      "deepinfer serve: --max-all-bodies-mib: found 1, expected at least --max-body-mib, 32\n");
}

// At rest: connections that have just ended may still be there for a moment.
int64_t NumFiles(pid_t pid) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < 20; ++i) {
    const std::filesystem::directory_iterator files("/proc/" + std::to_string(pid) + "/fd");
    least = std::min<int64_t>(least, std::distance(begin(files), end(files)));
    std::this_thread::sleep_for(10ms);
  }
  return least;
}

// Clients that vanish at any state leave nothing behind.
TEST(ServeProcess, VanishingClientsLeaveNothing) {
  ServeProcess server(Tiny());
  const int port = server.Port();
  ASSERT_GT(port, 0);
  EXPECT_EQ(Fetch(port, "/v1/completions", R"({"prompt":[1,20],"max_tokens":3})").status, 200);
  const int64_t files = NumFiles(server.pid());
  for (int i = 0; i < 100; ++i) {
    RawClient client(port);
    const std::string all = PostText("/v1/completions", kLongStream);
    const bool half = i % 5 == 0;
    client.Send(all.substr(0, half ? all.size() / 2 : all.size()));
    if (i % 3 == 0 && !half) client.ReadUntil("data: ");
    if (i % 2 == 0) client.Reset();
  }
  EXPECT_TRUE(
      Eventually([&] { return Number(port, "running") == 0 && Number(port, "waiting") == 0; }));
  const auto stats = ParseJson(Fetch(port, "/stats").body);
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats->Find("pages")->Find("used")->text, "0");
  EXPECT_TRUE(Eventually([&] { return NumFiles(server.pid()) == files; }));
}

}  // namespace
}  // namespace deepinfer
