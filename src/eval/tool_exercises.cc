#include "eval/tool_exercises.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "base/strings.h"
#include "eval/dialogue.h"
#include "eval/json_equality.h"
#include "eval/material.h"
#include "eval/real_tools.h"
#include "eval/small_facts.h"
#include "eval/tool_catalogue.h"
#include "eval/tool_results.h"
#include "eval/turns.h"

namespace deepinfer {
namespace {

constexpr std::string_view kTask = "tools";

struct OfferedTool {
  ToolDefinition definition;
  std::optional<MadeTool> made;  // none: of the material
};

// What is asked in one turn: no calls if no tool fits.
struct Asked {
  std::string key;
  std::string request;
  std::vector<ToolCall> calls;
  std::string reasoning;
  std::string plain_answer;  // without calls
  bool asks = false;         // the calls find something out
};

// ---- Offers -------------------------------------------------------------------------------------

// Whether a request for one could not be taken for a request for the other.
bool AreDistinct(const OfferedTool& a, const OfferedTool& b) {
  if (a.definition.name == b.definition.name) return false;
  const JsonValue* const description = a.definition.function.Find("description");
  const JsonValue* const other = b.definition.function.Find("description");
  if (description != nullptr && other != nullptr && SameJson(*description, *other)) return false;
  if (!a.made || !b.made || a.made->noun != b.made->noun) return true;
  return a.made->verb != b.made->verb && !a.made->answers_what_is && !b.made->answers_what_is;
}

using Definitions = std::span<const std::string_view>;

Definitions PublishedTools(const DrawContext& context) {
  if (context.split == Split::kHeldOut) return context.published_tools;
  return context.material == nullptr ? Definitions() : context.material->tools();
}

std::optional<OfferedTool> DrawRealTool(DrawContext& context) {
  constexpr int kTries = 20;
  for (int i = 0; i < kTries; ++i) {
    std::optional<ToolDefinition> tool = ReadRealTool(Pick(context.rng, PublishedTools(context)));
    if (tool && DrawRealUse(context.rng, *tool)) return OfferedTool{*std::move(tool), {}};
  }
  return std::nullopt;
}

OfferedTool DrawOfferedTool(DrawContext& context, bool real, const OfferedTool* first) {
  if (real) {
    std::optional<OfferedTool> tool = DrawRealTool(context);
    if (tool) return *std::move(tool);
  }
  const bool similar = first != nullptr && first->made && Chance(context.rng, 0.3);
  MadeTool made = similar ? DrawSimilarTool(context.rng, *first->made) : DrawTool(context.rng);
  ToolDefinition definition = made.definition;
  return {std::move(definition), std::move(made)};
}

size_t DrawOfferSize(Rng& rng) {
  constexpr size_t kCounts[] = {1, 1, 1, 2, 2, 2, 3, 3, 4};
  return Pick(rng, kCounts);
}

std::vector<OfferedTool> DrawOffer(DrawContext& context) {
  const size_t count = DrawOfferSize(context.rng);
  const bool real = context.split == Split::kTraining && !PublishedTools(context).empty() &&
                    Chance(context.rng, 0.35);
  std::vector<OfferedTool> offer;
  while (offer.size() < count) {
    const bool next_real = real && (offer.empty() || Chance(context.rng, 0.8));
    OfferedTool tool = DrawOfferedTool(context, next_real, offer.empty() ? nullptr : &offer[0]);
    const bool distinct = std::all_of(offer.begin(), offer.end(), [&](const OfferedTool& other) {
      return AreDistinct(tool, other);
    });
    if (distinct) offer.push_back(std::move(tool));
  }
  Shuffle(context.rng, offer);
  return offer;
}

// Published ones only, fewer if there are not enough that differ. Errors: kFailedPrecondition if
// there is none.
StatusOr<std::vector<OfferedTool>> DrawRealOffer(DrawContext& context) {
  constexpr int kTries = 20;
  const size_t count = DrawOfferSize(context.rng);
  std::vector<OfferedTool> offer;
  for (int i = 0; i < kTries && offer.size() < count && !PublishedTools(context).empty(); ++i) {
    std::optional<OfferedTool> tool = DrawRealTool(context);
    const bool distinct = tool && std::all_of(offer.begin(), offer.end(), [&](const auto& other) {
                            return AreDistinct(*tool, other);
                          });
    if (distinct) offer.push_back(*std::move(tool));
  }
  if (offer.empty()) {
    return FailedPrecondition(
        "no published tool definitions to draw from; eval tasks "
        "--published-tools FILE reads those of tools/nano/corpus.py");
  }
  return offer;
}

ToolUse DrawUseOf(Rng& rng, const OfferedTool& tool) {
  if (tool.made) return DrawUse(rng, *tool.made);
  for (;;) {  // a tool of the material was offered only after a use of it was found
    std::optional<ToolUse> use = DrawRealUse(rng, tool.definition);
    if (use) return *std::move(use);
  }
}

// ---- Requests -----------------------------------------------------------------------------------

std::string KeyOf(const ToolCall& call) { return StrCat(call.name, DumpJson(call.arguments)); }

bool AsksOf(const OfferedTool& tool) { return tool.made && tool.made->answers_what_is; }

Asked AskOne(Rng& rng, const std::vector<OfferedTool>& offer) {
  const OfferedTool& tool = Pick(rng, offer);
  ToolUse use = DrawUseOf(rng, tool);
  Asked asked;
  asked.key = KeyOf(use.call);
  asked.request = std::move(use.request);
  asked.reasoning = StrCat("The user wants to ", use.purpose, ", so I call ", use.call.name, ".");
  asked.calls.push_back(std::move(use.call));
  asked.asks = AsksOf(tool);
  return asked;
}

Asked AskTwo(Rng& rng, const std::vector<OfferedTool>& offer) {
  constexpr std::string_view kWordings =
      "{a} {b}|{a} Also: {b}|First: {a} Second: {b}|"
      "1. {a}\n2. {b}|{a}\nThen: {b}|Two things: {a} {b}";
  const OfferedTool& first_tool = Pick(rng, offer);
  const OfferedTool& second_tool = Chance(rng, 0.4) ? first_tool : Pick(rng, offer);
  ToolUse first = DrawUseOf(rng, first_tool);
  ToolUse second = DrawUseOf(rng, second_tool);
  Asked asked;
  asked.key = StrCat(KeyOf(first.call), KeyOf(second.call));
  asked.request = Filled(PickAlternative(rng, kWordings),
                         {{"a", std::move(first.request)}, {"b", std::move(second.request)}});
  const bool twice = first.call.name == second.call.name;
  asked.reasoning =
      twice ? StrCat("The user wants two things, so I call ", first.call.name, " twice.")
            : StrCat("The user wants to ", first.purpose, " and to ", second.purpose,
                     ", so I call ", first.call.name, " and ", second.call.name, ".");
  asked.calls = {std::move(first.call), std::move(second.call)};
  asked.asks = AsksOf(first_tool) && AsksOf(second_tool);
  return asked;
}

// A question that needs no tool.
Asked AskFact(DrawContext& context, const std::vector<OfferedTool>& offer) {
  SmallFact fact = DrawPlainFact(context, 0);
  Asked asked;
  asked.key = StrCat("none ", fact.key);
  for (const OfferedTool& tool : offer) asked.key += StrCat(" ", tool.definition.name);
  asked.request = std::move(fact.question);
  asked.reasoning = "I know this without a tool.";
  asked.plain_answer = std::move(fact.sentence);
  return asked;
}

Asked AskForNone(DrawContext& context, const std::vector<OfferedTool>& offer) {
  Rng& rng = context.rng;
  if (Chance(rng, 0.3)) return AskFact(context, offer);
  OfferedTool missing;
  const auto is_close = [&](const OfferedTool& other) {
    return other.made && (other.made->noun == missing.made->noun || !AreDistinct(missing, other));
  };
  do {
    missing.made = DrawTool(rng);
    missing.definition = missing.made->definition;
  } while (std::any_of(offer.begin(), offer.end(), is_close));
  ToolUse use = DrawUseOf(rng, missing);
  Asked asked;
  asked.key = StrCat("none ", KeyOf(use.call));
  asked.request = std::move(use.request);
  asked.reasoning = StrCat("The user wants to ", use.purpose, ", but no tool can do that.");
  asked.plain_answer = "I am sorry, I have no tool for that.";
  return asked;
}

Asked Ask(DrawContext& context, const std::vector<OfferedTool>& offer) {
  return DrawInSplit(context, kTask, [&] {
    const double kind = context.rng.UniformDouble();
    if (kind < 0.65) return AskOne(context.rng, offer);
    return kind < 0.85 ? AskTwo(context.rng, offer) : AskForNone(context, offer);
  });
}

Asked AskForCalls(DrawContext& context, const std::vector<OfferedTool>& offer) {
  return DrawInSplit(context, kTask, [&] {
    return Chance(context.rng, 0.75) ? AskOne(context.rng, offer) : AskTwo(context.rng, offer);
  });
}

// ---- Conversations ------------------------------------------------------------------------------

void NumberCalls(std::vector<ToolCall>& calls) {
  for (size_t i = 0; i < calls.size(); ++i) calls[i].id = StrCat("call_", i + 1);
}

struct Told {
  std::string key;
  std::vector<ToolResult> results;
};

// The results of the calls and the answer that reports them. Returns that answer's key.
std::string TellResults(DrawContext& context, const Asked& asked, Conversation& conversation) {
  const Told told = DrawInSplit(context, kTask, [&] {
    Told drawn;
    for (size_t i = 0; i < asked.calls.size(); ++i) {
      drawn.results.push_back(DrawToolResult(context.rng, asked.asks));
      drawn.key += StrCat("result ", drawn.results.back().json, asked.key);
    }
    return drawn;
  });
  std::vector<std::string> sentences;
  for (size_t i = 0; i < asked.calls.size(); ++i) {
    conversation.messages.push_back(ToolMessage(asked.calls[i], told.results[i].json));
    sentences.push_back(told.results[i].sentence);
  }
  conversation.messages.push_back(
      AssistantMessage(Join(sentences, " "), "The tool has answered, so I tell the user."));
  return told.key;
}

// Returns the keys of the answers that were added, in their order.
std::vector<std::string> AddTurn(DrawContext& context, Asked asked, bool with_results,
                                 Conversation& conversation) {
  std::vector<std::string> keys = {asked.key};
  NumberCalls(asked.calls);
  conversation.messages.push_back(UserMessage(asked.request));
  if (asked.calls.empty()) {
    conversation.messages.push_back(AssistantMessage(asked.plain_answer, asked.reasoning));
    return keys;
  }
  conversation.messages.push_back(CallingMessage(asked.calls, asked.reasoning));
  if (with_results) keys.push_back(TellResults(context, asked, conversation));
  return keys;
}

// No less than the conversation takes: what is written here runs at 2.5 bytes a token and more.
int32_t NumTokensMax(const Conversation& conversation) {
  constexpr size_t kPromptTextTokens = 280, kBytesPerToken = 2, kTagTokensOfCall = 16;
  size_t num_bytes = 0, num_tokens = kPromptTextTokens;
  for (const ToolDefinition& tool : conversation.tools) {
    num_bytes += DumpJson(tool.function).size();
  }
  for (const Message& message : conversation.messages) {
    for (const ContentPart& part : message.content) num_bytes += part.text.size();
    num_bytes += message.reasoning_content.size();
    for (const ToolCall& call : message.tool_calls) {
      num_bytes += DumpJson(call.arguments).size();
      num_tokens += kTagTokensOfCall * (1 + call.arguments.members.size());
    }
  }
  return static_cast<int32_t>(num_tokens + num_bytes / kBytesPerToken);
}

using AskOf = Asked (*)(DrawContext&, const std::vector<OfferedTool>&);

Exercise DrawConversation(DrawContext& context, const std::vector<OfferedTool>& offer, AskOf ask) {
  Exercise exercise;
  exercise.task = kTask;
  for (const OfferedTool& tool : offer) exercise.conversation.tools.push_back(tool.definition);
  MaybeAddNeutralSystem(context.rng, exercise.conversation);
  const bool training = context.split == Split::kTraining;
  const int num_turns = training && Chance(context.rng, 0.3) ? 2 : 1;
  std::vector<std::string> keys;
  for (int i = 0; i < num_turns; ++i) {
    const bool is_last = i + 1 == num_turns;
    const bool with_results = !is_last || (training && Chance(context.rng, 0.4));
    for (std::string& key :
         AddTurn(context, ask(context, offer), with_results, exercise.conversation)) {
      keys.push_back(std::move(key));
    }
  }
  const std::vector<Message>& messages = exercise.conversation.messages;
  const bool reports = messages[messages.size() - 2].role == Role::kTool;
  exercise.grading = reports ? Grading::kExactText : Grading::kCalls;
  exercise.key = std::move(keys.back());
  keys.pop_back();
  exercise.earlier_keys = std::move(keys);
  return exercise;
}

// draw() until a conversation fits.
StatusOr<Exercise> DrawFitting(const DrawContext& context,
                               const std::function<StatusOr<Exercise>()>& draw) {
  constexpr int kTries = 100;
  int32_t num_tokens = 0;
  for (int i = 0; i < kTries; ++i) {
    DI_ASSIGN_OR_RETURN(Exercise exercise, draw());
    num_tokens = NumTokensMax(exercise.conversation);
    if (num_tokens <= context.max_tokens) return exercise;
  }
  return TooShort(context, kTask, num_tokens);
}

}  // namespace

StatusOr<Exercise> DrawTools(DrawContext& context) {
  return DrawFitting(context, [&]() -> StatusOr<Exercise> {
    return DrawConversation(context, DrawOffer(context), Ask);
  });
}

StatusOr<Exercise> DrawRealTools(DrawContext& context) {
  return DrawFitting(context, [&]() -> StatusOr<Exercise> {
    DI_ASSIGN_OR_RETURN(const std::vector<OfferedTool> offer, DrawRealOffer(context));
    return DrawConversation(context, offer, AskForCalls);
  });
}

}  // namespace deepinfer
