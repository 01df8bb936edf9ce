#include "base/hash64.h"

#include <array>
#include <bit>
#include <cstring>

namespace deepinfer {
namespace {

constexpr uint32_t kOdd32 = 0x9e3779b1;          // 2^32 and 2^64 over the golden ratio
constexpr uint64_t kOdd64 = 0x9e3779b97f4a7c15;  //
constexpr size_t kLanes = 32;                    // chains side by side: four vectors of AVX2
constexpr size_t kBlockBytes = kLanes * sizeof(uint32_t);

using Lanes = std::array<uint32_t, kLanes>;

// Each step is one to one in `lane` for every word and in `word` for every lane: no damage is lost.
uint64_t Mix(uint64_t lane, uint64_t word) { return std::rotl((lane ^ word) * kOdd64, 29); }

// A loop that compilers turn into vectors.
[[gnu::always_inline]] inline void MixBlocks(const uint8_t* at, size_t num_blocks, Lanes* out) {
  Lanes lanes = *out;
  for (size_t block = 0; block < num_blocks; ++block, at += kBlockBytes) {
    for (size_t i = 0; i < kLanes; ++i) {
      uint32_t word;
      std::memcpy(&word, at + i * sizeof word, sizeof word);
      const uint32_t mixed = (lanes[i] ^ word) * kOdd32;
      lanes[i] = mixed << 13 | mixed >> 19;
    }
  }
  *out = lanes;
}

[[gnu::target("avx2")]] void MixBlocksAvx2(const uint8_t* at, size_t num_blocks, Lanes* out) {
  MixBlocks(at, num_blocks, out);
}

uint64_t WordAt(const uint8_t* at, size_t bytes) {
  uint64_t word = 0;
  std::memcpy(&word, at, bytes);
  return word;
}

}  // namespace

uint64_t Hash64(std::span<const uint8_t> bytes, uint64_t seed) {
  uint64_t sum = Mix(seed, bytes.size());
  const size_t num_blocks = bytes.size() / kBlockBytes;
  if (num_blocks > 0) {
    Lanes lanes;
    for (size_t i = 0; i < kLanes; ++i) lanes[i] = static_cast<uint32_t>(i) * kOdd32;
    static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
    (has_avx2 ? MixBlocksAvx2 : MixBlocks)(bytes.data(), num_blocks, &lanes);
    for (size_t i = 0; i < kLanes; i += 2) sum = Mix(sum, uint64_t{lanes[i]} << 32 | lanes[i + 1]);
  }
  const uint8_t* at = bytes.data() + num_blocks * kBlockBytes;
  size_t left = bytes.size() % kBlockBytes;
  for (; left >= 8; at += 8, left -= 8) sum = Mix(sum, WordAt(at, 8));
  if (left > 0) sum = Mix(sum, WordAt(at, left));
  return sum ^ sum >> 32;
}

}  // namespace deepinfer
