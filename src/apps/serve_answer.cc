#include "apps/serve_answer.h"

#include <algorithm>
#include <charconv>

namespace deepinfer {
namespace {

constexpr size_t kBodyBytesMax = size_t{64} << 20;
constexpr size_t kQuotedBytes = 200;

int64_t IntegerOf(const JsonValue* value) {
  int64_t number = kNotReported;
  if (value != nullptr && value->kind == JsonValue::Kind::kNumber) {
    std::from_chars(value->text.data(), value->text.data() + value->text.size(), number);
  }
  return number;
}

std::string_view TextOf(const JsonValue* value) {
  return value != nullptr && value->IsString() ? std::string_view(value->text) : "";
}

// `error` is an object with a message (OpenAI), or a text.
std::string MessageIn(const JsonValue& error) {
  if (error.IsString()) return error.text;
  const std::string_view message = TextOf(error.Find("message"));
  return message.empty() ? DumpJson(error) : std::string(message);
}

// The visible output in a choice of a chunk or of a whole answer.
struct Output {
  bool any = false;
  std::string_view text;  // content, or a completion's text
};

Output OutputOf(const JsonValue& choice) {
  Output output{.text = TextOf(choice.Find("text"))};
  const JsonValue* message = choice.Find("delta");
  if (message == nullptr) message = choice.Find("message");
  if (message != nullptr) {
    output.text = TextOf(message->Find("content"));
    const JsonValue* const calls = message->Find("tool_calls");
    output.any = !TextOf(message->Find("reasoning_content")).empty() ||
                 !TextOf(message->Find("reasoning")).empty() ||
                 (calls != nullptr && !calls->items.empty());
  }
  output.any = output.any || !output.text.empty();
  return output;
}

}  // namespace

int64_t ServedRequest::NumOutput() const {
  return output_tokens == kNotReported ? std::ssize(piece_s) : output_tokens;
}

double ServedRequest::Tpot() const {
  return (piece_s.back() - piece_s.front()) / static_cast<double>(NumOutput() - 1);
}

std::string ServeErrorMessage(std::string_view body) {
  if (const auto json = ParseJson(body); json.ok()) {
    if (const JsonValue* const error = json->Find("error"); error != nullptr) {
      return OneLine(MessageIn(*error));
    }
  }
  return OneLine(body.substr(0, kQuotedBytes));
}

void ServeAnswer::OnHead(int status, std::string_view content_type) {
  request_.status = status;
  is_stream_ = status == 200 && content_type.starts_with("text/event-stream");
}

void ServeAnswer::OnBody(std::string_view piece) {
  if (!is_stream_) {
    body_ += piece.substr(0, kBodyBytesMax - body_.size());
    return;
  }
  const double now_s = Now();
  const Status status =
      reader_.Feed(piece, [&](const SseEvent& event) { TakeEvent(event.data, now_s); });
  if (!status.ok() && request_.ok()) request_.error = MessageOf(status);
}

void ServeAnswer::TakeEvent(std::string_view data, double now_s) {
  if (data == "[DONE]") {
    is_done_ = true;
    return;
  }
  const auto chunk = ParseJson(data);
  if (!chunk.ok()) {
    request_.error = StrCat("an event of the stream is ", MessageOf(chunk.status()));
    return;
  }
  if (const JsonValue* const error = chunk->Find("error"); error != nullptr && !error->IsNull()) {
    request_.error = OneLine(MessageIn(*error));
    return;
  }
  TakeUsage(*chunk);
  const JsonValue* const choices = chunk->Find("choices");
  if (choices == nullptr) return;
  for (const JsonValue& choice : choices->items) {
    const Output output = OutputOf(choice);
    if (!output.any) continue;
    request_.piece_s.push_back(now_s);
    if (options_.keeps_text && IntegerOf(choice.Find("index")) <= 0) request_.text += output.text;
  }
}

void ServeAnswer::TakeUsage(const JsonValue& answer) {
  const JsonValue* const usage = answer.Find("usage");
  if (usage == nullptr || !usage->IsObject()) return;
  request_.prompt_tokens = IntegerOf(usage->Find("prompt_tokens"));
  request_.output_tokens = IntegerOf(usage->Find("completion_tokens"));
  const JsonValue* const details = usage->Find("prompt_tokens_details");
  request_.cached_tokens = IntegerOf(details == nullptr ? nullptr : details->Find("cached_tokens"));
  if (request_.cached_tokens == kNotReported) {
    request_.cached_tokens = IntegerOf(usage->Find("prompt_cache_hit_tokens"));
  }
}

void ServeAnswer::TakeWhole() {
  if (request_.status != 200) {
    request_.error = StrCat("HTTP ", request_.status, ": ", ServeErrorMessage(body_));
    return;
  }
  const auto answer = ParseJson(body_);
  const JsonValue* const choices = answer.ok() ? answer->Find("choices") : nullptr;
  if (choices == nullptr || choices->items.empty()) {
    request_.error = StrCat("expected an answer with choices, found ",
                            OneLine(std::string_view(body_).substr(0, kQuotedBytes)));
    return;
  }
  TakeUsage(*answer);
  if (options_.keeps_text) request_.text = OutputOf(choices->items[0]).text;
}

void ServeAnswer::OnEnd() {
  if (!is_stream_) {
    TakeWhole();
    if (options_.streams && request_.ok()) request_.error = "the answer was not streamed";
  } else if (!is_done_ && request_.ok()) {
    request_.error = "the stream ended without [DONE]";
  }
  End();
}

void ServeAnswer::OnFailed(const Status& status) {
  if (request_.ok()) request_.error = MessageOf(status);
  End();
}

void ServeAnswer::End() {
  request_.end_s = Now();
  done_();
}

}  // namespace deepinfer
