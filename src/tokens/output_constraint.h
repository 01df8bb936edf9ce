// tokens/output_constraint.h: where in one output a grammar applies, token by token.
//
// An output goes through up to four phases: free until the bound token (the end of thinking) or
// until the trigger ids stand in it; the trigger ids, forced one by one, if there was a bound; the
// grammar; and after an end id of the grammar nothing but end ids. What may come next is always
// known: with several rows of one step, fill a mask, accept the row's draft, fill the next mask,
// and roll back what was not kept.
//
// While the bound token is awaited no end id is allowed, else an output could end before its
// grammar began. While only a trigger is awaited everything is.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>

#include "deepinfer/structured_output.h"
#include "tokens/grammar.h"

namespace deepinfer {

class OutputConstraint {
 public:
  static constexpr int32_t kMaxRollback = 64;

  // `start` gives trigger_token_ids and bound_token_id.
  OutputConstraint(std::shared_ptr<const Grammar> grammar, const StructuredOutput& start);

  // Bit id % 32 of word id / 32: may `id` come next? Requires: mask.size() is mask_words().
  // False: everything is allowed now; the mask is untouched.
  bool FillMask(std::span<uint32_t> mask);
  // False: not allowed; nothing changed.
  bool Accept(int32_t id);
  // Undoes the last `count` accepted tokens. Requires: count <= kMaxRollback, and that many were
  // accepted.
  void Rollback(int32_t count);

  bool in_grammar() const { return at_.phase == Phase::kGrammar; }
  bool ended() const { return at_.phase == Phase::kEnded; }

 private:
  enum class Phase { kAwaitBound, kAwaitTrigger, kForceTrigger, kGrammar, kEnded };
  struct Place {
    Phase phase = Phase::kGrammar;
    // kAwaitTrigger: how many of the trigger's first ids the output ends with.
    // kForceTrigger: how many were forced.
    int32_t matched = 0;
    bool fed = false;  // the token that led here was the matcher's too
  };

  bool IsEnd(int32_t id) const;
  // Where `id` leads in the phases before the grammar; false: not allowed.
  bool Step(int32_t id, Place& next) const;
  // The longest beginning of the trigger that the output ends with, after `id`.
  int32_t MatchedAfter(int32_t matched, int32_t id) const;

  std::shared_ptr<const Grammar> grammar_;
  GrammarMatcher matcher_;
  const std::vector<int32_t> trigger_;
  const std::optional<int32_t> bound_;
  Place at_;
  std::deque<Place> before_;  // of the last kMaxRollback accepted tokens, the newest last
};

}  // namespace deepinfer
