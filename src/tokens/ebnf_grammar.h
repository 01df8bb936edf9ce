// tokens/ebnf_grammar.h: grammars that users write, in the notation of llama.cpp's GBNF.
//
//   root  ::= item ("," item)*      # the output is what `root` matches
//   item  ::= [a-z]+ | "\"" [^"]{1,20} "\"" | .
//
// Names are letters, digits, '-' and '_'. A rule goes on until the next `name ::=`. Literals and
// classes know \n \r \t \" \\ \] \- \^ \xHH \uHHHH \UHHHHHHHH; '.' is any character. A rule may use
// itself, also first. Control tokens cannot be named.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace deepinfer {

// The text for the grammar library. Errors: kInvalidArgument with the line, for what is not as
// above and for unknown rules.
StatusOr<std::string> EbnfGrammar(std::string_view text);

}  // namespace deepinfer
