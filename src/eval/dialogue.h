// eval/dialogue.h: small pieces that the exercises of conversation share.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "tokens/conversation.h"

namespace deepinfer {

// "a|b|c" -> its parts. They point into `text`.
std::vector<std::string_view> Alternatives(std::string_view text);
// One of them.
std::string_view PickAlternative(Rng& rng, std::string_view text);

// The template with every "{name}" replaced. Requires: all its names are given.
using Fillings = std::vector<std::pair<std::string_view, std::string>>;
std::string Filled(std::string_view text, const Fillings& fillings);

// "a", "a and b", "a, b and c".
std::string JoinedNaturally(const std::vector<std::string>& words);
// "Book a table" -> "book a table"; "I need a table" stays.
std::string WithLowerStart(std::string_view text);
std::string UpperCase(std::string_view text);

// The answer that makes the calls, without content.
Message CallingMessage(std::vector<ToolCall> calls, std::string reasoning);
// What a tool answered to the call with this id.
Message ToolMessage(const ToolCall& call, std::string text);

// Puts "You are a helpful assistant." or the like first in one conversation out of three, so that a
// system prompt that asks for nothing changes nothing.
void MaybeAddNeutralSystem(Rng& rng, Conversation& conversation);

}  // namespace deepinfer
