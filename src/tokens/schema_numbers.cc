#include "tokens/schema_numbers.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "tokens/utf8.h"

namespace deepinfer {
namespace {

Regex Digit(char first, char last) {
  return regex::Chars(CharSet({{static_cast<char32_t>(first), static_cast<char32_t>(last)}}));
}
Regex AnyDigits(int32_t min, int32_t max) { return regex::Repeat(Digit('0', '9'), min, max); }

// Whole parts: "0" or no zero in front.
Regex AnyWhole() {
  return regex::Alt(
      {regex::Text("0"), regex::Concat({Digit('1', '9'), AnyDigits(0, kMaxIntegerDigits - 1)})});
}

// Digit strings of the same length as `digits` that are above (below) it.
Regex Beyond(std::string_view digits, bool above, bool leading_zero) {
  std::vector<Regex> ways;
  for (size_t i = 0; i < digits.size(); ++i) {
    const char first = !leading_zero && i == 0 && digits.size() > 1 ? '1' : '0';
    const char low = above ? static_cast<char>(digits[i] + 1) : first;
    const char high = above ? '9' : static_cast<char>(digits[i] - 1);
    if (low > high) continue;
    const auto rest = static_cast<int32_t>(digits.size() - i - 1);
    ways.push_back(
        regex::Concat({regex::Text(digits.substr(0, i)), Digit(low, high), AnyDigits(rest, rest)}));
  }
  return regex::Alt(std::move(ways));
}

// Whole parts above (below) `whole`.
Regex WholeBeyond(const std::string& whole, bool above) {
  std::vector<Regex> ways{Beyond(whole, above, /*leading_zero=*/false)};
  const auto length = static_cast<int32_t>(whole.size());
  if (above && length < kMaxIntegerDigits) {
    ways.push_back(regex::Concat({Digit('1', '9'), AnyDigits(length, kMaxIntegerDigits - 1)}));
  }
  if (!above && length > 1) {
    ways.push_back(regex::Text("0"));
    if (length > 1) ways.push_back(regex::Concat({Digit('1', '9'), AnyDigits(0, length - 2)}));
  }
  return regex::Alt(std::move(ways));
}

// Fractions with their point, or nothing, that are above (below) 0.`fraction`, or equal to it.
Regex FractionBeyond(const std::string& fraction, bool above, bool equal) {
  std::vector<Regex> ways;
  const auto length = static_cast<int32_t>(fraction.size());
  const Regex point = regex::Text(".");
  for (int32_t i = 0; i < length; ++i) {
    const char digit = fraction[static_cast<size_t>(i)];
    const char low = above ? static_cast<char>(digit + 1) : '0';
    const char high = above ? '9' : static_cast<char>(digit - 1);
    if (low > high) continue;
    ways.push_back(regex::Concat({point, regex::Text(fraction.substr(0, static_cast<size_t>(i))),
                                  Digit(low, high), AnyDigits(0, kMaxFractionDigits - i - 1)}));
  }
  if (above) {
    // `fraction` with more behind it that is not only zeros.
    for (int32_t zeros = 0; length + zeros < kMaxFractionDigits; ++zeros) {
      ways.push_back(regex::Concat(
          {point, regex::Text(fraction + std::string(static_cast<size_t>(zeros), '0')),
           Digit('1', '9'), AnyDigits(0, kMaxFractionDigits - length - zeros - 1)}));
    }
  } else if (length > 0) {
    // Shorter ones that stop early: nothing, or a beginning of `fraction`.
    ways.push_back(regex::Empty());
    for (int32_t i = 1; i < length; ++i) {
      ways.push_back(
          regex::Concat({point, regex::Text(fraction.substr(0, static_cast<size_t>(i)))}));
    }
  }
  if (equal) {
    ways.push_back(length == 0 ? regex::Empty() : regex::Concat({point, regex::Text(fraction)}));
    const int32_t more = kMaxFractionDigits - length;
    if (more > 0) {
      ways.push_back(
          regex::Concat({point, regex::Text(fraction), regex::Repeat(regex::Text("0"), 1, more)}));
    }
  }
  return regex::Alt(std::move(ways));
}

Regex AnyFraction() {
  return regex::Optional(regex::Concat({regex::Text("."), AnyDigits(1, kMaxFractionDigits)}));
}

// Numbers without a sign above (below) `value`, or equal to it. Requires: value >= 0.
Regex MagnitudeBeyond(const Decimal& value, bool above, bool equal, bool integer) {
  const std::string whole = value.Whole(), fraction = value.Fraction();
  std::vector<Regex> ways{
      regex::Concat({WholeBeyond(whole, above), integer ? regex::Empty() : AnyFraction()})};
  if (integer) {
    const bool same = fraction.empty() ? equal : !above;
    if (same) ways.push_back(regex::Text(whole));
  } else if (equal || whole.size() + kMaxFractionDigits <= 15) {  // digits that an F64 keeps apart
    ways.push_back(regex::Concat({regex::Text(whole), FractionBeyond(fraction, above, equal)}));
  }
  return regex::Alt(std::move(ways));
}

Regex AnyMagnitude(bool integer) {
  return regex::Concat({AnyWhole(), integer ? regex::Empty() : AnyFraction()});
}

// Numbers with a minus are below zero.
Regex Negative(Regex magnitude) { return regex::Concat({regex::Text("-"), std::move(magnitude)}); }

Regex NegativeAny(bool integer) {
  return Negative(MagnitudeBeyond(Decimal{}, /*above=*/true, /*equal=*/false, integer));
}

Regex AtLeast(const NumberLimits::Bound& low, bool integer) {
  Decimal magnitude = low.value;
  magnitude.negative = false;
  if (!low.value.negative) return MagnitudeBeyond(magnitude, true, !low.exclusive, integer);
  return regex::Alt({AnyMagnitude(integer),
                     Negative(MagnitudeBeyond(magnitude, false, !low.exclusive, integer))});
}

Regex AtMost(const NumberLimits::Bound& high, bool integer) {
  Decimal magnitude = high.value;
  magnitude.negative = false;
  if (high.value.negative)
    return Negative(MagnitudeBeyond(magnitude, true, !high.exclusive, integer));
  return regex::Alt(
      {NegativeAny(integer), MagnitudeBeyond(magnitude, false, !high.exclusive, integer)});
}

// Whole numbers with any sign whose digits leave no rest.
std::vector<Dfa::State> MultiplesOf(int64_t divisor) {
  // 0: start, 1: behind a minus, 2: "0", 3 + r: digits so far leave rest r.
  std::vector<Dfa::State> states(static_cast<size_t>(3 + divisor));
  const auto digit = [](int64_t d) { return CharSet::Of(static_cast<char32_t>('0' + d)); };
  const auto rest = [&](int64_t r) { return static_cast<int32_t>(3 + r % divisor); };
  states[0].edges.push_back({CharSet::Of('-'), 1});
  states[0].edges.push_back({digit(0), 2});
  states[2].accepting = true;
  for (int64_t d = 1; d <= 9; ++d) {
    states[0].edges.push_back({digit(d), rest(d)});
    states[1].edges.push_back({digit(d), rest(d)});
  }
  for (int64_t r = 0; r < divisor; ++r) {
    Dfa::State& state = states[static_cast<size_t>(3 + r)];
    state.accepting = r == 0;
    for (int64_t d = 0; d <= 9; ++d) state.edges.push_back({digit(d), rest(r * 10 + d)});
  }
  return states;
}

// Behind the point of an unbounded number.
constexpr int32_t kAnyFractionDigits = 17;

Regex Unbounded(bool integer) {
  if (integer) return regex::Alt({AnyMagnitude(integer), NegativeAny(integer)});
  const Regex fraction = regex::Concat({regex::Text("."), AnyDigits(1, kAnyFractionDigits)});
  return regex::Concat(
      {regex::Optional(regex::Text("-")), AnyWhole(), regex::Optional(fraction),
       regex::Optional(regex::Concat(
           {regex::Chars(CharSet({{'E', 'E'}, {'e', 'e'}})),
            regex::Optional(regex::Chars(CharSet({{'+', '+'}, {'-', '-'}}))), AnyDigits(1, 2)}))});
}

}  // namespace

StatusOr<Decimal> Decimal::Parse(std::string_view text) {
  Decimal value;
  if (text.starts_with('-')) {
    value.negative = true;
    text.remove_prefix(1);
  }
  const size_t mark = text.find_first_of("eE");
  int64_t exponent = 0;
  if (mark != std::string_view::npos) {
    const bool down = text[mark + 1] == '-';
    for (const char c : text.substr(mark + 1)) {
      if (c >= '0' && c <= '9') exponent = std::min<int64_t>(10'000, exponent * 10 + (c - '0'));
    }
    exponent = down ? -exponent : exponent;
    text = text.substr(0, mark);
  }
  const size_t dot = text.find('.');
  value.digits = std::string(text.substr(0, dot));
  value.point = std::ssize(value.digits) + exponent;
  if (dot != std::string_view::npos) value.digits += text.substr(dot + 1);
  const size_t zeros = std::min(value.digits.find_first_not_of('0'), value.digits.size());
  value.digits.erase(0, zeros);
  value.point -= static_cast<int64_t>(zeros);
  while (!value.digits.empty() && value.digits.back() == '0') value.digits.pop_back();
  if (value.digits.empty()) return Decimal{};
  if (std::ssize(value.digits) > 400 || std::abs(value.point) > 400) {
    return Unimplemented("a number of more than 400 digits is not supported");
  }
  return value;
}

std::string Decimal::Whole() const {
  if (point <= 0) return "0";
  std::string whole = digits.substr(0, static_cast<size_t>(point));
  whole.resize(static_cast<size_t>(point), '0');
  return whole;
}

std::string Decimal::Fraction() const {
  if (IsInteger()) return "";
  if (point >= 0) return digits.substr(static_cast<size_t>(point));
  return std::string(static_cast<size_t>(-point), '0') + digits;
}

Decimal Decimal::Rounded(bool away_from_zero) const {
  const int64_t keep = point + kMaxFractionDigits;
  if (std::ssize(digits) <= keep) return *this;
  Decimal rounded = *this;
  rounded.digits.resize(static_cast<size_t>(std::max<int64_t>(keep, 0)));
  if (away_from_zero) {
    if (keep <= 0) {  // the smallest step
      rounded.digits = "1";
      rounded.point = 1 - kMaxFractionDigits;
      return rounded;
    }
    size_t at = rounded.digits.size();
    while (at > 0 && rounded.digits[at - 1] == '9') --at;
    rounded.digits.resize(at);
    if (at > 0) {
      ++rounded.digits[at - 1];
    } else {
      rounded.digits = "1";
      ++rounded.point;
    }
  }
  while (!rounded.digits.empty() && rounded.digits.back() == '0') rounded.digits.pop_back();
  return rounded.digits.empty() ? Decimal{} : rounded;
}

int Decimal::Compare(const Decimal& other) const {
  if (negative != other.negative) return negative ? -1 : 1;
  const int sign = negative ? -1 : 1;
  if (IsZero() || other.IsZero()) return sign * (int{!IsZero()} - int{!other.IsZero()});
  if (point != other.point) return point < other.point ? -sign : sign;
  const int order = digits.compare(other.digits);
  return order == 0 ? 0 : order < 0 ? -sign : sign;
}

bool NumberLimits::Apart(const NumberLimits& a, const NumberLimits& b) {
  const auto below = [](const NumberLimits& x, const NumberLimits& y) {
    if (!x.high || !y.low) return false;
    const int order = x.high->value.Compare(y.low->value);
    return order < 0 || (order == 0 && (x.high->exclusive || y.low->exclusive));
  };
  return below(a, b) || below(b, a);
}

bool NumberLimits::Holds(const Decimal& value) const {
  if (integer && !value.IsInteger()) return false;
  if (low) {
    const int order = value.Compare(low->value);
    if (order < 0 || (order == 0 && low->exclusive)) return false;
  }
  if (high) {
    const int order = value.Compare(high->value);
    if (order > 0 || (order == 0 && high->exclusive)) return false;
  }
  if (!multiple_of) return true;
  if (!value.IsInteger()) return false;
  int64_t rest = 0;
  for (const char c : value.Whole()) rest = (rest * 10 + (c - '0')) % *multiple_of;
  return rest == 0;
}

StatusOr<NumberLimits> Both(const NumberLimits& a, const NumberLimits& b) {
  NumberLimits both = a;
  both.integer = a.integer || b.integer;
  if (b.low) {
    const int order = a.low ? b.low->value.Compare(a.low->value) : 1;
    if (order > 0) both.low = b.low;
    if (order == 0) both.low->exclusive |= b.low->exclusive;
  }
  if (b.high) {
    const int order = a.high ? b.high->value.Compare(a.high->value) : -1;
    if (order < 0) both.high = b.high;
    if (order == 0) both.high->exclusive |= b.high->exclusive;
  }
  if (b.multiple_of) {
    both.multiple_of = a.multiple_of ? std::lcm(*a.multiple_of, *b.multiple_of) : *b.multiple_of;
    if (*both.multiple_of > kMaxMultipleOf) {
      return Unimplemented("multiples of more than ", kMaxMultipleOf, " are not supported");
    }
  }
  return both;
}

StatusOr<Dfa> NumberSpellings(const NumberLimits& limits) {
  if (limits.unbounded()) return Dfa::Of(Unbounded(limits.integer));
  const bool integer = limits.integer || limits.multiple_of;
  DI_ASSIGN_OR_RETURN(Dfa all, Dfa::Of(regex::Alt({AnyMagnitude(integer), NegativeAny(integer)})));
  for (const bool is_low : {true, false}) {
    const auto& bound = is_low ? limits.low : limits.high;
    if (!bound) continue;
    const bool beyond_reach = bound->value.point > kMaxIntegerDigits;
    if (beyond_reach && bound->value.negative == is_low) continue;  // every spelling is within it
    if (beyond_reach) {
      return Unimplemented("a bound of more than ", kMaxIntegerDigits,
                           " digits in front of the point is not supported");
    }
    NumberLimits::Bound near = *bound;
    near.value = near.value.Rounded(/*away_from_zero=*/near.value.negative != is_low);
    if (!(near.value == bound->value)) near.exclusive = false;
    DI_ASSIGN_OR_RETURN(const Dfa side,
                        Dfa::Of(is_low ? AtLeast(near, integer) : AtMost(near, integer)));
    DI_ASSIGN_OR_RETURN(all, Dfa::Both(all, side));
  }
  if (!limits.multiple_of) return all;
  DI_ASSIGN_OR_RETURN(const Dfa multiples, Dfa::FromStates(MultiplesOf(*limits.multiple_of)));
  return Dfa::Both(all, multiples);
}

}  // namespace deepinfer
