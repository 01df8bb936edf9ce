// request/body_fields.h: what the bodies of all generating endpoints have in common.
#pragma once

#include <string>

#include "base/status.h"
#include "deepinfer/request.h"
#include "request/api.h"
#include "request/field_reader.h"

namespace deepinfer {

inline constexpr size_t kMaxUserIdBytes = 512;

// How the client wants to be answered.
struct AnswerStyle {
  std::string model;  // as the answer names it
  bool stream = false;
  bool include_usage = false;     // a last chunk with the usage
  bool continuous_usage = false;  // and the usage so far in every chunk
  bool return_token_ids = false;
  bool echo = false;
};

// `model`; the default where it is absent. Errors: kNotFound for one that is not served, with the
// names of those that are; kInvalidArgument.
Status ReadModelName(FieldReader& reader, const ServedModel& model, std::string& name);
// Errors: as ReadModelName; kInvalidArgument starting with the key.
Status ReadAnswerStyle(FieldReader& reader, const ServedModel& model, AnswerStyle& style);
// ReadSamplingFields by HTTP's rules, and whose request it is: user_id keeps the cached prompts of
// a client's users apart.
Status ReadRequestFields(FieldReader& reader, const ApiOptions& options, std::string_view tenant,
                         Request& request);
// Cuts max_tokens to what fits behind the prompt, which the field `path` gave.
// Errors: kOutOfRange (context_length_exceeded) with both numbers if nothing fits.
Status FitLength(const ServedModel& model, std::string_view path, Request& request);

}  // namespace deepinfer
