#include "apps/serve_bench.h"

#include <algorithm>
#include <deque>

#include "base/cpu_time.h"
#include "base/log.h"

namespace deepinfer {
namespace {

constexpr int32_t kFewWords = 8, kManyWords = 264;  // of the two probes

// An answer read as a whole.
class WholeAnswer : public HttpListener {
 public:
  void OnHead(int status, std::string_view content_type) override {
    http_status_ = status;
    content_type_ = content_type;
  }
  void OnBody(std::string_view piece) override { body_ += piece; }
  void OnEnd() override {}
  void OnFailed(const Status& status) override { status_ = status; }

  const Status& status() const { return status_; }
  int http_status() const { return http_status_; }
  const std::string& body() const { return body_; }
  std::string Shown() const {
    return StrCat("HTTP ", http_status_, ", ", content_type_, ": ", ServeErrorMessage(body_));
  }

 private:
  Status status_;
  int http_status_ = 0;
  std::string content_type_, body_;
};

bool IsRefusedKey(int http_status) { return http_status == 401 || http_status == 403; }

// What must be known of the server before the load begins.
class Preparation {
 public:
  Preparation(HttpPool& pool, ServeBenchOptions& options) : pool_(pool), options_(options) {}

  Status Run() {
    DI_RETURN_IF_ERROR(FindModel());
    return options_.body.api == ServeApi::kChat ? MeasureWords() : OkStatus();
  }

 private:
  // Errors: kUnavailable, kInvalidArgument for a key that is refused.
  StatusOr<WholeAnswer> Call(HttpCall call) {
    const std::string where = StrCat(options_.base_url, call.path);
    WholeAnswer answer;
    pool_.Send(std::move(call), answer);
    pool_.Run();
    if (!answer.status().ok()) {
      return MakeStatus(answer.status().code(),
                        StrCat(where, ": ", MessageOf(answer.status()),
                               "; is a server running there? `deepinfer serve` is one"));
    }
    if (IsRefusedKey(answer.http_status())) {
      return InvalidArgument(where, ": ", answer.Shown(),
                             "; expected a key that it takes: --api-key");
    }
    return answer;
  }

  Status FindModel() {
    DI_ASSIGN_OR_RETURN(const WholeAnswer answer, Call({.path = "/v1/models"}));
    const auto list = ParseJson(answer.body());
    const JsonValue* const data = list.ok() ? list->Find("data") : nullptr;
    const bool is_list = answer.http_status() == 200 && data != nullptr && !data->items.empty();
    if (!options_.body.model.empty()) return OkStatus();  // the requests will tell
    const JsonValue* const id = is_list ? data->items[0].Find("id") : nullptr;
    if (id == nullptr || !id->IsString()) {
      return InvalidArgument(options_.base_url, "/v1/models: ", answer.Shown(),
                             "; expected an OpenAI-shaped list of models (or give --model)");
    }
    options_.body.model = id->text;
    return OkStatus();
  }

  StatusOr<int64_t> ProbeTokens(int32_t num_words) {
    DI_ASSIGN_OR_RETURN(const WholeAnswer answer,
                        Call({.method = "POST",
                              .path = options_.endpoint,
                              .body = ProbeBody(num_words, options_.body)}));
    const auto json = ParseJson(answer.body());
    const JsonValue* const usage = json.ok() ? json->Find("usage") : nullptr;
    const JsonValue* const tokens = usage == nullptr ? nullptr : usage->Find("prompt_tokens");
    if (answer.http_status() != 200 || tokens == nullptr) {
      return InvalidArgument(options_.base_url, options_.endpoint, ": ", answer.Shown(),
                             "; expected a chat's answer with usage.prompt_tokens");
    }
    return std::atoll(tokens->text.c_str());
  }

  Status MeasureWords() {
    DI_ASSIGN_OR_RETURN(const int64_t few, ProbeTokens(kFewWords));
    DI_ASSIGN_OR_RETURN(const int64_t many, ProbeTokens(kManyWords));
    WordTokens& words = options_.body.words;
    words.per_word = static_cast<double>(many - few) / (kManyWords - kFewWords);
    if (words.per_word <= 0) words.per_word = 1;
    words.overhead = std::max(0.0, static_cast<double>(few) - kFewWords * words.per_word);
    LogInfo("prompts are words of ", words.per_word, " tokens, and ", words.overhead,
            " around them");
    return OkStatus();
  }

  HttpPool& pool_;
  ServeBenchOptions& options_;
};

// Sends traffic and gathers its answers.
class Load {
 public:
  Load(HttpPool& pool, ServeTraffic& traffic, const ServeBenchOptions& options, const Clock& clock)
      : pool_(pool), traffic_(traffic), options_(options), clock_(clock) {}

  // Requires: called once.
  void Run() {
    start_ = clock_.Now();
    next_ = traffic_.Next();
    Dispatch();
    pool_.Run();
  }

  MonotonicTime start() const { return start_; }
  std::vector<ServedRequest> TakeRequests() {
    return {std::make_move_iterator(requests_.begin()), std::make_move_iterator(requests_.end())};
  }

 private:
  double Now() const { return Seconds(clock_.Now() - start_); }
  bool HasRoom() const {
    return options_.max_concurrency == 0 || num_running_ < options_.max_concurrency;
  }

