#include "apps/paced_engine_client.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace deepinfer {
namespace {

constexpr int32_t kMaxTokens = 1 << 20;  // of a request that names no limit

}  // namespace

PacedEngineClient::PacedEngineClient(ServedModel model, Timers& timers, double tokens_per_s)
    : model_(std::move(model)), timers_(timers), tokens_per_s_(tokens_per_s) {
  CHECK(tokens_per_s > 0 && model_.tokenizer != nullptr);
  const auto ids = model_.tokenizer->Encode(" the answer to all of this is not here");
  for (const int32_t id : ids) words_.push_back({id, model_.tokenizer->Decode({&id, 1})});
}

RequestId PacedEngineClient::Submit(Request request, Handler handler) {
  const int64_t id = next_id_++;
  const MonotonicTime now = timers_.Now();
  streams_[id] = std::make_shared<Stream>(
      Stream{.handler = std::move(handler),
             .prompt_tokens = static_cast<int32_t>(request.prompt_ids.size()),
             .max_tokens = request.max_tokens.value_or(kMaxTokens),
             .seed = request.seed.value_or(0),
             .arrival = now});
  num_prompt_tokens_ += std::ssize(request.prompt_ids);
  due_.push({now + FromSeconds(1 / tokens_per_s_), id});
  Wait();
  return {id};
}

void PacedEngineClient::Cancel(RequestId request) { streams_.erase(request.v); }

EngineSnapshot PacedEngineClient::Snapshot() const {
  EngineSnapshot now;
  now.num_running = static_cast<int32_t>(streams_.size());
  now.max_num_seqs = now.max_waiting = kMaxTokens;
  now.prompt_tokens = num_prompt_tokens_;
  now.output_tokens = num_tokens_;
  return now;
}

void PacedEngineClient::Wait() {
  if (due_.empty()) return timer_.reset();
  timer_ = timers_.RunAfter(std::max(due_.top().time - timers_.Now(), Duration(0)),
                            [this] { Deliver(); });
}

void PacedEngineClient::Deliver() {
  const MonotonicTime now = timers_.Now();
  while (!due_.empty() && due_.top().time <= now) {
    const int64_t id = due_.top().id;
    due_.pop();
    Step(id);
  }
  Wait();
}

void PacedEngineClient::Step(int64_t id) {
  const auto at = streams_.find(id);
  if (at == streams_.end()) return;                   // cancelled
  const std::shared_ptr<Stream> stream = at->second;  // its handler may cancel it
  const int32_t number = stream->num_tokens++;
  if (number == 0) {
    stream->handler(
        ReadyEvent{.request = {id}, .seed = stream->seed, .prompt_tokens = stream->prompt_tokens});
  }
  const Word& word = words_[static_cast<size_t>(number) % words_.size()];
  ++num_tokens_;
  stream->handler(TokensEvent{.request = {id},
                              .first_idx = number,
                              .ids = {word.id},
                              .text = word.text,
                              .pieces = {word.text}});
  if (stream->num_tokens >= stream->max_tokens) {
    streams_.erase(id);
    return stream->handler(FinishEvent{.request = {id}, .reason = FinishReason::kLength});
  }
  if (!streams_.contains(id)) return;
  due_.push({stream->arrival + FromSeconds((stream->num_tokens + 1) / tokens_per_s_), id});
}

}  // namespace deepinfer
