// request/chat_request.h: the body of a chat completion, read and turned into a Request.
//
// Two steps, because what is remembered of earlier calls is looked up between them, on the server's
// thread, while each step may run elsewhere: long prompts take long.
#pragma once

#include <string>

#include "base/status.h"
#include "deepinfer/request.h"
#include "request/body_fields.h"
#include "request/chat_prompt.h"
#include "request/tool_policy.h"
#include "tokens/answer_parser.h"
#include "tokens/conversation.h"

namespace deepinfer {

struct ChatRequest {
  Request request;
  AnswerStyle style;
  Conversation conversation;
  ToolPolicy tools;  // points into the conversation
  StructuredWish wish;
  AnswerTokens tokens;
  // Of Encode:
  std::string prompt_text;
  bool in_thinking = false;
  std::string echo_reasoning, echo_content;  // the beginning of the answer that the client gave

  ChatRequest() = default;
  ChatRequest(const ChatRequest&) = delete;  // `tools` would point into the other one
  ChatRequest& operator=(const ChatRequest&) = delete;

  // Errors: as the readers of body_fields.h, conversation_json.h, structured_fields.h and
  // tool_policy.h.
  Status Read(FieldReader& body, const ServedModel& model, const ApiOptions& options,
              std::string_view tenant);
  // request.prompt_ids and what depends on how the prompt ends.
  // Errors: as EncodeChatPrompt and FitLength.
  Status Encode(const ServedModel& model, const ApiOptions& options);
  // What goes to the engine. Here only what writing the answer needs is kept: answers may take long
  // and be many.
  Request TakeRequest();

 private:
  void ReadEcho();
};

}  // namespace deepinfer
