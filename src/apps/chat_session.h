// apps/chat_session.h: one conversation with a model: history, and an answer streamed piece by
// piece.
//
// Knows nothing of terminals; apps/chat.cc shows what comes. Threads: one.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "deepinfer/request.h"
#include "engine/loaded_engine.h"
#include "tokens/answer_parser.h"
#include "tokens/conversation.h"

namespace deepinfer {

class ChatSession {
 public:
  // `engine` outlives the session. request: sampling and limits of every answer; its seed is used
  // for each. Errors: kFailedPrecondition if the checkpoint cannot chat (no tokenizer, encoding/ or
  // control tokens), saying what is missing.
  static StatusOr<ChatSession> Create(LoadedEngine& engine, const Request& request,
                                      const Thinking& thinking);

  // Starts anew, with this system text (empty: none).
  void Reset(const std::string& system);
  const std::string& system() const { return system_; }
  size_t num_messages() const { return conversation_.messages.size(); }

  struct Callbacks {
    std::function<Status(const AnswerDelta&)> show;  // an error ends the answer
    std::function<bool()> stop;                      // asked after every step; true ends the answer
  };
  struct Outcome {
    FinishReason reason = FinishReason::kStop;
    uint64_t seed = 0;
    int64_t num_tokens = 0;
  };
  // Answers `user`. What was answered until the end, also an early one, becomes history; after an
  // error the history is as before.
  StatusOr<Outcome> Ask(const std::string& user, const Callbacks& callbacks);

 private:
  ChatSession(LoadedEngine& engine, const Request& request, const AnswerTokens& tokens)
      : engine_(&engine), request_(request), tokens_(tokens) {}
  StatusOr<Outcome> Answer(const Callbacks& callbacks, Message& answer);

  LoadedEngine* engine_;
  Request request_;
  AnswerTokens tokens_;
  std::string system_;
  Conversation conversation_;
};

}  // namespace deepinfer
