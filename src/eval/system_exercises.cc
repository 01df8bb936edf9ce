#include "eval/system_exercises.h"

#include <array>
#include <functional>
#include <utility>

#include "base/strings.h"
#include "eval/dialogue.h"
#include "eval/small_facts.h"
#include "eval/words.h"
#include "tokens/json.h"

namespace deepinfer {
namespace {

constexpr std::string_view kTask = kFactKeys;

struct Turn {
  std::string ask;
  std::string answer;
  std::string key;  // what is asked, whatever the wording
};

// A system prompt, and turns that follow it.
struct Rule {
  std::string key;  // of which kind it is, whatever the wording
  std::string system;
  std::string reasoning;
  std::function<Turn(Rng&)> draw;
};

// The rule applies to what would be answered without it.
Rule Rewrite(std::string_view key, std::string system, std::string reasoning,
             std::function<std::string(const SmallFact&)> rewrite) {
  return {std::string(key), std::move(system), std::move(reasoning),
          [rewrite = std::move(rewrite)](Rng& rng) {
            const SmallFact fact = Chance(rng, 0.75) ? DrawSmallFact(rng) : DrawYesNoFact(rng);
            return Turn{fact.question, rewrite(fact), fact.key};
          }};
}

std::string LowerCase(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

// ---- Rules --------------------------------------------------------------------------------------

Rule UpperCaseRule(Rng& rng) {
  constexpr std::string_view kSystems =
      "Answer in upper case.|Write everything in capital letters.|Always answer in capitals.|"
      "You are an assistant that only writes in upper case.|ANSWER IN UPPER CASE ONLY.";
  return Rewrite("upper case", std::string(PickAlternative(rng, kSystems)),
                 "I must write in upper case.",
                 [](const SmallFact& fact) { return UpperCase(fact.sentence); });
}

Rule LowerCaseRule(Rng& rng) {
  constexpr std::string_view kSystems =
      "Answer in lower case.|Never use capital letters.|Write everything in small letters.|"
      "only use lower case letters";
  return Rewrite("lower case", std::string(PickAlternative(rng, kSystems)),
                 "I must write in lower case.",
                 [](const SmallFact& fact) { return LowerCase(fact.sentence); });
}

Rule EndRule(Rng& rng) {
  constexpr std::string_view kSystems =
      "End every answer with the word {word}.|Finish each answer with \"{word}\".|"
      "The last word of every answer must be {word}.|You always say {word} at the end.";
  const std::string word(Pick(rng, CommonWords()));
  return Rewrite("end", Filled(PickAlternative(rng, kSystems), {{"word", word}}),
                 StrCat("I must end with ", word, "."),
                 [word](const SmallFact& fact) { return StrCat(fact.sentence, " ", word); });
}

Rule StartRule(Rng& rng) {
  constexpr std::string_view kSystems =
      "Start every answer with the word {word}.|Begin each answer with \"{word}\".|"
      "The first word of every answer must be {word}.|You always say {word} first.";
  const std::string word(Pick(rng, CommonWords()));
  return Rewrite("start", Filled(PickAlternative(rng, kSystems), {{"word", word}}),
                 StrCat("I must start with ", word, "."),
                 [word](const SmallFact& fact) { return StrCat(word, " ", fact.sentence); });
}

Rule AddressRule(Rng& rng) {
  constexpr std::string_view kSystems =
      "Call the user {name}.|The user is called {name}. Say the name in every answer.|"
      "Always address the user as {name}.|You are talking to {name}, so say the name.";
  const std::string name(Pick(rng, FirstNames()));
  return Rewrite("address", Filled(PickAlternative(rng, kSystems), {{"name", name}}),
                 StrCat("I must say the name ", name, "."), [name](const SmallFact& fact) {
                   const std::string_view sentence = fact.sentence;
                   return StrCat(sentence.substr(0, sentence.size() - 1), ", ", name, ".");
                 });
}

Rule OneWordRule(Rng& rng) {
  constexpr std::string_view kSystems =
      "Answer with one word.|Give only the answer, no sentence.|Be as short as possible.|"
      "Answer in a single word.|Only say the answer itself.";
  return Rewrite("one word", std::string(PickAlternative(rng, kSystems)), "I must be very short.",
                 [](const SmallFact& fact) { return fact.word; });
}

Rule SentenceRule(Rng& rng) {
  constexpr std::string_view kSystems =
      "Answer in a whole sentence.|Always write a full sentence.|You are a helpful assistant.|"
      "Use complete sentences.|You are a friendly teacher who answers in full sentences.";
  return Rewrite(kPlainRule, std::string(PickAlternative(rng, kSystems)), "I answer in a sentence.",
                 [](const SmallFact& fact) { return fact.sentence; });
}

Rule TwiceRule(Rng& rng) {
  constexpr std::string_view kSystems =
      "Say everything twice.|Repeat every answer once.|Write each answer two times.";
  return Rewrite("twice", std::string(PickAlternative(rng, kSystems)), "I must say it twice.",
                 [](const SmallFact& fact) { return StrCat(fact.sentence, " ", fact.sentence); });
}

Rule JsonRule(Rng& rng) {
  constexpr std::string_view kSystems =
      "Answer with JSON that has the key {key}.|Give every answer as JSON with the key {key}.|"
      "You only write JSON objects with one key, {key}.";
  const std::string key(PickAlternative(rng, "answer|result|reply|value|text"));
  return Rewrite("json", Filled(PickAlternative(rng, kSystems), {{"key", key}}),
                 StrCat("I must write JSON with the key ", key, "."), [key](const SmallFact& fact) {
                   JsonValue json = JsonValue::Object();
                   json.Set(key, JsonValue::String(fact.word));
                   return DumpJson(json);
                 });
}

Rule YesNoRule(Rng& rng) {
  constexpr std::string_view kSystems =
      "Answer only with yes or no.|Only say yes or no.|Your answers are yes or no.|"
      "Say nothing but yes or no.";
  return {"yes or no", std::string(PickAlternative(rng, kSystems)), "I may only say yes or no.",
          [](Rng& rng) {
            const SmallFact fact = DrawYesNoFact(rng);
            return Turn{fact.question, fact.word, fact.key};
          }};
}

Rule NameRule(Rng& rng) {
  constexpr std::string_view kSystems =
      "You are {name}.|Your name is {name}.|You are called {name}.|"
      "You are an assistant with the name {name}.|Act as {name}.|You are {name}, a helpful "
      "assistant.";
  constexpr std::string_view kQuestions =
      "What is your name?|Who are you?|Tell me your name.|How are you called?|"
      "Hello, who are you?|Hi! What should I call you?|And you are?";
  const std::string name(Pick(rng, FirstNames()));
  return {"name", Filled(PickAlternative(rng, kSystems), {{"name", name}}),
          StrCat("The system prompt says that I am ", name, "."), [=](Rng& rng) {
            return Turn{std::string(PickAlternative(rng, kQuestions)),
                        StrCat("My name is ", name, "."), name};
          }};
}

Rule ServiceRule(Rng& rng) {
  constexpr std::string_view kSystems =
      "You are {name}, the assistant of {owner}.|Your name is {name} and you work for {owner}.";
  constexpr std::string_view kOwners =
      "a bakery|a library|a museum|a hotel|a school|a bank|a shop|a hospital|a zoo|a theatre|"
      "a railway station|a post office|a bicycle shop|a restaurant|a music school";
  const std::string name(Pick(rng, FirstNames()));
  const std::string owner(PickAlternative(rng, kOwners));
  const std::string key = StrCat(name, " of ", owner);
  return {"service", Filled(PickAlternative(rng, kSystems), {{"name", name}, {"owner", owner}}),
          StrCat("I am ", name, " and work for ", owner, "."), [=](Rng& rng) {
            constexpr std::string_view kWho =
                "Who are you?|Please introduce yourself.|And you are?";
            constexpr std::string_view kWhere =
                "Where do you work?|Who do you work for?|What place is this?";
            const bool who = Chance(rng, 0.5);
            return Turn{std::string(PickAlternative(rng, who ? kWho : kWhere)),
                        who ? StrCat("I am ", name, ", the assistant of ", owner, ".")
                            : StrCat("I work for ", owner, "."),
                        key};
          }};
}

// Greetings in four languages: the rows of kSaid, answered by kAnswers.
constexpr std::string_view kSaid[] = {"Hello!|Hi!|Good day!|Hey there!|Hello, assistant.",
                                      "Good morning!|A good morning to you.",
                                      "How are you?|How are you today?|Are you well?",
                                      "Thank you!|Thanks!|Many thanks.",
                                      "Goodbye!|Bye!|See you later.",
                                      "Good night!|Sleep well."};
struct Language {
  std::string_view name;
  std::array<std::string_view, 6> answers;
};
constexpr Language kLanguages[] = {
    {"French",
     {"Bonjour !", "Bonjour !", "Je vais bien, merci.", "De rien.", "Au revoir !", "Bonne nuit !"}},
    {"German",
     {"Hallo!", "Guten Morgen!", "Mir geht es gut, danke.", "Gern geschehen.", "Auf Wiedersehen!",
      "Gute Nacht!"}},
    {"Spanish",
     {"¡Hola!", "¡Buenos días!", "Estoy bien, gracias.", "De nada.", "¡Adiós!", "¡Buenas noches!"}},
    {"Italian",
     {"Ciao!", "Buongiorno!", "Sto bene, grazie.", "Prego.", "Arrivederci!", "Buona notte!"}}};

Rule LanguageRule(Rng& rng) {
  constexpr std::string_view kSystems =
      "Answer in {language}.|Always reply in {language}.|You speak only {language}.|"
      "The user reads {language}, so write {language}.|Reply in {language}, whatever is asked.";
  const Language& language = Pick(rng, kLanguages);
  const std::string name(language.name);
  return {StrCat("in ", name), Filled(PickAlternative(rng, kSystems), {{"language", name}}),
          StrCat("I must answer in ", name, "."), [&language](Rng& rng) {
            const size_t idx = rng.Uniform(std::size(kSaid));
            const std::string said(PickAlternative(rng, kSaid[idx]));
            return Turn{said, std::string(language.answers[idx]), said};
          }};
}

// Facts that only the system prompt tells.
Rule ShopRule(Rng& rng) {
  const std::string opens = DrawTimeOfDay(rng), closes = DrawTimeOfDay(rng);
  const std::string code = DrawCode(rng), mail = DrawMailAddress(rng);
  const std::string day(Pick(rng, Weekdays())), owner = DrawFullName(rng);
  const std::vector<std::array<std::string, 3>> facts = {
      {StrCat("The shop opens at ", opens, "."), "When does the shop open?|When do you open?",
       StrCat("The shop opens at ", opens, ".")},
      {StrCat("It closes at ", closes, "."), "When does the shop close?|When do you close?",
       StrCat("The shop closes at ", closes, ".")},
      {StrCat("The code of the door is ", code, "."), "What is the code of the door?|The code?",
       StrCat("The code of the door is ", code, ".")},
      {StrCat("Mail goes to ", mail, "."), "Where can I write to?|What is your mail address?",
       StrCat("You can write to ", mail, ".")},
      {StrCat("It is closed on ", day, "."), "On which day is the shop closed?|Which day is free?",
       StrCat("The shop is closed on ", day, ".")},
      {StrCat("The owner is ", owner, "."), "Who is the owner?|Who owns the shop?",
       StrCat("The owner is ", owner, ".")}};
  std::vector<size_t> order = {0, 1, 2, 3, 4, 5};
  Shuffle(rng, order);
  order.resize(2 + rng.Uniform(4));
  std::string system = "You answer questions about a shop.";
  for (const size_t idx : order) system += StrCat(" ", facts[idx][0]);
  return {"shop", system, "The system prompt says it.", [=](Rng& rng) {
            const auto& fact = facts[Pick(rng, order)];
            return Turn{std::string(PickAlternative(rng, fact[1])), fact[2], fact[2]};
          }};
}

Rule DrawRule(Rng& rng) {
  constexpr Rule (*kRules[])(Rng&) = {UpperCaseRule, LowerCaseRule, EndRule,      StartRule,
                                      AddressRule,   OneWordRule,   SentenceRule, TwiceRule,
                                      JsonRule,      YesNoRule,     NameRule,     ServiceRule,
                                      LanguageRule,  ShopRule,      ShopRule};
  return Pick(rng, kRules)(rng);
}

// The rule alone, or with words around it that change nothing.
std::string WithSurroundings(Rng& rng, const std::string& system) {
  constexpr std::string_view kAround =
      "{system}|{system}|{system}|You are a helpful assistant. {system}|{system} Be polite.|"
      "Please follow this rule. {system}";
  return Filled(PickAlternative(rng, kAround), {{"system", system}});
}

}  // namespace

StatusOr<Exercise> DrawSystem(DrawContext& context) {
  struct Drawn {
    std::string key;
    Rule rule;
    Turn turn;
  };
  Rng& rng = context.rng;
  const auto keyed = [](const Rule& rule, const Turn& turn) {
    return KeyUnderRule(rule.key, turn.key);
  };
  Drawn last = DrawInSplit(context, kTask, [&] {
    Rule rule = DrawRule(rng);
    Turn turn = rule.draw(rng);
    return Drawn{keyed(rule, turn), std::move(rule), std::move(turn)};
  });
  Exercise exercise;
  exercise.task = kTask;
  std::vector<Message>& messages = exercise.conversation.messages;
  messages.push_back(SystemMessage(WithSurroundings(rng, last.rule.system)));
  const size_t num_before = context.split == Split::kTraining ? rng.Uniform(3) : 0;
  for (size_t i = 0; i < num_before; ++i) {
    const Turn turn = last.rule.draw(rng);
    const std::string key = keyed(last.rule, turn);
    if (SplitOf(kTask, key) != context.split) continue;
    messages.push_back(UserMessage(turn.ask));
    messages.push_back(AssistantMessage(turn.answer));
    exercise.earlier_keys.push_back(key);
  }
  messages.push_back(UserMessage(last.turn.ask));
  messages.push_back(AssistantMessage(last.turn.answer, last.rule.reasoning));
  exercise.key = std::move(last.key);
  return exercise;
}

}  // namespace deepinfer
