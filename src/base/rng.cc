#include "base/rng.h"

#include <sys/random.h>

#include <bit>
#include <cerrno>

#include "base/check.h"

namespace deepinfer {
namespace {

uint64_t SplitMix64(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

class RealRngImpl : public Rng {
 public:
  uint64_t NextU64() override {
    uint64_t value = 0;
    ssize_t got;
    do {
      got = ::getrandom(&value, sizeof value, 0);
    } while (got < 0 && errno == EINTR);
    CHECK_EQ(got,
             static_cast<ssize_t>(sizeof value));  // 8 bytes are never cut short: man 2 getrandom
    return value;
  }
};

}  // namespace

uint64_t Rng::Uniform(uint64_t bound) {
  CHECK_GT(bound, 0u);
  // Values below 2^64 mod bound would make the low residues more frequent: draw again.
  const uint64_t rejected_below = (0 - bound) % bound;
  uint64_t value;
  do {
    value = NextU64();
  } while (value < rejected_below);
  return value % bound;
}

double Rng::UniformDouble() { return static_cast<double>(NextU64() >> 11) * 0x1p-53; }

SeededRng::SeededRng(uint64_t seed) {
  for (uint64_t& word : state_) word = SplitMix64(seed);
}

uint64_t SeededRng::NextU64() {
  auto& s = state_;
  const uint64_t result = std::rotl(s[0] + s[3], 23) + s[0];
  const uint64_t t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = std::rotl(s[3], 45);
  return result;
}

Rng& RealRng() {
  static RealRngImpl rng;
  return rng;
}

}  // namespace deepinfer
