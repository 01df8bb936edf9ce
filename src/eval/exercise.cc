#include "eval/exercise.h"

#include "base/hash64.h"

namespace deepinfer {
namespace {

Message TextMessage(Role role, std::string text) {
  Message message;
  message.role = role;
  message.content.push_back(ContentPart::Text(std::move(text)));
  return message;
}

}  // namespace

uint64_t HashOfKey(std::string_view task, std::string_view key) {
  std::string bytes(task);
  bytes += '\0';
  bytes += key;
  return Hash64(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
}

Split SplitOf(std::string_view task, std::string_view key) {
  constexpr uint64_t kOneInHeldOut = 16;
  return HashOfKey(task, key) % kOneInHeldOut == 0 ? Split::kHeldOut : Split::kTraining;
}

int64_t Between(Rng& rng, int64_t low, int64_t high) {
  CHECK(low <= high);
  return low + static_cast<int64_t>(rng.Uniform(static_cast<uint64_t>(high - low) + 1));
}

bool Chance(Rng& rng, double probability) { return rng.UniformDouble() < probability; }

Message SystemMessage(std::string text) { return TextMessage(Role::kSystem, std::move(text)); }

Message UserMessage(std::string text) { return TextMessage(Role::kUser, std::move(text)); }

Message AssistantMessage(std::string text, std::string reasoning) {
  Message message = TextMessage(Role::kAssistant, std::move(text));
  message.reasoning_content = std::move(reasoning);
  return message;
}

std::string TextOfMessage(const Message& message) {
  std::string text;
  for (const ContentPart& part : message.content) text += part.text;
  return text;
}

}  // namespace deepinfer
