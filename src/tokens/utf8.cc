#include "tokens/utf8.h"

#include "base/check.h"

namespace deepinfer {
namespace {

// What may follow a first byte. Source: Unicode core specification, table 3-7.
struct LeadByte {
  int num_bytes;                   // of the character; 0 if no character begins so
  uint8_t second_min, second_max;  // range of the second byte; later ones are 80..BF
};

constexpr LeadByte LeadByteOf(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};  // no surrogates
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};  // nothing above U+10FFFF
  return {0, 0, 0};
}

constexpr uint8_t kLeadBits[5] = {0, 0x7F, 0x1F, 0x0F, 0x07};

// Appends the characters of `bytes`, repaired, up to an unfinished one. Returns the bytes used.
size_t AppendRepaired(std::string_view bytes, std::string& out) {
  size_t at = 0;
  while (at < bytes.size()) {
    const Utf8Step step = NextUtf8(bytes.substr(at));
    if (step.kind == Utf8Step::Kind::kUnfinished) break;
    const auto length = static_cast<size_t>(step.num_bytes);
    out +=
        step.kind == Utf8Step::Kind::kCharacter ? bytes.substr(at, length) : kReplacementCharacter;
    at += length;
  }
  return at;
}

bool IsUtf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Utf8Step step = NextUtf8(text.substr(at));
    if (step.kind != Utf8Step::Kind::kCharacter) return false;
    at += static_cast<size_t>(step.num_bytes);
  }
  return true;
}

}  // namespace

std::string_view FirstCharacter(std::string_view text) {
  return text.empty() ? text : text.substr(0, static_cast<size_t>(NextUtf8(text).num_bytes));
}

Utf8Step NextUtf8(std::string_view bytes) {
  CHECK(!bytes.empty());
  const auto first = static_cast<uint8_t>(bytes[0]);
  const LeadByte lead = LeadByteOf(first);
  if (lead.num_bytes == 0) return {Utf8Step::Kind::kInvalid, 1};
  char32_t code = first & kLeadBits[lead.num_bytes];
  uint8_t min = lead.second_min, max = lead.second_max;
  for (int i = 1; i < lead.num_bytes; ++i) {
    if (static_cast<size_t>(i) == bytes.size()) return {Utf8Step::Kind::kUnfinished, i};
    const auto byte = static_cast<uint8_t>(bytes[static_cast<size_t>(i)]);
    if (byte < min || byte > max) return {Utf8Step::Kind::kInvalid, i};
    code = code << 6 | (byte & 0x3F);
    min = 0x80;
    max = 0xBF;
  }
  return {Utf8Step::Kind::kCharacter, lead.num_bytes, code};
}

std::string_view RepairUtf8(std::string_view text, std::string& repaired) {
  if (IsUtf8(text)) return text;
  repaired.clear();
  const size_t used = AppendRepaired(text, repaired);
  if (used < text.size()) repaired += kReplacementCharacter;
  return repaired;
}

void AppendUtf8(char32_t code, std::string& out) {
  CHECK_LE(static_cast<uint32_t>(code), 0x10FFFFu);
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

bool IsWhiteSpace(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || code == 0x20 || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

std::string Utf8Stream::Add(std::string_view bytes) {
  std::string text;
  pending_ += bytes;
  pending_.erase(0, AppendRepaired(pending_, text));
  return text;
}

std::string Utf8Stream::Finish() {
  const bool unfinished = !pending_.empty();
  pending_.clear();
  return unfinished ? std::string(kReplacementCharacter) : std::string();
}

}  // namespace deepinfer
