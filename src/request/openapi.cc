#include "request/openapi.h"

#include "request/api_fields.h"
#include "request/api_routes.h"
#include "request/api_state.h"

namespace deepinfer {
namespace {

// Shapes that several answers share.
constexpr std::string_view kSchemas = R"({
"Error": {"type": "object", "required": ["error"], "properties": {"error": {"type": "object",
  "required": ["message", "type", "param", "code"], "properties": {
  "message": {"type": "string"}, "type": {"type": "string"},
  "param": {"type": ["string", "null"]}, "code": {"type": ["string", "null"]}}}}},
"Message": {"type": "object", "required": ["role"], "properties": {
  "role": {"enum": ["system", "developer", "user", "assistant", "tool", "function",
    "latest_reminder"]},
  "content": {"oneOf": [{"type": "null"}, {"type": "string"}, {"type": "array", "items":
    {"type": "object", "required": ["type"], "properties": {"type": {"enum": ["text", "refusal"]},
    "text": {"type": "string"}, "refusal": {"type": "string"}}}}]},
  "reasoning_content": {"type": ["string", "null"]}, "reasoning": {"type": ["string", "null"]},
  "tool_calls": {"type": "array", "items": {"$ref": "#/components/schemas/ToolCall"}},
  "tool_call_id": {"type": "string"}, "name": {"type": "string"}, "prefix": {"type": "boolean"},
  "task": {"enum": ["action", "query", "authority", "domain", "title", "read_url"]}}},
"ToolCall": {"type": "object", "required": ["id", "type", "function"], "properties": {
  "index": {"type": "integer"}, "id": {"type": "string"}, "type": {"const": "function"},
  "function": {"type": "object", "required": ["name", "arguments"], "properties": {
  "name": {"type": "string"}, "arguments": {"type": "string"}}}}},
"Usage": {"type": "object", "required": ["prompt_tokens", "completion_tokens", "total_tokens"],
  "properties": {"prompt_tokens": {"type": "integer"}, "completion_tokens": {"type": "integer"},
  "total_tokens": {"type": "integer"}, "prompt_cache_hit_tokens": {"type": "integer"},
  "prompt_cache_miss_tokens": {"type": "integer"}, "prompt_tokens_details": {"type": "object",
  "properties": {"cached_tokens": {"type": "integer"}}}, "completion_tokens_details":
  {"type": "object", "properties": {"reasoning_tokens": {"type": "integer"}}}}},
"ChatCompletion": {"type": "object", "required": ["id", "object", "created", "model", "choices",
  "usage"], "properties": {"id": {"type": "string"}, "object": {"const": "chat.completion"},
  "created": {"type": "integer"}, "model": {"type": "string"},
  "system_fingerprint": {"type": "string"}, "seed": {"type": "integer"},
  "choices": {"type": "array", "items": {"type": "object", "required": ["index", "message",
  "logprobs", "finish_reason"], "properties": {"index": {"type": "integer"}, "message":
  {"type": "object", "required": ["role", "content", "refusal"], "properties": {
  "role": {"const": "assistant"}, "content": {"type": ["string", "null"]},
  "reasoning_content": {"type": "string"}, "refusal": {"type": "null"}, "tool_calls":
  {"type": "array", "items": {"$ref": "#/components/schemas/ToolCall"}}}},
  "logprobs": {"type": ["object", "null"]}, "token_ids": {"type": "array"},
  "finish_reason": {"enum": ["stop", "length", "tool_calls"]},
  "stop_reason": {"type": ["string", "integer"]}}}},
  "prompt_logprobs": {"type": "array"}, "prompt_token_ids": {"type": "array"},
  "usage": {"$ref": "#/components/schemas/Usage"}}},
"ChatCompletionChunk": {"type": "object", "required": ["id", "object", "created", "model",
  "choices"], "properties": {"id": {"type": "string"}, "object":
  {"const": "chat.completion.chunk"}, "created": {"type": "integer"}, "model":
  {"type": "string"}, "system_fingerprint": {"type": "string"}, "seed": {"type": "integer"},
  "choices": {"type": "array", "items": {"type": "object", "required": ["index", "delta",
  "logprobs", "finish_reason"], "properties": {"index": {"type": "integer"}, "delta":
  {"type": "object", "properties": {"role": {"const": "assistant"}, "content":
  {"type": "string"}, "reasoning_content": {"type": "string"}, "tool_calls":
  {"type": "array"}}}, "logprobs": {"type": ["object", "null"]}, "token_ids":
  {"type": "array"}, "finish_reason": {"enum": ["stop", "length", "tool_calls", null]},
  "stop_reason": {"type": ["string", "integer"]}}}},
  "usage": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Usage"}]}}},
"Completion": {"type": "object", "required": ["id", "object", "created", "model", "choices"],
  "properties": {"id": {"type": "string"}, "object": {"const": "text_completion"}, "created":
  {"type": "integer"}, "model": {"type": "string"}, "system_fingerprint": {"type": "string"},
  "seed": {"type": "integer"}, "choices": {"type": "array", "items": {"type": "object",
  "required": ["index", "text", "logprobs", "finish_reason"], "properties": {
  "index": {"type": "integer"}, "text": {"type": "string"}, "logprobs":
  {"type": ["object", "null"]}, "finish_reason": {"enum": ["stop", "length", null]}}}},
  "usage": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Usage"}]}}},
"Model": {"type": "object", "required": ["id", "object", "created", "owned_by"], "properties": {
  "id": {"type": "string"}, "object": {"const": "model"}, "created": {"type": "integer"},
  "owned_by": {"type": "string"}, "max_model_len": {"type": "integer"}}},
"ModelList": {"type": "object", "required": ["object", "data"], "properties": {
  "object": {"const": "list"}, "data": {"type": "array", "items":
  {"$ref": "#/components/schemas/Model"}}}},
"Tokens": {"type": "object", "required": ["count", "max_model_len", "tokens"], "properties": {
  "count": {"type": "integer"}, "max_model_len": {"type": "integer"}, "tokens":
  {"type": "array", "items": {"type": "integer"}}, "token_strs": {"type": ["array", "null"]}}},
"Text": {"type": "object", "required": ["prompt"], "properties": {"prompt": {"type": "string"}}},
"Rendered": {"type": "object", "required": ["prompt", "tokens", "count"], "properties": {
  "prompt": {"type": "string"}, "tokens": {"type": "array", "items": {"type": "integer"}},
  "count": {"type": "integer"}}}
})";

struct EndpointText {
  std::string_view summary;
  std::string_view answer;    // a schema; empty: any object
  std::string_view streamed;  // of each event; empty: no stream
};

EndpointText TextOf(ApiEndpoint endpoint) {
  switch (endpoint) {
    case ApiEndpoint::kChat:
      return {"Answer a conversation.", "ChatCompletion", "ChatCompletionChunk"};
    case ApiEndpoint::kCompletion:
      return {"Go on with a text.", "Completion", "Completion"};
    case ApiEndpoint::kModels:
      return {"The models that are served.", "ModelList", ""};
    case ApiEndpoint::kModel:
      return {"One of them.", "Model", ""};
    case ApiEndpoint::kTokenize:
      return {"Text or a conversation to token ids.", "Tokens", ""};
    case ApiEndpoint::kDetokenize:
      return {"Token ids to text.", "Text", ""};
    case ApiEndpoint::kRender:
      return {"The prompt that a chat completion would give the model.", "Rendered", ""};
    case ApiEndpoint::kOpenApi:
      return {"This document.", "", ""};
  }
  return {};
}

// What the server answers beside the API; see docs/serving.md.
struct OtherRoute {
  std::string_view path, summary, content_type;
};
constexpr OtherRoute kOtherRoutes[] = {
    {"/health", "200 while the process lives.", "application/json"},
    {"/ready", "200 when requests are answered, else 503.", "application/json"},
    {"/version", "The version of the server.", "application/json"},
    {"/metrics", "Metrics for Prometheus.", "text/plain"},
    {"/stats", "The same for people and the page.", "application/json"},
    {"/", "The page.", "text/html"},
};

void WriteContent(std::string_view type, std::string_view schema, JsonWriter& out) {
  out.Key(type).Object().Key("schema").Object();
  if (schema.empty()) {
    out.Key("type").String("object");
  } else {
    out.Key("$ref").String(StrCat("#/components/schemas/", schema));
  }
  out.EndObject().EndObject();
}

void WriteBody(char letter, JsonWriter& out) {
  out.Key("requestBody").Object().Key("required").Bool(true).Key("content").Object();
  out.Key("application/json").Object().Key("schema").Object();
  out.Key("type").String("object").Key("properties").Object();
  for (const ApiField& field : ApiFields()) {
    if (field.where.find(letter) == field.where.npos) continue;
    std::string schema(field.schema);  // an object: the text goes in as its last member
    schema.pop_back();
    schema += ", \"description\": ";
    AppendJsonString(field.text, schema);
    out.Key(field.name).Raw(schema + "}");
  }
  out.EndObject().EndObject().EndObject().EndObject().EndObject();
}

void WriteOperation(const ApiRoute& route, JsonWriter& out) {
  const EndpointText text = TextOf(route.endpoint);
  out.Key(route.method == "GET" ? "get" : "post").Object();
  out.Key("summary").String(text.summary);
  if (route.access == RouteAccess::kOpen) out.Key("security").Array().EndArray();
  if (route.endpoint == ApiEndpoint::kModel) {
    out.Key("parameters")
        .Raw(R"([{"name": "id", "in": "path", "required": true,)"
             R"( "schema": {"type": "string"}}])");
  }
  if (const char letter = FieldLetter(route.endpoint)) WriteBody(letter, out);
  out.Key("responses").Object().Key("200").Object().Key("description").String("The answer.");
  out.Key("content").Object();
  WriteContent("application/json", text.answer, out);
  if (!text.streamed.empty()) WriteContent("text/event-stream", text.streamed, out);
  out.EndObject().EndObject();
  out.Key("default").Object().Key("description").String("What is wrong.").Key("content").Object();
  WriteContent("application/json", "Error", out);
  out.EndObject().EndObject().EndObject().EndObject();
}

std::string PathOf(std::string_view path) {
  if (path.ends_with('*')) return StrCat(path.substr(0, path.size() - 1), "{id}");
  return std::string(path);
}

void WriteOther(const OtherRoute& route, JsonWriter& out) {
  out.Key(route.path).Object().Key("get").Object().Key("summary").String(route.summary);
  out.Key("responses").Object().Key("200").Object().Key("description").String("The answer.");
  out.Key("content").Object().Key(route.content_type).Object().EndObject().EndObject();
  out.EndObject().EndObject().EndObject().EndObject();
}

}  // namespace

std::string OpenApiDocument(std::string_view version) {
  JsonWriter out;
  out.Object().Key("openapi").String("3.1.0").Key("info").Object();
  out.Key("title").String("DeepInfer").Key("version").String(version).EndObject();
  out.Key("paths").Object();
  for (const ApiRoute& route : kApiRoutes) {
    out.Key(PathOf(route.path)).Object();
    WriteOperation(route, out);
    out.EndObject();
  }
  for (const OtherRoute& route : kOtherRoutes) WriteOther(route, out);
  out.EndObject().Key("components").Object().Key("schemas").Raw(kSchemas);
  out.Key("securitySchemes").Raw(R"({"key": {"type": "http", "scheme": "bearer"}})");
  out.EndObject().Key("security").Raw(R"([{"key": []}])");
  return out.EndObject().Take();
}

void HandleOpenApi(const SharedApi& api, const HttpRequest& /*request*/,
                   const std::shared_ptr<HttpReply>& reply) {
  reply->Send({.body = OpenApiDocument(api->options().version)});
}

}  // namespace deepinfer
