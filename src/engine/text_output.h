// engine/text_output.h: output tokens to the text a client may see, up to the stop string.
//
// Holds back unfinished characters and what may still become a stop string. Threads: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "deepinfer/request.h"
#include "tokens/detokenizer.h"
#include "tokens/stop_strings.h"

namespace deepinfer {

class TextOutput {
 public:
  // tokenizer: null = no text at all; else it outlives this object.
  // Errors: kInvalidArgument for an empty stop string, kFailedPrecondition for stop strings without
  // a tokenizer.
  static StatusOr<TextOutput> Create(const Request& request, const Tokenizer* tokenizer);

  struct Piece {
    std::string text;
    int32_t stop_idx = -1;  // of the stop string that was found; the output ends
  };
  // match_stops: false while stop strings do not count yet (min_tokens).
  Piece Add(int32_t id, bool match_stops);
  // The end by other means than a stop string: what was held back.
  std::string Finish();

 private:
  TextOutput(std::optional<Detokenizer> detokenizer, StopMatcher stops)
      : detokenizer_(std::move(detokenizer)), stops_(std::move(stops)) {}

  std::optional<Detokenizer> detokenizer_;
  StopMatcher stops_;
};

}  // namespace deepinfer
