// request/chat_answer.h: the tokens of one choice become reasoning, content and calls.
//
// One accumulator for streams and whole answers: a stream tells every delta, a whole answer their
// sum. A call is told when it is whole (tokens/answer_parser.h says why and what becomes of
// malformed ones); calls that the request does not allow are left out.
// Threads: the server's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "deepinfer/request.h"
#include "request/chat_request.h"
#include "tokens/answer_parser.h"

namespace deepinfer {

struct ToldCall {
  int32_t index = 0;
  std::string id;
  std::string name;       // qualified
  std::string arguments;  // a JSON object
};

// What became certain; appended to what came before it.
struct ChatDelta {
  std::string reasoning, content;
  std::vector<ToldCall> calls;
  // If asked for: of the thinking, and of everything else. The end of thinking and EOS are in
  // neither.
  std::vector<PositionLogprobs> reasoning_logprobs, content_logprobs;
  std::vector<int32_t> token_ids;  // if asked for

  // Holds something that a client may see; logprobs and ids wait for such a delta.
  bool HasText() const { return !reasoning.empty() || !content.empty() || !calls.empty(); }
  void Append(ChatDelta more);
};

class ChatChoice {
 public:
  // `request` outlives this; new_call_id makes ids that occur once.
  ChatChoice(const ChatRequest& request, std::function<std::string()> new_call_id);

  ChatDelta Take(const TokensEvent& event);
  // The rest.
  ChatDelta Finish(const FinishEvent& event);

  // After Finish().
  std::string_view finish_reason() const { return finish_reason_; }  // "stop", ...
  const FinishEvent& finish() const { return finish_; }
  int64_t num_tokens() const { return num_tokens_; }
  int64_t num_reasoning_tokens() const { return num_reasoning_tokens_; }
  const std::vector<std::string>& call_ids() const { return call_ids_; }
  const std::vector<ParsedCall>& calls() const { return calls_; }
  // What to remember of an answer with calls that ended by itself; null: nothing.
  std::shared_ptr<const SampledAnswer> sampled() const;

 private:
  void Feed(int32_t id, std::string_view piece, ChatDelta& delta);
  void Add(std::vector<AnswerDelta> deltas, ChatDelta& delta);
  void AddCall(ParsedCall call, ChatDelta& delta);
  void AddLogprobs(int32_t id, bool thinking, const PositionLogprobs& logprobs, ChatDelta& delta);

  const ChatRequest& request_;
  const std::function<std::string()> new_call_id_;
  AnswerParser parser_;
  std::vector<std::string> call_ids_;
  std::vector<ParsedCall> calls_;
  std::vector<int32_t> ids_;         // of an answer that may hold calls
  std::vector<std::string> pieces_;  // one an id
  int64_t num_tokens_ = 0, num_reasoning_tokens_ = 0;
  std::string_view finish_reason_;
  FinishEvent finish_;
};

}  // namespace deepinfer
