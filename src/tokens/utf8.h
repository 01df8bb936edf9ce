// tokens/utf8.h: reading, repairing and streaming UTF-8.
//
// What is not UTF-8 becomes U+FFFD, one for each longest beginning of a character (the WHATWG rule,
// which Python's errors="replace" and Rust's from_utf8_lossy follow too).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace deepinfer {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// One step over bytes.
struct Utf8Step {
  enum class Kind { kCharacter, kInvalid, kUnfinished } kind;
  int num_bytes;      // to step over: the character, or what one U+FFFD stands for
  char32_t code = 0;  // of a character
};

// Requires: !bytes.empty().
Utf8Step NextUtf8(std::string_view bytes);

// What one step goes over; nothing of an empty text. For messages, which quote whole characters.
std::string_view FirstCharacter(std::string_view text);

// `text` itself if it is UTF-8, else `repaired`, filled with the repaired copy.
std::string_view RepairUtf8(std::string_view text, std::string& repaired);

void AppendUtf8(char32_t code, std::string& out);

// Unicode White_Space, which has not changed since Unicode 6.3.
bool IsWhiteSpace(char32_t code);

// Cuts a stream of bytes so that each piece of text is UTF-8.
class Utf8Stream {
 public:
  std::string Add(std::string_view bytes);
  std::string Finish();
  int pending_bytes() const { return static_cast<int>(pending_.size()); }

 private:
  std::string pending_;  // unfinished character, at most 3 bytes
};

}  // namespace deepinfer
