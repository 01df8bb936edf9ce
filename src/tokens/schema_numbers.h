// tokens/schema_numbers.h: the spellings of JSON numbers within bounds, as regular languages.
//
// Numbers are spelled without an exponent unless they are unbounded, never as -0, and with at most
// kMaxIntegerDigits digits in front of the point. Bounded ones have at most kMaxFractionDigits
// behind it, so that reading them as F64 cannot move them onto a bound that they must not reach. A
// whole number is spelled without a point where only whole numbers are allowed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tokens/dfa.h"

namespace deepinfer {

inline constexpr int32_t kMaxIntegerDigits = 19, kMaxFractionDigits = 9;

// A finite decimal number: (-1)^negative * 0.d1 d2 d3... * 10^point, without zeros at either end.
struct Decimal {
  // `text` is a JSON number. Errors: kUnimplemented past 400 digits.
  static StatusOr<Decimal> Parse(std::string_view text);
  bool IsZero() const { return digits.empty(); }
  bool IsInteger() const { return static_cast<int64_t>(digits.size()) <= point; }
  // Digits in front of the point ("0" if none) and behind it.
  std::string Whole() const;
  std::string Fraction() const;
  // With at most kMaxFractionDigits digits behind the point: the next one away from or towards 0.
  Decimal Rounded(bool away_from_zero) const;
  int Compare(const Decimal& other) const;  // < 0, 0, > 0
  bool operator==(const Decimal& other) const { return Compare(other) == 0; }

  bool negative = false;
  std::string digits;
  int64_t point = 0;
};

struct NumberLimits {
  struct Bound {
    Decimal value;
    bool exclusive = false;
  };
  bool integer = false;
  std::optional<Bound> low, high;
  std::optional<int64_t> multiple_of;  // > 0

  bool unbounded() const { return !low && !high && !multiple_of; }
  // Whether no number is within both.
  static bool Apart(const NumberLimits& a, const NumberLimits& b);
  bool Holds(const Decimal& value) const;
};

// What both hold. Errors: kUnimplemented for multiples that are too large.
StatusOr<NumberLimits> Both(const NumberLimits& a, const NumberLimits& b);

// The largest `multiple_of`.
inline constexpr int64_t kMaxMultipleOf = 1000;

// Errors: kUnimplemented for bounds with too many digits.
StatusOr<Dfa> NumberSpellings(const NumberLimits& limits);

}  // namespace deepinfer
