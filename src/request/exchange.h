// request/exchange.h: one request on its way: what is known of it, told at its end.
//
// Stands between a handler and the connection's reply, so that no handler has to think of metrics,
// logs, limits or common headers. Threads: the server's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "request/http.h"
#include "request/request_observer.h"

namespace deepinfer {

struct ExchangeFacts {
  std::string id, method, path, peer, tenant;
  MonotonicTime arrival, end;
  int status = 0;     // 0: the client went before there was one
  bool gone = false;  // the client went before its answer was complete
  int64_t body_bytes = 0;

  // ---- of requests that run on the engine
  bool inference = false;
  bool counted = false;  // by the tenant's limits
  std::string model;
  bool stream = false;
  int64_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;
  std::optional<MonotonicTime> ready, first_token;
  MonotonicTime last_token;
  std::string finish;  // of the last choice that ended

  // Seconds from the arrival to the first token, from there to the last by token, and in all.
  std::optional<double> ttft_s() const;
  std::optional<double> tpot_s() const;  // needs two tokens
  double e2e_s() const { return Seconds(end - arrival); }
};

// Who wants to know. Everything may be empty.
struct ExchangeListener {
  std::function<void(const ExchangeFacts&)> on_ready;        // the first prompt is accepted
  std::function<void(const ExchangeFacts&)> on_first_token;  // then
  std::function<void(const ExchangeFacts&)> on_end;          // once, always
};

class Exchange : public HttpReply, public RequestObserver {
 public:
  // common_headers go into the answer. `listener` and `clock` outlive the exchange.
  Exchange(const HttpRequest& request, std::shared_ptr<HttpReply> reply, HttpHeaders common_headers,
           const ExchangeListener& listener, const Clock& clock);
  ~Exchange() override;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  ExchangeFacts& facts() { return facts_; }

  void Send(HttpResponse response) override;
  void BeginStream(HttpResponse head) override;
  void Write(std::string_view piece) override;
  void End() override;
  bool closed() const override { return reply_->closed(); }
  void OnClosed(std::function<void()> handler) override { on_closed_ = std::move(handler); }

  void OnModel(std::string_view model, bool stream) override;
  void OnReady(int32_t prompt_tokens, int32_t cached_tokens) override;
  void OnTokens(int32_t count) override;
  void OnFinish(std::string_view reason) override { facts_.finish = reason; }

 private:
  void SetGone();
  void TellEnd();

  const ExchangeListener& listener_;
  const Clock& clock_;
  HttpHeaders common_headers_;
  ExchangeFacts facts_;
  bool ended_ = false;
  std::function<void()> on_closed_;
  std::shared_ptr<HttpReply> reply_;
};

}  // namespace deepinfer
