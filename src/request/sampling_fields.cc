#include "request/sampling_fields.h"

#include <array>

namespace deepinfer {
namespace {

constexpr size_t kMaxStops = 16;
constexpr int32_t kMaxTopLogprobs = 20;
constexpr int32_t kMaxPriority = 1000;

void ReadMaxTokens(FieldReader& reader, Request& request) {
  std::optional<int32_t> old_name, new_name;
  reader.Number("max_tokens", old_name);
  reader.Number("max_completion_tokens", new_name);
  if (old_name && new_name && *old_name != *new_name) {
    return reader.Refuse("max_completion_tokens",
                         StrCat("max_tokens says ", *old_name, "; give one of them"));
  }
  if (old_name) request.max_tokens = old_name;
  if (new_name) request.max_tokens = new_name;
}

// A number of alternatives (completions), or true with top_logprobs (chat).
void ReadLogprobs(FieldReader& reader, bool http, std::optional<int32_t>& out) {
  int32_t top = 0;
  const bool has_top = reader.Number("top_logprobs", top);
  const JsonValue* value = reader.Find("logprobs");
  if (value != nullptr && value->kind == JsonValue::Kind::kBool) {
    out = value->boolean ? std::optional(top) : std::nullopt;
  } else {
    reader.Number("logprobs", out);
  }
  if (!http) return;
  if (has_top && !out) reader.Refuse("top_logprobs", "which needs logprobs: true");
  if (out && (*out < 0 || *out > kMaxTopLogprobs)) {
    reader.Refuse(has_top ? "top_logprobs" : "logprobs", StrCat("expected 0..", kMaxTopLogprobs));
  }
}

void ReadScript(FieldReader& reader, bool allowed, SamplingParams& sampling) {
  reader.Ids("forced_token_ids", sampling.forced_token_ids);
  reader.Ids("forced_drafts", sampling.forced_drafts);
  for (const std::string_view key : {"forced_token_ids", "forced_drafts"}) {
    if (allowed || reader.Find(key) == nullptr) continue;
    reader.Fail(InvalidArgument(key, ": only a server started with --scripted takes it"));
  }
}

void ReadPriority(FieldReader& reader, bool http, int32_t& priority) {
  if (!http) {
    reader.Number("priority", priority);
    return;
  }
  int32_t given = -priority;
  reader.Number("priority", given, -kMaxPriority, kMaxPriority);
  priority = -given;
}

// What would be answered otherwise than the client thinks.
struct RefusedField {
  std::string_view key;
  std::string_view why;
};
constexpr auto kRefusedFields = std::to_array<RefusedField>({
    {"previous_response_id", "answers are not kept here; send the messages"},
    {"conversation", "conversations are not kept here; send the messages"},
    {"functions", "its successor is tools"},
    {"function_call", "its successor is tool_choice"},
    {"audio", "answers are text"},
    {"web_search_options", "nothing is searched here"},
    {"truncate_prompt_tokens", "prompts are never cut"},
});

void ReadRefused(FieldReader& reader, bool http) {
  int32_t best_of = 1;
  if (reader.Number("best_of", best_of) && best_of != 1) {
    reader.Fail(InvalidArgument("best_of: found ", best_of, ", only 1 is supported"));
  }
  if (!http) return;
  for (const RefusedField& field : kRefusedFields) {
    if (reader.Find(field.key) == nullptr) continue;
    reader.Fail(InvalidArgument(field.key, ": not supported, ", field.why));
  }
  bool beams = false;
  reader.Switch("use_beam_search", beams);
  if (beams) reader.Fail(InvalidArgument("use_beam_search: not supported, answers are sampled"));
  std::vector<std::string> modalities;
  reader.Texts("modalities", modalities);
  for (const std::string& modality : modalities) {
    if (modality != "text") {
      reader.Fail(InvalidArgument("modalities: found ", modality, ", answers are text"));
    }
  }
}

void ReadRanges(FieldReader& reader, bool http, SamplingParams& s) {
  if (http) {
    reader.Number("temperature", s.temperature, 0.0, 2.0);
  } else {
    reader.Number("temperature", s.temperature);
  }
  reader.Number("top_p", s.top_p);
  reader.Number("top_k", s.top_k);
  reader.Number("min_p", s.min_p);
  reader.Number("repetition_penalty", s.repetition_penalty);
  reader.Number("presence_penalty", s.presence_penalty);
  reader.Number("frequency_penalty", s.frequency_penalty);
  reader.Bias("logit_bias", s.logit_bias);
}

void ReadEnds(FieldReader& reader, bool http, Request& request) {
  reader.Texts("stop", request.stop);
  if (http && request.stop.size() > kMaxStops) {
    reader.Fail(InvalidArgument("stop: found ", request.stop.size(), " texts, expected at most ",
                                kMaxStops));
  }
  reader.Ids("stop_token_ids", request.sampling.stop_token_ids);
  reader.Switch("include_stop_str_in_output", request.include_stop);
  reader.Switch("skip_special_tokens", request.skip_special_tokens);
  reader.Number("min_tokens", request.sampling.min_tokens);
  reader.Switch("ignore_eos", request.sampling.ignore_eos);
}

}  // namespace

Status ReadSamplingFields(FieldReader& reader, const SamplingRules& rules, Request& request) {
  ReadMaxTokens(reader, request);
  ReadRanges(reader, rules.http, request.sampling);
  reader.Number("seed", request.seed);
  reader.Number("n", request.num_choices);
  ReadEnds(reader, rules.http, request);
  reader.Ids("banned_token_ids", request.sampling.banned_token_ids);
  ReadScript(reader, rules.scripted, request.sampling);
  ReadLogprobs(reader, rules.http, request.sampling.logprobs);
  reader.Number("prompt_logprobs", request.prompt_logprobs);
  reader.Text("cache_salt", request.cache_salt);
  ReadPriority(reader, rules.http, request.priority);
  if (!rules.http) {
    reader.Text("tenant", request.tenant);
    reader.Number("start_deadline_ms", request.start_deadline_ms);
  }
  ReadRefused(reader, rules.http);
  return reader.status();
}

}  // namespace deepinfer
