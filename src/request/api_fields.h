// request/api_fields.h: every field that a body may hold, for /openapi.json and docs/api.md.
//
// A test checks that this list and what the readers ask for are the same.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "request/api_routes.h"

namespace deepinfer {

struct ApiField {
  std::string_view name;
  std::string_view schema;  // JSON Schema
  std::string_view text;    // what it does; one sentence
  std::string_view where;   // letters of the bodies that hold it: FieldLetter()
};

// 'c' chat and /render, 't' text completions, 'k' /tokenize, 'd' /detokenize; 0: none has a body.
char FieldLetter(ApiEndpoint endpoint);

std::span<const ApiField> ApiFields();

}  // namespace deepinfer
