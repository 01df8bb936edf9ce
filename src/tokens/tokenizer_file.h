// tokens/tokenizer_file.h: tokenizer.json as plain structs; what we do not support is refused here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace deepinfer {

// Ids above this are refused: tables are as long as the highest id.
inline constexpr int32_t kMaxTokenId = (1 << 22) - 1;

struct VocabEntry {
  std::string spelling;  // in the byte alphabet
  int32_t id;
};

// Left and right side of a merge, spelled. Its rank is its place in the list.
struct MergeRule {
  std::string left, right;
};

struct AddedToken {
  std::string content;  // as it stands in texts
  int32_t id;
  bool special;      // left out of decoded text on request
  bool normalized;   // matched after the others, in what they leave
  bool single_word;  // only where no word character touches it
  bool lstrip;       // takes white space before it
  bool rstrip;       // takes white space after it
};

struct TokenizerFile {
  std::vector<VocabEntry> vocab;
  std::vector<MergeRule> merges;
  bool ignore_merges = false;  // a piece that is a vocabulary entry is that entry
  std::vector<AddedToken> added_tokens;
  std::vector<std::string>
      split_patterns;  // each cuts what the ones before left; in the file's syntax
};

// `where` names the file in messages.
// Errors: kInvalidArgument for what is not a tokenizer.json; kUnimplemented for parts that would
// change ids and are not supported.
StatusOr<TokenizerFile> ParseTokenizerFile(std::string_view json, std::string_view where);

}  // namespace deepinfer
