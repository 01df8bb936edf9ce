// tokens/added_tokens.h: finds added tokens in a text, before anything else looks at it.
//
// Leftmost match, of several the longest; first the tokens that are not "normalized", then the
// others in what is left. Flags single_word, lstrip and rstrip are looked at once a match is found.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tokens/byte_trie.h"
#include "tokens/split_pattern.h"
#include "tokens/tokenizer_file.h"

namespace deepinfer {

// Threads: immutable; any thread.
class AddedTokens {
 public:
  struct Part {
    TextSpan span;
    int32_t id;  // of the added token, or kText
  };
  static constexpr int32_t kText = -1;

  explicit AddedTokens(std::vector<AddedToken> tokens);

  // The text in order: added tokens and what is between them, none empty. Tokens whose id is in
  // plain_ids are not looked for. Requires: text is UTF-8.
  std::vector<Part> Split(std::string_view text, std::span<const int32_t> plain_ids) const;

 private:
  struct Match {
    size_t begin, end;
    const AddedToken* token;  // null: none
  };
  void SplitBy(const ByteTrie& trie, std::string_view text, TextSpan span,
               std::span<const int32_t> plain_ids, std::vector<Part>& parts) const;
  Match Find(const ByteTrie& trie, std::string_view text, size_t from,
             std::span<const int32_t> plain_ids) const;

  std::vector<AddedToken> tokens_;
  ByteTrie first_, second_;  // not normalized, normalized; values are indices into tokens_
};

}  // namespace deepinfer
