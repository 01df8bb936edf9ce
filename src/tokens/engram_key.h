// tokens/engram_key.h: what makes two tokens the same to the engram. Unicode tables stay behind
// this file.
#pragma once

#include <string>
#include <string_view>

namespace deepinfer {

// `text` in NFKC, then NFD, without marks (Mn, Mc, Me), in lower case (each character alone), each
// run of blanks, tabs and line ends as one blank, without white space at both ends unless it is
// exactly one blank. Empty if nothing is left. Requires: text is UTF-8. Source: model.md 3.9.
std::string EngramKey(std::string_view text);

}  // namespace deepinfer
