#include "tokens/prompt_turns.h"

#include <algorithm>

namespace deepinfer {
namespace {

// The place of a result's call among `calls`. Results that match none go with the first call's.
int CallIdx(const Message& result, const std::vector<ToolCall>& calls) {
  int found = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    const bool by_name = result.tool_call_id.empty();
    if (by_name && !result.tool_name.empty() &&
        (calls[i].name == result.tool_name ||
         QualifiedName(calls[i].name_space, calls[i].name) == result.tool_name)) {
      return static_cast<int>(i);
    }
    if (!by_name && calls[i].id == result.tool_call_id) found = static_cast<int>(i);
  }
  return found;
}

// Sorts the results of a turn among themselves; text between them keeps its place.
void SortResults(PromptTurn& turn, const std::vector<ToolCall>& calls) {
  std::vector<PromptBlock> results;
  for (const PromptBlock& block : turn.blocks) {
    if (block.tool_result != nullptr) results.push_back(block);
  }
  std::stable_sort(results.begin(), results.end(),
                   [&calls](const PromptBlock& a, const PromptBlock& b) {
                     return CallIdx(*a.tool_result, calls) < CallIdx(*b.tool_result, calls);
                   });
  auto next = results.begin();
  for (PromptBlock& block : turn.blocks) {
    if (block.tool_result != nullptr) block = *next++;
  }
}

// Whether a message joins the turn before it.
bool Joins(const Message& message, const PromptTurn& turn) {
  if (turn.role != Role::kUser) return false;
  return message.role == Role::kTool || (message.role == Role::kUser && !turn.task());
}

void AppendBlocks(const Message& message, PromptTurn& turn) {
  if (message.role == Role::kTool) {
    turn.blocks.push_back({.tool_result = &message});
    return;
  }
  for (const ContentPart& part : message.content) turn.blocks.push_back({.part = &part});
}

}  // namespace

std::vector<PromptTurn> BuildTurns(const Conversation& conversation) {
  static const Message kEmptySystem{.role = Role::kSystem};
  std::vector<PromptTurn> turns;
  const bool has_system =
      !conversation.messages.empty() && conversation.messages[0].role == Role::kSystem;
  if (!has_system && (!conversation.tools.empty() || conversation.response_schema)) {
    turns.push_back({Role::kSystem, &kEmptySystem, {}});
  }
  for (const Message& message : conversation.messages) {
    const bool is_result = message.role == Role::kTool;
    if (turns.empty() || !Joins(message, turns.back())) {
      turns.push_back({is_result ? Role::kUser : message.role, is_result ? nullptr : &message, {}});
    }
    AppendBlocks(message, turns.back());
  }
  const std::vector<ToolCall>* calls = nullptr;
  for (PromptTurn& turn : turns) {
    if (turn.role == Role::kAssistant && !turn.message->tool_calls.empty()) {
      calls = &turn.message->tool_calls;
    }
    if (turn.role == Role::kUser && calls != nullptr) SortResults(turn, *calls);
  }
  return turns;
}

int LastUserTurn(const std::vector<PromptTurn>& turns) {
  for (int i = static_cast<int>(turns.size()) - 1; i >= 0; --i) {
    const PromptTurn& turn = turns[static_cast<size_t>(i)];
    if (turn.role == Role::kSystem && i > 0) return i;
    if (turn.role != Role::kUser) continue;
    const bool only_results =
        !turn.blocks.empty() &&
        std::all_of(turn.blocks.begin(), turn.blocks.end(),
                    [](const PromptBlock& block) { return block.tool_result != nullptr; });
    if (!only_results) return i;
  }
  return -1;
}

}  // namespace deepinfer
