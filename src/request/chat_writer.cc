#include "request/chat_writer.h"

#include <utility>

namespace deepinfer {
namespace {

// What both ways have in common: the choices and their counts.
class ChatWriter : public AnswerWriter {
 public:
  ChatWriter(std::shared_ptr<const ChatRequest> request, ChatWriterOptions options)
      : request_(std::move(request)), options_(std::move(options)) {
    for (int32_t i = 0; i < request_->request.num_choices; ++i) {
      choices_.emplace_back(*request_, options_.new_call_id);
    }
  }

  void OnReady(int32_t /*prompt*/, const ReadyEvent& event, AnswerSink& sink) override {
    seed_ = event.seed;
    usage_.prompt_tokens = event.prompt_tokens;
    usage_.cached_tokens = event.cached_tokens;
    Start(event, sink);
    const ChatDelta echo{.reasoning = request_->echo_reasoning, .content = request_->echo_content};
    for (int32_t i = 0; i < request_->request.num_choices; ++i) Tell(i, echo, sink);
  }

  void OnTokens(int32_t /*prompt*/, const TokensEvent& event, AnswerSink& sink) override {
    usage_.output_tokens += std::ssize(event.ids);
    ChatChoice& choice = choices_[static_cast<size_t>(event.choice)];
    const int64_t before = choice.num_reasoning_tokens();
    ChatDelta delta = choice.Take(event);
    usage_.reasoning_tokens += choice.num_reasoning_tokens() - before;
    Tell(event.choice, std::move(delta), sink);
  }

  std::string_view OnFinish(int32_t /*prompt*/, const FinishEvent& event,
                            AnswerSink& sink) override {
    ChatChoice& choice = choices_[static_cast<size_t>(event.choice)];
    Tell(event.choice, choice.Finish(event), sink);
    End(event.choice, sink);
    if (options_.on_choice) options_.on_choice(choice);
    return choice.finish_reason();
  }

 protected:
  virtual void Start(const ReadyEvent& event, AnswerSink& sink) = 0;
  virtual void Tell(int32_t choice, ChatDelta delta, AnswerSink& sink) = 0;
  virtual void End(int32_t choice, AnswerSink& sink) = 0;

  const AnswerStyle& style() const { return request_->style; }
  const ChatChoice& choice(int32_t i) const { return choices_[static_cast<size_t>(i)]; }
  bool wants_logprobs() const { return request_->request.sampling.logprobs.has_value(); }

  // null without logprobs.
  void WriteLogprobs(const ChatDelta& delta, JsonWriter& out) const {
    out.Key("logprobs");
    if (!wants_logprobs()) {
      out.Null();
      return;
    }
    out.Object().Key("content");
    WriteChatLogprobs(delta.content_logprobs, *options_.tokenizer, out);
    if (request_->in_thinking) {
      out.Key("reasoning_content");
      WriteChatLogprobs(delta.reasoning_logprobs, *options_.tokenizer, out);
    }
    out.Key("refusal").Null().EndObject();
  }

  void WriteCall(const ToldCall& call, bool with_index, std::string_view arguments,
                 JsonWriter& out) const {
    out.Object();
    if (with_index) out.Key("index").Int(call.index);
    out.Key("id").String(call.id).Key("type").String("function").Key("function").Object();
    out.Key("name").String(call.name).Key("arguments").String(arguments).EndObject().EndObject();
  }

  void WritePromptParts(const ReadyEvent& ready, JsonWriter& out) const {
    if (request_->request.prompt_logprobs) {
      out.Key("prompt_logprobs");
      WritePromptLogprobs(ready.prompt_logprobs, options_.tokenizer, out);
    }
    if (style().return_token_ids) {
      out.Key("prompt_token_ids");
      WriteIds(request_->request.prompt_ids, out);
    }
  }

  const std::shared_ptr<const ChatRequest> request_;
  const ChatWriterOptions options_;
  std::vector<ChatChoice> choices_;
  Usage usage_;
  uint64_t seed_ = 0;
};

class WholeChatWriter : public ChatWriter {
 public:
  WholeChatWriter(std::shared_ptr<const ChatRequest> request, ChatWriterOptions options)
      : ChatWriter(std::move(request), std::move(options)), sums_(choices_.size()) {}

  void OnEnd(AnswerSink& sink) override {
    AnswerHead head = options_.head;
    head.object = "chat.completion";
    JsonWriter out;
    WriteHead(head, out);
    out.Key("seed").Int(seed_).Key("choices").Array();
    for (int32_t i = 0; i < request_->request.num_choices; ++i) WriteChoice(i, out);
    out.EndArray();
    WritePromptParts(ready_, out);
    out.Key("usage");
    WriteUsage(usage_, out);
    sink.Whole(out.EndObject().Take());
  }

 protected:
  void Start(const ReadyEvent& event, AnswerSink&) override { ready_ = event; }
  void Tell(int32_t choice, ChatDelta delta, AnswerSink&) override {
    sums_[static_cast<size_t>(choice)].Append(std::move(delta));
  }
  void End(int32_t, AnswerSink&) override {}

 private:
  void WriteChoice(int32_t i, JsonWriter& out) const {
    const ChatDelta& sum = sums_[static_cast<size_t>(i)];
    out.Object().Key("index").Int(i).Key("message");
    WriteMessage(sum, out);
    WriteLogprobs(sum, out);
    out.Key("finish_reason").String(choice(i).finish_reason());
    WriteStopReason(choice(i).finish(), request_->tokens.eos, out);
    if (style().return_token_ids) {
      out.Key("token_ids");
      WriteIds(sum.token_ids, out);
    }
    out.EndObject();
  }

