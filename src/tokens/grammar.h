// tokens/grammar.h: what an output may be, compiled for one vocabulary. XGrammar stands behind it.
//
// Every kind of StructuredOutput is first checked and rewritten into rules of a small EBNF
// (grammar_text.h); the library sees nothing else. It turns the rules into masks over token ids.
//
// Tokens count by their bytes. Added tokens (control tokens) are never allowed by their spelling:
// only where a grammar names one by its id (tool_grammar.h names the marker of calls). End ids are
// allowed exactly where the grammar may end.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "deepinfer/structured_output.h"
#include "tokens/tokenizer.h"

namespace deepinfer {

// A tokenizer's tokens the way the library wants them. Threads: immutable; any thread.
class GrammarVocabulary {
 public:
  // vocab_size: of the logits, at least the tokenizer's; ids that stand for no token are never
  // allowed. end_ids: what may end an output.
  // Errors: kInvalidArgument for sizes and ids that do not fit together.
  static StatusOr<std::shared_ptr<const GrammarVocabulary>> Create(const Tokenizer& tokenizer,
                                                                   int32_t vocab_size,
                                                                   std::vector<int32_t> end_ids);
  ~GrammarVocabulary();

  int32_t vocab_size() const { return vocab_size_; }
  int32_t mask_words() const { return (vocab_size_ + 31) / 32; }
  const std::vector<int32_t>& end_ids() const { return end_ids_; }
  int32_t dsml_id() const { return dsml_id_; }  // of the marker of calls; -1: has none

 private:
  friend class Grammar;
  friend class GrammarMatcher;
  struct Parts;
  GrammarVocabulary();

  int32_t vocab_size_ = 0;
  int32_t dsml_id_ = -1;
  std::vector<int32_t> end_ids_;
  std::vector<bool> usable_;  // by id: some grammar may allow it
  std::unique_ptr<Parts> parts_;
};

// Threads: immutable; any thread.
class Grammar {
 public:
  // In this process and without limits on time and memory: for the child process of
  // grammar_service.h, and for text that is trusted. Checks the text first.
  // Errors: kInvalidArgument for broken text, kUnimplemented for what cannot be enforced (names
  // the keyword and its JSON pointer).
  static StatusOr<std::shared_ptr<const Grammar>> Compile(
      const StructuredOutput& structured, std::shared_ptr<const GrammarVocabulary> vocabulary);

  // A compiled grammar as text, and back. Errors: kDataLoss for text that does not fit.
  StatusOr<std::string> Serialize() const;
  static StatusOr<std::shared_ptr<const Grammar>> Deserialize(
      const std::string& text, std::shared_ptr<const GrammarVocabulary> vocabulary);
  ~Grammar();

  int64_t memory_bytes() const;  // about; without the vocabulary
  const GrammarVocabulary& vocabulary() const { return *vocabulary_; }

 private:
  friend class GrammarMatcher;
  struct Parts;
  Grammar(std::shared_ptr<const GrammarVocabulary> vocabulary, std::unique_ptr<Parts> parts);

  std::shared_ptr<const GrammarVocabulary> vocabulary_;
  std::unique_ptr<Parts> parts_;
};

// What Compile would refuse by looking at the text alone; quick. Any thread. Errors: as Compile.
Status CheckStructuredOutput(const StructuredOutput& structured);

// One output's way through a grammar, from its first token. Threads: one at a time.
class GrammarMatcher {
 public:
  explicit GrammarMatcher(std::shared_ptr<const Grammar> grammar);
  ~GrammarMatcher();

  // Bit id % 32 of word id / 32: may `id` come next? Requires: mask.size() is mask_words(), and not
  // ended(). False: every id may; the mask is untouched.
  bool FillMask(std::span<uint32_t> mask);
  // False: not allowed here; nothing changed.
  bool Accept(int32_t id);
  // Undoes the last `count` accepted tokens. Requires: that many were accepted.
  void Rollback(int32_t count);
  bool ended() const;  // an end id was accepted

 private:
  struct Parts;
  std::shared_ptr<const Grammar> grammar_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace deepinfer
