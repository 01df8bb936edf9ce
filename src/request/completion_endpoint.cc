// POST /v1/completions
#include <utility>

#include "request/api_state.h"
#include "request/completion_writer.h"

namespace deepinfer {
namespace {

struct CompletionJob {
  HttpRequest http;
  std::shared_ptr<CompletionRequest> completion = std::make_shared<CompletionRequest>();
  Status status;
  bool is_json = false;

  void Prepare(const ServedModel& model, const ApiOptions& options) {
    StatusOr<JsonValue> body = ParseBody(http.body);
    is_json = body.ok();
    status = body.status();
    if (!is_json) return;
    FieldReader reader(*body);
    status = completion->Read(reader, model, options, http.tenant);
    if (status.ok()) status = completion->Encode(model);
  }
};

void Submit(const SharedApi& api, const CompletionJob& job,
            const std::shared_ptr<HttpReply>& reply) {
  if (!job.status.ok()) {
    const ApiError error = job.is_json ? api->WrongBody(job.status) : ApiErrorOf(job.status);
    return reply->Send(ErrorResponse(error));
  }
  const AnswerStyle& style = job.completion->style;
  if (job.http.observer != nullptr) job.http.observer->OnModel(style.model, style.stream);
  job.completion->SetSeed(api->NewSeed());
  const auto session =
      std::make_shared<AnswerSession>(ContextOf(api), reply, job.http.observer, style.stream);
  session->Open();
  session->Submit(job.completion->TakeRequests(),
                  MakeCompletionWriter(job.completion, api->NewHead("cmpl-", style.model),
                                       api->model().tokenizer));
}

}  // namespace

void HandleCompletion(const SharedApi& api, HttpRequest request,
                      const std::shared_ptr<HttpReply>& reply) {
  auto job = std::make_shared<CompletionJob>();
  job->http = std::move(request);
  const ServedModel* model = &api->model();
  api->Run(
      job->http.body.size(), [job, model, api] { job->Prepare(*model, api->options()); },
      [job, api, reply] { Submit(api, *job, reply); });
}

}  // namespace deepinfer
