#include "base/hash64.h"

#include <bit>
#include <cstring>

namespace deepinfer {
namespace {

constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio
constexpr size_t kLanes = 4;                   // chains side by side, for the multiplier's latency

// One to one in `lane` for every word, and in `word` for every lane: no damage is lost.
uint64_t Mix(uint64_t lane, uint64_t word) { return std::rotl((lane ^ word) * kOdd, 29); }

uint64_t WordAt(const uint8_t* at, size_t bytes) {
  uint64_t word = 0;
  std::memcpy(&word, at, bytes);
  return word;
}

}  // namespace

uint64_t Hash64(std::span<const uint8_t> bytes, uint64_t seed) {
  uint64_t lanes[kLanes] = {seed, ~seed, seed + kOdd, seed - kOdd};
  const uint8_t* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8 * kLanes; at += 8 * kLanes, left -= 8 * kLanes) {
    for (size_t i = 0; i < kLanes; ++i) lanes[i] = Mix(lanes[i], WordAt(at + 8 * i, 8));
  }
  for (; left >= 8; at += 8, left -= 8) lanes[0] = Mix(lanes[0], WordAt(at, 8));
  if (left > 0) lanes[1] = Mix(lanes[1], WordAt(at, left));
  uint64_t sum = bytes.size();
  for (const uint64_t lane : lanes) sum = Mix(sum, lane);
  return sum ^ sum >> 32;
}

}  // namespace deepinfer
