#include "request/completion_writer.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace deepinfer {
namespace {

int64_t NumCharacters(std::string_view utf8) {
  return std::count_if(utf8.begin(), utf8.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

// {"tokens", "token_logprobs", "top_logprobs", "text_offset"}: one entry a token.
struct LogprobColumns {
  struct Entry {
    int32_t id = 0;
    std::optional<PositionLogprobs> logprobs;  // none for the first token of a prompt
    int64_t offset = 0;                        // characters before it, prompt included with echo
  };
  std::vector<Entry> entries;

  void Write(const Tokenizer* tokenizer, JsonWriter& out) const {
    const auto label = [&](int32_t id) {
      return tokenizer != nullptr ? TokenLabel(id, *tokenizer) : StrCat("token_id:", id);
    };
    out.Object().Key("tokens").Array();
    for (const Entry& entry : entries) out.String(label(entry.id));
    out.EndArray().Key("token_logprobs").Array();
    for (const Entry& entry : entries) {
      if (entry.logprobs) {
        WriteLogprob(entry.logprobs->token.logprob, out);
      } else {
        out.Null();
      }
    }
    out.EndArray().Key("top_logprobs").Array();
    for (const Entry& entry : entries) {
      if (entry.logprobs) {
        WriteTop(*entry.logprobs, label, out);
      } else {
        out.Null();
      }
    }
    out.EndArray().Key("text_offset").Array();
    for (const Entry& entry : entries) out.Int(entry.offset);
    out.EndArray().EndObject();
  }

 private:
  // The likeliest, and the token itself where it is not among them. Of tokens that look alike the
  // likelier stays.
  template <typename Label>
  static void WriteTop(const PositionLogprobs& position, const Label& label, JsonWriter& out) {
    std::vector<std::string> seen;
    const auto add = [&](const TokenLogprob& token) {
      std::string key = label(token.id);
      if (std::find(seen.begin(), seen.end(), key) != seen.end()) return;
      WriteLogprob(token.logprob, out.Key(key));
      seen.push_back(std::move(key));
    };
    out.Object();
    for (const TokenLogprob& token : position.top) add(token);
    add(position.token);
    out.EndObject();
  }
};

// What is told of a choice at a time.
struct CompletionDelta {
  std::string text;
  LogprobColumns logprobs;
  std::vector<int32_t> token_ids;
};

class CompletionWriter : public AnswerWriter {
 public:
  CompletionWriter(std::shared_ptr<const CompletionRequest> request, AnswerHead head,
                   const Tokenizer* tokenizer)
      : request_(std::move(request)),
        head_(std::move(head)),
        tokenizer_(tokenizer),
        num_choices_(request_->requests.front().num_choices),
        choices_(request_->requests.size() * static_cast<size_t>(num_choices_)),
        readies_(request_->requests.size()) {
    head_.object = "text_completion";
  }

  void OnReady(int32_t prompt, const ReadyEvent& event, AnswerSink& sink) override {
    seed_ = event.seed;
    usage_.prompt_tokens += event.prompt_tokens;
    usage_.cached_tokens += event.cached_tokens;
    readies_[static_cast<size_t>(prompt)] = event;
    for (int32_t i = 0; request_->style.echo && i < num_choices_; ++i) {
      Echo(prompt, prompt * num_choices_ + i, event.prompt_logprobs);
    }
    if (!request_->style.echo) return;
    for (int32_t i = 0; i < num_choices_; ++i) Tell(prompt * num_choices_ + i, sink);
  }

  void OnTokens(int32_t prompt, const TokensEvent& event, AnswerSink& sink) override {
    usage_.output_tokens += std::ssize(event.ids);
    const int32_t index = prompt * num_choices_ + event.choice;
    Choice& choice = choices_[static_cast<size_t>(index)];
    CompletionDelta& delta = choice.untold;
    for (size_t i = 0; i < event.ids.size(); ++i) {
      if (request_->logprobs && i < event.logprobs.size()) {
        delta.logprobs.entries.push_back({event.ids[i], event.logprobs[i], choice.offset});
      }
      if (i < event.pieces.size()) {
        delta.text += event.pieces[i];
        choice.offset += NumCharacters(event.pieces[i]);
      }
    }
    delta.token_ids.insert(delta.token_ids.end(), event.ids.begin(), event.ids.end());
    Tell(index, sink);
  }

  std::string_view OnFinish(int32_t prompt, const FinishEvent& event, AnswerSink& sink) override {
    const int32_t index = prompt * num_choices_ + event.choice;
    choices_[static_cast<size_t>(index)].finish = event;
    End(index, sink);
    return ReasonOf(event);
  }

 protected:
  struct Choice {
    CompletionDelta untold;
    int64_t offset = 0;  // characters told
    FinishEvent finish;
  };

  virtual void Tell(int32_t index, AnswerSink& sink) = 0;
  virtual void End(int32_t index, AnswerSink& sink) = 0;

  static std::string_view ReasonOf(const FinishEvent& finish) {
    return finish.reason == FinishReason::kLength ? "length" : "stop";
  }

  // finish: null while the choice goes on.
  void WriteChoice(int32_t index, const CompletionDelta& delta, const FinishEvent* finish,
                   JsonWriter& out) const {
    out.Object().Key("index").Int(index).Key("text").String(delta.text).Key("logprobs");
    if (request_->logprobs) {
      delta.logprobs.Write(tokenizer_, out);
    } else {
      out.Null();
    }
    out.Key("finish_reason");
    if (finish == nullptr) {
      out.Null();
    } else {
      out.String(ReasonOf(*finish));
      WriteStopReason(*finish, finish->matched_token_id.value_or(-1), out);
    }
    if (request_->style.return_token_ids || tokenizer_ == nullptr) {
      out.Key("token_ids");
      WriteIds(delta.token_ids, out);
    }
  }

  // What belongs to the prompt of a choice; the object is open.
  void WritePromptParts(int32_t index, JsonWriter& out) const {
    const auto prompt = static_cast<size_t>(index / num_choices_);
    if (request_->wants_prompt_logprobs) {
      out.Key("prompt_logprobs");
      WritePromptLogprobs(readies_[prompt].prompt_logprobs, tokenizer_, out);
    }
    if (request_->style.return_token_ids) {
      out.Key("prompt_token_ids");
      WriteIds(request_->requests[prompt].prompt_ids, out);
    }
  }

  const std::shared_ptr<const CompletionRequest> request_;
  AnswerHead head_;
  const Tokenizer* const tokenizer_;
  const int32_t num_choices_;  // of each prompt
  std::vector<Choice> choices_;
  std::vector<ReadyEvent> readies_;
  Usage usage_;
  uint64_t seed_ = 0;

 private:
  void Echo(int32_t prompt, int32_t index, const std::vector<PositionLogprobs>& logprobs) {
    Choice& choice = choices_[static_cast<size_t>(index)];
    const auto& ids = request_->requests[static_cast<size_t>(prompt)].prompt_ids;
    const auto& pieces = request_->prompts[static_cast<size_t>(prompt)].pieces;
    for (size_t i = 0; i < std::max(ids.size(), pieces.size()); ++i) {
      if (request_->logprobs) {
        LogprobColumns::Entry entry{.id = ids[i], .offset = choice.offset};
        if (i > 0 && i <= logprobs.size()) entry.logprobs = logprobs[i - 1];
        choice.untold.logprobs.entries.push_back(std::move(entry));
      }
      if (i >= pieces.size()) continue;
      choice.untold.text += pieces[i];
      choice.offset += NumCharacters(pieces[i]);
    }
  }
};

class WholeCompletionWriter : public CompletionWriter {
 public:
  using CompletionWriter::CompletionWriter;

  void OnEnd(AnswerSink& sink) override {
    JsonWriter out;
    WriteHead(head_, out);
    out.Key("seed").Int(seed_).Key("choices").Array();
    for (size_t i = 0; i < choices_.size(); ++i) {
      const auto index = static_cast<int32_t>(i);
      WriteChoice(index, choices_[i].untold, &choices_[i].finish, out);
      WritePromptParts(index, out);
      out.EndObject();
    }
    out.EndArray().Key("usage");
    WriteUsage(usage_, out);
    sink.Whole(out.EndObject().Take());
  }

 protected:
  void Tell(int32_t, AnswerSink&) override {}
  void End(int32_t, AnswerSink&) override {}
};

class StreamCompletionWriter : public CompletionWriter {
 public:
  StreamCompletionWriter(std::shared_ptr<const CompletionRequest> request, AnswerHead head,
                         const Tokenizer* tokenizer)
      : CompletionWriter(std::move(request), std::move(head), tokenizer),
        told_prompt_(choices_.size()) {}

  void OnEnd(AnswerSink& sink) override {
    if (!request_->style.include_usage) return;
    JsonWriter out;
    WriteHead(head_, out);
    out.Key("choices").Array().EndArray().Key("seed").Int(seed_).Key("usage");
    WriteUsage(usage_, out);
    sink.Event(out.EndObject().Take());
  }

 protected:
  void Tell(int32_t index, AnswerSink& sink) override {
    Choice& choice = choices_[static_cast<size_t>(index)];
    if (choice.untold.text.empty() && tokenizer_ != nullptr) return;
    Send(index, nullptr, sink);
  }
  void End(int32_t index, AnswerSink& sink) override {
    Send(index, &choices_[static_cast<size_t>(index)].finish, sink);
  }

 private:
  void Send(int32_t index, const FinishEvent* finish, AnswerSink& sink) {
    JsonWriter out;
    WriteHead(head_, out);
    out.Key("choices").Array();
    const auto place = static_cast<size_t>(index);
    WriteChoice(index, std::exchange(choices_[place].untold, {}), finish, out);
    if (!told_prompt_[place]) WritePromptParts(index, out);
    told_prompt_[place] = true;
    out.EndObject().EndArray();
    if (finish != nullptr) out.Key("seed").Int(seed_);
    if (request_->style.include_usage) {
      out.Key("usage");
      if (request_->style.continuous_usage) {
        WriteUsage(usage_, out);
      } else {
        out.Null();
      }
    }
    sink.Event(out.EndObject().Take());
  }

  std::vector<bool> told_prompt_;
};

}  // namespace

std::unique_ptr<AnswerWriter> MakeCompletionWriter(std::shared_ptr<const CompletionRequest> request,
                                                   AnswerHead head, const Tokenizer* tokenizer) {
  if (request->style.stream) {
    return std::make_unique<StreamCompletionWriter>(std::move(request), std::move(head), tokenizer);
  }
  return std::make_unique<WholeCompletionWriter>(std::move(request), std::move(head), tokenizer);
}

}  // namespace deepinfer
