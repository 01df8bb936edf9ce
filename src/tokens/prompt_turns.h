// tokens/prompt_turns.h: messages become the turns that the model knows.
//
// The model has no tool role: a result is a block inside a user turn. Neighbouring user and tool
// messages are one turn, and its results stand in the order of the calls that they answer. Internal
// to the encoder.
#pragma once

#include <optional>
#include <vector>

#include "tokens/conversation.h"

namespace deepinfer {

// One of the two is set; both point into the conversation.
struct PromptBlock {
  const ContentPart* part = nullptr;
  const Message* tool_result = nullptr;
};

struct PromptTurn {
  Role role = Role::kUser;  // never kTool
  const Message* message =
      nullptr;  // the first message of the turn; null if that was a tool result
  std::vector<PromptBlock> blocks;

  // Of later messages in a turn only the content is used, so a task must come with the turn's first
  // message, and not after a tool result. DeepSeek's encoder does the same.
  std::optional<Task> task() const { return message != nullptr ? message->task : std::nullopt; }
};

// Points into `conversation`, which must outlive the turns. Begins with an empty system turn if the
// conversation as a whole has tools or a schema and no system message comes first.
std::vector<PromptTurn> BuildTurns(const Conversation& conversation);

// The last turn that asks for an answer: a user turn with more than tool results, or a system turn
// that is not the first. -1 if there is none.
int LastUserTurn(const std::vector<PromptTurn>& turns);

}  // namespace deepinfer
