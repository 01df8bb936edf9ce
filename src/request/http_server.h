// request/http_server.h: HTTP/1.1 on a port: connections, limits, time limits, drain.
//
// Every request goes to one handler (the router's). One that the head check refuses goes there
// without its body, which is not read. A connection answers its requests one after
// the other. A client whose connection ends before its answer is complete has gone: also one that
// only ends its own sending, as most servers see it. Threads: the event loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/rng.h"
#include "base/status.h"
#include "request/event_loop.h"
#include "request/http.h"

namespace deepinfer {

struct HttpServerOptions {
  std::string host = "127.0.0.1";  // a name or an address; "::" and "0.0.0.0": everywhere
  int32_t port = 8000;             // 0: one that is free
  int32_t max_connections = 4096;  // a few more are told 503, then nobody is accepted
  int64_t max_header_bytes = 32 << 10;
  int64_t max_body_bytes = 32 << 20;
  int64_t max_all_bodies_bytes = 256 << 20;  // held at once; a request beyond is told 503
  int64_t stream_buffer_bytes = 1 << 20;     // of one answer, that its client has not taken
  Duration header_timeout = std::chrono::seconds(20);  // from the first byte of a request
  Duration body_timeout = std::chrono::seconds(120);
  Duration idle_timeout = std::chrono::seconds(75);   // between requests, and before the first
  Duration write_timeout = std::chrono::seconds(30);  // in which a waiting client takes something
};

struct HttpServerStats {
  int64_t connections = 0;  // now
  int64_t answering = 0;    // requests that have no complete answer yet, now
  int64_t accepted = 0;     // connections, since the start
  int64_t gone = 0;         // clients that left before their answer was complete
  int64_t cut_off = 0;      // clients that did not read
  int64_t bytes_in = 0, bytes_out = 0;
};

class HttpServer {
 public:
  // Binds and begins to accept. `loop` and `rng` (for request ids) outlive the server, and no
  // handler keeps a reply longer than the loop runs.
  // Errors: kInvalidArgument for a host that has no address, kFailedPrecondition for an address
  // that is in use or not allowed; one line that names it.
  static StatusOr<std::unique_ptr<HttpServer>> Listen(EventLoop& loop, Rng& rng,
                                                      const HttpServerOptions& options,
                                                      HttpHandler handler,
                                                      HttpHeadCheck check_head = nullptr);
  ~HttpServer();  // as Close()

  int32_t port() const;     // the real one
  std::string url() const;  // "http://127.0.0.1:8000"
  HttpServerStats stats() const;

  // Accepts nobody any more and ends each connection after the answer it is waiting for. `drained`
  // runs once when no answer is under way any more.
  void Drain(std::function<void()> drained);
  // Ends everything now.
  void Close();

 private:
  class Core;
  explicit HttpServer(std::shared_ptr<Core> core);
  std::shared_ptr<Core> core_;
};

}  // namespace deepinfer