  void WriteMessage(const ChatDelta& sum, JsonWriter& out) const {
    out.Object().Key("role").String("assistant").Key("content");
    if (sum.content.empty() && !sum.calls.empty()) {
      out.Null();
    } else {
      out.String(sum.content);
    }
    if (request_->in_thinking) out.Key("reasoning_content").String(sum.reasoning);
    if (!sum.calls.empty()) {
      out.Key("tool_calls").Array();
      for (const ToldCall& call : sum.calls) WriteCall(call, false, call.arguments, out);
      out.EndArray();
    }
    out.Key("refusal").Null().EndObject();
  }

  std::vector<ChatDelta> sums_;
  ReadyEvent ready_;
};

class StreamChatWriter : public ChatWriter {
 public:
  StreamChatWriter(std::shared_ptr<const ChatRequest> request, ChatWriterOptions options)
      : ChatWriter(std::move(request), std::move(options)), waiting_(choices_.size()) {
    AnswerHead head = options_.head;
    head.object = "chat.completion.chunk";
    JsonWriter out;
    WriteHead(head, out);
    head_ = out.Take();
  }

  void OnEnd(AnswerSink& sink) override {
    if (!style().include_usage) return;
    std::string chunk = StrCat(head_, ",\"choices\":[],\"seed\":", seed_, ",\"usage\":");
    JsonWriter out;
    WriteUsage(usage_, out);
    sink.Event(chunk + out.Take() + "}");
  }

 protected:
  // The role first; what is asked for of the prompt comes with it, once.
  void Start(const ReadyEvent& event, AnswerSink& sink) override {
    for (int32_t i = 0; i < request_->request.num_choices; ++i) {
      JsonWriter out;
      out.Object().Key("role").String("assistant").Key("content").String("").EndObject();
      std::string more;
      if (i == 0) {
        JsonWriter prompt;
        WritePromptParts(event, prompt);
        if (std::string parts = prompt.Take(); !parts.empty()) more = StrCat(",", parts);
      }
      sink.Event(Chunk(i, out.Take(), {}, nullptr, more));
    }
  }

  void Tell(int32_t choice, ChatDelta delta, AnswerSink& sink) override {
    ChatDelta& waiting = waiting_[static_cast<size_t>(choice)];
    waiting.Append(std::move(delta));
    if (!waiting.HasText()) return;
    const ChatDelta told = std::exchange(waiting, {});
    // The first chunk takes the log-probabilities and ids of all.
    ChatDelta once;
    once.reasoning_logprobs = told.reasoning_logprobs;
    once.content_logprobs = told.content_logprobs;
    once.token_ids = told.token_ids;
    const auto send = [&](JsonWriter& json) {
      sink.Event(Chunk(choice, json.EndObject().Take(), std::exchange(once, {}), nullptr, ""));
    };
    JsonWriter out;
    if (!told.reasoning.empty()) {
      send(out.Object().Key("reasoning_content").String(told.reasoning));
    }
    if (!told.content.empty()) send(out.Object().Key("content").String(told.content));
    for (const ToldCall& call : told.calls) {
      out.Object().Key("tool_calls").Array();
      WriteCall(call, true, "", out);
      send(out.EndArray());
      out.Object().Key("tool_calls").Array().Object().Key("index").Int(call.index);
      out.Key("function").Object().Key("arguments").String(call.arguments).EndObject().EndObject();
      send(out.EndArray());
    }
  }

  void End(int32_t i, AnswerSink& sink) override {
    const ChatDelta rest = std::exchange(waiting_[static_cast<size_t>(i)], {});
    sink.Event(Chunk(i, "{}", rest, &choice(i), StrCat(",\"seed\":", seed_)));
  }

 private:
  // ended: null while the choice goes on. `more`: further members, each after a comma.
  std::string Chunk(int32_t i, std::string_view delta, const ChatDelta& beside,
                    const ChatChoice* ended, std::string_view more) const {
    JsonWriter out;
    out.Object().Key("index").Int(i).Key("delta").Raw(delta);
    const bool has_logprobs =
        !beside.content_logprobs.empty() || !beside.reasoning_logprobs.empty();
    if (has_logprobs) {
      WriteLogprobs(beside, out);
    } else {
      out.Key("logprobs").Null();
    }
    out.Key("finish_reason");
    if (ended == nullptr) {
      out.Null();
    } else {
      out.String(ended->finish_reason());
      WriteStopReason(ended->finish(), request_->tokens.eos, out);
    }
    if (style().return_token_ids) {
      out.Key("token_ids");
      WriteIds(beside.token_ids, out);
    }
    out.EndObject();
    std::string chunk = StrCat(head_, ",\"choices\":[", out.Take(), "]", more);
    if (style().continuous_usage) {
      WriteUsage(usage_, out);
      chunk += ",\"usage\":" + out.Take();
    } else if (style().include_usage) {
      chunk += ",\"usage\":null";
    }
    return chunk + "}";
  }

  std::string head_;                // an open object
  std::vector<ChatDelta> waiting_;  // logprobs and ids without a delta yet, by choice
};

}  // namespace

std::unique_ptr<AnswerWriter> MakeChatWriter(std::shared_ptr<const ChatRequest> request,
                                             ChatWriterOptions options) {
  if (request->style.stream) {
    return std::make_unique<StreamChatWriter>(std::move(request), std::move(options));
  }
  return std::make_unique<WholeChatWriter>(std::move(request), std::move(options));
}

}  // namespace deepinfer
