// POST /v1/chat/completions, and /render, which shows the same body's prompt.
#include <utility>

#include "request/api_state.h"
#include "request/chat_request.h"
#include "request/chat_writer.h"

namespace deepinfer {
namespace {

// One body on its way. Steps that may run beside the server's thread touch nothing but this and
// the model.
struct ChatJob {
  HttpRequest http;
  std::shared_ptr<ChatRequest> chat = std::make_shared<ChatRequest>();
  Status status;
  bool is_json = false;
  std::shared_ptr<AnswerSession> session;

  void Read(const ServedModel& model, const ApiOptions& options) {
    StatusOr<JsonValue> body = ParseBody(http.body);
    is_json = body.ok();
    status = body.status();
    if (!is_json) return;
    FieldReader reader(*body);
    status = chat->Read(reader, model, options, http.tenant);
  }
  void Encode(const ServedModel& model, const ApiOptions& options) {
    status = chat->Encode(model, options);
  }
  // Whose calls these are: what keeps cached prompts apart keeps them apart, too.
  std::string owner() const {
    return StrCat(http.tenant.size(), ":", http.tenant, chat->request.cache_salt);
  }
  ApiError error(const ApiState& api) const {
    return is_json ? api.WrongBody(status) : ApiErrorOf(status);
  }
};

// Reads the body, then prepares the prompt; each step ends with its function. After a mistake
// `fail` is called instead.
void Prepare(const SharedApi& api, const std::shared_ptr<ChatJob>& job,
             const std::function<void()>& on_read, const std::function<void()>& on_ready,
             const std::function<void()>& fail) {
  const size_t bytes = job->http.body.size();
  const ServedModel* model = &api->model();
  const auto read = [job, model, api] { job->Read(*model, api->options()); };
  const auto encode = [job, model, api] { job->Encode(*model, api->options()); };
  api->Run(bytes, read, [=] {
    if (!job->status.ok()) return fail();
    on_read();
    api->calls.Recall(job->owner(), job->chat->conversation);
    api->Run(bytes, encode, [=] {
      if (!job->status.ok()) return fail();
      on_ready();
    });
  });
}

void Remember(const SharedApi& api, const std::string& owner, const ChatChoice& choice) {
  if (auto sampled = choice.sampled()) {
    api->calls.Remember(owner, choice.call_ids(), choice.calls(), std::move(sampled));
  }
}

void Submit(const SharedApi& api, const std::shared_ptr<ChatJob>& job) {
  const std::string owner = job->owner();
  auto writer = MakeChatWriter(
      job->chat,
      {.head = api->NewHead("chatcmpl-", job->chat->style.model),
       .tokenizer = api->model().tokenizer,
       .new_call_id = [api] { return api->NewId("call_"); },
       .on_choice = [api, owner](const ChatChoice& choice) { Remember(api, owner, choice); }});
  std::vector<Request> requests;
  requests.push_back(job->chat->TakeRequest());
  if (!requests.front().seed) requests.front().seed = api->NewSeed();
  job->session->Submit(std::move(requests), std::move(writer));
}

std::string RenderJson(const ChatRequest& chat) {
  JsonWriter out;
  out.Object().Key("prompt").String(chat.prompt_text).Key("tokens");
  WriteIds(chat.request.prompt_ids, out);
  return out.Key("count").Int(chat.request.prompt_ids.size()).EndObject().Take();
}

}  // namespace

void HandleChat(const SharedApi& api, HttpRequest request,
                const std::shared_ptr<HttpReply>& reply) {
  auto job = std::make_shared<ChatJob>();
  job->http = std::move(request);
  const auto on_read = [api, job, reply] {
    const AnswerStyle& style = job->chat->style;
    if (job->http.observer != nullptr) job->http.observer->OnModel(style.model, style.stream);
    job->session =
        std::make_shared<AnswerSession>(ContextOf(api), reply, job->http.observer, style.stream);
    job->session->Open();
  };
  const auto fail = [api, job, reply] {
    const ApiError error = job->error(*api);
    if (job->session != nullptr) return job->session->Fail(error);
    reply->Send(ErrorResponse(error));
  };
  Prepare(
      api, job, on_read, [api, job] { Submit(api, job); }, fail);
}

void HandleRender(const SharedApi& api, HttpRequest request,
                  const std::shared_ptr<HttpReply>& reply) {
  auto job = std::make_shared<ChatJob>();
  job->http = std::move(request);
  const auto fail = [api, job, reply] { reply->Send(ErrorResponse(job->error(*api))); };
  const auto send = [job, reply] { reply->Send({.body = RenderJson(*job->chat)}); };
  Prepare(
      api, job, [] {}, send, fail);
}

}  // namespace deepinfer
