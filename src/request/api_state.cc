#include "request/api_state.h"

#include <utility>

namespace deepinfer {

std::string ApiState::NewId(std::string_view prefix) const {
  constexpr char kHex[] = "0123456789abcdef";
  std::string id(prefix);
  uint64_t bits = 0;
  for (int i = 0; i < 24; ++i) {
    if (i % 16 == 0) bits = context.rng->NextU64();
    id += kHex[bits & 15];
    bits >>= 4;
  }
  return id;
}

AnswerHead ApiState::NewHead(std::string_view prefix, const std::string& model_name) const {
  return {.id = NewId(prefix),
          .created = context.clock->Wall().ns / 1'000'000'000,
          .model = model_name,
          .fingerprint = model().fingerprint};
}

ApiError ApiState::WrongBody(const Status& status) const {
  ApiError error = ApiErrorOf(status);
  if (options().deepseek_api && error.status == 400) error.status = 422;
  return error;
}

void ApiState::Run(size_t bytes, std::function<void()> work, std::function<void()> done) const {
  if (static_cast<int64_t>(bytes) > options().background_prompt_bytes) {
    context.background->Run(std::move(work), std::move(done));
    return;
  }
  work();
  done();
}

StatusOr<JsonValue> ParseBody(const std::string& body) {
  StatusOr<JsonValue> value = ParseJson(body);
  if (!value.ok()) return Annotate(value.status(), "body");
  if (!value->IsObject()) {
    return InvalidArgument("body: expected an object, found ", KindName(value->kind));
  }
  return value;
}

}  // namespace deepinfer
