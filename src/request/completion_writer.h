// request/completion_writer.h: text completions as OpenAI spells them, whole and as chunks.
#pragma once

#include <memory>

#include "request/answer_json.h"
#include "request/answer_session.h"
#include "request/completion_request.h"

namespace deepinfer {

// tokenizer: null = ids without text. head: without `object`. The choices of prompt p are p * n and
// on.
std::unique_ptr<AnswerWriter> MakeCompletionWriter(std::shared_ptr<const CompletionRequest> request,
                                                   AnswerHead head, const Tokenizer* tokenizer);

}  // namespace deepinfer
