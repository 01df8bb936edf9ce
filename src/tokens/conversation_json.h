// tokens/conversation_json.h: conversations out of OpenAI-shaped JSON.
//
// Fields read: messages, tools, response_format, thinking{type}, reasoning_effort,
// chat_template_kwargs{thinking | enable_thinking, reasoning_effort, drop_thinking},
// add_generation_prompt, continue_final_message. All others are left to the caller.
//
// Of a message: role (developer = system, function = tool), content (null, text, or parts text,
// refusal, image_url, image), reasoning_content (or reasoning), tool_calls (or function_call),
// tool_call_id, name, prefix, task, and on system messages tools and response_format (here the
// schema itself). Others are ignored.
//
// Every error is kInvalidArgument and starts with the path: "messages[2].content[0].type: ...".
#pragma once

#include <string_view>

#include "base/status.h"
#include "tokens/conversation.h"
#include "tokens/json.h"

namespace deepinfer {

// A JSON array of messages, or an object with the fields above. `thinking` holds where the JSON is
// silent.
StatusOr<Conversation> ParseMessages(std::string_view json_text, const Thinking& thinking = {});
// The same from a value that was read already (a JSONL line, a request body).
StatusOr<Conversation> ReadConversation(const JsonValue& root, const Thinking& thinking = {});

}  // namespace deepinfer
