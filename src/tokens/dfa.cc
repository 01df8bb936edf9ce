#include "tokens/dfa.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tokens/utf8.h"

namespace deepinfer {
namespace {

using Kind = RegexNode::Kind;

Status TooLarge() {
  return Unimplemented("an automaton of more than ", Dfa::kMaxStates,
                       " states would be needed, which is not supported");
}

// Thompson's construction.
struct Nfa {
  struct State {
    std::vector<std::pair<CharSet, int32_t>> edges;
    std::vector<int32_t> silent;
  };
  std::vector<State> states;

  int32_t Add() {
    states.emplace_back();
    return static_cast<int32_t>(states.size()) - 1;
  }
  void Silent(int32_t from, int32_t to) { states[static_cast<size_t>(from)].silent.push_back(to); }

  // Adds `regex` behind `from`; where it ends.
  int32_t Append(const Regex& regex, int32_t from) {
    switch (regex->kind) {
      case Kind::kNever:
        return Add();
      case Kind::kEmpty:
        return from;
      case Kind::kChars: {
        const int32_t to = Add();
        states[static_cast<size_t>(from)].edges.emplace_back(regex->chars, to);
        return to;
      }
      case Kind::kConcat:
        for (const Regex& part : regex->parts) from = Append(part, from);
        return from;
      case Kind::kAlt: {
        const int32_t to = Add();
        for (const Regex& part : regex->parts) {
          const int32_t start = Add();
          Silent(from, start);
          Silent(Append(part, start), to);
        }
        return to;
      }
      case Kind::kRepeat:
        break;
    }
    return AppendRepeat(*regex, from);
  }

  int32_t AppendRepeat(const RegexNode& repeat, int32_t from) {
    const Regex& part = repeat.parts[0];
    for (int32_t i = 0; i < repeat.min; ++i) from = Append(part, from);
    if (repeat.max < 0) {
      const int32_t loop = Add(), to = Add();
      Silent(from, loop);
      Silent(loop, to);
      Silent(Append(part, loop), loop);
      return to;
    }
    const int32_t to = Add();
    Silent(from, to);
    for (int32_t i = repeat.min; i < repeat.max; ++i) {
      from = Append(part, from);
      Silent(from, to);
    }
    return to;
  }

