#include "eval/dialogue.h"

#include "base/check.h"
#include "eval/exercise.h"

namespace deepinfer {

std::vector<std::string_view> Alternatives(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find('|', begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::string_view PickAlternative(Rng& rng, std::string_view text) {
  return Pick(rng, Alternatives(text));
}

std::string Filled(std::string_view text, const Fillings& fillings) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t open = text.find('{', i);
    out += text.substr(i, open - i);
    if (open == std::string_view::npos) break;
    const size_t close = text.find('}', open);
    CHECK(close != std::string_view::npos);
    const std::string_view name = text.substr(open + 1, close - open - 1);
    bool known = false;
    for (const auto& [filled, value] : fillings) {
      if (filled != name) continue;
      out += value;
      known = true;
      break;
    }
    CHECK(known);
    i = close + 1;
  }
  return out;
}

std::string JoinedNaturally(const std::vector<std::string>& words) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? " and " : ", ";
    out += words[i];
  }
  return out;
}

std::string WithLowerStart(std::string_view text) {
  std::string out(text);
  const bool is_word_i = text.starts_with("I ");
  if (!out.empty() && !is_word_i && out[0] >= 'A' && out[0] <= 'Z') {
    out[0] = static_cast<char>(out[0] - 'A' + 'a');
  }
  return out;
}

std::string UpperCase(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

Message CallingMessage(std::vector<ToolCall> calls, std::string reasoning) {
  Message message = AssistantMessage("", std::move(reasoning));
  message.tool_calls = std::move(calls);
  return message;
}

Message ToolMessage(const ToolCall& call, std::string text) {
  Message message = UserMessage(std::move(text));
  message.role = Role::kTool;
  message.tool_call_id = call.id;
  message.tool_name = call.name;
  return message;
}

void MaybeAddNeutralSystem(Rng& rng, Conversation& conversation) {
  constexpr std::string_view kNeutral =
      "You are a helpful assistant.|You are a helpful assistant. Answer briefly.|"
      "You are a friendly and helpful assistant.|You are an assistant.|Be helpful and polite.";
  if (!Chance(rng, 1.0 / 3)) return;
  conversation.messages.insert(conversation.messages.begin(),
                               SystemMessage(std::string(PickAlternative(rng, kNeutral))));
}

}  // namespace deepinfer
