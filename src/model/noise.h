// model/noise.h: the randomness of sampling, a pure function of (seed, position, token id).
//
// Nothing else enters: no request id, no batch, no order of calls. The target's choice and a
// draft's proposal for the same position use the same noise (Gumbel coupling, serving.md 14).
// Only integer and exactly rounded F64 operations are used, so every machine gets the same bits.
#pragma once

#include <bit>
#include <cstdint>

namespace deepinfer {

// The finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection whose output bits all depend
// on all input bits.
inline uint64_t MixBits(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

inline constexpr uint64_t kGoldenGamma = 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio, odd

// Natural logarithm, error below 7e-16 of the result, or of 1 where that is larger. Requires: x
// positive, normal, finite. With x = m * 2^e and m within [sqrt(1/2), sqrt(2)): log(m) = 2
// artanh((m-1)/(m+1)), whose series has lost all but 2^-55 after 11 terms. A library's log may
// differ between processors.
inline double PortableLog(double x) {
  constexpr double kLn2 = 0.693147180559945309417;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int64_t exponent = static_cast<int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
  if (m > 1.41421356237309504880) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1) / (m + 1), s2 = s * s;
  double sum = 0;
  for (int k = 21; k >= 1; k -= 2) sum = sum * s2 + 1.0 / k;
  return 2 * s * sum + static_cast<double>(exponent) * kLn2;
}

// The noise of one position of one sequence.
class PositionNoise {
 public:
  PositionNoise(uint64_t seed, int64_t position)
      : key_(MixBits(MixBits(seed + kGoldenGamma) + static_cast<uint64_t>(position))) {}

  // In (0, 1): (52 random bits + 1/2) / 2^52, so never 0 and never 1.
  double Uniform(int32_t token) const {
    const uint64_t bits = MixBits(key_ + (static_cast<uint64_t>(token) + 1) * kGoldenGamma);
    return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;
  }
  // Standard Gumbel: argmax over tokens of logit + Gumbel is a sample of softmax(logits).
  double Gumbel(int32_t token) const { return -PortableLog(-PortableLog(Uniform(token))); }

 private:
  const uint64_t key_;
};

// Above every value of Gumbel(): the largest is -log(-log(1 - 2^-53)) < 36.74.
inline constexpr double kGumbelMax = 36.75;

}  // namespace deepinfer
