// request/http.h: HTTP as handlers see it. The library stays behind http_server.cc.
//
// Everything here lives on the server's thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "request/request_observer.h"

namespace deepinfer {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  HttpHeaders headers;
  std::string body;
};

// How many bytes of bodies all requests of a server hold, and one request's part in it. May end on
// any thread.
class BodyRoom {
 public:
  using Total = std::shared_ptr<std::atomic<int64_t>>;

  explicit BodyRoom(Total total) : total_(std::move(total)) {}
  ~BodyRoom() { *total_ -= bytes_; }
  BodyRoom(const BodyRoom&) = delete;
  BodyRoom& operator=(const BodyRoom&) = delete;

  void GrowTo(int64_t bytes) { *total_ += bytes - std::exchange(bytes_, bytes); }
  int64_t total() const { return *total_; }

 private:
  const Total total_;
  int64_t bytes_ = 0;
};

struct HttpRequest {
  std::string id;       // x-request-id: the client's, else ours
  std::string method;   // "GET"
  std::string path;     // decoded, without query: "/v1/chat/completions"
  std::string query;    // as it stands, without '?'
  HttpHeaders headers;  // names in lower case
  std::string body;
  std::shared_ptr<BodyRoom> room;       // of `body`; null: it has none
  std::optional<HttpResponse> refusal;  // said from the head alone; `body` was not read then
  std::string peer;                     // address:port
  std::string tenant;                   // set by the gate (api_keys.h): who the key belongs to
  std::shared_ptr<RequestObserver> observer;  // null: nobody listens
  bool chunks_allowed = true;                 // a stream can say where it ends: HTTP/1.1

  // The first header of this name (lower case); empty if there is none.
  std::string_view Header(std::string_view name) const;
};

// How one request is answered: one Send(), or BeginStream(), Write()s and End(). After the client
// has gone every call does nothing.
class HttpReply {
 public:
  virtual ~HttpReply() = default;

  virtual void Send(HttpResponse response) = 0;

  // A body that comes in pieces; status and headers go out with the first Write().
  virtual void BeginStream(HttpResponse head) = 0;
  // Queues a piece. A client that does not read is cut off when its queue passes the server's
  // limit.
  virtual void Write(std::string_view piece) = 0;
  virtual void End() = 0;

  // The client has gone, or was cut off.
  virtual bool closed() const = 0;
  // Called once when that happens before the reply is complete. Replaces an earlier one.
  virtual void OnClosed(std::function<void()> handler) = 0;
};

using HttpHandler = std::function<void(HttpRequest request, std::shared_ptr<HttpReply> reply)>;
// Looks at a request before its body is read: an answer makes it the request's `refusal`.
using HttpHeadCheck = std::function<std::optional<HttpResponse>(const HttpRequest& head)>;

}  // namespace deepinfer