  void Close(std::set<int32_t>& set) const {
    std::vector<int32_t> todo(set.begin(), set.end());
    while (!todo.empty()) {
      const int32_t state = todo.back();
      todo.pop_back();
      for (const int32_t to : states[static_cast<size_t>(state)].silent) {
        if (set.insert(to).second) todo.push_back(to);
      }
    }
  }
};

// Cuts overlapping edges into pieces with the same set of targets each.
std::vector<std::pair<CharSet, std::set<int32_t>>> Pieces(
    const std::vector<std::pair<CharSet, int32_t>>& edges) {
  std::map<char32_t, std::vector<std::pair<int32_t, bool>>> changes;  // at a character: on or off
  for (const auto& [chars, to] : edges) {
    for (const CharRange& range : chars.ranges()) {
      changes[range.first].emplace_back(to, true);
      changes[range.last + 1].emplace_back(to, false);
    }
  }
  std::map<std::set<int32_t>, std::vector<CharRange>> by_targets;
  std::map<int32_t, int32_t> active;  // target -> how many of its ranges cover the place
  char32_t start = 0;
  for (const auto& [at, here] : changes) {
    if (!active.empty()) {
      std::set<int32_t> targets;
      for (const auto& [to, count] : active) targets.insert(to);
      by_targets[targets].push_back({start, at - 1});
    }
    for (const auto& [to, on] : here) {
      if ((active[to] += on ? 1 : -1) == 0) active.erase(to);
    }
    start = at;
  }
  std::vector<std::pair<CharSet, std::set<int32_t>>> pieces;
  for (auto& [targets, ranges] : by_targets) pieces.emplace_back(CharSet(ranges), targets);
  return pieces;
}

}  // namespace

StatusOr<Dfa> Dfa::Of(const Regex& regex) {
  if (regex->size > kMaxRegexSize) return TooLarge();
  Nfa nfa;
  std::set<int32_t> start{nfa.Add()};
  const int32_t end = nfa.Append(regex, *start.begin());
  nfa.Close(start);
  std::map<std::set<int32_t>, int32_t> ids{{start, 0}};
  std::vector<std::set<int32_t>> todo{start};
  std::vector<State> states;
  for (size_t at = 0; at < todo.size(); ++at) {
    const std::set<int32_t> here = todo[at];
    State state{.accepting = here.contains(end), .edges = {}};
    std::vector<std::pair<CharSet, int32_t>> edges;
    for (const int32_t id : here) {
      const auto& more = nfa.states[static_cast<size_t>(id)].edges;
      edges.insert(edges.end(), more.begin(), more.end());
    }
    for (auto& [chars, targets] : Pieces(edges)) {
      nfa.Close(targets);
      const auto [known, fresh] = ids.emplace(targets, static_cast<int32_t>(todo.size()));
      if (fresh) todo.push_back(targets);
      if (std::ssize(todo) > kMaxStates) return TooLarge();
      state.edges.push_back({chars, known->second});
    }
    states.push_back(std::move(state));
  }
  return Minimal(std::move(states));
}

StatusOr<Dfa> Dfa::FromStates(std::vector<State> states) {
  if (std::ssize(states) > kMaxStates) return TooLarge();
  return Minimal(std::move(states));
}

StatusOr<Dfa> Dfa::Both(const Dfa& a, const Dfa& b) {
  std::map<std::pair<int32_t, int32_t>, int32_t> ids{{{0, 0}, 0}};
  std::vector<std::pair<int32_t, int32_t>> todo{{0, 0}};
  std::vector<State> states;
  for (size_t at = 0; at < todo.size(); ++at) {
    const State& left = a.states_[static_cast<size_t>(todo[at].first)];
    const State& right = b.states_[static_cast<size_t>(todo[at].second)];
    State state{.accepting = left.accepting && right.accepting, .edges = {}};
    for (const Edge& one : left.edges) {
      for (const Edge& other : right.edges) {
        CharSet chars = one.chars.And(other.chars);
        if (chars.empty()) continue;
        const std::pair<int32_t, int32_t> to{one.to, other.to};
        const auto [known, fresh] = ids.emplace(to, static_cast<int32_t>(todo.size()));
        if (fresh) todo.push_back(to);
        if (std::ssize(todo) > kMaxStates) return TooLarge();
        state.edges.push_back({std::move(chars), known->second});
      }
    }
    states.push_back(std::move(state));
  }
  return Minimal(std::move(states));
}

StatusOr<Dfa> Dfa::Not(const Dfa& a) {
  std::vector<State> states = a.states_;
  const auto sink = static_cast<int32_t>(states.size());
  states.push_back({.accepting = false, .edges = {}});
  for (State& state : states) {
    CharSet rest = CharSet::All();
    for (const Edge& edge : state.edges) rest = rest.Minus(edge.chars);
    if (!rest.empty()) state.edges.push_back({rest, sink});
    state.accepting = !state.accepting;
  }
  return FromStates(std::move(states));
}

Dfa Dfa::Minimal(std::vector<State> states) {
  const size_t n = states.size();
  // What can still accept.
  std::vector<std::vector<int32_t>> from(n);
  std::vector<int32_t> todo;
  std::vector<bool> alive(n);
  for (size_t i = 0; i < n; ++i) {
    for (const Edge& edge : states[i].edges) {
      from[static_cast<size_t>(edge.to)].push_back(static_cast<int32_t>(i));
    }
    if (!states[i].accepting) continue;
    alive[i] = true;
    todo.push_back(static_cast<int32_t>(i));
  }
  while (!todo.empty()) {
    const auto at = static_cast<size_t>(todo.back());
    todo.pop_back();
    for (const int32_t source : from[at]) {
      if (alive[static_cast<size_t>(source)]) continue;
      alive[static_cast<size_t>(source)] = true;
      todo.push_back(source);
    }
  }
  // Moore's refinement: split by where characters lead until nothing splits any more.
  std::vector<int32_t> group(n);
  for (size_t i = 0; i < n; ++i) group[i] = states[i].accepting ? 1 : 0;
  const auto edges_by_group = [&](size_t i) {
    std::map<int32_t, CharSet> edges;
    for (const Edge& edge : states[i].edges) {
      if (!alive[static_cast<size_t>(edge.to)]) continue;
      CharSet& chars = edges[group[static_cast<size_t>(edge.to)]];
      chars = chars.Or(edge.chars);
    }
    return edges;
  };
  const auto less = [](const CharRange& a, const CharRange& b) {
    return std::pair(a.first, a.last) < std::pair(b.first, b.last);
  };
  using Signature = std::pair<int32_t, std::vector<std::pair<int32_t, std::vector<CharRange>>>>;
  const auto signature_less = [&](const Signature& a, const Signature& b) {
    if (a.first != b.first) return a.first < b.first;
    return std::lexicographical_compare(a.second.begin(), a.second.end(), b.second.begin(),
                                        b.second.end(), [&](const auto& x, const auto& y) {
                                          if (x.first != y.first) return x.first < y.first;
                                          return std::lexicographical_compare(
                                              x.second.begin(), x.second.end(), y.second.begin(),
                                              y.second.end(), less);
                                        });
  };
  for (size_t groups = 0;;) {
    std::map<Signature, int32_t, decltype(signature_less)> ids(signature_less);
    std::vector<int32_t> next(n, -1);
    for (size_t i = 0; i < n; ++i) {
      if (!alive[i]) continue;
      Signature signature{group[i], {}};
      for (auto& [to, chars] : edges_by_group(i)) signature.second.emplace_back(to, chars.ranges());
      next[i] = ids.emplace(std::move(signature), static_cast<int32_t>(ids.size())).first->second;
    }
    group = std::move(next);
    if (ids.size() == groups) break;
    groups = ids.size();
  }
  // One state a group, numbered as they are reached from the start.
  Dfa dfa;
  if (n == 0 || !alive[0]) {
    dfa.states_.push_back({.accepting = false, .edges = {}});
    return dfa;
  }
  std::map<int32_t, int32_t> number;
  std::vector<size_t> order{0};
  number[group[0]] = 0;
  for (size_t at = 0; at < order.size(); ++at) {
    const size_t i = order[at];
    State state{.accepting = states[i].accepting, .edges = {}};
    std::map<int32_t, CharSet> edges = edges_by_group(i);
    for (const Edge& edge : states[i].edges) {
      const auto to = static_cast<size_t>(edge.to);
      if (!alive[to]) continue;
      const auto [known, fresh] = number.emplace(group[to], static_cast<int32_t>(order.size()));
      if (fresh) order.push_back(to);
      const auto chars = edges.find(group[to]);
      if (chars == edges.end()) continue;
      state.edges.push_back({std::move(chars->second), known->second});
      edges.erase(chars);
    }
    dfa.states_.push_back(std::move(state));
  }
  return dfa;
}

bool Dfa::empty() const { return states_.size() == 1 && !states_[0].accepting; }

bool Dfa::Matches(std::string_view text) const {
  size_t at = 0;
  while (!text.empty()) {
    const Utf8Step step = NextUtf8(text);
    if (step.kind != Utf8Step::Kind::kCharacter) return false;
    text.remove_prefix(static_cast<size_t>(step.num_bytes));
    const auto& edges = states_[at].edges;
    const auto edge = std::find_if(edges.begin(), edges.end(),
                                   [&](const Edge& e) { return e.chars.Contains(step.code); });
    if (edge == edges.end()) return false;
    at = static_cast<size_t>(edge->to);
  }
  return states_[at].accepting;
}

// Takes states out one by one, the least connected first; paths through it become expressions.
StatusOr<Regex> Dfa::ToRegex(int64_t max_size) const {
  const auto n = static_cast<int32_t>(states_.size());
  const int32_t start = n, end = n + 1;
  std::map<int32_t, std::map<int32_t, Regex>> out, in;
  const auto add = [&](int32_t from, int32_t to, Regex regex) {
    Regex& at = out[from][to];
    at = at ? regex::Alt({at, std::move(regex)}) : std::move(regex);
    in[to][from] = at;
  };
  add(start, 0, regex::Empty());
  for (int32_t i = 0; i < n; ++i) {
    for (const Edge& edge : states_[static_cast<size_t>(i)].edges) {
      add(i, edge.to, regex::Chars(edge.chars));
    }
    if (states_[static_cast<size_t>(i)].accepting) add(i, end, regex::Empty());
  }
  std::set<int32_t> left;
  for (int32_t i = 0; i < n; ++i) left.insert(i);
  while (!left.empty()) {
    const int32_t state = *std::min_element(left.begin(), left.end(), [&](int32_t a, int32_t b) {
      return in[a].size() * out[a].size() < in[b].size() * out[b].size();
    });
    left.erase(state);
    Regex loop = regex::Empty();
    if (const auto own = out[state].find(state); own != out[state].end()) {
      loop = regex::Repeat(own->second, 0, -1);
    }
    for (const auto& [from, before] : in[state]) {
      if (from == state) continue;
      for (const auto& [to, after] : out[state]) {
        if (to == state) continue;
        Regex path = regex::Concat({before, loop, after});
        if (path->size > max_size) {
          return Unimplemented("a regular expression of more than ", max_size,
                               " characters would be needed, which is not supported");
        }
        add(from, to, std::move(path));
      }
    }
    for (const auto& [from, before] : in[state]) out[from].erase(state);
    for (const auto& [to, after] : out[state]) in[to].erase(state);
    out.erase(state);
    in.erase(state);
  }
  const auto whole = out[start].find(end);
  return whole == out[start].end() ? regex::Never() : whole->second;
}

}  // namespace deepinfer
