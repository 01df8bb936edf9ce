// The page as it is compiled in: every file, its headers, and that nothing in it needs what the
// policy forbids. What it does in a browser: tests/page.
#include "request/page.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>

namespace deepinfer {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::string> kTypes = {{".html", "text/html; charset=utf-8"},
                                                   {".css", "text/css; charset=utf-8"},
                                                   {".js", "text/javascript; charset=utf-8"},
                                                   {".svg", "image/svg+xml; charset=utf-8"}};

std::string HeaderOf(const HttpResponse& response, std::string_view name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) return value;
  }
  return "";
}

const PageFile& Find(std::string_view path) {
  for (const PageFile& file : PageFiles()) {
    if (file.path == path) return file;
  }
  ADD_FAILURE() << "no " << path;
  return PageFiles()[0];
}

// All that `pattern`'s first group finds in the text.
std::set<std::string> FindAll(std::string_view text, const std::string& pattern) {
  std::set<std::string> found;
  const std::string copy(text);
  const std::regex regex(pattern);
  for (std::sregex_iterator at(copy.begin(), copy.end(), regex), end; at != end; ++at) {
    found.insert((*at)[1]);
  }
  return found;
}

TEST(Page, HoldsEveryFileOfItsFolderWithTypeAndText) {
  std::set<std::string> paths;
  for (const auto& entry : fs::directory_iterator(DI_SOURCE_DIR "/src/request/page")) {
    const fs::path& path = entry.path();
    if (!kTypes.contains(path.extension())) continue;
    const std::string name = path.filename();
    const PageFile& file = Find(name == "index.html" ? "/" : "/page/" + name);
    paths.insert(std::string(file.path));
    EXPECT_EQ(file.content_type, kTypes.at(path.extension())) << name;
    std::ifstream stream(path, std::ios::binary);
    EXPECT_EQ(file.text, std::string(std::istreambuf_iterator<char>(stream), {})) << name;
  }
  EXPECT_EQ(paths.size(), PageFiles().size());
  EXPECT_EQ(PageFiles()[0].path, "/");
}

TEST(Page, EveryAnswerCarriesTheStrictPolicy) {
  for (const PageFile& file : PageFiles()) {
    const HttpResponse response = AnswerPageFile(file, {});
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.content_type, file.content_type);
    EXPECT_EQ(response.body, file.text);
    const std::string policy = HeaderOf(response, "Content-Security-Policy");
    EXPECT_TRUE(policy.starts_with("default-src 'self';")) << policy;
    for (const char* part : {"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
                             "object-src 'none'", "require-trusted-types-for 'script'"}) {
      EXPECT_NE(policy.find(part), std::string::npos) << part;
    }
    EXPECT_EQ(policy.find("unsafe"), std::string::npos);
    EXPECT_EQ(HeaderOf(response, "X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(HeaderOf(response, "Cache-Control"), "no-cache");
  }
}

TEST(Page, SaysNotModifiedToWhoHasThisText) {
  const PageFile& file = Find("/page/main.js");
  const std::string etag(file.etag);
  EXPECT_TRUE(std::regex_match(etag, std::regex(R"("[0-9a-f]{16}")"))) << etag;
  for (const std::string& known : {etag, "\"other\", W/" + etag}) {
    HttpRequest request;
    request.headers = {{"if-none-match", known}};
    const HttpResponse response = AnswerPageFile(file, request);
    EXPECT_EQ(response.status, 304) << known;
    EXPECT_EQ(response.body, "");
    EXPECT_EQ(HeaderOf(response, "ETag"), etag);
  }
  HttpRequest request;
  request.headers = {{"if-none-match", std::string(Find("/").etag)}};
  EXPECT_EQ(AnswerPageFile(file, request).status, 200);
}

TEST(Page, TextsDifferInTheirTags) {
  std::set<std::string_view> tags;
  for (const PageFile& file : PageFiles()) tags.insert(file.etag);
  EXPECT_EQ(tags.size(), PageFiles().size());
}

TEST(Page, HasNoInlineScriptHandlerOrStyle) {
  const std::string html(Find("/").text);
  EXPECT_EQ(FindAll(html, R"(<script(?![^>]*\bsrc=)([^>]*)>)"), std::set<std::string>());
  EXPECT_EQ(FindAll(html, R"(<script[^>]*>([^<]+)</script>)"), std::set<std::string>());
  EXPECT_EQ(FindAll(html, R"(\s(on\w+)\s*=)"), std::set<std::string>());
  EXPECT_EQ(FindAll(html, R"((<style|\sstyle\s*=|javascript:))"), std::set<std::string>());
}

TEST(Page, MakesNoMarkupOfText) {
  for (const PageFile& file : PageFiles()) {
    if (!file.path.ends_with(".js")) continue;
    EXPECT_EQ(FindAll(file.text, R"((innerHTML|outerHTML|insertAdjacentHTML|document\.write|)"
                                 R"(createContextualFragment|DOMParser|\beval\(|new Function))"),
              std::set<std::string>())
        << file.path;
  }
}

TEST(Page, RefersOnlyToFilesOfItsOwn) {
  for (const PageFile& file : PageFiles()) {
    for (const std::string& path : FindAll(file.text, R"re((/page/[\w.]+))re")) Find(path);
    for (const std::string& name : FindAll(file.text, R"re(from '\./([\w.]+)')re")) {
      Find("/page/" + name);
    }
    // The names of XML languages are no addresses.
    const std::set<std::string> addresses = FindAll(file.text, R"((https?://[\w./]+))");
    for (const std::string& address : addresses) {
      EXPECT_EQ(address, "http://www.w3.org/2000/svg") << file.path;
    }
  }
}

TEST(Page, EveryFileIsUsed) {
  std::string all;
  for (const PageFile& file : PageFiles()) all += file.text;
  for (const PageFile& file : PageFiles().subspan(1)) {
    const std::string name(file.path.substr(file.path.rfind('/')));  // "/main.js"
    EXPECT_NE(all.find(name), std::string::npos) << name;
  }
}

class KeptReply : public HttpReply {
 public:
  void Send(HttpResponse response) override { sent = std::move(response); }
  void BeginStream(HttpResponse) override {}
  void Write(std::string_view) override {}
  void End() override {}
  bool closed() const override { return false; }
  void OnClosed(std::function<void()>) override {}

  HttpResponse sent;
};

TEST(Page, EveryFileHasARouteThatNeedsNoKey) {
  std::vector<RouteAccess> asked;
  Router router;
  router.SetGate([&](RouteAccess access, HttpRequest request, std::shared_ptr<HttpReply> reply,
                     const HttpHandler& handler) {
    asked.push_back(access);
    handler(std::move(request), std::move(reply));
  });
  AddPageRoutes(router);
  for (const PageFile& file : PageFiles()) {
    const auto reply = std::make_shared<KeptReply>();
    router.Handle({.method = "GET", .path = std::string(file.path)}, reply);
    EXPECT_EQ(reply->sent.body, file.text) << file.path;
  }
  EXPECT_EQ(asked, std::vector<RouteAccess>(PageFiles().size(), RouteAccess::kOpen));
}

}  // namespace
}  // namespace deepinfer
