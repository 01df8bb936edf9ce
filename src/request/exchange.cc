#include "request/exchange.h"

#include <utility>

namespace deepinfer {

std::optional<double> ExchangeFacts::ttft_s() const {
  if (!first_token) return std::nullopt;
  return Seconds(*first_token - arrival);
}

std::optional<double> ExchangeFacts::tpot_s() const {
  if (!first_token || output_tokens < 2) return std::nullopt;
  return Seconds(last_token - *first_token) / static_cast<double>(output_tokens - 1);
}

Exchange::Exchange(const HttpRequest& request, std::shared_ptr<HttpReply> reply,
                   HttpHeaders common_headers, const ExchangeListener& listener, const Clock& clock)
    : listener_(listener),
      clock_(clock),
      common_headers_(std::move(common_headers)),
      facts_{.id = request.id,
             .method = request.method,
             .path = request.path,
             .peer = request.peer,
             .arrival = clock.Now()},
      reply_(std::move(reply)) {
  reply_->OnClosed([this] { SetGone(); });
}

Exchange::~Exchange() {
  if (ended_) return;
  facts_.status = 500;  // what the connection answers now
  TellEnd();
}

void Exchange::Send(HttpResponse response) {
  if (ended_) return;
  facts_.status = response.status;
  facts_.body_bytes = std::ssize(response.body);
  response.headers.insert(response.headers.end(), common_headers_.begin(), common_headers_.end());
  reply_->Send(std::move(response));
  TellEnd();
}

void Exchange::BeginStream(HttpResponse head) {
  if (ended_) return;
  facts_.status = head.status;
  head.headers.insert(head.headers.end(), common_headers_.begin(), common_headers_.end());
  reply_->BeginStream(std::move(head));
}

void Exchange::Write(std::string_view piece) {
  if (ended_) return;
  facts_.body_bytes += std::ssize(piece);
  reply_->Write(piece);
}

void Exchange::End() {
  if (ended_) return;
  reply_->End();
  TellEnd();
}

void Exchange::OnModel(std::string_view model, bool stream) {
  facts_.model = model;
  facts_.stream = stream;
}

void Exchange::OnReady(int32_t prompt_tokens, int32_t cached_tokens) {
  facts_.prompt_tokens += prompt_tokens;
  facts_.cached_tokens += cached_tokens;
  if (facts_.ready || ended_) return;
  facts_.ready = clock_.Now();
  if (listener_.on_ready) listener_.on_ready(facts_);
}

void Exchange::OnTokens(int32_t count) {
  if (ended_) return;
  facts_.output_tokens += count;
  facts_.last_token = clock_.Now();
  if (facts_.first_token) return;
  facts_.first_token = facts_.last_token;
  if (listener_.on_first_token) listener_.on_first_token(facts_);
}

// The handler may drop this object.
void Exchange::SetGone() {
  if (ended_) return;
  facts_.gone = true;
  TellEnd();
  if (const auto handler = std::exchange(on_closed_, nullptr)) handler();
}

void Exchange::TellEnd() {
  ended_ = true;
  facts_.end = clock_.Now();
  if (listener_.on_end) listener_.on_end(facts_);
}

}  // namespace deepinfer
