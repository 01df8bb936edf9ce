// tokens/detokenizer.h: token ids one by one to text that never ends in half a character.
//
// All pieces and Finish() joined equal Tokenizer::Decode of all ids, whatever the ids are.
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <string>

#include "tokens/tokenizer.h"
#include "tokens/utf8.h"

namespace deepinfer {

class Detokenizer {
 public:
  // `tokenizer` must outlive this object.
  explicit Detokenizer(const Tokenizer& tokenizer, bool skip_special = false)
      : tokenizer_(tokenizer), skip_special_(skip_special) {}

  // The text that became complete with this id; empty while a character is unfinished.
  std::string Add(int32_t id);
  // The end: an unfinished character becomes U+FFFD. Ready for another sequence afterwards.
  std::string Finish();
  // Bytes of an unfinished character that are held, 0..3.
  int pending_bytes() const { return stream_.pending_bytes(); }

 private:
  const Tokenizer& tokenizer_;
  const bool skip_special_;
  Utf8Stream stream_;
};

}  // namespace deepinfer
