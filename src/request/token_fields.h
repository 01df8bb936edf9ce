// request/token_fields.h: the bodies of /tokenize and /detokenize.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "request/engine_client.h"
#include "request/field_reader.h"

namespace deepinfer {

struct TokenizeRequest {
  std::vector<int32_t> ids;
  bool with_texts = false;  // return_token_strs
};

// One of prompt and content (texts; add_special_tokens, true by default, puts BOS before them) and
// messages (as a chat completion's body).
// Errors: kFailedPrecondition without a tokenizer; kInvalidArgument starting with the key.
StatusOr<TokenizeRequest> ReadTokenize(FieldReader& reader, const ServedModel& model);
// tokens. Errors: the same.
StatusOr<std::vector<int32_t>> ReadDetokenize(FieldReader& reader, const ServedModel& model);

}  // namespace deepinfer
