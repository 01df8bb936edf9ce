// apps/http_pool.h: HTTP/1.1 connections to one server, any number of them, on one thread.
//
// For load generators: a connection is taken from those that lie idle or made anew, and answers are
// handed on piece by piece as they come. Threads: the one that calls Run(), which also makes every
// call back. The HTTP library stays behind http_pool.cc.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace deepinfer {

struct HttpEndpoint {
  std::string url;  // as given, without slashes at its end: for messages
  std::string host, port;
  std::string path;  // what stands before every path: "" or "/prefix"
};

// "http://host[:port][/prefix]", port 80 if absent; IPv6 addresses stand in brackets.
// Errors: kInvalidArgument; kUnimplemented for https.
StatusOr<HttpEndpoint> ParseHttpUrl(const std::string& url);

// Hears one answer: OnHead, OnBody any number of times, then OnEnd; OnFailed instead of any of
// these ends it early.
class HttpListener {
 public:
  virtual ~HttpListener() = default;
  virtual void OnHead(int status, std::string_view content_type) = 0;
  virtual void OnBody(std::string_view piece) = 0;
  virtual void OnEnd() = 0;
  // kUnavailable: no connection, or it broke; kDeadlineExceeded; kDataLoss: what came is not HTTP.
  virtual void OnFailed(const Status& status) = 0;
};

struct HttpCall {
  std::string method = "GET", path;  // the endpoint's own path comes before it
  std::string body;                  // JSON
};

struct HttpPoolOptions {
  std::vector<std::pair<std::string, std::string>> headers;  // of every call
  double timeout_s = 600;                                    // of a call, from sending to its end
};

class HttpPool {
 public:
  // Looks the host up. Errors: kUnavailable if it has no address.
  static StatusOr<std::unique_ptr<HttpPool>> Create(HttpEndpoint endpoint, HttpPoolOptions options);
  ~HttpPool();

  // Makes idle connections until `count` lie ready, at most 64 at a time.
  // Errors: kUnavailable, with how many stood.
  Status Connect(int count);

  // `listener` outlives the call. May be called from its OnEnd() and OnFailed(), never makes calls
  // back itself.
  void Send(HttpCall call, HttpListener& listener);
  // At most one waits; a later call replaces it.
  void CallAt(MonotonicTime when, std::function<void()> handler);
  // Until nothing is in flight and no CallAt() waits.
  void Run();

  int64_t num_connections_made() const;

 private:
  class Impl;
  explicit HttpPool(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace deepinfer
