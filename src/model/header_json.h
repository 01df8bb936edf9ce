// model/header_json.h: the JSON of safetensors headers and of their index, read entry by entry.
//
// A real checkpoint has a hundred thousand tensors: usual_json.h reads those of sound files.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace deepinfer {

// One tensor as the header states it; nothing but the types of the values has been checked.
struct HeaderEntry {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape, data_offsets;  // not negative

  bool operator==(const HeaderEntry&) const = default;
};

// All entries but __metadata__, in the order of the text. Unknown members of an entry are passed
// over. Errors: kInvalidArgument in one line: no JSON (the byte where it stops being that), nested
// deeper than 256 levels, not an object of objects, or a member that is missing or of another type.
StatusOr<std::vector<HeaderEntry>> ReadHeaderJson(std::string_view text);

// Calls found(tensor, file) for each member of "weight_map". Errors: kInvalidArgument in one line
// beginning with `where`, as above; without a "weight_map" that has members; the first failure of
// `found`.
Status ReadIndexJson(std::string_view text, std::string_view where,
                     const std::function<Status(std::string&& tensor, std::string&& file)>& found);

// The same by events, whatever the text is like: what usual_json.h must agree with.
StatusOr<std::vector<HeaderEntry>> ReadHeaderByEvents(std::string_view text);
Status ReadIndexByEvents(
    std::string_view text, std::string_view where,
    const std::function<Status(std::string&& tensor, std::string&& file)>& found);

}  // namespace deepinfer
