// POST /tokenize and /detokenize, in vLLM's shapes.
#include <optional>
#include <utility>

#include "request/api_state.h"
#include "request/chat_prompt.h"
#include "request/field_reader.h"
#include "request/token_fields.h"
#include "tokens/conversation_json.h"

namespace deepinfer {
namespace {

std::string TokensJson(const ServedModel& model, const TokenizeRequest& request) {
  JsonWriter out;
  out.Object().Key("count").Int(request.ids.size());
  out.Key("max_model_len").Int(model.max_model_len).Key("tokens");
  WriteIds(request.ids, out);
  out.Key("token_strs");
  if (request.with_texts) {
    out.Array();
    for (const int32_t id : request.ids) out.String(TokenLabel(id, *model.tokenizer));
    out.EndArray();
  } else {
    out.Null();
  }
  return out.EndObject().Take();
}

// Reads a body with `read`, beside the server's thread if it is long, and answers with what it
// returns.
void Answer(const SharedApi& api, HttpRequest request, const std::shared_ptr<HttpReply>& reply,
            StatusOr<std::string> (*read)(const JsonValue& body, const ServedModel& model)) {
  struct Job {
    HttpRequest http;
    StatusOr<std::string> answer = std::string();
  };
  auto job = std::make_shared<Job>();
  job->http = std::move(request);
  const ServedModel* model = &api->model();
  const auto work = [job, model, read] {
    const StatusOr<JsonValue> body = ParseBody(job->http.body);
    job->answer = body.ok() ? read(*body, *model) : body.status();
  };
  api->Run(job->http.body.size(), work, [job, reply] {
    if (job->answer.ok()) return reply->Send({.body = *std::move(job->answer)});
    reply->Send(ErrorResponse(ApiErrorOf(job->answer.status())));
  });
}

StatusOr<std::string> Tokenize(const JsonValue& body, const ServedModel& model) {
  FieldReader reader(body);
  DI_ASSIGN_OR_RETURN(const TokenizeRequest request, ReadTokenize(reader, model));
  return TokensJson(model, request);
}

StatusOr<std::string> Detokenize(const JsonValue& body, const ServedModel& model) {
  FieldReader reader(body);
  DI_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, ReadDetokenize(reader, model));
  JsonWriter out;
  return out.Object().Key("prompt").String(model.tokenizer->Decode(ids)).EndObject().Take();
}

}  // namespace

void HandleTokenize(const SharedApi& api, HttpRequest request,
                    const std::shared_ptr<HttpReply>& reply) {
  Answer(api, std::move(request), reply, &Tokenize);
}

void HandleDetokenize(const SharedApi& api, HttpRequest request,
                      const std::shared_ptr<HttpReply>& reply) {
  Answer(api, std::move(request), reply, &Detokenize);
}

}  // namespace deepinfer
