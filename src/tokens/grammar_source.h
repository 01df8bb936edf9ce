// tokens/grammar_source.h: where an engine gets its compiled grammars from.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "base/status.h"
#include "tokens/grammar.h"

namespace deepinfer {

// Threads: any, at the same time.
class GrammarSource {
 public:
  using Done = std::function<void(StatusOr<std::shared_ptr<const Grammar>>)>;

  virtual ~GrammarSource() = default;
  // Calls `done` exactly once: on any thread, and perhaps inside Get. The start condition of
  // `structured` is the matter of OutputConstraint; it may share a grammar with other requests.
  // Errors: as Grammar::Compile; kUnimplemented for a grammar past the limits of a build,
  // kResourceExhausted if too many wait for theirs.
  virtual void Get(const StructuredOutput& structured, Done done) = 0;
};

// Compiles inside Get, without limits: for tests and for text that is trusted.
class DirectGrammarSource : public GrammarSource {
 public:
  explicit DirectGrammarSource(std::shared_ptr<const GrammarVocabulary> vocabulary)
      : vocabulary_(std::move(vocabulary)) {}
  void Get(const StructuredOutput& structured, Done done) override {
    done(Grammar::Compile(structured, vocabulary_));
  }

 private:
  const std::shared_ptr<const GrammarVocabulary> vocabulary_;
};

}  // namespace deepinfer
