// base/hash64.h: a fast sum of bytes that shows damage. Not for anything an attacker chooses.
#pragma once

#include <cstdint>
#include <span>

namespace deepinfer {

// Any single damaged word changes the result. About 16 bytes a cycle. The value is stored in files:
// never change the arithmetic without a new version of theirs.
uint64_t Hash64(std::span<const uint8_t> bytes, uint64_t seed = 0);

}  // namespace deepinfer
