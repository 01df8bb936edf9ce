#include "tokens/prompt_segments.h"

#include "tokens/control_tokens.h"

namespace deepinfer {

void PromptWriter::Text(std::string_view text) {
  if (text.empty()) return;
  if (segments_.empty() || segments_.back().kind != PromptSegment::Kind::kText) {
    segments_.emplace_back();
  }
  segments_.back().text += text;
}

void PromptWriter::Control(std::string_view token) {
  segments_.emplace_back().kind = PromptSegment::Kind::kControl;
  segments_.back().text = token;
}

void PromptWriter::Image(std::string_view url) {
  segments_.emplace_back().kind = PromptSegment::Kind::kImage;
  segments_.back().text = kImageToken;
  image_urls_.emplace_back(url);
}

void PromptWriter::Ids(const std::vector<int32_t>& ids, std::string_view text) {
  segments_.push_back({.kind = PromptSegment::Kind::kIds, .text = std::string(text), .ids = ids});
}

void PromptWriter::Append(const std::vector<PromptSegment>& segments) {
  for (const PromptSegment& segment : segments) {
    if (segment.kind == PromptSegment::Kind::kText) {
      Text(segment.text);
    } else {
      segments_.push_back(segment);
    }
  }
}

std::string TextOf(const std::vector<PromptSegment>& segments) {
  std::string text;
  for (const PromptSegment& segment : segments) text += segment.text;
  return text;
}

}  // namespace deepinfer
