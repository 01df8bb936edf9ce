// tokens/dfa.h: finite automata over characters, for what regular expressions cannot say: both of
// two, and everything but one.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokens/regex.h"

namespace deepinfer {

class Dfa {
 public:
  // Larger ones are refused.
  static constexpr int32_t kMaxStates = 3000;

  struct Edge {
    CharSet chars;  // apart from those of the state's other edges
    int32_t to;
  };
  struct State {
    bool accepting = false;
    std::vector<Edge> edges;  // a character without an edge leads nowhere
  };

  // The smallest automaton. All errors are kUnimplemented: it would be too large.
  static StatusOr<Dfa> Of(const Regex& regex);
  static StatusOr<Dfa> Both(const Dfa& a, const Dfa& b);
  static StatusOr<Dfa> Not(const Dfa& a);
  // From states that were made by hand; the first is where it starts.
  static StatusOr<Dfa> FromStates(std::vector<State> states);

  bool empty() const;                                           // matches nothing
  bool Matches(std::string_view text) const;                    // false for what is not UTF-8
  const std::vector<State>& states() const { return states_; }  // 0 is where it starts

  // Errors: kUnimplemented if it would be longer than max_size.
  StatusOr<Regex> ToRegex(int64_t max_size) const;

 private:
  // Drops what leads nowhere and joins what cannot be told apart.
  static Dfa Minimal(std::vector<State> states);

  std::vector<State> states_;
};

}  // namespace deepinfer
