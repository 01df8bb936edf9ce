// The public API of include/deepinfer/engine.h over LoadedEngine.
#include "deepinfer/engine.h"

#include "engine/loaded_engine.h"
#include "tokens/conversation_json.h"

namespace deepinfer {
namespace {

template <typename T>
Result<T> ToResult(StatusOr<T> value) {
  if (!value.ok()) return ToError(value.status());
  return *std::move(value);
}

}  // namespace

struct Engine::Parts {
  std::unique_ptr<LoadedEngine> loaded;
};

Engine::Engine(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::Load(const EngineOptions& options) {
  auto loaded = LoadedEngine::Load(options, RealDisk(), RealRng());
  if (!loaded.ok()) return ToError(loaded.status());
  return std::unique_ptr<Engine>(new Engine(std::make_unique<Parts>(Parts{*std::move(loaded)})));
}

const EngineInfo& Engine::info() const { return parts_->loaded->info(); }

Result<std::vector<int32_t>> Engine::EncodeText(std::string_view text) const {
  return ToResult(parts_->loaded->EncodeText(text));
}

Result<std::vector<int32_t>> Engine::EncodeChat(std::string_view messages_json) const {
  const auto conversation = ParseMessages(messages_json);
  if (!conversation.ok()) return ToError(conversation.status());
  auto chat = parts_->loaded->EncodeChat(*conversation);
  if (!chat.ok()) return ToError(chat.status());
  return std::move(chat->ids);
}

Result<std::string> Engine::Decode(const std::vector<int32_t>& ids) const {
  return ToResult(parts_->loaded->Decode(ids));
}

Result<RequestId> Engine::Submit(Request request) {
  return ToResult(parts_->loaded->core().Submit(std::move(request)));
}

void Engine::Cancel(RequestId request) { parts_->loaded->core().Cancel(request); }
bool Engine::HasWork() const { return parts_->loaded->core().HasWork(); }
std::vector<Event> Engine::Step() { return parts_->loaded->core().Step(); }

}  // namespace deepinfer
