// engine/token_constraint.h: what the engine needs of a grammar: which tokens may come next in one
// sequence.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/status.h"
#include "deepinfer/structured_output.h"

namespace deepinfer {

// Threads: one at a time. See tokens/output_constraint.h for the real one.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;
  // Which tokens may come next: bit i % 32 of word i / 32. False: every token may, `mask` is of no
  // meaning.
  virtual bool FillMask(std::span<uint32_t> mask) = 0;
  // The next token is `id`. False: it may not be; then nothing changed.
  virtual bool Accept(int32_t id) = 0;
  // Undoes the last `count` accepted tokens, at most kMaxDrafts.
  virtual void Rollback(int32_t count) = 0;
};

// Makes the constraint of a sequence that begins. Any thread, also several at once.
using ConstraintMaker = std::function<std::unique_ptr<TokenConstraint>()>;

class ConstraintSource {
 public:
  using Done = std::function<void(StatusOr<ConstraintMaker>)>;

  virtual ~ConstraintSource() = default;
  // Builds the grammar; waits for nothing. done: called once, on any thread, perhaps before this
  // returns.
  virtual void Build(const StructuredOutput& structured, Done done) = 0;
};

}  // namespace deepinfer
