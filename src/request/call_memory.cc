#include "request/call_memory.h"

#include <algorithm>

#include "tokens/control_tokens.h"

namespace deepinfer {
namespace {

// Of the tenant and the first call's id; the length keeps two such pairs apart.
std::string KeyOf(std::string_view owner, std::string_view call_id) {
  return StrCat(owner.size(), ":", owner, call_id);
}

int64_t BytesOf(const SampledAnswer& answer) {
  int64_t bytes = static_cast<int64_t>(answer.ids.size() * sizeof(int32_t) + answer.text.size() +
                                       answer.reasoning.size() + answer.content.size());
  for (const PromptSegment& segment : answer.calls) {
    bytes += static_cast<int64_t>(sizeof segment + segment.text.size());
  }
  return bytes;
}

// Arguments as clients send them: an object, or the text of one.
JsonValue ObjectOf(const JsonValue& arguments) {
  if (!arguments.IsString()) return arguments;
  StatusOr<JsonValue> parsed = ParseJson(arguments.text);
  return parsed.ok() ? *std::move(parsed) : arguments;
}

// Where the block of calls begins in the text before its first marker: "<", and at most two
// newlines.
size_t BlockBegin(std::string_view text) {
  size_t begin = text.size();
  if (begin > 0 && text[begin - 1] == '<') --begin;
  for (int i = 0; i < 2 && begin > 0 && text[begin - 1] == '\n'; ++i) --begin;
  return begin;
}

std::vector<PromptSegment> BlockOf(const std::vector<AnswerToken>& tokens, int32_t dsml) {
  const auto first = std::find_if(tokens.begin(), tokens.end(),
                                  [dsml](const AnswerToken& token) { return token.id == dsml; });
  std::string before;
  for (auto token = tokens.begin(); token != first; ++token) before += token->text;
  PromptWriter block;
  block.Text(std::string_view(before).substr(BlockBegin(before)));
  for (auto token = first; token != tokens.end(); ++token) {
    if (token->id == dsml) {
      block.Control(kDsmlToken);
    } else {
      block.Text(token->text);
    }
  }
  return block.TakeSegments();
}

}  // namespace

std::shared_ptr<const SampledAnswer> MakeSampledAnswer(const std::vector<AnswerToken>& tokens,
                                                       const AnswerTokens& names,
                                                       bool in_thinking) {
  const ParsedAnswer parsed = ParseAnswer(tokens, names, in_thinking);
  if (parsed.num_malformed > 0 || parsed.calls.empty()) return nullptr;
  auto answer = std::make_shared<SampledAnswer>();
  answer->in_thinking = in_thinking;
  answer->reasoning = parsed.reasoning;
  answer->content = parsed.content;
  answer->num_calls = parsed.calls.size();
  std::vector<AnswerToken> kept;
  for (const AnswerToken& token : tokens) {
    if (token.id == names.eos) break;
    answer->ids.push_back(token.id);
    answer->text += token.text;
    kept.push_back(token);
  }
  answer->calls = BlockOf(kept, names.dsml);
  const ParsedAnswer block = ParseAnswer(TextOf(answer->calls), false);
  if (block.calls != parsed.calls || !block.content.empty()) return nullptr;
  return answer;
}

void CallMemory::Remember(std::string_view owner, const std::vector<std::string>& call_ids,
                          const std::vector<ParsedCall>& calls,
                          std::shared_ptr<const SampledAnswer> answer) {
  if (by_key_.count(KeyOf(owner, call_ids.front())) > 0) return;
  Entry entry{.key = KeyOf(owner, call_ids.front()), .call_ids = call_ids};
  entry.bytes = BytesOf(*answer) + 2 * static_cast<int64_t>(sizeof entry + entry.key.size());
  for (const ParsedCall& call : calls) {
    StatusOr<JsonValue> arguments = ParseJson(call.arguments);
    if (!arguments.ok()) return;  // nested deeper than a client could send back
    entry.calls.push_back({.name_space = call.name_space, .name = call.name});
    entry.calls.back().arguments = *std::move(arguments);
    entry.bytes += 4 * static_cast<int64_t>(call.arguments.size() + sizeof(ToolCall));
  }
  entry.answer = std::move(answer);
  if (entry.bytes > max_bytes_) return;
  bytes_ += entry.bytes;
  entries_.push_front(std::move(entry));
  by_key_[entries_.front().key] = entries_.begin();
  while (bytes_ > max_bytes_) {
    bytes_ -= entries_.back().bytes;
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

void CallMemory::Recall(std::string_view owner, Conversation& conversation) {
  for (Message& message : conversation.messages) {
    if (message.tool_calls.empty()) continue;
    const auto found = by_key_.find(KeyOf(owner, message.tool_calls.front().id));
    if (found == by_key_.end()) continue;
    entries_.splice(entries_.begin(), entries_, found->second);
    if (Same(*found->second, message.tool_calls)) message.sampled = found->second->answer;
  }
}

bool CallMemory::Same(const Entry& entry, const std::vector<ToolCall>& calls) {
  if (calls.size() != entry.calls.size()) return false;
  for (size_t i = 0; i < calls.size(); ++i) {
    const ToolCall& known = entry.calls[i];
    if (calls[i].id != entry.call_ids[i] || calls[i].name_space != known.name_space ||
        calls[i].name != known.name || !SameJson(ObjectOf(calls[i].arguments), known.arguments)) {
      return false;
    }
  }
  return true;
}

}  // namespace deepinfer
