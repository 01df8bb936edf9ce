// Keys and limits: who is let in.
#include <gtest/gtest.h>

#include "base/simulated_disk.h"
#include "request/api_keys.h"
#include "request/tenant_limits.h"

namespace deepinfer {
namespace {

TEST(ApiKeys, WithoutKeysEverybodyComesIn) {
  const ApiKeys keys;
  EXPECT_EQ(keys.TenantOf(""), "");
  EXPECT_EQ(keys.TenantOf("anything"), "");
}

TEST(ApiKeys, OnlyWholeKeysCount) {
  ApiKeys keys;
  ASSERT_TRUE(keys.Add("secret=alice").ok());
  ASSERT_TRUE(keys.Add("other").ok());
  ASSERT_TRUE(keys.Add("third=alice").ok());
  EXPECT_EQ(keys.TenantOf("secret"), "alice");
  EXPECT_EQ(keys.TenantOf("third"), "alice");
  EXPECT_EQ(keys.TenantOf("other"), "default");
  for (const std::string_view wrong : {"", "secre", "secret=alice", "SECRET", "secret ", "alice"}) {
    EXPECT_EQ(keys.TenantOf(wrong), std::nullopt) << wrong;
  }
}

TEST(ApiKeys, AKeyMayEndInEqualsSigns) {
  ApiKeys keys;
  ASSERT_TRUE(keys.Add("YWJj==").ok());
  ASSERT_TRUE(keys.Add("ZGVm===bob").ok());
  EXPECT_EQ(keys.TenantOf("YWJj=="), "default");
  EXPECT_EQ(keys.TenantOf("ZGVm=="), "bob");
}

TEST(ApiKeys, WrongKeysAreRefusedWithoutBeingTold) {
  ApiKeys keys;
  ASSERT_TRUE(keys.Add("secret").ok());
  for (const std::string_view wrong : {"", "=alice", "a b", "secret", "key=ali ce"}) {
    const Status status = keys.Add(wrong);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << wrong;
    EXPECT_EQ(MessageOf(status).find("secret"), std::string::npos);
  }
}

TEST(ApiKeys, AFileHasAKeyALine) {
  SimulatedDisk disk;
  ASSERT_TRUE(disk.WriteText("/keys", "# ours\nfirst=alice\r\n\n  second  \n").ok());
  ApiKeys keys;
  ASSERT_TRUE(keys.AddFile("/keys", disk).ok());
  EXPECT_EQ(keys.TenantOf("first"), "alice");
  EXPECT_EQ(keys.TenantOf("second"), "default");
  ASSERT_TRUE(disk.WriteText("/bad", "good\nnot good\n").ok());
  EXPECT_TRUE(MessageOf(keys.AddFile("/bad", disk)).starts_with("/bad:2: "));
  EXPECT_EQ(keys.AddFile("/none", disk).code(), StatusCode::kNotFound);
}

TEST(ApiKeys, KeysComeInEitherHeader) {
  const auto key = [](HttpHeaders headers) {
    HttpRequest request;
    request.headers = std::move(headers);
    return std::string(KeyOf(request));
  };
  EXPECT_EQ(key({{"authorization", "Bearer abc"}}), "abc");
  EXPECT_EQ(key({{"authorization", "bearer abc"}}), "abc");
  EXPECT_EQ(key({{"x-api-key", "abc"}}), "abc");
  EXPECT_EQ(key({{"authorization", "Bearer abc"}, {"x-api-key", "def"}}), "abc");
  EXPECT_EQ(key({{"authorization", "Basic abc"}, {"x-api-key", "def"}}), "def");
  EXPECT_EQ(key({{"authorization", "Bearer "}}), "");
  EXPECT_EQ(key({}), "");
}

using Answer = TenantLimits::Answer;

TEST(TenantLimits, CountUntilTheEnd) {
  TenantLimits limits({.max_running = 2});
  EXPECT_EQ(limits.Enter("a"), Answer::kYes);
  EXPECT_EQ(limits.Enter("a"), Answer::kYes);
  limits.Start("a");
  EXPECT_EQ(limits.Enter("a"), Answer::kTooManyRunning);
  EXPECT_EQ(limits.Enter("b"), Answer::kYes);
  limits.Leave("a", /*was_started=*/true);
  EXPECT_EQ(limits.Enter("a"), Answer::kYes);
}

TEST(TenantLimits, CountWaitingOnesApart) {
  TenantLimits limits({.max_waiting = 1});
  EXPECT_EQ(limits.Enter("a"), Answer::kYes);
  EXPECT_EQ(limits.Enter("a"), Answer::kTooManyWaiting);
  limits.Start("a");
  EXPECT_EQ(limits.Enter("a"), Answer::kYes);
  limits.Leave("a", /*was_started=*/false);
  EXPECT_EQ(limits.Enter("a"), Answer::kYes);
}

TEST(TenantLimits, ZeroIsAnyNumber) {
  TenantLimits limits({});
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(limits.Enter(""), Answer::kYes);
}

}  // namespace
}  // namespace deepinfer
