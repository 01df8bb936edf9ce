// engine/grammar_constraints.h: the constraints of sequences, from compiled grammars.
#pragma once

#include "engine/token_constraint.h"
#include "tokens/grammar_source.h"

namespace deepinfer {

// Threads: as of the GrammarSource.
class GrammarConstraints : public ConstraintSource {
 public:
  explicit GrammarConstraints(GrammarSource* source) : source_(source) {}  // outlives the object

  void Build(const StructuredOutput& structured, Done done) override;

 private:
  GrammarSource* const source_;
};

}  // namespace deepinfer
