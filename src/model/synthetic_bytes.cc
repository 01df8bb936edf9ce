// The bytes of one synthetic tensor. The rule is part of the digests: never change it.
#include <bit>
#include <cmath>

#include "kernels/formats/number_formats.h"
#include "model/synthetic_checkpoint.h"

namespace deepinfer {
namespace {

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;

uint64_t Fnv1a64(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

uint64_t SplitMix64(uint64_t z) {
  z ^= z >> 30;
  z *= 0xBF58476D1CE4E5B9;
  z ^= z >> 27;
  z *= 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

uint8_t Fp8Code(uint64_t u) {
  uint64_t magnitude = 0x28 + (u >> 8) % 0x28;
  const uint64_t special = (u >> 32) & 63;
  if (special == 0) magnitude = 0;
  if (special == 1) magnitude = (u >> 40) % 0x28;
  return static_cast<uint8_t>((u & 1) << 7 | magnitude);
}

double Centred(uint64_t u, uint64_t modulus) {
  return static_cast<double>(u % modulus) - static_cast<double>(modulus / 2);
}

template <typename Stored, typename Fn>
std::vector<uint8_t> Fill(int64_t count, uint64_t start, Fn value_of) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count) * sizeof(Stored));
  uint64_t counter = start;
  for (int64_t i = 0; i < count; ++i) {
    counter += kGolden;
    const Stored value = value_of(SplitMix64(counter));
    std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof(Stored), &value, sizeof(Stored));
  }
  return bytes;
}

}  // namespace

std::vector<uint8_t> SyntheticBytes(const SyntheticTensor& tensor, uint64_t seed) {
  const uint64_t start = Fnv1a64(tensor.spec.name) ^ (seed * kGolden);
  const int64_t count = tensor.spec.num_elements();
  const double unit = std::ldexp(1.0, tensor.exponent);
  switch (tensor.kind) {
    case ElementKind::kFp8:
      return Fill<uint8_t>(count, start, Fp8Code);
    case ElementKind::kE8m0:
      return Fill<uint8_t>(count, start, [&](uint64_t u) {
        return static_cast<uint8_t>(tensor.base + static_cast<int32_t>(u % 3) - 1);
      });
    case ElementKind::kFp4:
      return Fill<uint8_t>(count, start, [](uint64_t u) { return static_cast<uint8_t>(u & 0xff); });
    case ElementKind::kBf16:
      return Fill<bf16>(count, start, [&](uint64_t u) { return ToBf16(Centred(u, 255) * unit); });
    case ElementKind::kNorm:
      return Fill<bf16>(count, start, [](uint64_t u) { return ToBf16(1 + Centred(u, 65) / 128); });
    case ElementKind::kF32:
      return Fill<float>(count, start, [&](uint64_t u) {
        return static_cast<float>(tensor.offset + Centred(u, 65535) * unit);
      });
  }
  return {};
}

}  // namespace deepinfer
