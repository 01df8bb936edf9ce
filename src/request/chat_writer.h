// request/chat_writer.h: chat completions as OpenAI spells them, whole and as chunks.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "request/answer_json.h"
#include "request/answer_session.h"
#include "request/chat_answer.h"
#include "request/chat_request.h"

namespace deepinfer {

struct ChatWriterOptions {
  AnswerHead head;  // without `object`
  const Tokenizer* tokenizer = nullptr;
  std::function<std::string()> new_call_id;
  // Called with every choice that has ended.
  std::function<void(const ChatChoice&)> on_choice;
};

// As request->style says: chunks or one answer.
std::unique_ptr<AnswerWriter> MakeChatWriter(std::shared_ptr<const ChatRequest> request,
                                             ChatWriterOptions options);

}  // namespace deepinfer
