// tokens/prompt_segments.h: a prompt between conversation and token ids.
//
// Text that people or tools wrote must never turn into control tokens, so the two stay apart until
// the ids are made: control tokens by name, text without looking for added tokens in it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace deepinfer {

struct PromptSegment {
  enum class Kind { kText, kControl, kImage, kIds };
  Kind kind = Kind::kText;
  std::string text;          // kText: UTF-8. kControl, kImage: the token's spelling. kIds: as shown
  std::vector<int32_t> ids;  // kIds: tokens as they once were

  bool operator==(const PromptSegment&) const = default;
};

// Collects segments. Neighbouring texts become one, because a tokenizer may merge across their
// border.
class PromptWriter {
 public:
  void Text(std::string_view text);
  void Control(std::string_view token);
  void Image(std::string_view url);
  void Ids(const std::vector<int32_t>& ids, std::string_view text);
  void Append(const std::vector<PromptSegment>& segments);

  std::vector<PromptSegment> TakeSegments() { return std::move(segments_); }
  std::vector<std::string> TakeImageUrls() { return std::move(image_urls_); }

 private:
  std::vector<PromptSegment> segments_;
  std::vector<std::string> image_urls_;
};

// The prompt as one string: what a tokenizer that looks for added tokens would be given.
std::string TextOf(const std::vector<PromptSegment>& segments);

}  // namespace deepinfer
