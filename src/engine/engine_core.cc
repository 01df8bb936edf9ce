#include "engine/engine_core.h"

#include <algorithm>

#include "base/check.h"
#include "model/logprobs.h"

namespace deepinfer {
namespace {

constexpr int32_t kMaxChoices = 128;

int32_t NumPages(int32_t num_tokens) { return (num_tokens + kTokensPerPage - 1) / kTokensPerPage; }

}  // namespace

Error ToError(const Status& status) {
  const auto code = [&] {
    switch (status.code()) {
      case StatusCode::kOk:
        return ErrorCode::kOk;
      case StatusCode::kInvalidArgument:
        return ErrorCode::kInvalidArgument;
      case StatusCode::kNotFound:
        return ErrorCode::kNotFound;
      case StatusCode::kFailedPrecondition:
      case StatusCode::kUnimplemented:
        return ErrorCode::kFailedPrecondition;
      case StatusCode::kResourceExhausted:
        return ErrorCode::kResourceExhausted;
      case StatusCode::kDataLoss:
        return ErrorCode::kDataLoss;
      default:
        return ErrorCode::kInternal;
    }
  };
  return {code(), MessageOf(status)};
}

Status CheckEngineLimits(const EngineLimits& limits) {
  if (limits.max_model_len < kMinModelLen) {
    return InvalidArgument("max_model_len: found ", limits.max_model_len, ", expected at least ",
                           kMinModelLen, " (one prompt token and one output token)");
  }
  if (limits.max_num_seqs < 1) {
    return InvalidArgument("max_num_seqs: found ", limits.max_num_seqs, ", expected at least 1");
  }
  if (limits.max_num_batched_tokens < limits.max_num_seqs) {
    return InvalidArgument("max_num_batched_tokens: found ", limits.max_num_batched_tokens,
                           ", expected at least max_num_seqs, ", limits.max_num_seqs);
  }
  return OkStatus();
}

EngineCore::EngineCore(EngineBackend backend, const EngineLimits& limits)
    : backend_(std::move(backend)), limits_(limits) {
  CHECK(CheckEngineLimits(limits).ok());
}

// ---- admission

Status EngineCore::CheckRequest(const Request& request) const {
  if (request.prompt_ids.empty()) {
    return InvalidArgument("prompt: no tokens, expected at least one");
  }
  for (size_t i = 0; i < request.prompt_ids.size(); ++i) {
    const int32_t id = request.prompt_ids[i];
    if (id < 0 || id >= backend_.vocab_size) {
      return InvalidArgument("prompt: token ", i, " is id ", id, ", the model has 0..",
                             backend_.vocab_size - 1);
    }
  }
  if (request.num_choices < 1 || request.num_choices > kMaxChoices) {
    return InvalidArgument("n: found ", request.num_choices, ", expected 1..", kMaxChoices);
  }
  if (request.prompt_logprobs &&
      (*request.prompt_logprobs < 0 || *request.prompt_logprobs > 1000)) {
    return InvalidArgument("prompt_logprobs: found ", *request.prompt_logprobs,
                           ", expected 0..1000");
  }
  DI_RETURN_IF_ERROR(CheckSamplingParams(request.sampling, backend_.vocab_size));
  return CheckLengths(request);
}

Status EngineCore::CheckLengths(const Request& request) const {
  if (request.max_tokens && *request.max_tokens < 0) {
    return InvalidArgument("max_tokens: found ", *request.max_tokens, ", expected at least 1");
  }
  const bool scoring = request.max_tokens == 0;
  if (scoring && !request.prompt_logprobs) {
    return InvalidArgument("max_tokens: found 0, which needs prompt_logprobs; expected at least 1");
  }
  const auto num_prompt = static_cast<int64_t>(request.prompt_ids.size());
  const int64_t most = limits_.max_model_len - (scoring ? 0 : 1);
  if (num_prompt > most) {
    return InvalidArgument("prompt: ", num_prompt, " tokens, at most ", most,
                           " fit beside the output into max_model_len, ", limits_.max_model_len);
  }
  if (request.max_tokens && request.sampling.min_tokens > *request.max_tokens) {
    return InvalidArgument("min_tokens: found ", request.sampling.min_tokens,
                           ", expected at most max_tokens, ", *request.max_tokens);
  }
  return OkStatus();
}

// What fits into max_model_len; without a wish of the client also what the KV cache can hold.
int32_t EngineCore::MaxOutput(const Request& request) const {
  const auto num_prompt = static_cast<int32_t>(request.prompt_ids.size());
  const int32_t room = limits_.max_model_len - num_prompt;
  if (request.max_tokens) return std::min(*request.max_tokens, room);
  const int64_t cache_tokens = int64_t{backend_.pages->num_pages()} * kTokensPerPage;
  return static_cast<int32_t>(std::clamp<int64_t>(cache_tokens - num_prompt + 1, 1, room));
}

StatusOr<RequestId> EngineCore::Submit(Request request) {
  DI_RETURN_IF_ERROR(CheckRequest(request));
  auto owner = std::make_shared<AdmittedRequest>();
  owner->max_output = MaxOutput(request);
  owner->seed = request.seed ? *request.seed : backend_.rng->NextU64();
  owner->end_ids = request.sampling.stop_token_ids;
  if (!request.sampling.ignore_eos) owner->end_ids.push_back(backend_.eos_id);
  owner->request = std::move(request);
  const int32_t needed = NumPages(owner->max_rows());
  if (needed > backend_.pages->num_pages()) {
    return ResourceExhausted("request: prompt of ", owner->num_prompt(), " and up to ",
                             owner->max_output, " output tokens need ", needed,
                             " KV pages, the cache has ", backend_.pages->num_pages(),
                             "; lower max_tokens or raise kv_cache_bytes");
  }

  std::vector<std::unique_ptr<Sequence>> sequences;
  for (int32_t choice = 0; choice < owner->request.num_choices; ++choice) {
    DI_ASSIGN_OR_RETURN(TextOutput text, TextOutput::Create(owner->request, backend_.tokenizer));
    const std::vector<int32_t>& prompt = owner->request.prompt_ids;
    sequences.push_back(std::make_unique<Sequence>(Sequence{
        .owner = owner,
        .choice = choice,
        .tokens = prompt,
        .sampling =
            SequenceSampling(owner->request.sampling, owner->seed + static_cast<uint64_t>(choice),
                             owner->end_ids, prompt),
        .text = std::move(text)}));
  }
  owner->id = {next_id_++};
  std::move(sequences.begin(), sequences.end(), std::back_inserter(waiting_));
  return owner->id;
}

void EngineCore::Cancel(RequestId request) {
  const auto end = [&](std::unique_ptr<Sequence>& sequence) {
    if (sequence->owner->id != request) return false;
    Finish(*sequence, {.reason = FinishReason::kCancelled}, pending_);
    return true;
  };
  std::erase_if(running_, end);
  std::erase_if(waiting_, end);
}

void EngineCore::StartWaiting(std::vector<Event>& events) {
  while (!waiting_.empty() && num_running() < limits_.max_num_seqs) {
    Sequence& next = *waiting_.front();
    const int32_t num_rows = next.owner->max_rows();
    if (NumPages(num_rows) > backend_.pages->num_free()) break;  // until a running choice ends
    next.kv = std::make_unique<ReservedKv>(backend_.kv_shape, backend_.pages);
    CHECK(next.kv->Reserve(num_rows).ok());
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    if (!running_.back()->owner->request.prompt_logprobs) SendReady(*running_.back(), events);
  }
  // Submit() refused what the whole pool cannot hold, so an idle engine can start anything.
  CHECK(waiting_.empty() || !running_.empty());
}

// ---- one step

std::vector<Event> EngineCore::Step() {
  std::vector<Event> events = std::exchange(pending_, {});
  StartWaiting(events);
  if (running_.empty()) return events;
  const std::vector<PlannedRows> plan = Plan();
  const StatusOr<std::span<const float>> computed = backend_.forward(MakeBatch(plan));
  if (computed.ok()) {
    AdvanceAll(plan, *computed, events);
  } else {
    for (const PlannedRows& rows : plan)
      Fail(*running_[static_cast<size_t>(rows.sequence)], computed.status(), events);
  }
  std::erase_if(running_, [](const std::unique_ptr<Sequence>& s) { return s->ended; });
  return events;
}

void EngineCore::AdvanceAll(const std::vector<PlannedRows>& plan, std::span<const float> logits,
                            std::vector<Event>& events) {
  for (const PlannedRows& rows : plan) {
    Sequence& sequence = *running_[static_cast<size_t>(rows.sequence)];
    const int64_t used = Advance(sequence, rows, logits, events);
    logits = logits.subspan(static_cast<size_t>(used * backend_.vocab_size));
  }
  CHECK(logits.empty());
}

std::vector<PlannedRows> EngineCore::Plan() const {
  std::vector<SequenceView> views;
  for (const auto& s : running_) {
    // All choices of such a request keep the pace of the first, whose Ready comes before them.
    const bool scored = s->owner->request.prompt_logprobs.has_value();
    views.push_back({.num_tokens = s->num_tokens(),
                     .num_computed = s->num_computed,
                     .max_rows = scored ? kMaxLogitsRows : 0});
  }
  return PlanStep(views, limits_.max_num_batched_tokens);
}

ForwardBatch EngineCore::MakeBatch(const std::vector<PlannedRows>& plan) const {
  ForwardBatch batch;
  for (const PlannedRows& rows : plan) {
    Sequence& s = *running_[static_cast<size_t>(rows.sequence)];
    const bool last = rows.end == s.num_tokens();
    const bool prompt = s.wants_prompt_logprobs() && rows.begin < s.owner->num_prompt();
    batch.segments.push_back({.kv = &s.kv->kv(),
                              .tokens = s.tokens.data(),
                              .begin = rows.begin,
                              .end = rows.end,
                              .logits_begin = prompt ? rows.begin
                                              : last ? rows.end - 1
                                                     : kNoPosition});
  }
  return batch;
}

int64_t EngineCore::Advance(Sequence& sequence, const PlannedRows& rows,
                            std::span<const float> logits, std::vector<Event>& events) {
  const auto row = [&](int64_t i) {
    const auto vocab = static_cast<size_t>(backend_.vocab_size);
    return logits.subspan(static_cast<size_t>(i) * vocab, vocab);
  };
  const bool last = rows.end == sequence.num_tokens();
  const int32_t num_prompt = sequence.owner->num_prompt();
  const bool prompt = sequence.wants_prompt_logprobs() && rows.begin < num_prompt;
  sequence.num_computed = rows.end;
  if (prompt) {
    for (int32_t p = rows.begin; p < std::min(rows.end, num_prompt - 1) && !sequence.ended; ++p) {
      if (const Status s = CheckFinite(row(p - rows.begin)); !s.ok()) {
        Fail(sequence, Annotate(s, "prompt position ", p), events);
        break;
      }
      RecordPromptLogprobs(sequence, p, row(p - rows.begin));
    }
  }
  const int64_t used = prompt ? rows.end - rows.begin : last ? 1 : 0;
  if (last && !sequence.ended) SampleNext(sequence, row(used - 1), events);
  return used;
}

void EngineCore::RecordPromptLogprobs(Sequence& sequence, int32_t position,
                                      std::span<const float> row) {
  sequence.prompt_logprobs.push_back(RawLogprobs(row,
                                                 sequence.tokens[static_cast<size_t>(position) + 1],
                                                 *sequence.owner->request.prompt_logprobs));
}

void EngineCore::SampleNext(Sequence& sequence, std::span<const float> row,
                            std::vector<Event>& events) {
  AdmittedRequest& owner = *sequence.owner;
  SendReady(sequence, events);
  if (owner.max_output == 0) {
    return Finish(sequence, {.reason = FinishReason::kLength}, events);
  }
  auto sampled = sampler_.Sample(sequence.sampling, row, sequence.num_tokens());
  if (!sampled.ok()) {
    return Fail(sequence, Annotate(sampled.status(), "position ", sequence.num_tokens()), events);
  }

  const int32_t output_idx = sequence.sampling.num_output();
  const bool stops_count = output_idx >= owner.request.sampling.min_tokens;
  const bool ends = stops_count && owner.Ends(sampled->id);
  const bool full = output_idx + 1 == owner.max_output;
  sequence.tokens.push_back(sampled->id);
  sequence.sampling.Accept(sampled->id);
  TextOutput::Piece piece;
  if (!ends || owner.request.include_stop) piece = sequence.text.Add(sampled->id, stops_count);
  const bool stopped = piece.stop_idx >= 0;
  if ((ends || full) && !stopped) piece.text += sequence.text.Finish();

  TokensEvent tokens{.request = owner.id,
                     .choice = sequence.choice,
                     .first_idx = output_idx,
                     .ids = {sampled->id},
                     .text = std::move(piece.text)};
  if (sampled->logprobs) tokens.logprobs.push_back(*std::move(sampled->logprobs));
  events.push_back(std::move(tokens));
  if (stopped) {
    const auto& stop = owner.request.stop[static_cast<size_t>(piece.stop_idx)];
    Finish(sequence, {.reason = FinishReason::kStop, .matched_stop = stop}, events);
  } else if (ends) {
    Finish(sequence, {.reason = FinishReason::kStop, .matched_token_id = sampled->id}, events);
  } else if (full) {
    Finish(sequence, {.reason = FinishReason::kLength}, events);
  }
}

void EngineCore::SendReady(Sequence& sequence, std::vector<Event>& events) {
  AdmittedRequest& owner = *sequence.owner;
  if (std::exchange(owner.ready_sent, true)) return;
  events.push_back(ReadyEvent{.request = owner.id,
                              .seed = owner.seed,
                              .prompt_tokens = owner.num_prompt(),
                              .prompt_logprobs = std::move(sequence.prompt_logprobs)});
}

void EngineCore::Finish(Sequence& sequence, FinishEvent how, std::vector<Event>& events) {
  how.request = sequence.owner->id;
  how.choice = sequence.choice;
  events.push_back(std::move(how));
  sequence.ended = true;
  sequence.kv.reset();
}

void EngineCore::Fail(Sequence& sequence, const Status& status, std::vector<Event>& events) {
  events.push_back(FailureEvent{
      .request = sequence.owner->id, .choice = sequence.choice, .error = ToError(status)});
  sequence.ended = true;
  sequence.kv.reset();
}

}  // namespace deepinfer
