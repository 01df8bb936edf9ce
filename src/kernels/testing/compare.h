// kernels/testing/compare.h: how tests measure the distance between an op's output and the
// oracle's.
//
// Metrics and limits: kernels.md 7. Tests only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/formats/number_formats.h"

namespace deepinfer::testing {

inline double AsDouble(float x) { return x; }
inline double AsDouble(double x) { return x; }
inline double AsDouble(bf16 x) { return ToFloat(x); }

struct Difference {
  double rel_l2 = 0;    // ||out - ref|| / ||ref||; 0 for two zero tensors
  double max_abs = 0;   // largest |out - ref|; infinite if either holds a NaN the other does not
  double max_ref = 0;   // largest |ref|
  double cos_diff = 0;  // 1 - 2 sum(xy) / (sum x^2 + sum y^2)
};

template <typename Out, typename Ref>
Difference Compare(const Out* out, const Ref* ref, int64_t count) {
  Difference d;
  double diff2 = 0, out2 = 0, ref2 = 0, dot = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double a = AsDouble(out[i]), b = AsDouble(ref[i]);
    if (std::isnan(a) || std::isnan(b)) {
      if (std::isnan(a) != std::isnan(b))
        diff2 = d.max_abs = std::numeric_limits<double>::infinity();
      continue;
    }
    diff2 += (a - b) * (a - b);
    out2 += a * a;
    ref2 += b * b;
    dot += a * b;
    d.max_abs = std::max(d.max_abs, std::fabs(a - b));
    d.max_ref = std::max(d.max_ref, std::fabs(b));
  }
  if (diff2 > 0) {
    d.rel_l2 = std::sqrt(diff2 / ref2);
    d.cos_diff = 1 - 2 * dot / (out2 + ref2);
  }
  return d;
}

template <typename Out, typename Ref>
Difference Compare(const std::vector<Out>& out, const std::vector<Ref>& ref) {
  if (out.size() != ref.size()) return {.rel_l2 = INFINITY, .max_abs = INFINITY};
  return Compare(out.data(), ref.data(), static_cast<int64_t>(out.size()));
}

// The largest rel_l2 of any row.
template <typename Out, typename Ref>
double WorstRow(const Out* out, const Ref* ref, int64_t num_rows, int64_t dim) {
  double worst = 0;
  for (int64_t t = 0; t < num_rows; ++t)
    worst = std::max(worst, Compare(out + t * dim, ref + t * dim, dim).rel_l2);
  return worst;
}

// Steps of the BF16 grid between two values; NaN against NaN is 0, NaN against a number is huge.
inline int32_t UlpDistance(bf16 a, bf16 b) {
  const bool a_nan = (a.bits & 0x7fff) > 0x7f80, b_nan = (b.bits & 0x7fff) > 0x7f80;
  if (a_nan || b_nan) return a_nan && b_nan ? 0 : 1 << 20;
  const auto position = [](uint16_t bits) {
    return (bits & 0x8000) != 0 ? -static_cast<int32_t>(bits & 0x7fff) : static_cast<int32_t>(bits);
  };
  return std::abs(position(a.bits) - position(b.bits));
}

template <typename T>
bool BitEqual(const T* a, const T* b, int64_t count) {
  return std::memcmp(a, b, static_cast<size_t>(count) * sizeof(T)) == 0;
}

// An output buffer between two guard bands. All of it starts as NaN pattern (all bits set), so that
// an element an op forgets to write, and a write outside, are both seen.
template <typename T>
class Guarded {
 public:
  explicit Guarded(int64_t count) : count_(count) { Poison(); }

  T* data() { return storage_.data() + kBand; }
  const T* data() const { return storage_.data() + kBand; }
  int64_t size() const { return count_; }
  T& operator[](int64_t i) { return data()[i]; }
  const T& operator[](int64_t i) const { return data()[i]; }
  std::vector<T> ToVector() const { return std::vector<T>(data(), data() + count_); }

  void Poison() {
    storage_.resize(static_cast<size_t>(count_) + 2 * kBand);
    std::memset(static_cast<void*>(storage_.data()), 0xff, storage_.size() * sizeof(T));
  }
  bool GuardsIntact() const {
    return AllOnes(storage_.data(), kBand) && AllOnes(data() + count_, kBand);
  }

 private:
  static constexpr int64_t kBand = 64;
  static bool AllOnes(const T* p, int64_t count) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(p);
    return std::all_of(bytes, bytes + count * static_cast<int64_t>(sizeof(T)),
                       [](uint8_t b) { return b == 0xff; });
  }

  int64_t count_;
  std::vector<T> storage_;
};

}  // namespace deepinfer::testing
