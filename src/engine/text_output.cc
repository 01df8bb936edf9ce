#include "engine/text_output.h"

namespace deepinfer {

StatusOr<TextOutput> TextOutput::Create(const Request& request, const Tokenizer* tokenizer) {
  if (tokenizer == nullptr && !request.stop.empty()) {
    return FailedPrecondition(
        "stop: the checkpoint has no tokenizer, so there is no text to stop at; use "
        "stop_token_ids");
  }
  auto stops = StopMatcher::Create(request.stop, request.include_stop);
  if (!stops.ok()) return Annotate(stops.status(), "stop");
  std::optional<Detokenizer> detokenizer;
  if (tokenizer != nullptr) detokenizer.emplace(*tokenizer, request.skip_special_tokens);
  return TextOutput(std::move(detokenizer), *std::move(stops));
}

TextOutput::Piece TextOutput::Add(int32_t id, bool match_stops) {
  if (!detokenizer_) return {};
  std::string text = detokenizer_->Add(id);
  if (!match_stops) return {std::move(text)};
  StopMatcher::Result found = stops_.Add(text);
  return {std::move(found.text), found.stop_idx};
}

std::string TextOutput::Finish() {
  if (!detokenizer_) return {};
  std::string rest = stops_.Finish();
  return rest + detokenizer_->Finish();
}

}  // namespace deepinfer
