// base/rng.h: randomness, as an interface, so that one seed repeats a whole run.
//
// Not the noise of sampling, which is a pure function of seed, position and token id and needs no
// state. Threads: one at a time per object.
#pragma once

#include <array>
#include <cstdint>

namespace deepinfer {

class Rng {
 public:
  virtual ~Rng() = default;
  // 64 uniform bits.
  virtual uint64_t NextU64() = 0;
  // Uniform in [0, bound), without bias. Requires: bound > 0.
  uint64_t Uniform(uint64_t bound);
  // Uniform in [0, 1), a multiple of 2^-53.
  double UniformDouble();
};

// xoshiro256++, its state filled by splitmix64 from the seed. Source: Blackman and Vigna,
// "Scrambled linear pseudorandom number generators", 2021. Same seed, same numbers, on every
// machine.
class SeededRng : public Rng {
 public:
  explicit SeededRng(uint64_t seed);
  uint64_t NextU64() override;

 private:
  std::array<uint64_t, 4> state_;
};

// The system's entropy: for seeds, ids and keys. Any thread.
Rng& RealRng();

}  // namespace deepinfer
