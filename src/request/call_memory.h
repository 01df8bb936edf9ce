// request/call_memory.h: answers with tool calls, as the model wrote them, by the ids of the calls.
//
// Clients send calls back as JSON of their own: other white space, other order. A later turn that
// names the same ids with equal arguments gets the sampled tokens in its prompt, so that the cached
// pages of the turn before are found. What is forgotten or changed is rendered from the JSON, as a
// call that was never sampled is: only the cache hit is lost.
// Threads: the server's.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokens/answer_parser.h"
#include "tokens/conversation.h"

namespace deepinfer {

class CallMemory {
 public:
  explicit CallMemory(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // `owner` keeps tenants and users apart. call_ids: one a call, in order; the first is the key.
  void Remember(std::string_view owner, const std::vector<std::string>& call_ids,
                const std::vector<ParsedCall>& calls, std::shared_ptr<const SampledAnswer> answer);
  // Sets Message::sampled wherever all calls of a message are known and unchanged.
  void Recall(std::string_view owner, Conversation& conversation);

  int64_t bytes() const { return bytes_; }

 private:
  struct Entry {
    std::string key;
    std::vector<std::string> call_ids;
    std::vector<ToolCall> calls;  // arguments as an object
    std::shared_ptr<const SampledAnswer> answer;
    int64_t bytes = 0;
  };
  using Entries = std::list<Entry>;

  static bool Same(const Entry& entry, const std::vector<ToolCall>& calls);

  const int64_t max_bytes_;
  int64_t bytes_ = 0;
  Entries entries_;  // the most recently used first
  std::unordered_map<std::string, Entries::iterator> by_key_;
};

// What an answer that ended by itself is remembered as; null if its markup holds more than the
// calls that were told: then no JSON of theirs stands for all of it.
std::shared_ptr<const SampledAnswer> MakeSampledAnswer(const std::vector<AnswerToken>& tokens,
                                                       const AnswerTokens& names, bool in_thinking);

}  // namespace deepinfer
