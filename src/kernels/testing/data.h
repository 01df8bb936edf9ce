// kernels/testing/data.h: inputs of kernel tests, from a seed (the data kinds of kernels.md 7).
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/formats/matrix.h"
#include "kernels/formats/number_formats.h"

namespace deepinfer::testing {

enum class DataKind {
  kNormal,      // (a) normal, per-row scales log-uniform over 2^+-6
  kHotOutlier,  // (b) one element of every group of 32 a hundred times larger
  kInteger,     // (c) small integers: every partial sum exact in F32, so bit-equal results
  kZero,        // (d)
  kMaxCode,     // (e) largest codes, large scales
  kSubnormal,   // (f) subnormal e4m3 codes
};
inline constexpr DataKind kAllDataKinds[] = {DataKind::kNormal,  DataKind::kHotOutlier,
                                             DataKind::kInteger, DataKind::kZero,
                                             DataKind::kMaxCode, DataKind::kSubnormal};

// splitmix64; the same numbers on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int32_t Below(int32_t n) { return static_cast<int32_t>(Bits() % static_cast<uint64_t>(n)); }
  double Uniform() { return static_cast<double>(Bits() >> 11) * 0x1p-53; }  // [0, 1)
  double Normal() {
    return std::sqrt(-2 * std::log(1 - Uniform())) * std::cos(6.283185307179586 * Uniform());
  }

 private:
  uint64_t state_;
};

// [rows, cols] values of a kind, before any quantisation.
inline std::vector<float> MakeFloats(DataKind kind, int64_t rows, int64_t cols, Random& random) {
  std::vector<float> x(static_cast<size_t>(rows * cols));
  for (int64_t r = 0; r < rows; ++r) {
    const double row_scale = std::exp2(12 * random.Uniform() - 6);
    const int32_t hot = random.Below(32);
    for (int64_t c = 0; c < cols; ++c) {
      double v = 0;
      switch (kind) {
        case DataKind::kNormal:
          v = random.Normal() * row_scale;
          break;
        case DataKind::kHotOutlier:
          v = random.Normal() * (c % 32 == hot ? 100 : 1);
          break;
        case DataKind::kInteger:
          v = random.Below(9) - 4;
          break;
        case DataKind::kZero:
          break;
        case DataKind::kMaxCode:
          v = random.Below(2) != 0 ? 448 * 0x1p10 : -448 * 0x1p10;
          break;
        case DataKind::kSubnormal:  // 448 fixes the group's scale at 1; the rest are below 2^-6
          v = c % 32 == hot ? 448 : (random.Below(15) - 7) * 0x1p-9;
          break;
      }
      x[static_cast<size_t>(r * cols + c)] = static_cast<float>(v);
    }
  }
  return x;
}

inline std::vector<bf16> MakeBf16(DataKind kind, int64_t rows, int64_t cols, Random& random) {
  std::vector<bf16> x;
  x.reserve(static_cast<size_t>(rows * cols));
  for (const float v : MakeFloats(kind, rows, cols, random)) x.push_back(ToBf16(v));
  return x;
}

// Rows already on the FP8 grid (written out here, so that tests of the linear ops do not rest on
// the quantise op). Requires: cols % 32 == 0.
inline std::vector<bf16> MakeFp8Grid(DataKind kind, int64_t rows, int64_t cols, Random& random) {
  std::vector<bf16> x = MakeBf16(kind, rows, cols, random);
  for (size_t begin = 0; begin < x.size(); begin += 32) {
    float amax = 0;
    for (size_t i = begin; i < begin + 32; ++i) amax = std::fmax(amax, std::fabs(ToFloat(x[i])));
    const float scale = E8m0ToFloat(Fp8GroupScale(amax));
    for (size_t i = begin; i < begin + 32; ++i)
      x[i] = ToBf16(E4m3ToFloat(FloatToE4m3(ToFloat(x[i]) / scale)) * scale);
  }
  return x;
}

// A weight matrix that owns its bytes. `view` points into them; moving keeps it valid.
struct OwnedMatrix {
  std::vector<uint8_t> data;
  std::vector<uint8_t> scale;
  Matrix view;
};

namespace internal {

inline uint8_t RandomE4m3(DataKind kind, Random& random) {
  switch (kind) {
    case DataKind::kZero:
      return 0;
    case DataKind::kInteger:
      return FloatToE4m3(static_cast<float>(random.Below(9) - 4));
    case DataKind::kMaxCode:
      return random.Below(2) != 0 ? 0x7e : 0xfe;
    case DataKind::kSubnormal:
      return static_cast<uint8_t>(random.Below(8) | (random.Below(2) << 7));
    default: {
      const double v = random.Normal() * 16;
      return FloatToE4m3(static_cast<float>(v));
    }
  }
}

inline uint8_t RandomE2m1(DataKind kind, Random& random) {
  switch (kind) {
    case DataKind::kZero:
      return 0;
    case DataKind::kInteger:
      return FloatToE2m1(static_cast<float>(random.Below(5) - 2));
    case DataKind::kMaxCode:
      return static_cast<uint8_t>(7 | (random.Below(2) << 3));
    case DataKind::kSubnormal:
      return static_cast<uint8_t>(random.Below(2) | (random.Below(2) << 3));
    default:
      return static_cast<uint8_t>(random.Below(16));
  }
}

inline uint8_t RandomScale(DataKind kind, Random& random) {
  switch (kind) {
    case DataKind::kInteger:
      return 127;
    case DataKind::kMaxCode:
      return static_cast<uint8_t>(150 + random.Below(4));
    default:
      return static_cast<uint8_t>(112 + random.Below(13));
  }
}

}  // namespace internal

// Requires: cols % 32 == 0 for kFp8 and kFp4, rows % 32 == 0 for kFp8.
inline OwnedMatrix MakeMatrix(WeightFormat format, DataKind kind, int32_t rows, int32_t cols,
                              Random& random) {
  OwnedMatrix m;
  const size_t count = static_cast<size_t>(rows) * static_cast<size_t>(cols);
  size_t num_scales = 0;
  switch (format) {
    case WeightFormat::kFp8:
      m.data.resize(count);
      num_scales = count / 1024;
      for (uint8_t& code : m.data) code = internal::RandomE4m3(kind, random);
      break;
    case WeightFormat::kFp4:
      m.data.resize(count / 2);
      num_scales = count / 32;
      for (uint8_t& pair : m.data) {
        const uint8_t low = internal::RandomE2m1(kind, random);
        pair = static_cast<uint8_t>(low | (internal::RandomE2m1(kind, random) << 4));
      }
      break;
    case WeightFormat::kBf16: {
      m.data.resize(count * sizeof(bf16));
      auto* out = reinterpret_cast<bf16*>(m.data.data());
      for (const float v : MakeFloats(kind, rows, cols, random)) *out++ = ToBf16(v);
      break;
    }
    case WeightFormat::kF32: {
      m.data.resize(count * sizeof(float));
      auto* out = reinterpret_cast<float*>(m.data.data());
      for (const float v : MakeFloats(kind, rows, cols, random)) *out++ = v;
      break;
    }
    case WeightFormat::kNone:
      break;
  }
  m.scale.resize(num_scales);
  for (uint8_t& e : m.scale) e = internal::RandomScale(kind, random);
  m.view = {
      .format = format, .rows = rows, .cols = cols, .data = m.data.data(), .scale = m.scale.data()};
  return m;
}

}  // namespace deepinfer::testing
