// model/usual_json.h: safetensors headers and indices as programs write them, read by simdjson in a
// tenth of the time that events take.
//
// Nothing comes back for any other text, right or wrong: header_json.cc then reads it by events,
// which find the same in what is right and say what is wrong, and where.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/header_json.h"

namespace deepinfer {

// As ReadHeaderJson.
std::optional<std::vector<HeaderEntry>> ReadUsualHeader(std::string_view text);

// The members of "weight_map": tensor, file.
std::optional<std::vector<std::pair<std::string, std::string>>> ReadUsualIndex(
    std::string_view text);

}  // namespace deepinfer
