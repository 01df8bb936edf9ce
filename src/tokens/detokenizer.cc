#include "tokens/detokenizer.h"

namespace deepinfer {

std::string Detokenizer::Add(int32_t id) {
  if (skip_special_ && tokenizer_.IsSpecial(id)) return {};
  return stream_.Add(tokenizer_.BytesOf(id));
}

std::string Detokenizer::Finish() { return stream_.Finish(); }

}  // namespace deepinfer
