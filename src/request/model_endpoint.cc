// GET /v1/models and /v1/models/{id}
#include <algorithm>

#include "request/api_state.h"

namespace deepinfer {
namespace {

void WriteModel(const ServedModel& model, const std::string& name, JsonWriter& out) {
  out.Object().Key("id").String(name).Key("object").String("model");
  out.Key("created").Int(model.created).Key("owned_by").String("deepinfer");
  out.Key("max_model_len").Int(model.max_model_len).EndObject();
}

std::string ListJson(const ServedModel& model) {
  JsonWriter out;
  out.Object().Key("object").String("list").Key("data").Array();
  for (const std::string& name : model.names) WriteModel(model, name, out);
  return out.EndArray().EndObject().Take();
}

// What follows "/models/"; empty if nothing does.
std::string_view NameIn(std::string_view path) {
  constexpr std::string_view kBefore = "/models/";
  const size_t at = path.find(kBefore);
  return at == path.npos ? std::string_view() : path.substr(at + kBefore.size());
}

}  // namespace

void HandleModels(const SharedApi& api, const HttpRequest& request,
                  const std::shared_ptr<HttpReply>& reply) {
  const ServedModel& model = api->model();
  const std::string name(NameIn(request.path));
  if (name.empty()) return reply->Send({.body = ListJson(model)});
  if (std::find(model.names.begin(), model.names.end(), name) == model.names.end()) {
    return reply->Send(ErrorResponse(MakeApiError(
        ApiErrorKind::kModelNotFound,
        StrCat("model: found \"", OneLine(name), "\", served are ", Join(model.names, ", ")),
        "model")));
  }
  JsonWriter out;
  WriteModel(model, name, out);
  reply->Send({.body = out.Take()});
}

}  // namespace deepinfer
