#include "tokens/prompt_encoder.h"

#include "base/check.h"
#include "tokens/control_tokens.h"
#include "tokens/prompt_turns.h"

namespace deepinfer {
namespace {

constexpr std::string_view kBlankLine = "\n\n";

// Arguments as an object: JSON text is read, also when it was packed twice. What is no object even
// then becomes the one parameter "arguments", as it was given.
JsonValue ArgumentsObject(const JsonValue& given) {
  JsonValue value = given;
  for (int i = 0; i < 2 && value.IsString(); ++i) {
    StatusOr<JsonValue> inner = ParseJson(value.text);
    if (!inner.ok()) break;
    value = *std::move(inner);
  }
  if (value.IsObject()) return value;
  JsonValue wrapped = JsonValue::Object();
  wrapped.Set("arguments", given);
  return wrapped;
}

bool IsEmptySchema(const JsonValue& schema) {
  return schema.IsNull() || (schema.IsObject() && schema.members.empty());
}

bool HasTools(const Conversation& conversation) {
  if (!conversation.tools.empty()) return true;
  for (const Message& message : conversation.messages) {
    if (!message.tools.empty()) return true;
  }
  return false;
}

bool HasSchema(const Conversation& conversation) {
  if (conversation.response_schema) return true;
  for (const Message& message : conversation.messages) {
    if (message.response_schema) return true;
  }
  return false;
}

class Renderer {
 public:
  Renderer(const Conversation& conversation, const PromptTexts& texts)
      : conversation_(conversation),
        texts_(texts),
        turns_(BuildTurns(conversation)),
        last_user_(LastUserTurn(turns_)),
        thinking_(conversation.thinking.enabled),
        drops_thinking_(conversation.drop_thinking && !HasTools(conversation)) {}

  RenderedPrompt Render() {
    out_.Control(kBosToken);
    for (int i = 0; i < static_cast<int>(turns_.size()); ++i) {
      if (i == 0) RenderOpening();
      RenderTurn(i);
      RenderTransition(i);
    }
    RenderedPrompt prompt;
    prompt.segments = out_.TakeSegments();
    prompt.image_urls = out_.TakeImageUrls();
    prompt.in_thinking = in_thinking_;
    return prompt;
  }

 private:
  const PromptTurn& turn(int i) const { return turns_[static_cast<size_t>(i)]; }
  bool IsLast(int i) const { return i + 1 == static_cast<int>(turns_.size()); }
  // Thinking of turn i and of the answer to it stays in the prompt.
  bool KeepsThinking(int i) const { return thinking_ && (!drops_thinking_ || i >= last_user_); }

  void RenderOpening() {
    if (thinking_ || turn(0).role == Role::kSystem) out_.Control(kSystemToken);
    if (!thinking_) return;
    out_.Text(StrCat("Reasoning Effort: ", conversation_.thinking.effort,
                     " (range 1-100, the higher the value, the more thorough the reasoning)\n\n"));
  }

  void RenderTurn(int i) {
    switch (turn(i).role) {
      case Role::kSystem:
        if (i > 0) out_.Control(kSystemToken);
        RenderBlocks(turn(i).blocks);
        RenderSystemTexts(i);
        break;
      case Role::kUser:
        out_.Control(kUserToken);
        RenderBlocks(turn(i).blocks);
        break;
      case Role::kLatestReminder:
        out_.Control(kReminderToken);
        RenderBlocks(turn(i).blocks);
        break;
      case Role::kAssistant:
        RenderAssistant(i);
        break;
      case Role::kTool:
        CHECK(false);  // BuildTurns leaves none
    }
  }

  void RenderPart(const ContentPart& part) {
    if (part.kind == ContentPart::Kind::kImage) {
      out_.Image(part.image_url);
    } else {
      out_.Text(part.text);
    }
  }

  void RenderBlocks(const std::vector<PromptBlock>& blocks) {
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (i > 0) out_.Text(kBlankLine);
      if (blocks[i].part != nullptr) {
        RenderPart(*blocks[i].part);
      } else {
        RenderResult(*blocks[i].tool_result);
      }
    }
  }

  void RenderResult(const Message& result) {
    out_.Text("<tool_result>");
    for (size_t i = 0; i < result.content.size(); ++i) {
      if (i > 0) out_.Text(kBlankLine);
      RenderPart(result.content[i]);
    }
    out_.Text("</tool_result>");
  }

