// request/answer_session.h: one HTTP request between the engine and its client.
//
// Knows the ways an answer goes out, whatever its shape: whole, or as server-sent events; signs of
// life while nothing is ready; a failure before or after the headers; a client that leaves. The
// shape is an AnswerWriter's business: one for each API and way.
// Threads: the server's. Life: shared by the engine's handlers, the reply and the timer; ends with
// the last of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "deepinfer/request.h"
#include "request/api.h"
#include "request/api_error.h"
#include "request/http.h"

namespace deepinfer {

// Where a writer puts what is ready.
class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  // An event of a stream: "data: <json>" and a blank line.
  virtual void Event(std::string_view json) = 0;
  // The whole answer, once.
  virtual void Whole(std::string json) = 0;
};

// Turns events into one API's JSON. `prompt` counts the requests of one HTTP request from 0.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  virtual void OnReady(int32_t prompt, const ReadyEvent& event, AnswerSink& sink) = 0;
  virtual void OnTokens(int32_t prompt, const TokensEvent& event, AnswerSink& sink) = 0;
  // Returns what the API calls the reason.
  virtual std::string_view OnFinish(int32_t prompt, const FinishEvent& event, AnswerSink& sink) = 0;
  // All choices have ended.
  virtual void OnEnd(AnswerSink& sink) = 0;
};

class AnswerSession : public std::enable_shared_from_this<AnswerSession>, private AnswerSink {
 public:
  AnswerSession(std::shared_ptr<const ApiContext> context, std::shared_ptr<HttpReply> reply,
                std::shared_ptr<RequestObserver> observer, bool stream);

  // Watches the client and begins to give signs of life. First, and once.
  void Open();
  // Hands the requests over; their events go to `writer`.
  void Submit(std::vector<Request> requests, std::unique_ptr<AnswerWriter> writer);
  // Ends the answer: with the error's status, or inside what was begun.
  void Fail(const ApiError& error);
  // Nothing more is to be done: it is answered, or the client has gone.
  bool closed() const { return closed_; }

 private:
  void Event(std::string_view json) override;
  void Whole(std::string json) override;

  void OnEvent(int32_t prompt, const deepinfer::Event& event);
  void Take(int32_t prompt, const FinishEvent& event);
  void Begin();
  void WatchSilence();
  void Close();

  const std::shared_ptr<const ApiContext> context_;
  const std::shared_ptr<HttpReply> reply_;
  const std::shared_ptr<RequestObserver> observer_;  // null: nobody listens
  const bool stream_;
  std::unique_ptr<AnswerWriter> writer_;
  std::vector<RequestId> requests_;
  int64_t num_running_ = 0;  // choices
  std::unique_ptr<Timer> timer_;
  bool begun_ = false;  // headers are out
  bool silent_ = true;  // since the timer was set
  bool closed_ = false;
};

}  // namespace deepinfer
