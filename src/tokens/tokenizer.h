// tokens/tokenizer.h: text to token ids and back, by a checkpoint's own tokenizer.json.
//
// Byte-level BPE. Encoding: invalid UTF-8 becomes U+FFFD (as Python's errors="replace" does), added
// tokens are matched literally, the rest is cut by the file's own patterns, and each piece is
// merged by rank. Whatever in the file would change ids and is not supported is refused at load.
// Nothing is ever put around the text: BOS and EOS are the prompt's business. Threads: immutable
// after Load; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"
#include "base/status.h"

namespace deepinfer {

// Text longer than this is the caller's mistake (CHECK): limits belong where text enters.
inline constexpr int64_t kMaxTextBytes = int64_t{1} << 28;

struct EncodeOptions {
  // false: added tokens in the text are plain text, and no added token's id can come out. For text
  // that a user wrote.
  bool added_tokens = true;
  // Added tokens with these ids are plain text even so; their ids cannot come out. For ids that
  // text must never reach, such as the image placeholder's. Viewed during the call only.
  std::span<const int32_t> plain_ids = {};
};

class Tokenizer {
 public:
  // Errors: as Disk::ReadText; as Parse.
  static StatusOr<std::unique_ptr<Tokenizer>> Load(Disk& disk, const std::string& path);
  // `where` names the file in messages. Errors: kInvalidArgument for a broken file, kUnimplemented
  // for a file with parts that would change ids and are not supported.
  static StatusOr<std::unique_ptr<Tokenizer>> Parse(std::string_view json, std::string_view where);
  ~Tokenizer();

  // Highest id + 1. Ids in between may be unused (HasId).
  int32_t vocab_size() const;
  // Of the file's bytes, in lower-case hexadecimal.
  const std::string& sha256() const;

  // Requires: text.size() <= kMaxTextBytes.
  std::vector<int32_t> Encode(std::string_view text, const EncodeOptions& options = {}) const;
  // The ids' bytes as text; what is not UTF-8 becomes U+FFFD. Ids without a token give nothing.
  // skip_special leaves out the tokens that the file calls special.
  std::string Decode(std::span<const int32_t> ids, bool skip_special = false) const;

  // The id of a token spelled as in the file: an added token's content, or a vocabulary entry in
  // the byte alphabet (" the" is written "\u0120the").
  std::optional<int32_t> IdOf(std::string_view token) const;
  // The token as the file spells it; empty without HasId.
  std::string_view TokenText(int32_t id) const;
  // What the token stands for in a text: any bytes, also half a character; empty without HasId.
  std::string_view BytesOf(int32_t id) const;
  bool HasId(int32_t id) const;
  bool IsAdded(int32_t id) const;
  // The file's "special" flag. Many control tokens of DeepSeek files (<think> ...) do not carry it.
  bool IsSpecial(int32_t id) const;

 private:
  struct Parts;
  explicit Tokenizer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace deepinfer
