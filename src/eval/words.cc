#include "eval/words.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/strings.h"
#include "eval/exercise.h"
#include "eval/material.h"

namespace deepinfer {
namespace {

constexpr std::string_view kFirstNames[] = {
    "Anna",   "Ben",    "Clara",  "David",  "Elena", "Felix",  "Grace", "Henry",  "Iris",   "Jonas",
    "Karin",  "Liam",   "Mira",   "Noah",   "Olga",  "Paul",   "Quinn", "Rosa",   "Simon",  "Tara",
    "Ursula", "Victor", "Wanda",  "Xenia",  "Yusuf", "Zoe",    "Ahmed", "Bianca", "Carlos", "Diana",
    "Emil",   "Fatima", "George", "Hana",   "Ivan",  "Julia",  "Kofi",  "Laura",  "Marco",  "Nadia",
    "Oscar",  "Priya",  "Ravi",   "Sofia",  "Tomas", "Una",    "Vera",  "Walter", "Yara",   "Adam",
    "Bella",  "Colin",  "Dora",   "Edwin",  "Frida", "Gustav", "Helen", "Igor",   "Jana",   "Kenji",
    "Lena",   "Martin", "Nina",   "Otto",   "Petra", "Robert", "Sara",  "Theo",   "Viola",  "Wei",
    "Amara",  "Boris",  "Chloe",  "Dmitri", "Ella",  "Farid",  "Greta", "Hugo",   "Ines",   "Jack",
};

constexpr std::string_view kSurnames[] = {
    "Holt",   "Berger", "Castro", "Dunn",   "Ekman",  "Ford",   "Garcia",  "Hansen",
    "Ito",    "Jansen", "Keller", "Lopez",  "Moreau", "Novak",  "Okoye",   "Patel",
    "Quist",  "Rossi",  "Silva",  "Tanaka", "Urban",  "Vargas", "Weber",   "Young",
    "Zeller", "Abbott", "Brandt", "Chen",   "Dalton", "Evans",  "Fischer", "Grant",
    "Hughes", "Kumar",  "Larsen", "Miller", "Nilsen", "Osman",  "Price",   "Reyes",
};

constexpr std::string_view kCities[] = {
    "Lisbon",   "Oslo",    "Cairo",    "Lima",       "Kyoto",    "Prague",  "Dublin",   "Nairobi",
    "Boston",   "Madrid",  "Helsinki", "Athens",     "Vienna",   "Toronto", "Seoul",    "Mumbai",
    "Sydney",   "Chicago", "Hamburg",  "Geneva",     "Warsaw",   "Bogota",  "Tunis",    "Riga",
    "Naples",   "Porto",   "Bergen",   "Zurich",     "Denver",   "Austin",  "Montreal", "Havana",
    "Jakarta",  "Manila",  "Hanoi",    "Accra",      "Dakar",    "Quito",   "Tallinn",  "Utrecht",
    "Florence", "Seville", "Krakow",   "Gothenburg", "Auckland", "Osaka",   "Leeds",    "Bristol",
};

constexpr std::string_view kCountries[] = {
    "Portugal", "Norway", "Egypt",   "Peru",   "Japan",  "Ireland", "Kenya",  "Spain",
    "Finland",  "Greece", "Austria", "Canada", "Korea",  "India",   "Poland", "Chile",
    "Tunisia",  "Latvia", "Italy",   "Brazil", "Mexico", "Vietnam", "Ghana",  "Iceland",
};

constexpr std::string_view kAnimals[] = {
    "fox",     "bear",   "otter",    "rabbit", "owl",     "horse",  "goat",     "lion",
    "mouse",   "duck",   "frog",     "heron",  "badger",  "wolf",   "crow",     "hedgehog",
    "cat",     "dog",    "sheep",    "donkey", "turtle",  "whale",  "seal",     "sparrow",
    "camel",   "beaver", "squirrel", "deer",   "swan",    "tiger",  "elephant", "monkey",
    "penguin", "parrot", "snail",    "bee",    "ant",     "spider", "lizard",   "goose",
    "pig",     "cow",    "hen",      "eagle",  "dolphin", "crab",   "moth",     "zebra",
};

constexpr std::string_view kObjects[] = {
    "lamp",    "key",     "table",   "clock",  "bottle", "ladder", "basket",    "mirror",
    "hammer",  "pencil",  "blanket", "drum",   "candle", "bucket", "anchor",    "kettle",
    "wallet",  "compass", "rope",    "needle", "helmet", "violin", "guitar",    "umbrella",
    "lantern", "spoon",   "plate",   "carpet", "pillow", "shovel", "wheel",     "bell",
    "camera",  "radio",   "engine",  "locker", "parcel", "letter", "ticket",    "suitcase",
    "chair",   "shelf",   "cup",     "knife",  "scarf",  "glove",  "boot",      "button",
    "coin",    "flag",    "kite",    "marble", "paddle", "saddle", "telescope", "tray",
    "vase",    "whistle", "drill",   "chain",  "brush",  "jar",    "map",       "stamp",
};

constexpr std::string_view kFoods[] = {
    "bread",  "cheese", "soup",   "rice",  "honey",  "apple",  "pear",    "plum",
    "carrot", "onion",  "tomato", "lemon", "cake",   "butter", "salad",   "noodle",
    "pepper", "potato", "cherry", "olive", "almond", "peach",  "cabbage", "biscuit",
};

constexpr std::string_view kPlants[] = {
    "oak",   "pine", "rose",   "fern", "maple", "willow", "birch", "tulip",
    "daisy", "moss", "clover", "ivy",  "cedar", "lily",   "palm",  "reed",
};

constexpr std::string_view kColours[] = {
    "red",    "blue",   "green", "yellow", "black",  "white",   "brown", "grey",
    "purple", "orange", "pink",  "silver", "golden", "crimson", "amber", "violet",
};

constexpr std::string_view kAdjectives[] = {
    "old",    "small",  "large",   "quiet",   "bright", "heavy",  "narrow", "gentle",
    "broken", "clean",  "cold",    "warm",    "dusty",  "empty",  "famous", "fresh",
    "happy",  "hidden", "hollow",  "honest",  "hungry", "lazy",   "lonely", "lucky",
    "modern", "plain",  "proud",   "rough",   "round",  "shiny",  "silent", "simple",
    "smooth", "strong", "tall",    "thin",    "tired",  "wide",   "wild",   "wooden",
    "brave",  "clever", "curious", "patient", "polite", "sleepy", "swift",  "young",
};

constexpr std::string_view kPastVerbs[] = {
    "carried",  "found",    "painted",  "bought",  "sold",    "repaired",  "lost",    "hid",
    "opened",   "closed",   "cleaned",  "watched", "counted", "lifted",    "moved",   "dropped",
    "borrowed", "returned", "measured", "drew",    "packed",  "chose",     "kept",    "wrapped",
    "studied",  "praised",  "shared",   "guarded", "ordered", "collected", "noticed", "followed",
};

constexpr std::string_view kJobs[] = {
    "baker",   "teacher",   "doctor",   "farmer", "pilot",     "sailor", "painter", "nurse",
    "lawyer",  "builder",   "gardener", "writer", "singer",    "driver", "cook",    "judge",
    "plumber", "librarian", "engineer", "tailor", "carpenter", "waiter", "guard",   "mechanic",
};

constexpr std::string_view kPlaces[] = {
    "the old bridge",   "the market",          "the harbour",     "the library",
    "the north gate",   "the railway station", "the museum",      "the orchard",
    "the school yard",  "the river bank",      "the town hall",   "the lighthouse",
    "the small chapel", "the bus stop",        "the workshop",    "the hill",
    "the bakery",       "the empty house",     "the garden wall", "the ferry dock",
    "the post office",  "the hospital",        "the theatre",     "the stone quarry",
};

constexpr std::string_view kMonths[] = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December",
};

constexpr std::string_view kWeekdays[] = {
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
};

constexpr std::string_view kMailHosts[] = {
    "cedarmail.org", "postbox.net", "northmail.com", "inkwell.org", "letters.net", "harbor.com",
};

std::vector<std::string_view> JoinedLists() {
  std::vector<std::string_view> all;
  for (const WordList list :
       {Animals(), Objects(), Foods(), Plants(), Colours(), Adjectives(), PastVerbs(), Jobs()}) {
    all.insert(all.end(), list.begin(), list.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::string TwoDigits(int64_t value) { return StrCat(value < 10 ? "0" : "", value); }

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

}  // namespace

WordList FirstNames() { return kFirstNames; }
WordList Surnames() { return kSurnames; }
WordList Cities() { return kCities; }
WordList Countries() { return kCountries; }
WordList Animals() { return kAnimals; }
WordList Objects() { return kObjects; }
WordList Foods() { return kFoods; }
WordList Plants() { return kPlants; }
WordList Colours() { return kColours; }
WordList Adjectives() { return kAdjectives; }
WordList PastVerbs() { return kPastVerbs; }
WordList Jobs() { return kJobs; }
WordList Places() { return kPlaces; }
WordList Months() { return kMonths; }
WordList Weekdays() { return kWeekdays; }
WordList CommonWords() {
  static const auto* const kAll = new std::vector<std::string_view>(JoinedLists());
  return *kAll;
}

std::string_view DrawWord(DrawContext& context) {
  if (context.material != nullptr && Chance(context.rng, 0.4)) {
    return Pick(context.rng, context.material->words());
  }
  return Pick(context.rng, CommonWords());
}

std::string DrawNumber(Rng& rng, int num_digits) {
  CHECK(num_digits >= 1 && num_digits <= 18);
  std::string digits(1, static_cast<char>('1' + rng.Uniform(9)));
  while (digits.size() < static_cast<size_t>(num_digits)) {
    digits += static_cast<char>('0' + rng.Uniform(10));
  }
  return digits;
}

std::string DrawCode(Rng& rng) {
  // L a letter, D a digit; without letters and digits that look alike.
  constexpr std::string_view kShapes[] = {"LL-DDD", "DLLL", "LDD-LL", "LDDDD", "LLDD"};
  constexpr std::string_view kLetters = "ABCDEFGHJKLMNPQRSTUVWXYZ";
  std::string code(Pick(rng, kShapes));
  for (char& c : code) {
    if (c == 'L') c = Pick(rng, kLetters);
    if (c == 'D') c = static_cast<char>('2' + rng.Uniform(8));
  }
  return code;
}

std::string DrawDate(Rng& rng) {
  return StrCat(Between(rng, 1990, 2029), "-", TwoDigits(Between(rng, 1, 12)), "-",
                TwoDigits(Between(rng, 1, 28)));
}

std::string DrawTimeOfDay(Rng& rng) {
  return StrCat(TwoDigits(Between(rng, 0, 23)), ":", TwoDigits(Between(rng, 0, 11) * 5));
}

std::string DrawMailAddress(Rng& rng) {
  const std::string first = Lower(Pick(rng, kFirstNames));
  return StrCat(first, ".", Lower(Pick(rng, kSurnames)), "@", Pick(rng, kMailHosts));
}

std::string DrawFullName(Rng& rng) {
  const std::string_view first = Pick(rng, kFirstNames);
  return StrCat(first, " ", Pick(rng, kSurnames));
}

std::string WithArticle(std::string_view word) {
  constexpr std::string_view kVowels = "aeioAEIO";  // "a unit", so u is not among them
  const bool is_un = word.starts_with("um") || word.starts_with("un") || word.starts_with("ur");
  const bool vowel = !word.empty() && kVowels.find(word[0]) != std::string_view::npos;
  return StrCat(vowel || (is_un && !word.starts_with("uni")) ? "an " : "a ", word);
}

std::string Capitalised(std::string_view text) {
  std::string result(text);
  if (!result.empty() && result[0] >= 'a' && result[0] <= 'z') {
    result[0] = static_cast<char>(result[0] - 'a' + 'A');
  }
  return result;
}

}  // namespace deepinfer
