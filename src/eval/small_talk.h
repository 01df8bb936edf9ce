// eval/small_talk.h: what people say to an assistant, and what ours says back.
#pragma once

#include <span>
#include <string_view>

namespace deepinfer {

// "|" between wordings. {name}, {city}, {object}, {food}, {animal}, {colour} and {weekday} are
// drawn, the same in question and answer; {an object}, {an animal} and {An animal} have their
// article.
struct SmallTalk {
  std::string_view asks;
  std::string_view answers;
};

std::span<const SmallTalk> Greetings();
std::span<const SmallTalk> Partings();
// Everything else that needs nothing said before.
std::span<const SmallTalk> Talk();

}  // namespace deepinfer
