// apps/serve_answer.h: what one request to an OpenAI-shaped server brought, and when.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/http_pool.h"
#include "base/clock.h"
#include "request/sse_reader.h"
#include "tokens/json.h"

namespace deepinfer {

inline constexpr int64_t kNotReported = -1;

// Times are seconds after the start of the run.
struct ServedRequest {
  double due_s = 0;   // when it was to be sent
  double sent_s = 0;  // when it was
  double end_s = 0;   // when its answer was complete, or failed
  int status = 0;     // HTTP; 0: no answer came
  std::string error;  // empty: served
  // When pieces of output came: one server-sent event may carry several tokens. Empty without
  // streaming.
  std::vector<double> piece_s;
  int64_t prompt_tokens = kNotReported, cached_tokens = kNotReported, output_tokens = kNotReported;
  std::string text;  // of choice 0; if wanted

  bool ok() const { return error.empty(); }
  // Tokens the server counted, else pieces.
  int64_t NumOutput() const;
  // Requires: piece_s is not empty. TPOT: also NumOutput() > 1.
  double Ttft() const { return piece_s.front() - due_s; }
  double Tpot() const;
  double Latency() const { return end_s - due_s; }
};

// Reads one answer, whole (JSON) or streamed (server-sent events), as its bytes come.
class ServeAnswer : public HttpListener {
 public:
  struct Options {
    bool streams = true, keeps_text = false;
  };

  // `done` is called once, last. All outlive this.
  ServeAnswer(const Options& options, const Clock& clock, MonotonicTime start,
              ServedRequest& request, std::function<void()> done)
      : options_(options),
        clock_(clock),
        start_(start),
        request_(request),
        done_(std::move(done)) {}

  void OnHead(int status, std::string_view content_type) override;
  void OnBody(std::string_view piece) override;
  void OnEnd() override;
  void OnFailed(const Status& status) override;

 private:
  void TakeEvent(std::string_view data, double now_s);
  void TakeWhole();
  void TakeUsage(const JsonValue& answer);
  void End();
  double Now() const { return Seconds(clock_.Now() - start_); }

  const Options options_;
  const Clock& clock_;
  const MonotonicTime start_;
  ServedRequest& request_;
  const std::function<void()> done_;
  SseReader reader_;
  std::string body_;  // of an answer that is no stream; cut off
  bool is_stream_ = false, is_done_ = false;
};

// What the server says is wrong: the `message` of {"error": {...}}, else the first words of the
// body. One line.
std::string ServeErrorMessage(std::string_view body);

}  // namespace deepinfer
