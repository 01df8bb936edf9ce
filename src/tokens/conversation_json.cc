#include "tokens/conversation_json.h"

#include <algorithm>

#include "tokens/json_fields.h"

namespace deepinfer {
namespace {

StatusOr<Role> ReadRole(const JsonField& message) {
  DI_ASSIGN_OR_RETURN(const std::string role, message.RequiredString("role"));
  if (role == "system" || role == "developer") return Role::kSystem;
  if (role == "user") return Role::kUser;
  if (role == "assistant") return Role::kAssistant;
  if (role == "tool" || role == "function") return Role::kTool;
  if (role == "latest_reminder") return Role::kLatestReminder;
  return message.Member("role").Unexpected(
      "system, developer, user, assistant, tool, function or latest_reminder");
}

// OpenAI's {"image_url": {"url": ..}} or {"image_url": ".."}; Anthropic's {"source": {..}}; {"url":
// ".."}.
StatusOr<std::string> ReadImageUrl(const JsonField& part, std::string_view type) {
  const std::string_view holder = type == "image_url" ? "image_url" : "source";
  const JsonField image = part.Member(holder);
  std::string url;
  if (image.value() != nullptr && image.value()->IsString()) {
    url = image.value()->text;
  } else if (image.value() != nullptr && image.value()->Find("data") != nullptr) {
    DI_ASSIGN_OR_RETURN(const std::string media_type, image.RequiredString("media_type"));
    DI_ASSIGN_OR_RETURN(const std::string data, image.RequiredString("data"));
    url = StrCat("data:", media_type, ";base64,", data);
  } else if (!image.absent()) {
    DI_ASSIGN_OR_RETURN(url, image.RequiredString("url"));
  } else {
    DI_ASSIGN_OR_RETURN(url, part.OptionalString("url"));
  }
  if (url.empty()) return image.Error("expected where the image is (a URL), found nothing");
  return url;
}

StatusOr<ContentPart> ReadPart(const JsonField& part) {
  DI_ASSIGN_OR_RETURN(const std::string type, part.RequiredString("type"));
  if (type == "text" || type == "refusal") {
    DI_ASSIGN_OR_RETURN(std::string text, part.RequiredString(type));
    return ContentPart::Text(std::move(text));
  }
  if (type == "image_url" || type == "image") {
    DI_ASSIGN_OR_RETURN(std::string url, ReadImageUrl(part, type));
    return ContentPart::Image(std::move(url));
  }
  return part.Member("type").Unexpected("text, refusal, image_url or image");
}

StatusOr<std::vector<ContentPart>> ReadContent(const JsonField& content) {
  std::vector<ContentPart> parts;
  if (content.absent()) {
    parts.push_back(ContentPart::Text(""));
  } else if (content.value()->IsString()) {
    parts.push_back(ContentPart::Text(content.value()->text));
  } else if (content.value()->IsArray()) {
    for (size_t i = 0; i < content.value()->items.size(); ++i) {
      DI_ASSIGN_OR_RETURN(ContentPart part, ReadPart(content.Item(i)));
      parts.push_back(std::move(part));
    }
  } else {
    return content.Unexpected("null, a string or an array of parts");
  }
  return parts;
}

struct SplitName {
  std::string name_space;
  std::string name;
};

// "ns::f", or "f" and a namespace beside it; both at once must agree.
StatusOr<SplitName> SplitToolName(const JsonField& function, const std::string& name_space) {
  const JsonField field = function.Member("name");
  DI_ASSIGN_OR_RETURN(const std::string name, function.RequiredString("name"));
  SplitName split{name_space, name};
  if (const size_t colons = name.find("::"); colons != name.npos) {
    split = {name.substr(0, colons), name.substr(colons + 2)};
    if (split.name_space.empty()) return field.Error("expected a namespace before \"::\"");
    if (!name_space.empty() && name_space != split.name_space) {
      return field.Error(StrCat("expected namespace ", name_space, ", found ", name));
    }
  }
  if (split.name.find("::") != name.npos || split.name_space.find("::") != name.npos) {
    return field.Error(StrCat("expected at most one \"::\", found ", name));
  }
  return split;
}

// A tool call, or the inside of a message's function_call (`call` = `function` then).
StatusOr<ToolCall> ReadCall(const JsonField& call, const JsonField& function) {
  ToolCall result;
  DI_RETURN_IF_ERROR(function.ExpectObject());
  DI_ASSIGN_OR_RETURN(result.id, call.OptionalString("id"));
  if (result.id.empty()) {
    DI_ASSIGN_OR_RETURN(result.id, function.OptionalString("id"));
  }
  DI_ASSIGN_OR_RETURN(std::string name_space, call.OptionalString("namespace"));
  if (name_space.empty()) {
    DI_ASSIGN_OR_RETURN(name_space, function.OptionalString("namespace"));
  }
  DI_ASSIGN_OR_RETURN(SplitName split, SplitToolName(function, name_space));
  result.name_space = std::move(split.name_space);
  result.name = std::move(split.name);
  const JsonValue* arguments = function.Member("arguments").value();
  result.arguments = arguments != nullptr ? *arguments : JsonValue::Object();
  return result;
}

StatusOr<std::vector<ToolCall>> ReadCalls(const JsonField& message) {
  std::vector<ToolCall> calls;
  DI_ASSIGN_OR_RETURN(const std::vector<JsonField> fields, message.OptionalArray("tool_calls"));
  for (const JsonField& call : fields) {
    DI_RETURN_IF_ERROR(call.ExpectObject());
    DI_ASSIGN_OR_RETURN(ToolCall read, ReadCall(call, call.Member("function")));
    calls.push_back(std::move(read));
  }
  if (const JsonField call = message.Member("function_call"); !call.absent()) {
    DI_ASSIGN_OR_RETURN(ToolCall read, ReadCall(call, call));
    calls.push_back(std::move(read));
  }
  return calls;
}

// A namespace is a name, or {"name", "description"}; the description goes before the function's
// own.
StatusOr<ToolDefinition> ReadTool(const JsonField& tool) {
  DI_RETURN_IF_ERROR(tool.ExpectObject());
  DI_ASSIGN_OR_RETURN(const std::string type, tool.OptionalString("type"));
  if (!type.empty() && type != "function") return tool.Member("type").Unexpected("function");
  const JsonField function = tool.Member("function");
  DI_RETURN_IF_ERROR(function.ExpectObject());

  const JsonField name_space =
      tool.Member("namespace").absent() ? function.Member("namespace") : tool.Member("namespace");
  std::string space_name, space_description;
  if (!name_space.absent() && name_space.value()->IsObject()) {
    DI_ASSIGN_OR_RETURN(space_name, name_space.RequiredString("name"));
    DI_ASSIGN_OR_RETURN(space_description, name_space.OptionalString("description"));
  } else if (!name_space.absent()) {
    DI_ASSIGN_OR_RETURN(space_name, name_space.AsString());
  }
  DI_ASSIGN_OR_RETURN(SplitName split, SplitToolName(function, space_name));

  ToolDefinition result{std::move(split.name_space), std::move(split.name), *function.value()};
  result.function.Remove("namespace");
  result.function.Set("name", JsonValue::String(QualifiedName(result.name_space, result.name)));
  if (!space_description.empty()) {
    DI_ASSIGN_OR_RETURN(const std::string own, function.OptionalString("description"));
    result.function.Set("description", JsonValue::String(space_description + "\n" + own));
  }
  return result;
}

StatusOr<std::vector<ToolDefinition>> ReadTools(const JsonField& holder) {
  std::vector<ToolDefinition> tools;
  DI_ASSIGN_OR_RETURN(const std::vector<JsonField> fields, holder.OptionalArray("tools"));
  for (const JsonField& field : fields) {
    DI_ASSIGN_OR_RETURN(ToolDefinition tool, ReadTool(field));
    tools.push_back(std::move(tool));
  }
  return tools;
}

StatusOr<std::optional<Task>> ReadTask(const JsonField& message) {
  DI_ASSIGN_OR_RETURN(const std::string name, message.OptionalString("task"));
  if (name.empty()) return std::optional<Task>();
  const auto known = std::find(std::begin(kTaskNames), std::end(kTaskNames), name);
  if (known == std::end(kTaskNames)) {
    return message.Member("task").Unexpected(Join(kTaskNames, ", "));
  }
  return std::optional(static_cast<Task>(known - std::begin(kTaskNames)));
}

// Fields that belong to one role are refused on others: they would be lost without a word.
Status ReadSystemFields(const JsonField& field, Message& message) {
  for (const std::string_view name : {"tools", "response_format"}) {
    if (message.role != Role::kSystem && !field.Member(name).absent()) {
      return field.Member(name).Error("only system and developer messages have this field");
    }
  }
  DI_ASSIGN_OR_RETURN(message.tools, ReadTools(field));
  if (const JsonField schema = field.Member("response_format"); !schema.absent()) {
    message.response_schema = *schema.value();
  }
  return OkStatus();
}

Status ReadAssistantFields(const JsonField& field, Message& message) {
  DI_ASSIGN_OR_RETURN(message.reasoning_content, field.OptionalString("reasoning_content"));
  if (field.Member("reasoning_content").absent()) {
    DI_ASSIGN_OR_RETURN(message.reasoning_content, field.OptionalString("reasoning"));
  }
  DI_ASSIGN_OR_RETURN(message.tool_calls, ReadCalls(field));
  DI_ASSIGN_OR_RETURN(const std::optional<bool> prefix, field.OptionalBool("prefix"));
  message.prefix = prefix.value_or(false);
  return OkStatus();
}

StatusOr<Message> ReadMessage(const JsonField& field) {
  DI_RETURN_IF_ERROR(field.ExpectObject());
  Message message;
  DI_ASSIGN_OR_RETURN(message.role, ReadRole(field));
  DI_ASSIGN_OR_RETURN(message.content, ReadContent(field.Member("content")));
  DI_ASSIGN_OR_RETURN(message.task, ReadTask(field));
  DI_RETURN_IF_ERROR(ReadSystemFields(field, message));
  if (message.role == Role::kAssistant) {
    DI_RETURN_IF_ERROR(ReadAssistantFields(field, message));
  }
  if (message.role == Role::kTool) {
    DI_ASSIGN_OR_RETURN(message.tool_call_id, field.OptionalString("tool_call_id"));
    DI_ASSIGN_OR_RETURN(message.tool_name, field.OptionalString("name"));
  }
  return message;
}

// {"type": "text" | "json_object" | "json_schema", "json_schema": {"schema": ..}}
StatusOr<std::optional<JsonValue>> ReadResponseFormat(const JsonField& format) {
  if (format.absent()) return std::optional<JsonValue>();
  DI_ASSIGN_OR_RETURN(const std::string type, format.RequiredString("type"));
  if (type == "text" || type == "json_object") return std::optional<JsonValue>();
  if (type != "json_schema") {
    return format.Member("type").Unexpected("text, json_object or json_schema");
  }
  const JsonField schema = format.Member("json_schema").Member("schema");
  if (schema.absent()) return schema.Error("expected a JSON schema, found nothing");
  return std::optional(*schema.value());
}

StatusOr<std::optional<Thinking>> ReadEffort(const JsonField& field) {
  if (field.absent()) return std::optional<Thinking>();
  const bool is_text = field.value()->IsString() || field.value()->kind == JsonValue::Kind::kNumber;
  if (!is_text) return field.Unexpected(kEffortValues);
  const StatusOr<Thinking> effort = ParseEffort(field.value()->text);
  if (!effort.ok()) return field.Error(MessageOf(effort.status()));
  return std::optional(*effort);
}

// thinking{type}, and kwargs' two spellings: those given must agree.
StatusOr<std::optional<bool>> ReadThinkingSwitch(const JsonField& root) {
  std::optional<bool> enabled;
  if (const JsonField thinking = root.Member("thinking"); !thinking.absent()) {
    DI_ASSIGN_OR_RETURN(const std::string type, thinking.RequiredString("type"));
    if (type != "enabled" && type != "disabled") {
      return thinking.Member("type").Unexpected("enabled or disabled");
    }
    enabled = type == "enabled";
  }
  const JsonField kwargs = root.Member("chat_template_kwargs");
  for (const std::string_view name : {"thinking", "enable_thinking"}) {
    DI_ASSIGN_OR_RETURN(const std::optional<bool> given, kwargs.OptionalBool(name));
    if (given && enabled && *given != *enabled) {
      return kwargs.Member(name).Error("contradicts what was said about thinking before");
    }
    if (given) enabled = given;
  }
  return enabled;
}

StatusOr<Thinking> ReadThinking(const JsonField& root, Thinking thinking) {
  DI_ASSIGN_OR_RETURN(const std::optional<bool> enabled, ReadThinkingSwitch(root));
  std::optional<Thinking> effort;
  for (const JsonField& field : {root.Member("reasoning_effort"),
                                 root.Member("chat_template_kwargs").Member("reasoning_effort")}) {
    DI_ASSIGN_OR_RETURN(const std::optional<Thinking> given, ReadEffort(field));
    if (!given) continue;
    const bool differs =
        effort && (effort->enabled != given->enabled || effort->effort != given->effort);
    if (differs) return field.Error("contradicts reasoning_effort");
    if (enabled.value_or(false) && !given->enabled) {
      return field.Error("none contradicts that thinking is switched on");
    }
    effort = given;
  }
  if (effort) thinking = *effort;
  if (enabled) thinking.enabled = *enabled;
  return thinking;
}

Status ReadMessages(const JsonField& root, Conversation& conversation) {
  const JsonField list = root.Member("messages");
  if (list.absent()) return list.Error("expected an array of messages, found nothing");
  DI_ASSIGN_OR_RETURN(const std::vector<JsonField> fields, root.OptionalArray("messages"));
  for (const JsonField& field : fields) {
    DI_ASSIGN_OR_RETURN(Message message, ReadMessage(field));
    conversation.messages.push_back(std::move(message));
  }
  if (fields.empty()) return list.Error("expected at least one message, found none");
  return OkStatus();
}

Status ReadRendering(const JsonField& root, Conversation& conversation) {
  DI_ASSIGN_OR_RETURN(const std::optional<bool> header, root.OptionalBool("add_generation_prompt"));
  conversation.add_generation_prompt = header.value_or(true);
  DI_ASSIGN_OR_RETURN(const std::optional<bool> drops,
                      root.Member("chat_template_kwargs").OptionalBool("drop_thinking"));
  conversation.drop_thinking = drops.value_or(true);
  const JsonField field = root.Member("continue_final_message");
  DI_ASSIGN_OR_RETURN(const std::optional<bool> goes_on,
                      root.OptionalBool("continue_final_message"));
  if (!goes_on.value_or(false)) return OkStatus();
  Message& last = conversation.messages.back();
  if (last.role != Role::kAssistant) {
    return field.Error("expected the last message to be the assistant's");
  }
  last.prefix = true;
  return OkStatus();
}

}  // namespace

StatusOr<Conversation> ReadConversation(const JsonValue& value, const Thinking& thinking) {
  const JsonField root(&value, "");
  DI_RETURN_IF_ERROR(root.ExpectObject());
  Conversation conversation;
  DI_RETURN_IF_ERROR(ReadMessages(root, conversation));
  DI_RETURN_IF_ERROR(ReadRendering(root, conversation));
  DI_ASSIGN_OR_RETURN(conversation.tools, ReadTools(root));
  DI_ASSIGN_OR_RETURN(conversation.response_schema,
                      ReadResponseFormat(root.Member("response_format")));
  DI_ASSIGN_OR_RETURN(conversation.thinking, ReadThinking(root, thinking));
  return conversation;
}

StatusOr<Conversation> ParseMessages(std::string_view json_text, const Thinking& thinking) {
  DI_ASSIGN_OR_RETURN(JsonValue value, ParseJson(json_text));
  if (value.IsArray()) {
    JsonValue root = JsonValue::Object();
    root.Set("messages", std::move(value));
    return ReadConversation(root, thinking);
  }
  return ReadConversation(value, thinking);
}

}  // namespace deepinfer
