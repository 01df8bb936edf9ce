// tokens/byte_alphabet.h: how byte-level vocabularies spell bytes as printable characters.
//
// The 188 printable characters of Latin-1 stand for themselves; the other bytes, in order, are
// written as U+0100, U+0101, ... (so a blank is U+0120).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace deepinfer {

// The character that stands for a byte.
char32_t CharacterOfByte(uint8_t byte);
// The bytes that a vocabulary entry stands for; nullopt if one of its characters is not in the
// alphabet.
std::optional<std::string> BytesOfSpelling(std::string_view spelling);
// A byte string, spelled.
std::string SpellBytes(std::string_view bytes);

}  // namespace deepinfer