  // Sends what is due and may go; sleeps until the next one is due.
  void Dispatch() {
    while (next_ && HasRoom()) {
      const double now = Now();
      const bool is_over =
          options_.duration_s > 0 && std::max(now, DueOfNext()) >= options_.duration_s;
      if (is_over || (options_.is_stopped && options_.is_stopped())) {
        next_.reset();
      } else if (DueOfNext() > now) {
        return pool_.CallAt(start_ + FromSeconds(next_->due_s), [this] { Dispatch(); });
      } else {
        Send(*next_);
        next_ = traffic_.Next();
      }
    }
  }
  double DueOfNext() const { return options_.scheduled ? next_->due_s : 0; }

  void Send(const PlannedRequest& planned) {
    HttpCall call{
        .method = "POST", .path = options_.endpoint, .body = ServeBody(planned, options_.body)};
    ServedRequest& request = requests_.emplace_back();
    request.sent_s = Now();
    request.due_s = options_.scheduled ? planned.due_s : request.sent_s;
    ++num_running_;
    pool_.Send(std::move(call),
               answers_.emplace_back(ServeAnswer::Options{.streams = options_.body.streams,
                                                          .keeps_text = options_.keeps_text},
                                     clock_, start_, request, [this] {
                                       --num_running_;
                                       Dispatch();
                                     }));
  }

  HttpPool& pool_;
  ServeTraffic& traffic_;
  const ServeBenchOptions& options_;
  const Clock& clock_;
  MonotonicTime start_;
  std::optional<PlannedRequest> next_;
  int32_t num_running_ = 0;
  std::deque<ServedRequest> requests_;  // stay where they are
  std::deque<ServeAnswer> answers_;
};

// The same request again and again, each time with tokens of its own.
class WarmupTraffic : public ServeTraffic {
 public:
  WarmupTraffic(PlannedRequest request, int32_t count)
      : request_(std::move(request)), count_(count) {}

  std::optional<PlannedRequest> Next() override {
    if (num_made_ == count_) return std::nullopt;
    PlannedRequest request = request_;
    request.due_s = 0;
    for (PromptPart& part : request.prompt) part.id = ~(part.id + static_cast<uint64_t>(num_made_));
    ++num_made_;
    return request;
  }

 private:
  const PlannedRequest request_;
  const int32_t count_;
  int32_t num_made_ = 0;
};

StatusOr<std::unique_ptr<ServeTraffic>> MakeTraffic(const ServeBenchOptions& options, Disk& disk) {
  if (!options.trace.empty()) return ReadTrace(disk, options.trace, options.trace_options);
  return MakeRandomTraffic(options.random);
}

Status WarmUp(HttpPool& pool, const ServeBenchOptions& options, const CommandContext& context) {
  if (options.num_warmups == 0) return OkStatus();
  DI_ASSIGN_OR_RETURN(const auto first, MakeTraffic(options, context.disk));
  const std::optional<PlannedRequest> request = first->Next();
  if (!request) return OkStatus();
  WarmupTraffic traffic(*request, options.num_warmups);
  ServeBenchOptions at_once = options;
  at_once.scheduled = false;
  at_once.duration_s = 0;
  if (at_once.max_concurrency == 0) at_once.max_concurrency = 1;
  Load load(pool, traffic, at_once, context.clock);
  load.Run();
  for (const ServedRequest& served : load.TakeRequests()) {
    if (!served.ok()) return InvalidArgument("warm-up: ", served.error);
  }
  return OkStatus();
}

}  // namespace

StatusOr<ServeRun> RunServeLoad(ServeBenchOptions options, const CommandContext& context) {
  DI_ASSIGN_OR_RETURN(HttpEndpoint endpoint, ParseHttpUrl(options.base_url));
  // Clients of this API are given addresses that end with /v1.
  if (endpoint.path.ends_with("/v1")) {
    endpoint.path.resize(endpoint.path.size() - 3);
    endpoint.url.resize(endpoint.url.size() - 3);
  }
  options.base_url = endpoint.url;
  HttpPoolOptions pool_options{.timeout_s = options.timeout_s};
  if (!options.api_key.empty()) {
    pool_options.headers.emplace_back("Authorization", StrCat("Bearer ", options.api_key));
  }
  DI_ASSIGN_OR_RETURN(const auto traffic, MakeTraffic(options, context.disk));
  DI_ASSIGN_OR_RETURN(const auto pool, HttpPool::Create(std::move(endpoint), pool_options));
  DI_RETURN_IF_ERROR(Preparation(*pool, options).Run());
  DI_RETURN_IF_ERROR(WarmUp(*pool, options, context));
  DI_RETURN_IF_ERROR(pool->Connect(options.num_connections));

  Load load(*pool, *traffic, options, context.clock);
  const double cpu_before = ThreadCpuSeconds();
  load.Run();
  ServeRun run{.url = options.base_url + options.endpoint,
               .model = options.body.model,
               .scheduled = options.scheduled,
               .streams = options.body.streams,
               .max_concurrency = options.max_concurrency,
               .requests = load.TakeRequests(),
               .num_connections = pool->num_connections_made(),
               .generator_cpu_s = ThreadCpuSeconds() - cpu_before,
               .start = load.start()};
  for (const ServedRequest& request : run.requests) {
    run.duration_s = std::max(run.duration_s, request.end_s);
  }
  return run;
}

}  // namespace deepinfer
