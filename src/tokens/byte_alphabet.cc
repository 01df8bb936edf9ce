#include "tokens/byte_alphabet.h"

#include <array>

#include "tokens/utf8.h"

namespace deepinfer {
namespace {

constexpr bool StandsForItself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr int kNumMoved = 68;  // 256 - 188

struct Alphabet {
  std::array<char32_t, 256> character{};
  std::array<int16_t, 256 + kNumMoved> byte{};  // by character, -1 = none
};

constexpr Alphabet MakeAlphabet() {
  Alphabet alphabet;
  alphabet.byte.fill(-1);
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t c = StandsForItself(byte) ? static_cast<char32_t>(byte) : next++;
    alphabet.character[static_cast<size_t>(byte)] = c;
    alphabet.byte[c] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = MakeAlphabet();
static_assert(kAlphabet.character[' '] == 0x120 && kAlphabet.character[0xAD] == 0x143);

}  // namespace

char32_t CharacterOfByte(uint8_t byte) { return kAlphabet.character[byte]; }

std::optional<std::string> BytesOfSpelling(std::string_view spelling) {
  std::string bytes;
  bytes.reserve(spelling.size());
  while (!spelling.empty()) {
    const Utf8Step step = NextUtf8(spelling);
    if (step.kind != Utf8Step::Kind::kCharacter) return std::nullopt;
    if (step.code >= kAlphabet.byte.size() || kAlphabet.byte[step.code] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kAlphabet.byte[step.code]));
    spelling.remove_prefix(static_cast<size_t>(step.num_bytes));
  }
  return bytes;
}

std::string SpellBytes(std::string_view bytes) {
  std::string spelling;
  for (const char c : bytes) AppendUtf8(CharacterOfByte(static_cast<uint8_t>(c)), spelling);
  return spelling;
}

}  // namespace deepinfer
