#include "request/body_fields.h"

#include <algorithm>

#include "request/sampling_fields.h"

namespace deepinfer {
Status ReadModelName(FieldReader& reader, const ServedModel& model, std::string& name) {
  name = model.names.front();
  reader.Text("model", name);
  DI_RETURN_IF_ERROR(reader.status());
  if (std::find(model.names.begin(), model.names.end(), name) != model.names.end()) {
    return OkStatus();
  }
  return NotFound("model: found ", reader.Field("model").Found(), ", served are ",
                  Join(model.names, ", "));
}

Status ReadAnswerStyle(FieldReader& reader, const ServedModel& model, AnswerStyle& style) {
  DI_RETURN_IF_ERROR(ReadModelName(reader, model, style.model));
  reader.Switch("stream", style.stream);
  reader.Switch("return_token_ids", style.return_token_ids);
  reader.Switch("echo", style.echo);
  const JsonField options = reader.Field("stream_options");
  if (!options.absent()) {
    DI_RETURN_IF_ERROR(options.ExpectObject());
    DI_ASSIGN_OR_RETURN(const std::optional<bool> usage, options.OptionalBool("include_usage"));
    DI_ASSIGN_OR_RETURN(const std::optional<bool> always,
                        options.OptionalBool("continuous_usage_stats"));
    style.include_usage = usage.value_or(false);
    style.continuous_usage = style.include_usage && always.value_or(false);
  }
  return reader.status();
}

Status ReadRequestFields(FieldReader& reader, const ApiOptions& options, std::string_view tenant,
                         Request& request) {
  const SamplingRules rules{.http = true, .scripted = options.scripted};
  DI_RETURN_IF_ERROR(ReadSamplingFields(reader, rules, request));
  std::string user;
  reader.Text("user_id", user);
  if (user.size() > kMaxUserIdBytes) {
    return InvalidArgument("user_id: found ", user.size(), " bytes, expected at most ",
                           kMaxUserIdBytes);
  }
  // Its length keeps ("a", "bc") and ("ab", "c") apart.
  if (!user.empty() || !request.cache_salt.empty())
    request.cache_salt = StrCat(user.size(), ":", user, request.cache_salt);
  request.tenant = tenant;
  request.start_deadline_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(options.queue_timeout).count();
  return reader.status();
}

Status FitLength(const ServedModel& model, std::string_view path, Request& request) {
  const auto num_prompt = static_cast<int64_t>(request.prompt_ids.size());
  const bool scores = request.max_tokens == 0;
  const int64_t room = model.max_model_len - num_prompt;
  if (room < (scores ? 0 : 1)) {
    return MakeStatus(StatusCode::kOutOfRange, StrCat(path, ": found ", num_prompt,
                                                      " tokens; prompt and output together take "
                                                      "at most ",
                                                      model.max_model_len, "; shorten the prompt"));
  }
  if (request.max_tokens) {
    request.max_tokens = static_cast<int32_t>(std::min<int64_t>(*request.max_tokens, room));
  }
  return OkStatus();
}

}  // namespace deepinfer
