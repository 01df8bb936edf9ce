// model/weight_place.h: where large weights live while the model runs.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace deepinfer {

enum class WeightPlace : uint8_t {
  kRam,   // copied into memory
  kMmap,  // in the system's page cache: it brings pages in and drops them
  kDisk,  // read when a pass needs them, into a bounded part of memory
};

// "ram", "mmap" or "disk". Errors: kInvalidArgument naming `option` and the three.
StatusOr<WeightPlace> ParseWeightPlace(std::string_view option, std::string_view text);

}  // namespace deepinfer
