// The input is a text, for the tiny checkpoint's tokenizer, the detokenizer and stop strings.
#include "fuzz.h"
#include "tokens/detokenizer.h"
#include "tokens/stop_strings.h"
#include "tokens/tokenizer.h"
#include "tokens/utf8.h"

namespace deepinfer::fuzz {
namespace {

void CheckTokenizer(std::string_view bytes, std::string_view text) {
  const Tokenizer& tokenizer = TinyTokenizer();
  for (const bool added_tokens : {true, false}) {
    const std::vector<int32_t> ids = tokenizer.Encode(bytes, {.added_tokens = added_tokens});
    CHECK_EQ(tokenizer.Decode(ids), text);
    Detokenizer detokenizer(tokenizer);
    std::string streamed;
    for (const int32_t id : ids) {
      CHECK(added_tokens || !tokenizer.IsAdded(id));
      streamed += detokenizer.Add(id);
      CHECK(IsUtf8(streamed));
    }
    CHECK_EQ(streamed + detokenizer.Finish(), text);
  }
}

void CheckUtf8Stream(std::string_view bytes, std::string_view text) {
  Utf8Stream stream;
  std::string streamed;
  for (const std::string_view piece : Cut(bytes, 1)) streamed += stream.Add(piece);
  CHECK_EQ(streamed + stream.Finish(), text);
}

// The first end of a stop string in `text`, and the longest that ends there: where it begins.
struct Match {
  size_t begin, end;
  int32_t stop_idx;
};
Match FirstMatch(std::string_view text, const std::vector<std::string>& stops) {
  for (size_t end = 0; end <= text.size(); ++end) {
    Match best{text.size(), text.size(), -1};
    for (size_t i = 0; i < stops.size(); ++i) {
      if (!text.substr(0, end).ends_with(stops[i]) || end - stops[i].size() >= best.begin) continue;
      best = {end - stops[i].size(), end, static_cast<int32_t>(i)};
    }
    if (best.stop_idx >= 0) return best;
  }
  return {text.size(), text.size(), -1};
}

void CheckStops(std::string_view text) {
  static const auto* const stops =
      new std::vector<std::string>{"\n\n", "ab", "aab", "babb", "</s>", "\u00e9"};
  const Match match = FirstMatch(text, *stops);
  for (const bool include_stop : {false, true}) {
    auto matcher = StopMatcher::Create(*stops, include_stop);
    CHECK(matcher.ok());
    std::string given;
    int32_t stop_idx = -1;
    for (const std::string_view piece : Cut(text, 2)) {
      const StopMatcher::Result result = matcher->Add(piece);
      given += result.text;
      stop_idx = result.stop_idx;
      if (matcher->stopped()) break;
    }
    if (!matcher->stopped()) given += matcher->Finish();
    CHECK_EQ(stop_idx, match.stop_idx);
    CHECK_EQ(given, text.substr(0, include_stop ? match.end : match.begin));
  }
}

}  // namespace
}  // namespace deepinfer::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace deepinfer;
  const std::string_view bytes = fuzz::AsText(data, size);
  std::string repaired;
  const std::string text(RepairUtf8(bytes, repaired));
  CHECK(fuzz::IsUtf8(text));
  fuzz::CheckTokenizer(bytes, text);
  fuzz::CheckUtf8Stream(bytes, text);
  fuzz::CheckStops(text);
  return 0;
}
