// engine/testing/fake_grammar.h: grammars that a test can compute itself, and sources of them that
// it can hold up. Tests only.
//
// The language of a FakeConstraint, over tokens 2 and up: the token after n others of it is one
// with (token + n) % 3 == 0. It may end behind `least` tokens and must behind `most`. Before
// `start` (if there is one) everything is free.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/strings.h"
#include "deepinfer/structured_output.h"
#include "engine/token_constraint.h"

namespace deepinfer::testing {

struct FakeLanguage {
  int32_t least = 0, most = 1'000'000;
  std::optional<int32_t> start;  // the language begins behind this token
};

// As the text of a kGrammar.
inline StructuredOutput FakeStructured(const FakeLanguage& language) {
  return {.kind = StructuredOutput::Kind::kGrammar,
          .text = StrCat(language.least, " ", language.most),
          .bound_token_id = language.start};
}

inline FakeLanguage LanguageOf(const StructuredOutput& structured) {
  FakeLanguage language{.start = structured.bound_token_id};
  std::sscanf(structured.text.c_str(), "%d %d", &language.least, &language.most);
  return language;
}

class FakeConstraint : public TokenConstraint {
 public:
  static constexpr int32_t kEos = 1;

  // before_mask: called before each mask is filled; may be empty.
  FakeConstraint(const FakeLanguage& language, int32_t vocab_size,
                 std::function<void()> before_mask = nullptr)
      : language_(language), vocab_size_(vocab_size), before_mask_(std::move(before_mask)) {
    states_.push_back(language.start ? kFree : 0);
  }

  bool Allows(int32_t token) const { return Next(token).has_value(); }
  bool is_free() const { return states_.back() == kFree; }

  bool FillMask(std::span<uint32_t> mask) override {
    CHECK_NE(states_.back(), kEnded);  // case 23
    if (before_mask_) before_mask_();
    if (is_free()) return false;
    std::fill(mask.begin(), mask.end(), 0u);
    for (int32_t token = 0; token < vocab_size_; ++token) {
      if (Allows(token)) mask[static_cast<size_t>(token) / 32] |= 1u << (token % 32);
    }
    return true;
  }
  bool Accept(int32_t token) override {
    const std::optional<int32_t> next = Next(token);
    if (next) states_.push_back(*next);
    return next.has_value();
  }
  void Rollback(int32_t count) override {
    CHECK_LT(static_cast<size_t>(count), states_.size());
    states_.resize(states_.size() - static_cast<size_t>(count));
  }

 private:
  static constexpr int32_t kFree = -1, kEnded = -2;

  std::optional<int32_t> Next(int32_t token) const {
    const int32_t state = states_.back();
    if (state == kFree) return token == language_.start ? 0 : kFree;
    if (state == kEnded) return std::nullopt;
    if (token == kEos) return state >= language_.least ? std::optional(kEnded) : std::nullopt;
    const bool fits = token >= 2 && (token + state) % 3 == 0 && state < language_.most;
    return fits ? std::optional(state + 1) : std::nullopt;
  }

  const FakeLanguage language_;
  const int32_t vocab_size_;
  const std::function<void()> before_mask_;
  std::vector<int32_t> states_;  // tokens of the language so far, or kFree, kEnded
};

// Builds at once, unless told to hold.
class FakeGrammarSource : public ConstraintSource {
 public:
  explicit FakeGrammarSource(int32_t vocab_size, std::function<void()> before_mask = nullptr)
      : vocab_size_(vocab_size), before_mask_(std::move(before_mask)) {}

  void Build(const StructuredOutput& structured, Done done) override {
    if (holds_) {
      held_.emplace_back(structured, std::move(done));
    } else {
      done(Make(structured));
    }
  }
  void Hold() { holds_ = true; }
  int num_held() const { return static_cast<int>(held_.size()); }
  // Finishes the oldest build that is held.
  void FinishOne() {
    auto [structured, done] = std::move(held_.front());
    held_.erase(held_.begin());
    done(Make(structured));
  }
  // With another result.
  void FailOne(const Status& status) {
    held_.front().second(status);
    held_.erase(held_.begin());
  }

 private:
  StatusOr<ConstraintMaker> Make(const StructuredOutput& structured) const {
    return ConstraintMaker(
        [language = LanguageOf(structured), vocab_size = vocab_size_, before = before_mask_] {
          return std::make_unique<FakeConstraint>(language, vocab_size, before);
        });
  }

  const int32_t vocab_size_;
  const std::function<void()> before_mask_;
  bool holds_ = false;
  std::vector<std::pair<StructuredOutput, Done>> held_;
};

}  // namespace deepinfer::testing