  void RenderSystemTexts(int i) {
    std::string schemas;
    const auto add = [&schemas](const std::vector<ToolDefinition>& tools) {
      for (const ToolDefinition& tool : tools) {
        if (!schemas.empty()) schemas += '\n';
        schemas += DumpJson(tool.function);
      }
    };
    add(turn(i).message->tools);
    if (i == 0) add(conversation_.tools);
    if (!schemas.empty()) RenderTemplate(texts_.tools, schemas);

    const auto& own = turn(i).message->response_schema;
    const auto& schema = own || i > 0 ? own : conversation_.response_schema;
    if (schema && !IsEmptySchema(*schema)) {
      RenderTemplate(texts_.response_format, DumpJson(*schema));
    }
  }

  void RenderTemplate(const PromptTemplate& text, std::string_view filling) {
    out_.Text(kBlankLine);
    out_.Append(text.before);
    out_.Text(filling);
    out_.Append(text.after);
  }

  void RenderAssistant(int i) {
    const Message& message = *turn(i).message;
    const bool answers_task = i > 0 && turn(i - 1).task().has_value();
    if (SaysWhatWasSampled(i, KeepsThinking(i) && !answers_task)) {
      out_.Ids(message.sampled->ids, message.sampled->text);
      out_.Control(kEosToken);
      in_thinking_ = false;
      return;
    }
    // A prefix of reasoning alone is continued inside the thinking.
    bool goes_on_thinking = false;
    if (KeepsThinking(i) && !answers_task) {
      out_.Text(message.reasoning_content);
      goes_on_thinking = message.prefix && !message.reasoning_content.empty() && IsBlank(i);
      if (!goes_on_thinking) out_.Control(kThinkEndToken);
    }
    RenderBlocks(turn(i).blocks);
    if (message.sampled != nullptr) {
      out_.Append(message.sampled->calls);
    } else if (!message.tool_calls.empty()) {
      RenderCalls(message.tool_calls);
    }
    if (!message.prefix) out_.Control(kEosToken);
    in_thinking_ = goes_on_thinking;
  }

  // The whole answer can be repeated: reasoning and content came back as they were.
  bool SaysWhatWasSampled(int i, bool with_thinking) const {
    const Message& message = *turn(i).message;
    if (message.sampled == nullptr || message.prefix) return false;
    const SampledAnswer& sampled = *message.sampled;
    if (sampled.in_thinking != with_thinking) return false;
    if (with_thinking && sampled.reasoning != message.reasoning_content) return false;
    std::string content;
    for (const ContentPart& part : message.content) {
      if (part.kind == ContentPart::Kind::kImage) return false;
      content += part.text;
    }
    return message.content.size() <= 1 && content == sampled.content;
  }

  bool IsBlank(int i) const {
    for (const PromptBlock& block : turn(i).blocks) {
      if (block.part->kind == ContentPart::Kind::kImage || !block.part->text.empty()) return false;
    }
    return turn(i).message->tool_calls.empty();
  }

  void Tag(std::string_view opening, std::string_view name, std::string_view rest) {
    out_.Text(opening);
    out_.Control(kDsmlToken);
    out_.Text(StrCat(name, rest));
  }

  void RenderCalls(const std::vector<ToolCall>& calls) {
    out_.Text(kBlankLine);
    Tag("<", kCallsTag, ">\n");
    for (const ToolCall& call : calls) {
      const std::string name = QualifiedName(call.name_space, call.name);
      Tag("<", kInvokeTag, StrCat(" name=\"", name, "\">\n"));
      RenderParameters(ArgumentsObject(call.arguments));
      Tag("\n</", kInvokeTag, ">\n");
    }
    Tag("</", kCallsTag, ">");
  }

  void RenderParameters(const JsonValue& arguments) {
    bool first = true;
    for (const JsonMember& member : arguments.members) {
      if (!first) out_.Text("\n");
      first = false;
      const bool is_string = member.value.IsString();
      Tag("<", kParameterTag, StrCat(" name=\"", member.key, "\" string=\"", is_string, "\">"));
      out_.Text(is_string ? member.value.text : DumpJson(member.value));
      Tag("</", kParameterTag, ">");
    }
  }

