#include "tokens/output_constraint.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace deepinfer {
namespace {

void Allow(std::span<uint32_t> mask, int32_t id, bool allowed) {
  uint32_t& word = mask[static_cast<size_t>(id / 32)];
  const uint32_t bit = uint32_t{1} << (id % 32);
  word = allowed ? word | bit : word & ~bit;
}

}  // namespace

OutputConstraint::OutputConstraint(std::shared_ptr<const Grammar> grammar,
                                   const StructuredOutput& start)
    : grammar_(std::move(grammar)),
      matcher_(grammar_),
      trigger_(start.trigger_token_ids),
      bound_(start.bound_token_id) {
  if (bound_) {
    at_.phase = Phase::kAwaitBound;
  } else if (!trigger_.empty()) {
    at_.phase = Phase::kAwaitTrigger;
  }
}

bool OutputConstraint::FillMask(std::span<uint32_t> mask) {
  CHECK_EQ(std::ssize(mask), grammar_->vocabulary().mask_words());
  switch (at_.phase) {
    case Phase::kAwaitBound:
      std::fill(mask.begin(), mask.end(), ~uint32_t{0});
      for (const int32_t id : grammar_->vocabulary().end_ids()) Allow(mask, id, id == *bound_);
      return true;
    case Phase::kAwaitTrigger:
      return false;
    case Phase::kForceTrigger:
      std::fill(mask.begin(), mask.end(), 0);
      Allow(mask, trigger_[static_cast<size_t>(at_.matched)], true);
      return true;
    case Phase::kGrammar:
      return matcher_.FillMask(mask);
    case Phase::kEnded:
      std::fill(mask.begin(), mask.end(), 0);
      for (const int32_t id : grammar_->vocabulary().end_ids()) Allow(mask, id, true);
      return true;
  }
  return false;
}

bool OutputConstraint::Accept(int32_t id) {
  Place next = at_;
  next.fed = false;
  if (at_.phase == Phase::kGrammar) {
    if (!matcher_.Accept(id)) return false;
    next.fed = true;
    if (matcher_.ended()) next.phase = Phase::kEnded;
  } else if (!Step(id, next)) {
    return false;
  }
  before_.push_back(at_);
  if (std::ssize(before_) > kMaxRollback) before_.pop_front();
  at_ = next;
  return true;
}

bool OutputConstraint::Step(int32_t id, Place& next) const {
  switch (at_.phase) {
    case Phase::kAwaitBound:
      if (id == *bound_) {
        next.phase = trigger_.empty() ? Phase::kGrammar : Phase::kForceTrigger;
        return true;
      }
      return !IsEnd(id);
    case Phase::kAwaitTrigger:
      next.matched = MatchedAfter(at_.matched, id);
      if (next.matched == std::ssize(trigger_)) next.phase = Phase::kGrammar;
      return true;
    case Phase::kForceTrigger:
      if (id != trigger_[static_cast<size_t>(at_.matched)]) return false;
      if (++next.matched == std::ssize(trigger_)) next.phase = Phase::kGrammar;
      return true;
    default:
      return IsEnd(id);
  }
}

int32_t OutputConstraint::MatchedAfter(int32_t matched, int32_t id) const {
  // The output ends with the trigger's first `matched` ids and `id`. Triggers are a few ids long,
  // so every shorter beginning is simply tried.
  for (int32_t length = matched + 1; length > 0; --length) {
    const auto last = trigger_.begin() + (length - 1);
    if (*last == id &&
        std::equal(trigger_.begin(), last, trigger_.begin() + (matched + 1 - length)))
      return length;
  }
  return 0;
}

void OutputConstraint::Rollback(int32_t count) {
  CHECK(count >= 0 && count <= std::ssize(before_));
  int32_t fed = 0;
  for (int32_t i = 0; i < count; ++i) {
    fed += at_.fed ? 1 : 0;
    at_ = before_.back();
    before_.pop_back();
  }
  matcher_.Rollback(fed);
}

bool OutputConstraint::IsEnd(int32_t id) const {
  const auto& ids = grammar_->vocabulary().end_ids();
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace deepinfer
