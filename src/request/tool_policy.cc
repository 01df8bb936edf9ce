#include "request/tool_policy.h"

#include <algorithm>

namespace deepinfer {
namespace {

std::vector<const ToolDefinition*> ToolsOf(const Conversation& conversation) {
  std::vector<const ToolDefinition*> tools;
  for (const ToolDefinition& tool : conversation.tools) tools.push_back(&tool);
  for (const Message& message : conversation.messages) {
    for (const ToolDefinition& tool : message.tools) tools.push_back(&tool);
  }
  return tools;
}

// Keeps the tools of these names.
Status Narrow(const std::vector<std::string>& names, const JsonField& field, ToolPolicy& policy) {
  std::vector<const ToolDefinition*> kept;
  for (const std::string& name : names) {
    const auto found = std::find_if(policy.callable.begin(), policy.callable.end(),
                                    [&name](const ToolDefinition* tool) {
                                      return QualifiedName(tool->name_space, tool->name) == name;
                                    });
    if (found == policy.callable.end()) {
      return field.Error(StrCat("no tool is named \"", name, "\""));
    }
    kept.push_back(*found);
  }
  policy.callable = std::move(kept);
  return OkStatus();
}

StatusOr<std::string> FunctionName(const JsonField& choice) {
  DI_ASSIGN_OR_RETURN(const std::string type, choice.RequiredString("type"));
  if (type != "function") return choice.Member("type").Unexpected("function");
  // OpenAI's newer API leaves out the inner object.
  const JsonField function = choice.Member("function");
  return function.absent() ? choice.RequiredString("name") : function.RequiredString("name");
}

Status ReadMode(const std::string& mode, const JsonField& field, ToolPolicy& policy) {
  if (mode == "none") {
    policy.calls_allowed = false;
    return OkStatus();
  }
  if (mode != "auto" && mode != "required") {
    return field.Unexpected("none, auto, required or a function");
  }
  policy.required = mode == "required";
  if (policy.required && policy.callable.empty()) {
    return field.Error("required, but there are no tools");
  }
  return OkStatus();
}

Status ReadAllowedTools(const JsonField& allowed, ToolPolicy& policy) {
  DI_ASSIGN_OR_RETURN(const std::string mode, allowed.RequiredString("mode"));
  DI_RETURN_IF_ERROR(ReadMode(mode, allowed.Member("mode"), policy));
  DI_ASSIGN_OR_RETURN(const std::vector<JsonField> tools, allowed.OptionalArray("tools"));
  std::vector<std::string> names;
  for (const JsonField& tool : tools) {
    DI_ASSIGN_OR_RETURN(std::string name, FunctionName(tool));
    names.push_back(std::move(name));
  }
  if (names.empty()) return allowed.Member("tools").Error("expected at least one tool, found none");
  return Narrow(names, allowed.Member("tools"), policy);
}

Status ReadChoice(const JsonField& choice, ToolPolicy& policy) {
  if (choice.absent()) return OkStatus();
  if (choice.value()->IsString()) return ReadMode(choice.value()->text, choice, policy);
  if (!choice.value()->IsObject()) return choice.Unexpected("a string or an object");
  if (const JsonField allowed = choice.Member("allowed_tools"); !allowed.absent()) {
    return ReadAllowedTools(allowed, policy);
  }
  DI_ASSIGN_OR_RETURN(std::string name, FunctionName(choice));
  policy.required = true;
  return Narrow({std::move(name)}, choice, policy);
}

// What tokens/tool_grammar.h reads.
JsonValue ToolJson(const ToolDefinition& tool) {
  JsonValue out = JsonValue::Object();
  out.Set("name", JsonValue::String(QualifiedName(tool.name_space, tool.name)));
  const JsonValue* parameters = tool.function.Find("parameters");
  out.Set("parameters", parameters != nullptr ? *parameters : JsonValue());
  const JsonValue* strict = tool.function.Find("strict");
  const bool is_strict = strict != nullptr && strict->boolean;
  out.Set("strict", {.kind = JsonValue::Kind::kBool, .boolean = is_strict});
  return out;
}

StatusOr<JsonValue> ContentJson(const StructuredOutput& output) {
  JsonValue content = JsonValue::Object();
  if (output.kind == StructuredOutput::Kind::kJsonObject) {
    content.Set("json_object", {.kind = JsonValue::Kind::kBool, .boolean = true});
  } else {
    DI_ASSIGN_OR_RETURN(JsonValue schema, ParseJson(output.text));
    content.Set("schema", std::move(schema));
  }
  return content;
}

StatusOr<std::string> CallsJson(const ToolPolicy& policy, const StructuredWish& wish) {
  JsonValue tools{.kind = JsonValue::Kind::kArray};
  for (const ToolDefinition* tool : policy.callable) tools.items.push_back(ToolJson(*tool));
  JsonValue out = JsonValue::Object();
  out.Set("tools", std::move(tools));
  out.Set("required", {.kind = JsonValue::Kind::kBool, .boolean = policy.required});
  out.Set("parallel", {.kind = JsonValue::Kind::kBool, .boolean = policy.parallel});
  JsonValue content;
  if (!policy.required && wish.IsJson()) {
    DI_ASSIGN_OR_RETURN(content, ContentJson(wish.output));
  }
  out.Set("content", std::move(content));
  return DumpJson(out);
}

}  // namespace

StatusOr<ToolPolicy> ReadToolPolicy(FieldReader& reader, const Conversation& conversation) {
  ToolPolicy policy{.callable = ToolsOf(conversation)};
  policy.calls_allowed = !policy.callable.empty();
  DI_RETURN_IF_ERROR(ReadChoice(reader.Field("tool_choice"), policy));
  reader.Switch("parallel_tool_calls", policy.parallel);
  DI_RETURN_IF_ERROR(reader.status());
  return policy;
}

StatusOr<StructuredOutput> CombineStructure(const ToolPolicy& policy, const StructuredWish& wish,
                                            bool in_thinking, const AnswerTokens& tokens) {
  StructuredOutput output = wish.output;
  const bool has_wish = !wish.field.empty();
  if (policy.calls_allowed) {
    if (has_wish && !wish.IsJson()) {
      return InvalidArgument(wish.field, ": cannot be had together with tools; use a JSON schema, ",
                             "or tool_choice none");
    }
    output.kind = StructuredOutput::Kind::kToolCalls;
    DI_ASSIGN_OR_RETURN(output.text, CallsJson(policy, wish));
  }
  const bool from_marker = policy.calls_allowed && !policy.required && !has_wish;
  if (from_marker) output.trigger_token_ids = {tokens.dsml};
  if (in_thinking) StartBehindThinking(tokens, output);
  DI_RETURN_IF_ERROR(CheckStructure(output, policy.calls_allowed ? "tools" : wish.field));
  return output;
}

}  // namespace deepinfer
