#include "request/answer_session.h"

#include <utility>

#include "base/check.h"

namespace deepinfer {
namespace {

HttpResponse StreamHead() {
  // Proxies that buffer would make one piece of it.
  return {.content_type = "text/event-stream; charset=utf-8",
          .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}};
}

}  // namespace

AnswerSession::AnswerSession(std::shared_ptr<const ApiContext> context,
                             std::shared_ptr<HttpReply> reply,
                             std::shared_ptr<RequestObserver> observer, bool stream)
    : context_(std::move(context)),
      reply_(std::move(reply)),
      observer_(std::move(observer)),
      stream_(stream) {}

void AnswerSession::Open() {
  reply_->OnClosed([weak = weak_from_this()] {
    if (const auto session = weak.lock()) session->Close();
  });
  if (reply_->closed()) return Close();
  WatchSilence();
}

void AnswerSession::WatchSilence() {
  silent_ = true;
  timer_ = context_->timers->RunAfter(context_->options.keep_alive, [weak = weak_from_this()] {
    const auto session = weak.lock();
    if (session == nullptr || session->closed_) return;
    if (session->silent_) {
      session->Begin();
      session->reply_->Write(session->stream_ ? ": keep-alive\n\n" : "\n");
    }
    if (!session->closed_) session->WatchSilence();
  });
}

void AnswerSession::Submit(std::vector<Request> requests, std::unique_ptr<AnswerWriter> writer) {
  if (closed_) return;
  writer_ = std::move(writer);
  for (const Request& request : requests) num_running_ += request.num_choices;
  for (Request& request : requests) {
    const auto prompt = static_cast<int32_t>(requests_.size());
    requests_.push_back(context_->engine->Submit(
        std::move(request), [self = shared_from_this(), prompt](const deepinfer::Event& event) {
          self->OnEvent(prompt, event);
        }));
  }
}

void AnswerSession::OnEvent(int32_t prompt, const deepinfer::Event& event) {
  if (closed_) return;
  if (const auto* ready = std::get_if<ReadyEvent>(&event)) {
    if (observer_ != nullptr) observer_->OnReady(ready->prompt_tokens, ready->cached_tokens);
    writer_->OnReady(prompt, *ready, *this);
  } else if (const auto* tokens = std::get_if<TokensEvent>(&event)) {
    if (observer_ != nullptr) observer_->OnTokens(static_cast<int32_t>(tokens->ids.size()));
    writer_->OnTokens(prompt, *tokens, *this);
  } else if (const auto* finish = std::get_if<FinishEvent>(&event)) {
    Take(prompt, *finish);
  } else if (const auto* failure = std::get_if<FailureEvent>(&event)) {
    Fail(ApiErrorOf(failure->error));
  }
}

void AnswerSession::Take(int32_t prompt, const FinishEvent& event) {
  if (event.reason == FinishReason::kCancelled) {
    return Fail(MakeApiError(ApiErrorKind::kOverloaded,
                             "the request was cancelled by the server; try again"));
  }
  const std::string_view reason = writer_->OnFinish(prompt, event, *this);
  if (observer_ != nullptr) observer_->OnFinish(reason);
  if (--num_running_ > 0 || closed_) return;
  writer_->OnEnd(*this);
  if (closed_) return;
  if (begun_) {
    if (stream_) reply_->Write("data: [DONE]\n\n");
    reply_->End();
  }
  Close();
}

void AnswerSession::Begin() {
  if (std::exchange(begun_, true)) return;
  reply_->BeginStream(stream_ ? StreamHead() : HttpResponse());
}

void AnswerSession::Event(std::string_view json) {
  CHECK(stream_);
  if (closed_) return;
  Begin();
  silent_ = false;
  std::string text;
  text.reserve(json.size() + 8);
  text += "data: ";
  text += json;
  text += "\n\n";
  reply_->Write(text);
}

void AnswerSession::Whole(std::string json) {
  CHECK(!stream_);
  if (closed_) return;
  if (begun_) {
    reply_->Write(json);
  } else {
    reply_->Send({.body = std::move(json)});
  }
}

void AnswerSession::Fail(const ApiError& error) {
  if (closed_) return;
  if (observer_ != nullptr) observer_->OnFinish("error");
  if (!begun_) {
    reply_->Send(ErrorResponse(error));
  } else if (stream_) {
    reply_->Write(StrCat("data: ", ToJson(error), "\n\ndata: [DONE]\n\n"));
    reply_->End();
  } else {
    reply_->Write(ToJson(error));
    reply_->End();
  }
  Close();
}

// Nothing reaches the client any more, so what still runs for it stops.
void AnswerSession::Close() {
  if (std::exchange(closed_, true)) return;
  timer_.reset();
  if (num_running_ == 0) return;
  for (const RequestId request : requests_) context_->engine->Cancel(request);
}

}  // namespace deepinfer
