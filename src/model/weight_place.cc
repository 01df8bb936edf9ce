#include "model/weight_place.h"

namespace deepinfer {

StatusOr<WeightPlace> ParseWeightPlace(std::string_view option, std::string_view text) {
  if (text == "ram") return WeightPlace::kRam;
  if (text == "mmap") return WeightPlace::kMmap;
  if (text == "disk") return WeightPlace::kDisk;
  return InvalidArgument(option, ": found \"", text, "\", expected ram, mmap or disk");
}

}  // namespace deepinfer