  // What stands between a turn and the answer to it: a task's token, or the assistant header.
  void RenderTransition(int i) {
    const bool answered = !IsLast(i) && (turn(i + 1).role == Role::kAssistant ||
                                         turn(i + 1).role == Role::kLatestReminder);
    if (!answered && !IsLast(i)) return;
    if (IsLast(i) && !conversation_.add_generation_prompt) return;
    if (const std::optional<Task> task = turn(i).task()) {
      if (*task == Task::kAction) RenderHeader(thinking_);
      out_.Control(TaskToken(*task));
      in_thinking_ = false;
    } else if (turn(i).role == Role::kUser || (turn(i).role == Role::kSystem && i > 0)) {
      RenderHeader(KeepsThinking(i));
    }
  }

  void RenderHeader(bool opens_thinking) {
    out_.Control(kAssistantToken);
    out_.Control(opens_thinking ? kThinkStartToken : kThinkEndToken);
    in_thinking_ = opens_thinking;
  }

  const Conversation& conversation_;
  const PromptTexts& texts_;
  const std::vector<PromptTurn> turns_;
  const int last_user_;
  const bool thinking_;
  const bool drops_thinking_;
  PromptWriter out_;
  bool in_thinking_ = false;
};

Status RefusePlaceholder(std::string_view text, std::string_view path) {
  if (text.find(kImageToken) == text.npos) return OkStatus();
  return InvalidArgument(path, ": text must not hold the image placeholder ", kImageToken,
                         "; send images as parts of their own");
}

Status CheckMessage(const Message& message, const std::string& path, bool is_last) {
  for (size_t i = 0; i < message.content.size(); ++i) {
    const std::string place = message.content.size() > 1 ? StrCat("[", i, "]") : "";
    DI_RETURN_IF_ERROR(RefusePlaceholder(message.content[i].text, path + ".content" + place));
  }
  DI_RETURN_IF_ERROR(RefusePlaceholder(message.reasoning_content, path + ".reasoning_content"));
  if (message.prefix && !is_last) {
    return InvalidArgument(path, ".prefix: only the last message can be continued");
  }
  return OkStatus();
}

Status CheckConversation(const Conversation& conversation, const PromptTexts& texts) {
  if (conversation.messages.empty()) {
    return InvalidArgument("messages: expected at least one message, found none");
  }
  const int effort = conversation.thinking.effort;
  if (effort < 1 || effort > 100) {
    return InvalidArgument("reasoning_effort: expected 1..100, found ", effort);
  }
  for (size_t i = 0; i < conversation.messages.size(); ++i) {
    DI_RETURN_IF_ERROR(CheckMessage(conversation.messages[i], StrCat("messages[", i, "]"),
                                    i + 1 == conversation.messages.size()));
  }
  if (!texts.refusal.empty() && (HasTools(conversation) || HasSchema(conversation))) {
    return FailedPrecondition("tools and response schemas are refused: ", texts.refusal);
  }
  return OkStatus();
}

}  // namespace

StatusOr<RenderedPrompt> RenderPrompt(const Conversation& conversation, const PromptTexts& texts) {
  DI_RETURN_IF_ERROR(CheckConversation(conversation, texts));
  return Renderer(conversation, texts).Render();
}

StatusOr<EncodedPrompt> EncodePrompt(const RenderedPrompt& prompt, const Tokenizer& tokenizer) {
  EncodedPrompt encoded;
  for (const PromptSegment& segment : prompt.segments) {
    if (segment.kind == PromptSegment::Kind::kText) {
      const std::vector<int32_t> ids = tokenizer.Encode(segment.text, {.added_tokens = false});
      encoded.ids.insert(encoded.ids.end(), ids.begin(), ids.end());
      continue;
    }
    if (segment.kind == PromptSegment::Kind::kIds) {
      encoded.ids.insert(encoded.ids.end(), segment.ids.begin(), segment.ids.end());
      continue;
    }
    const std::optional<int32_t> id = tokenizer.IdOf(segment.text);
    if (!id) {
      return FailedPrecondition("the chat prompt needs the token ", segment.text,
                                ", which the tokenizer does not have");
    }
    if (segment.kind == PromptSegment::Kind::kImage) {
      encoded.image_idxs.push_back(static_cast<int64_t>(encoded.ids.size()));
    }
    encoded.ids.push_back(*id);
  }
  return encoded;
}

}  // namespace deepinfer
