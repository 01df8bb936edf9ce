// request/openapi.h: the OpenAPI 3.1 document of what is served, made from the lists that serving
// itself uses.
#pragma once

#include <string>
#include <string_view>

namespace deepinfer {

std::string OpenApiDocument(std::string_view version);

}  // namespace deepinfer
