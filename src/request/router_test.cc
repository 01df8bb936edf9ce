#include "request/router.h"

#include <gtest/gtest.h>

#include "request/cors.h"
#include "request/http_text.h"
#include "request/testing/kept_reply.h"

namespace deepinfer {
namespace {

using testing::KeptReply;

std::shared_ptr<KeptReply> Ask(const Router& router, const std::string& method,
                               const std::string& path) {
  auto reply = std::make_shared<KeptReply>();
  router.Handle({.method = method, .path = path}, reply);
  return reply;
}

HttpHandler Saying(const std::string& text) {
  return [text](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
    reply->Send({.body = text + " " + request.path});
  };
}

class RouterTest : public ::testing::Test {
 protected:
  RouterTest() {
    router_.Add("GET", "/v1/models", RouteAccess::kKey, Saying("all"));
    router_.Add("GET", "/v1/models/*", RouteAccess::kKey, Saying("one"));
    router_.Add("GET", "/v1/models/special/*", RouteAccess::kKey, Saying("special"));
    router_.Add("GET", "/v1/models/named", RouteAccess::kKey, Saying("named"));
    router_.Add("POST", "/v1/chat", RouteAccess::kInference, Saying("chat"));
  }
  std::string Body(const std::string& method, const std::string& path) {
    return Ask(router_, method, path)->response.value_or(HttpResponse{}).body;
  }
  Router router_;
};

TEST_F(RouterTest, TheMostExactPathWins) {
  EXPECT_EQ(Body("GET", "/v1/models"), "all /v1/models");
  EXPECT_EQ(Body("GET", "/v1/models/named"), "named /v1/models/named");
  EXPECT_EQ(Body("GET", "/v1/models/org/name"), "one /v1/models/org/name");
  EXPECT_EQ(Body("GET", "/v1/models/special/a"), "special /v1/models/special/a");
  EXPECT_EQ(Body("GET", "/v1/models/specially"), "one /v1/models/specially");
}

TEST_F(RouterTest, UnknownPathsAre404) {
  for (const std::string path : {"/", "/v1", "/v1/models/", "/v1/chat/x", "/V1/models", "*", ""}) {
    EXPECT_EQ(Ask(router_, "GET", path)->status(), 404) << path;
  }
  EXPECT_NE(Body("GET", "/nothing").find("\"error\""), std::string::npos);
}

TEST_F(RouterTest, WrongMethodsAre405AndNameTheRightOnes) {
  const auto reply = Ask(router_, "DELETE", "/v1/models");
  EXPECT_EQ(reply->status(), 405);
  EXPECT_EQ(reply->Header("Allow"), "GET, HEAD, OPTIONS");
  EXPECT_NE(reply->response->body.find("found DELETE"), std::string::npos);
  EXPECT_EQ(Ask(router_, "GET", "/v1/chat")->Header("Allow"), "POST, OPTIONS");
  EXPECT_EQ(Ask(router_, "HEAD", "/v1/chat")->status(), 405);
}

TEST_F(RouterTest, HeadIsGetAndOptionsNamesMethods) {
  EXPECT_EQ(Body("HEAD", "/v1/models"), "all /v1/models");
  const auto options = Ask(router_, "OPTIONS", "/v1/chat");
  EXPECT_EQ(options->status(), 204);
  EXPECT_EQ(options->Header("Allow"), "POST, OPTIONS");
}

TEST_F(RouterTest, TheGateSeesRequestsThatHaveARoute) {
  int seen = 0;
  router_.SetGate([&seen](RouteAccess access, HttpRequest request, std::shared_ptr<HttpReply> reply,
                          const HttpHandler& handler) {
    ++seen;
    if (access == RouteAccess::kInference) return reply->Send({.status = 429});
    handler(std::move(request), std::move(reply));
  });
  EXPECT_EQ(Ask(router_, "POST", "/v1/chat")->status(), 429);
  EXPECT_EQ(Body("GET", "/v1/models"), "all /v1/models");
  EXPECT_EQ(Ask(router_, "GET", "/nothing")->status(), 404);
  EXPECT_EQ(Ask(router_, "OPTIONS", "/v1/chat")->status(), 204);
  EXPECT_EQ(seen, 2);
}

// ---- origins

HttpRequest From(const std::string& origin) {
  return {.method = "OPTIONS",
          .headers = {{"origin", origin}, {"access-control-request-method", "POST"}}};
}

std::string Value(const HttpHeaders& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return "";
}

TEST(Cors, OnlyListedOriginsAreAllowed) {
  const Cors none, all({"*"}), one({"https://a.example"});
  constexpr std::string_view kAllow = "Access-Control-Allow-Origin";
  EXPECT_TRUE(none.HeadersFor(From("https://a.example")).empty());
  EXPECT_EQ(Value(all.HeadersFor(From("https://b.example")), kAllow), "*");
  EXPECT_EQ(Value(one.HeadersFor(From("https://a.example")), kAllow), "https://a.example");
  EXPECT_EQ(Value(one.HeadersFor(From("https://b.example")), kAllow), "");
  EXPECT_EQ(Value(one.HeadersFor(From("https://b.example")), "Vary"), "Origin");
}

TEST(Cors, BrowsersMayAskBefore) {
  HttpRequest request = From("https://a.example");
  EXPECT_TRUE(Cors::IsPreflight(request));
  request.headers.emplace_back("access-control-request-headers", "authorization, x-stainless-os");
  const HttpResponse answer = Cors::PreflightAnswer(request);
  EXPECT_EQ(answer.status, 204);
  EXPECT_EQ(Value(answer.headers, "Access-Control-Allow-Headers"), "authorization, x-stainless-os");
  request.method = "POST";
  EXPECT_FALSE(Cors::IsPreflight(request));
}

// ---- text

TEST(HttpText, TargetsAreTakenApart) {
  const auto path = [](std::string_view target) {
    const auto parsed = ParseTarget(target);
    return parsed ? parsed->path + "|" + parsed->query : "none";
  };
  EXPECT_EQ(path("/a%2Fb%c3%a9?x=%20"), "/a/b\xc3\xa9|x=%20");
  EXPECT_EQ(path("http://host:1/a?b#c"), "/a|b");
  EXPECT_EQ(path("https://host"), "/|");
  EXPECT_EQ(path("/a?"), "/a|");
  EXPECT_EQ(path("*"), "*|");
  for (const std::string_view bad : {"", "a", "/%", "/%4", "/%g0", "/%00", "ftp://host/"}) {
    EXPECT_EQ(path(bad), "none") << bad;
  }
}

TEST(HttpText, DatesAreThoseOfHttp) {
  EXPECT_EQ(HttpDate({1'000'000'000LL * 784111777}), "Sun, 06 Nov 1994 08:49:37 GMT");
}

TEST(HttpText, IdsStayOnTheirLine) {
  EXPECT_TRUE(IsGoodRequestId("a-1_B.2"));
  for (const std::string& bad : {std::string(), std::string("a b"), std::string("a\n"),
                                 std::string("\xc3\xa9"), std::string(129, 'a')}) {
    EXPECT_FALSE(IsGoodRequestId(bad)) << bad;
  }
}

}  // namespace
}  // namespace deepinfer
