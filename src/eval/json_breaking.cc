#include "eval/json_breaking.h"

#include <algorithm>
#include <vector>

#include "eval/exercise.h"
#include "tokens/json.h"

namespace deepinfer {
namespace {

// Where `part` begins, outside of any string's text as far as the parts asked for go.
std::vector<size_t> PlacesOf(std::string_view json, std::string_view part) {
  std::vector<size_t> places;
  for (size_t at = json.find(part); at != std::string_view::npos; at = json.find(part, at + 1)) {
    places.push_back(at);
  }
  return places;
}

std::string WithoutLastBracket(Rng& rng, std::string json) {
  const bool two = json.size() > 2 && json[json.size() - 2] != '"' && Chance(rng, 0.3);
  json.pop_back();
  if (two && (json.back() == ']' || json.back() == '}')) json.pop_back();
  return json;
}

// `drop` bytes less behind one of the places where `part` begins; unchanged if there is none.
std::string WithoutAt(Rng& rng, std::string json, std::string_view part, size_t offset,
                      size_t drop) {
  const std::vector<size_t> places = PlacesOf(json, part);
  if (!places.empty()) json.erase(Pick(rng, places) + offset, drop);
  return json;
}

std::string BreakOnce(Rng& rng, std::string json) {
  switch (rng.Uniform(8)) {
    case 0:
      return WithoutLastBracket(rng, std::move(json));
    case 1:
      return json.substr(1);  // opening bracket
    case 2:
      return WithoutAt(rng, std::move(json), "\", \"", 0, 1);  // closing quote of a value
    case 3:
      return WithoutAt(rng, std::move(json), "\": ", 0, 1);  // closing quote of a key
    case 4:
      return WithoutAt(rng, std::move(json), ", \"", 0, 1);  // comma
    case 5:
      return WithoutAt(rng, std::move(json), "\": ", 1, 1);  // colon
    case 6:                                                  // trailing comma
      return std::string(json, 0, json.size() - 1) + "," + json.back();
    default:
      std::replace(json.begin(), json.end(), '"', '\'');
      return json;
  }
}

}  // namespace

std::string BreakJson(Rng& rng, std::string_view json) {
  for (;;) {
    std::string broken = BreakOnce(rng, std::string(json));
    if (!ParseJson(broken).ok()) return broken;
  }
}

}  // namespace deepinfer
