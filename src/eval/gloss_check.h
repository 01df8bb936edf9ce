// eval/gloss_check.h: knowing a right definition without holding its text.
//
// The definitions that the model learnt may not be shipped as a text of ours, so the repository
// holds hashes of their content words: a file of lines `word TAB hash,hash,...`, hashes as eight
// hexadecimal digits.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace deepinfer {

// Of the words of a text without those that carry no content ("the", "of"), in lower case and
// without the endings s, es, ed, e and ing; sorted, each once. The values are stored in files.
std::vector<uint32_t> ContentWordHashes(std::string_view text);

// How many of `wanted` are among those of `text`. Requires: `wanted` as above.
size_t NumContentWordsFound(std::string_view text, std::span<const uint32_t> wanted);

class GlossCheck {
 public:
  struct Entry {
    std::string word;
    std::vector<uint32_t> hashes;  // sorted, not empty

    bool operator==(const Entry&) const = default;
  };

  // `where` names the file in messages. Errors: kInvalidArgument with the line; for no line too.
  static StatusOr<GlossCheck> Parse(std::string_view text, std::string_view where);
  explicit GlossCheck(std::vector<Entry> entries) : entries_(std::move(entries)) {}

  std::string Text() const;
  std::span<const Entry> entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

}  // namespace deepinfer
