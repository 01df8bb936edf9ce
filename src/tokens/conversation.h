// tokens/conversation.h: what a chat prompt is made of, free of any API's JSON.
//
// Plain structs, filled by tokens/conversation_json.h (OpenAI's shapes) or by code, read by
// tokens/prompt_encoder.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tokens/json.h"
#include "tokens/prompt_segments.h"

namespace deepinfer {

// APIs know more names: developer is kSystem, function is kTool.
enum class Role { kSystem, kUser, kAssistant, kTool, kLatestReminder };

// Classification tasks of the model; the answer to one has no thinking.
enum class Task { kAction, kQuery, kAuthority, kDomain, kTitle, kReadUrl };
inline constexpr std::string_view kTaskNames[] = {"action", "query", "authority",
                                                  "domain", "title", "read_url"};
inline std::string_view TaskName(Task task) { return kTaskNames[static_cast<int>(task)]; }
// "<｜title｜>"
std::string TaskToken(Task task);

struct ContentPart {
  enum class Kind { kText, kImage };
  Kind kind = Kind::kText;
  std::string text;       // kText: UTF-8, without the image placeholder
  std::string image_url;  // kImage: http(s)://, data: or whatever else the client sent; not empty

  static ContentPart Text(std::string text) { return {Kind::kText, std::move(text), {}}; }
  static ContentPart Image(std::string url) { return {Kind::kImage, {}, std::move(url)}; }
};

struct ToolCall {
  std::string id;          // may be empty
  std::string name_space;  // empty = none
  std::string name;        // without the namespace
  JsonValue arguments;     // an object, or a string that holds one; anything else is rendered under
                           // the parameter name "arguments"
};

// An answer with calls as the model wrote it. Sent back as JSON it has lost its spelling: the order
// of the arguments, white space, and how the text was cut into tokens.
struct SampledAnswer {
  std::vector<int32_t> ids;  // without EOS
  std::string text;          // of these, markup included
  bool in_thinking = false;  // it began inside thinking
  std::string reasoning, content;
  size_t num_calls = 0;
  std::vector<PromptSegment> calls;  // its block of calls and the blank line before it
};

struct ToolDefinition {
  std::string name_space;  // empty = none
  std::string name;        // without the namespace
  JsonValue function;      // as the prompt shows it: "name" is qualified
};

// "namespace::name", or the name alone.
std::string QualifiedName(std::string_view name_space, std::string_view name);

struct Message {
  Role role = Role::kUser;
  // A plain string is one text part; null too (an empty one).
  std::vector<ContentPart> content;

  // kAssistant only.
  std::string reasoning_content;
  std::vector<ToolCall> tool_calls;
  bool prefix = false;  // the last message: its text is continued, not answered
  // What the model wrote when it made these tool_calls; null: not known. The prompt repeats it as
  // far as the message still says the same, so that what was computed for it is found again.
  std::shared_ptr<const SampledAnswer> sampled;

  // kTool only: which call of the last assistant message this answers, by id or else by name.
  std::string tool_call_id;
  std::string tool_name;

  // kSystem only.
  std::vector<ToolDefinition> tools;
  std::optional<JsonValue> response_schema;

  std::optional<Task> task;
};

// The model reads the effort as a number 1..100, and only while thinking is on.
struct Thinking {
  bool enabled = true;
  int effort = 75;
};

struct Conversation {
  std::vector<Message> messages;  // at least one
  // Of the conversation as a whole: they go to the first message if that is a system message, else
  // to an empty system message put before it.
  std::vector<ToolDefinition> tools;
  std::optional<JsonValue> response_schema;
  Thinking thinking;
  bool add_generation_prompt = true;  // end with the header of the answer
  bool drop_thinking = true;  // leave out the reasoning of earlier turns, unless there are tools
};

inline constexpr std::string_view kEffortValues =
    "none, minimal, low, medium, high, xhigh, max, ultra or a whole number 1..100";
// "none" (thinking off), "minimal" and "low" (50), "medium", "high" and "xhigh" (75), "max" and
// "ultra" (100), or digits 1..100. Errors: kInvalidArgument naming these.
StatusOr<Thinking> ParseEffort(std::string_view effort);

}  // namespace deepinfer
