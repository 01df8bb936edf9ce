// eval/tool_catalogue.h: made-up functions, and requests that ask for them in plain words.
//
// A function is a verb, a noun and some parameters that go with it ("book_table" with date, people
// and seat). The families in tool_families.cc give a few thousand names, each with many sets of
// parameters, so a held-out function is one that was never seen.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "eval/drawn_values.h"
#include "tokens/conversation.h"

namespace deepinfer {

struct ToolParameter {
  std::string name;  // in a family: "city|location", one of which is taken
  std::string description;
  // How a request says it, "|" between wordings, {} is the value: " in {}| for {}". Of a kBool: the
  // wording of true, then that of false.
  std::string phrases;
  Domain domain = Domain::kObject;
  std::string options = {};  // of kOption
};

struct ToolFamily {
  std::string verbs;  // "book|cancel"
  std::string nouns;  // with article: "a table|the news"
  std::vector<ToolParameter> parameters;
  bool answers_what_is = false;  // "What is the weather in Oslo?" asks for any of its functions
};
const std::vector<ToolFamily>& ToolFamilies();

struct MadeTool {
  std::string verb;  // "look up"
  std::string noun;  // "a table"
  bool answers_what_is = false;
  const ToolFamily* family = nullptr;  // null: a family of its own
  ToolDefinition definition;
  std::vector<ToolParameter> parameters;  // in the schema's order
  std::vector<bool> required;             // by parameter
};

// What a user may ask of a tool: the call that answers it, and the words. The arguments stand in
// the order in which the words give them, so that a call is written while reading the request once.
struct ToolUse {
  ToolCall call;
  std::string request;  // one or more sentences, each with its end mark
  std::string purpose;  // "book a table"
};

MadeTool DrawTool(Rng& rng);
// One that is easily taken for it: of the same family, if it has one.
MadeTool DrawSimilarTool(Rng& rng, const MadeTool& tool);
// A value for every required parameter and for some of the others.
ToolUse DrawUse(Rng& rng, const MadeTool& tool);

// "Call f with a = 1 and b = \"two words\"." for whatever arguments.
std::string ExplicitRequest(Rng& rng, const ToolCall& call);

}  // namespace deepinfer
