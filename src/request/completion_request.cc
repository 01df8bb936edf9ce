#include "request/completion_request.h"

#include <algorithm>

#include "request/chat_prompt.h"
#include "request/structured_fields.h"
#include "tokens/detokenizer.h"

namespace deepinfer {
namespace {

using Prompt = CompletionRequest::Prompt;

bool ReadIds(const JsonValue& value, std::vector<int32_t>& ids) {
  bool good = value.IsArray();
  for (const JsonValue& item : value.items) good &= ReadNumber(item, ids.emplace_back());
  return good;
}

StatusOr<Prompt> ReadPrompt(const JsonField& field) {
  const JsonValue& value = *field.value();
  Prompt prompt;
  prompt.is_text = value.IsString();
  if (prompt.is_text) prompt.text = value.text;
  if (!prompt.is_text && !ReadIds(value, prompt.ids)) {
    return field.Unexpected("a text or an array of token ids");
  }
  return prompt;
}

// A text, token ids, or an array of these.
StatusOr<std::vector<Prompt>> ReadPrompts(FieldReader& reader) {
  const JsonField field = reader.Field("prompt");
  std::vector<Prompt> prompts;
  if (field.absent()) return field.Unexpected("a text, token ids, or an array of these");
  const JsonValue& value = *field.value();
  const bool is_batch = value.IsArray() && !value.items.empty() &&
                        value.items.front().kind != JsonValue::Kind::kNumber;
  if (!is_batch) {
    DI_ASSIGN_OR_RETURN(Prompt prompt, ReadPrompt(field));
    prompts.push_back(std::move(prompt));
    return prompts;
  }
  if (value.items.size() > kMaxPromptsInBatch) {
    return field.Error(
        StrCat("found ", value.items.size(), " prompts, expected at most ", kMaxPromptsInBatch));
  }
  for (size_t i = 0; i < value.items.size(); ++i) {
    DI_ASSIGN_OR_RETURN(Prompt prompt, ReadPrompt(field.Item(i)));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

std::vector<std::string> PiecesOf(const std::vector<int32_t>& ids, bool hides_first,
                                  const Tokenizer& tokenizer) {
  Detokenizer detokenizer(tokenizer);
  std::vector<std::string> pieces;
  for (size_t i = 0; i < ids.size(); ++i) {
    pieces.push_back(i == 0 && hides_first ? "" : detokenizer.Add(ids[i]));
  }
  pieces.back() += detokenizer.Finish();
  return pieces;
}

}  // namespace

Status CompletionRequest::Read(FieldReader& reader, const ServedModel& model,
                               const ApiOptions& options, std::string_view tenant) {
  DI_RETURN_IF_ERROR(ReadAnswerStyle(reader, model, style));
  DI_RETURN_IF_ERROR(ReadRequestFields(reader, options, tenant, shared_));
  logprobs = shared_.sampling.logprobs;
  wants_prompt_logprobs = shared_.prompt_logprobs.has_value();
  DI_ASSIGN_OR_RETURN(StructuredWish wish, ReadStructuredFields(reader));
  DI_RETURN_IF_ERROR(CheckStructure(wish.output, wish.field));
  shared_.structured = std::move(wish.output);
  if (reader.Find("suffix") != nullptr) reader.Text("suffix", suffix_.emplace());
  DI_RETURN_IF_ERROR(reader.status());
  DI_ASSIGN_OR_RETURN(prompts, ReadPrompts(reader));
  if (suffix_ && style.echo) return InvalidArgument("suffix: cannot be had together with echo");
  if (shared_.max_tokens == 0 && !style.echo && !wants_prompt_logprobs) {
    return InvalidArgument("max_tokens: found 0, which needs echo; expected at least 1");
  }
  const bool scores = (style.echo && logprobs) || shared_.max_tokens == 0;
  if (scores) {
    shared_.prompt_logprobs = std::max(shared_.prompt_logprobs.value_or(0), logprobs.value_or(0));
  }
  return OkStatus();
}

Status CompletionRequest::Encode(const ServedModel& model) {
  for (Prompt& prompt : prompts) {
    Request request = shared_;
    if (!prompt.is_text) {
      if (suffix_) return InvalidArgument("suffix: expected prompt to be a text, found token ids");
      DI_RETURN_IF_ERROR(CheckTokenIds(model, prompt.ids, "prompt"));
      request.prompt_ids = std::move(prompt.ids);
    } else if (suffix_) {
      DI_ASSIGN_OR_RETURN(request.prompt_ids, EncodeInfillPrompt(model, prompt.text, *suffix_));
    } else {
      DI_ASSIGN_OR_RETURN(request.prompt_ids, EncodeTextPrompt(model, prompt.text));
    }
    if (request.prompt_ids.empty()) return InvalidArgument("prompt: expected tokens, found none");
    DI_RETURN_IF_ERROR(FitLength(model, "prompt", request));
    if (style.echo && model.tokenizer != nullptr) {
      prompt.pieces = PiecesOf(request.prompt_ids, prompt.is_text, *model.tokenizer);
    }
    requests.push_back(std::move(request));
  }
  return OkStatus();
}

std::vector<Request> CompletionRequest::TakeRequests() {
  std::vector<Request> taken = requests;
  const bool shows_ids = style.return_token_ids || (style.echo && logprobs);
  for (Request& request : requests) {
    if (!shows_ids) request.prompt_ids = {};
    request.structured = {};
  }
  for (Prompt& prompt : prompts) prompt.text = {};
  return taken;
}

void CompletionRequest::SetSeed(uint64_t drawn) {
  const uint64_t seed = shared_.seed.value_or(drawn);
  for (Request& request : requests) request.seed = seed;
}

}  // namespace deepinfer
