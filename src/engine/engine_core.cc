#include "engine/engine_core.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "base/check.h"
#include "base/no_wait.h"

namespace deepinfer {
namespace {

constexpr int32_t kMaxChoices = 128;
constexpr int32_t kMaxPriority = 1000;
// How long a step that has nothing to run waits for a grammar: what is submitted meanwhile waits
// along.
constexpr auto kGrammarWait = std::chrono::milliseconds(2);

std::array<uint8_t, 32> DrawSecret(Rng& rng) {
  std::array<uint8_t, 32> secret;
  for (size_t i = 0; i < secret.size(); i += 8) {
    const uint64_t word = rng.NextU64();
    std::memcpy(secret.data() + i, &word, sizeof word);
  }
  return secret;
}

CacheSizes SizesOf(const KvMemory& memory) {
  const KvMemorySizes& sizes = memory.sizes();
  return {.num_pages = sizes.num_pages,
          .num_host_pages = sizes.num_host_pages,
          .num_states = sizes.num_states,
          .num_saves = sizes.num_saves,
          .num_slots = sizes.num_slots};
}

}  // namespace

namespace {

// What cannot be enforced, or is too large to be.
Error ToGrammarError(const Status& status) {
  Error error = ToError(status);
  if (status.code() == StatusCode::kUnimplemented) error.code = ErrorCode::kUnsupportedSchema;
  return error;
}

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
      case StatusCode::kDeadlineExceeded:
        return ErrorCode::kDeadlineExceeded;
      case StatusCode::kDataLoss:
        return ErrorCode::kDataLoss;
      default:
        return ErrorCode::kInternal;
    }
  };
  return {code(), MessageOf(status)};
}

EngineCore::EngineCore(EngineBackend backend, const EngineCoreOptions& options)
    : backend_(std::move(backend)),
      options_(options),
      builds_(backend_.grammars),
      mask_workers_(backend_.grammars == nullptr
                        ? nullptr
                        : std::make_unique<MaskWorkers>(options.masks.num_threads)),
      scheduler_(options.scheduler, SizesOf(*backend_.memory)),
      executor_({.forward = backend_.forward,
                 .threads = backend_.threads,
                 .memory = backend_.memory,
                 .drafter = backend_.drafter,
                 .clock = backend_.clock,
                 .masks = mask_workers_.get(),
                 .mask_options = options.masks,
                 .vocab_size = backend_.vocab_size,
                 .eos_id = backend_.eos_id,
                 .prepare = backend_.prepare}),
      cache_root_(CacheRoot(DrawSecret(*backend_.rng), /*generation=*/0, backend_.model_fingerprint,
                            kTokensPerPage)),
      runner_(options.async ? MakeAsyncRunner(&executor_) : MakeSyncRunner(&executor_)) {
  const auto num_seqs = static_cast<size_t>(options.scheduler.max_num_seqs);
  ending_.reserve(2 * num_seqs);
  step_times_.reserve(static_cast<size_t>(options.num_step_times));
  for (StepJob& job : jobs_) {
    job.plan.Reserve(options.scheduler.max_num_seqs, backend_.memory->sizes().num_pages);
    job.copy_runs.reserve(static_cast<size_t>(backend_.memory->sizes().num_pages));
    job.row_runs.reserve(num_seqs);
    job.outcomes.resize(num_seqs);
  }
}

EngineCore::~EngineCore() {
  while (runner_->num_inside() > 0) runner_->Wait();
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
  DI_RETURN_IF_ERROR(CheckPromptLogprobs(request));
  if (std::abs(request.priority) > kMaxPriority) {
    return InvalidArgument("priority: found ", request.priority, ", expected -", kMaxPriority, "..",
                           kMaxPriority);
  }
  if (request.start_deadline_ms &&
      (*request.start_deadline_ms < 0 || *request.start_deadline_ms > kMaxStartDeadlineMs)) {
    return InvalidArgument("start_deadline_ms: found ", *request.start_deadline_ms,
                           ", expected 0..", kMaxStartDeadlineMs, ", a year");
  }
  DI_RETURN_IF_ERROR(CheckSamplingParams(request.sampling, backend_.vocab_size));
  DI_RETURN_IF_ERROR(CheckStructured(request.structured));
  return CheckLengths(request);
}

// The grammar's text is looked at where it is built.
Status EngineCore::CheckStructured(const StructuredOutput& structured) const {
  if (structured.kind == StructuredOutput::Kind::kNone) return OkStatus();
  if (backend_.grammars == nullptr) {
    return FailedPrecondition(
        "structured output: this engine builds no grammars; it needs a tokenizer, and "
        "grammar_workers of at least 1");
  }
  const auto check = [this](std::string_view field, int32_t id) {
    if (id >= 0 && id < backend_.vocab_size) return OkStatus();
    return InvalidArgument(field, ": found token id ", id, ", the model has 0..",
                           backend_.vocab_size - 1);
  };
  for (const int32_t id : structured.trigger_token_ids) {
    DI_RETURN_IF_ERROR(check("trigger_token_ids", id));
  }
  return structured.bound_token_id ? check("bound_token_id", *structured.bound_token_id)
                                   : OkStatus();
}

Status EngineCore::CheckPromptLogprobs(const Request& request) {
  if (!request.prompt_logprobs) return OkStatus();
  const int32_t top = *request.prompt_logprobs;
  if (top < 0 || top > 1000) {
    return InvalidArgument("prompt_logprobs: found ", top, ", expected 0..1000");
  }
  const int64_t count = (int64_t{top} + 1) * std::ssize(request.prompt_ids);
  if (count <= kMaxPromptLogprobs) return OkStatus();
  return InvalidArgument("prompt_logprobs: ", top + 1, " for each of ", request.prompt_ids.size(),
                         " prompt tokens are ", count, ", expected at most ", kMaxPromptLogprobs,
                         "; ask for fewer, or shorten the prompt");
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
  const int64_t most = options_.scheduler.max_model_len - (scoring ? 0 : 1);
  if (num_prompt > most) {
    return InvalidArgument("prompt: ", num_prompt, " tokens, at most ", most,
                           " fit beside the output into max_model_len, ",
                           options_.scheduler.max_model_len);
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
  const int32_t room = options_.scheduler.max_model_len - num_prompt;
  if (request.max_tokens) return std::min(*request.max_tokens, room);
  const int64_t cache_tokens = int64_t{scheduler_.pages().num_pages()} * kTokensPerPage;
  return static_cast<int32_t>(std::clamp<int64_t>(cache_tokens - num_prompt + 1, 1, room));
}

// Tenants never find each other's pages; a salt narrows further.
PageKey EngineCore::RootOf(const Request& request) {
  const PageKey root = NarrowedRoot(cache_root_, request.tenant);
  return request.cache_salt.empty() ? root : NarrowedRoot(root, request.cache_salt);
}

StatusOr<std::unique_ptr<Sequence>> EngineCore::MakeSequence(
    const std::shared_ptr<AdmittedRequest>& owner, int32_t choice, const PageKey& root) const {
  const Request& request = owner->request;
  DI_ASSIGN_OR_RETURN(TextOutput text, TextOutput::Create(request, backend_.tokenizer));
  const std::vector<int32_t>& prompt = request.prompt_ids;
  // What ends the output where a grammar lets it end, even with ignore_eos.
  std::vector<int32_t> sampling_ends = owner->end_ids;
  if (owner->awaits_grammar) sampling_ends.push_back(backend_.eos_id);
  SequenceSampling sampling(request.sampling, owner->seed + static_cast<uint64_t>(choice),
                            sampling_ends, prompt);
  auto sequence = std::make_unique<Sequence>(
      Sequence{.owner = owner,
               .choice = choice,
               .keys = PageKeyChain(root, owner->num_prompt()),
               .run = std::make_unique<SequenceRun>(prompt, owner->max_output, owner->end_ids,
                                                    std::move(sampling)),
               .text = std::move(text)});
  for (const int32_t id : prompt) sequence->keys.Append(id);
  if (sequence->wants_prompt_logprobs()) sequence->run->prompt_logprobs = request.prompt_logprobs;
  if (owner->awaits_grammar) {
    sequence->run->masks = std::make_shared<SequenceMasks>(backend_.vocab_size, sampling_ends);
  }
  return sequence;
}

StatusOr<RequestId> EngineCore::Submit(Request request) {
  DI_RETURN_IF_ERROR(CheckRequest(request));
  auto owner = std::make_shared<AdmittedRequest>();
  owner->max_output = MaxOutput(request);
  owner->seed = request.seed ? *request.seed : backend_.rng->NextU64();
  owner->end_ids = request.sampling.stop_token_ids;
  if (!request.sampling.ignore_eos) owner->end_ids.push_back(backend_.eos_id);
  // What only scores its prompt has no output to match.
  owner->awaits_grammar =
      request.structured.kind != StructuredOutput::Kind::kNone && owner->max_output > 0;
  owner->request = std::move(request);
  owner->id = {next_id_++};
  Admission admission = {.arrival = backend_.clock->Now(), .root = RootOf(owner->request)};
  for (int32_t choice = 0; choice < owner->request.num_choices; ++choice) {
    const Status added = AddChoice(owner, choice, admission);
    if (added.ok()) continue;
    for (const auto& other : sequences_) {  // all choices or none
      if (other != nullptr && other->owner == owner) Drop(*other);
    }
    DropForgotten();
    return added;
  }
  if (owner->awaits_grammar) builds_.Begin(owner->id, owner->request.structured);
  return owner->id;
}

Status EngineCore::AddChoice(const std::shared_ptr<AdmittedRequest>& owner, int32_t choice,
                             Admission& admission) {
  DI_ASSIGN_OR_RETURN(auto sequence, MakeSequence(owner, choice, admission.root));
  const Request& request = owner->request;
  // Their prompt runs exact in every choice, or the first would answer otherwise than the others.
  const bool runs_exact =
      request.prompt_logprobs && options_.scheduler.replay != ReplayMode::kExact;
  sequence->tenant = tenants_.Take(request.tenant);
  SequenceSpec spec = {.tenant = sequence->tenant,
                       .priority = request.priority,
                       .arrival = admission.arrival,
                       .num_prompt = owner->num_prompt(),
                       .max_output = owner->max_output,
                       .keys = &sequence->keys,
                       .whole_prompt = runs_exact || sequence->wants_prompt_logprobs(),
                       .scores_prompt = sequence->wants_prompt_logprobs(),
                       .after = admission.first,
                       .held = owner->awaits_grammar};
  if (request.start_deadline_ms) {
    spec.start_deadline = admission.arrival + std::chrono::milliseconds(*request.start_deadline_ms);
  }
  const StatusOr<SequenceId> added = scheduler_.Add(spec);
  if (!added.ok()) {
    GiveTenantBack(sequence->tenant);
    return added.status();
  }
  if (choice == 0) admission.first = *added;
  sequence->id = *added;
  const auto place = static_cast<size_t>(added->v);
  if (sequences_.size() <= place) sequences_.resize(place + 1);
  sequences_[place] = std::move(sequence);
  return OkStatus();
}

void EngineCore::GiveTenantBack(int32_t tenant) {
  const int32_t forgotten = tenants_.GiveBack(tenant);
  if (forgotten >= 0) scheduler_.ForgetTenant(forgotten);
}

void EngineCore::Cancel(RequestId request) {
  for (const auto& sequence : sequences_) {
    if (sequence == nullptr || sequence->ended || sequence->owner->id != request) continue;
    Finish(*sequence, {.reason = FinishReason::kCancelled});
  }
  DropForgotten();
}

bool EngineCore::HasWork() const {
  return !events_.empty() || runner_->num_inside() > 0 || scheduler_.HasWork();
}

// ---- one step

std::vector<Event> EngineCore::Step() {
  TakeGrammars();
  FailExpired();
  while (runner_->num_inside() < runner_->depth() && PlanNext()) {
  }
  if (runner_->num_inside() > 0) {
    TakeResults(*runner_->Wait());
  } else if (builds_.num_pending() > 0 && events_.empty()) {
    builds_.Wait(kGrammarWait);
  }
  DropForgotten();
  return std::exchange(events_, {});
}

void EngineCore::TakeGrammars() {
  for (ConstraintBuilds::Arrival& arrival : builds_.Take()) {
    std::vector<Sequence*> choices;  // those that did not end meanwhile
    for (const auto& sequence : sequences_) {
      if (sequence == nullptr || sequence->ended || sequence->owner->id != arrival.request)
        continue;
      choices.push_back(sequence.get());
    }
    if (choices.empty()) continue;
    if (arrival.maker.ok()) {
      TakeGrammar(choices, *std::move(arrival.maker));
    } else {
      FailGrammar(choices, arrival.maker.status());
    }
  }
}

void EngineCore::TakeGrammar(std::span<Sequence* const> choices, ConstraintMaker maker) {
  AdmittedRequest& owner = *choices[0]->owner;
  owner.grammar = std::move(maker);
  owner.awaits_grammar = false;
  for (Sequence* const choice : choices) {
    scheduler_.Release(choice->id);
    if (choice->started) BeginMasks(*choice);
  }
}

// Nobody has heard of the request yet: one event tells all.
void EngineCore::FailGrammar(std::span<Sequence* const> choices, const Status& status) {
  stats_.failures += std::ssize(choices);
  events_.push_back(FailureEvent{.request = choices[0]->owner->id,
                                 .choice = choices[0]->choice,
                                 .error = ToGrammarError(status)});
  for (Sequence* const choice : choices) Drop(*choice);
}

// Only what runs has a matcher: what waits may be much more.
void EngineCore::BeginMasks(Sequence& sequence) {
  if (sequence.run->masks->begun()) return;
  sequence.run->masks->Begin(sequence.owner->grammar);
  mask_workers_->Compute(sequence.run->masks);
}

void EngineCore::FailExpired() {
  expired_.clear();
  scheduler_.TakeExpired(backend_.clock->Now(), expired_);
  for (const SequenceId id : expired_) {
    Sequence& sequence = *sequences_[static_cast<size_t>(id.v)];
    if (sequence.ended) continue;  // with its first choice
    Fail(sequence, DeadlineExceeded("request: did not start within its start_deadline_ms, ",
                                    *sequence.owner->request.start_deadline_ms));
  }
}

// Plans one step and hands it over. False: nothing can run now.
bool EngineCore::PlanNext() {
  const int num_inside = runner_->num_inside();
  StepJob& job = jobs_[next_job_];
  const MonotonicTime start = backend_.clock->Now();
  {
    const NoWaitScope no_wait;
    if (!scheduler_.Plan(start, num_inside, job.plan)) return false;
    const auto run_of = [this](SequenceId id) {
      return id.v < 0 ? nullptr : sequences_[static_cast<size_t>(id.v)]->run.get();
    };
    job.copy_runs.clear();
    for (const PlannedCopy& copy : job.plan.copies) {
      job.copy_runs.push_back(run_of(copy.sequence));
      if (copy.kind != CopyKind::kNewState) continue;
      Sequence& starts = *sequences_[static_cast<size_t>(copy.sequence.v)];
      starts.keys.Reserve(starts.owner->num_prompt() + starts.owner->max_output + kMaxDrafts);
      starts.started = true;
      if (starts.owner->grammar) BeginMasks(starts);
    }
    job.row_runs.clear();
    for (const PlannedRows& rows : job.plan.rows) job.row_runs.push_back(run_of(rows.sequence));
  }
  job.plan_seconds = Seconds(backend_.clock->Now() - start);
  if (num_inside > 0) ++(runner_->busy() ? stats_.plans_in_time : stats_.plans_late);
  next_job_ ^= 1;
  runner_->Submit(&job);
  return true;
}

void EngineCore::TakeResults(StepJob& job) {
  const NoWaitScope no_wait;
  ++stats_.steps;
  stats_.step_seconds += job.seconds;
  for (const int32_t copy : job.failed_copies) {
    scheduler_.Forget(job.plan.copies[static_cast<size_t>(copy)]);
  }
  scheduler_.CommitCopies(job.plan);
  for (size_t i = 0; i < job.plan.rows.size(); ++i) {
    TakeOutcome(job.plan.rows[i], job.outcomes[i]);
  }
  const auto lose = [this](SequenceId id) {
    if (!sequences_[static_cast<size_t>(id.v)]->ended) scheduler_.Lose(id);
  };
  for (const int32_t copy : job.failed_copies) {
    lose(job.plan.copies[static_cast<size_t>(copy)].sequence);
  }
  for (size_t i = 0; i < job.plan.rows.size(); ++i) {
    if (job.outcomes[i].starts_anew) lose(job.plan.rows[i].sequence);
  }
  scheduler_.Learn(job.load, job.seconds);
  KeepTimes(job);
}

void EngineCore::KeepTimes(const StepJob& job) {
  if (options_.num_step_times == 0) return;
  const StepTimes times = {.plan_s = job.plan_seconds,
                           .step_s = job.seconds,
                           .rows = job.plan.num_rows,
                           .num_sequences = static_cast<int32_t>(std::ssize(job.plan.rows))};
  if (step_times_.size() < step_times_.capacity()) {
    step_times_.push_back(times);
  } else {
    step_times_[static_cast<size_t>(stats_.steps - 1) % step_times_.size()] = times;
  }
}

void EngineCore::TakeOutcome(const PlannedRows& rows, RowsOutcome& outcome) {
  Sequence& sequence = *sequences_[static_cast<size_t>(rows.sequence.v)];
  const bool ok = outcome.status.ok() && !outcome.dropped;
  if (!sequence.ended) {
    for (int32_t i = 0; i < outcome.num_new; ++i) sequence.keys.Append(outcome.tokens[i]);
  }
  stats_.drafts_verified += outcome.num_drafts;
  stats_.drafts_accepted += std::max(0, outcome.num_new - 1);
  stats_.masks += outcome.num_masks;
  stats_.mask_seconds += outcome.mask_seconds;
  stats_.masks_late += outcome.mask_late;
  scheduler_.Commit(rows, {.ok = ok,
                           .snapshot_taken = outcome.snapshot_taken,
                           .num_computed = outcome.num_computed,
                           .num_tokens = outcome.num_tokens});
  if (sequence.ended) return;  // cancelled, or stopped by a text, while this was in flight
  if (!outcome.status.ok()) return Fail(sequence, outcome.status);
  if (outcome.dropped) return;
  std::move(outcome.prompt_logprobs.begin(), outcome.prompt_logprobs.end(),
            std::back_inserter(sequence.prompt_logprobs));
  if (!sequence.wants_prompt_logprobs() ||
      std::ssize(sequence.prompt_logprobs) == sequence.owner->num_prompt() - 1) {
    SendReady(sequence);
  }
  if (outcome.num_new > 0) return SendTokens(sequence, outcome);
  const bool computed = outcome.num_computed >= sequence.owner->num_prompt();
  if (computed && sequence.owner->max_output == 0) {
    Finish(sequence, {.reason = FinishReason::kLength});
  }
}

// The new tokens, up to what ends the output.
void EngineCore::SendTokens(Sequence& sequence, RowsOutcome& outcome) {
  const AdmittedRequest& owner = *sequence.owner;
  const Request& request = owner.request;
  TokensEvent tokens{
      .request = owner.id, .choice = sequence.choice, .first_idx = sequence.num_output};
  std::optional<FinishEvent> finish;
  for (int32_t i = 0; i < outcome.num_new && !finish; ++i) {
    const int32_t id = outcome.tokens[i];
    const bool stops_count = sequence.num_output >= request.sampling.min_tokens;
    const bool ends = outcome.ends && i + 1 == outcome.num_new;
    const bool full = ++sequence.num_output == owner.max_output;
    TextOutput::Piece piece;
    if (!ends || request.include_stop) piece = sequence.text.Add(id, stops_count);
    if (piece.stop_idx >= 0) {
      finish = FinishEvent{.reason = FinishReason::kStop,
                           .matched_stop = request.stop[static_cast<size_t>(piece.stop_idx)]};
    } else if (ends || full) {
      piece.text += sequence.text.Finish();
      finish = FinishEvent{.reason = ends ? FinishReason::kStop : FinishReason::kLength};
      if (ends) finish->matched_token_id = id;
    }
    tokens.ids.push_back(id);
    tokens.text += piece.text;
    tokens.pieces.push_back(std::move(piece.text));
    if (static_cast<size_t>(i) < outcome.logprobs.size()) {
      tokens.logprobs.push_back(std::move(outcome.logprobs[static_cast<size_t>(i)]));
    }
  }
  stats_.output_tokens += std::ssize(tokens.ids);
  events_.push_back(std::move(tokens));
  if (finish) Finish(sequence, *std::move(finish));
}

void EngineCore::SendReady(Sequence& sequence) {
  AdmittedRequest& owner = *sequence.owner;
  if (owner.awaits_grammar || std::exchange(owner.ready_sent, true)) return;
  events_.push_back(ReadyEvent{.request = owner.id,
                               .seed = owner.seed,
                               .prompt_tokens = owner.num_prompt(),
                               .cached_tokens = scheduler_.num_cached(sequence.id),
                               .prompt_logprobs = std::move(sequence.prompt_logprobs)});
}

// ---- the end

void EngineCore::Finish(Sequence& sequence, FinishEvent how) {
  how.request = sequence.owner->id;
  how.choice = sequence.choice;
  events_.push_back(std::move(how));
  Drop(sequence);
}

void EngineCore::Fail(Sequence& sequence, const Status& status) {
  ++stats_.failures;
  if (status.code() == StatusCode::kDataLoss) scheduler_.Distrust(sequence.id);
  events_.push_back(FailureEvent{
      .request = sequence.owner->id, .choice = sequence.choice, .error = ToError(status)});
  Drop(sequence);
  if (!sequence.wants_prompt_logprobs() || sequence.owner->ready_sent) return;
  // Ready would have to give them before any choice goes on.
  for (const auto& other : sequences_) {
    if (other != nullptr && !other->ended && other->owner == sequence.owner) Fail(*other, status);
  }
}

// Its memory is free at once; the object stays while a plan in flight names it.
void EngineCore::Drop(Sequence& sequence) {
  sequence.ended = true;
  sequence.run->stop.store(true, std::memory_order_relaxed);
  if (sequence.run->masks != nullptr) sequence.run->masks->Cancel();
  scheduler_.Finish(sequence.id);
  ending_.push_back(sequence.id);
}

void EngineCore::DropForgotten() {
  std::erase_if(ending_, [this](SequenceId id) {
    if (scheduler_.Exists(id)) return false;
    GiveTenantBack(sequences_[static_cast<size_t>(id.v)]->tenant);
    sequences_[static_cast<size_t>(id.v)].reset();
    return true;
  });
}

// ---- instruments

EngineStats EngineCore::stats() const {
  EngineStats stats = stats_;
  stats.scheduler = scheduler_.stats();
  return stats;
}

std::vector<StepTimes> EngineCore::step_times() const {
  std::vector<StepTimes> times = step_times_;
  if (!times.empty() && times.size() == step_times_.capacity()) {
    const auto newest = static_cast<int64_t>(static_cast<size_t>(stats_.steps - 1) % times.size());
    std::rotate(times.begin(), times.begin() + newest + 1, times.end());
  }
  return times;
}

void EngineCore::PreemptAll() {
  for (const auto& sequence : sequences_) {
    if (sequence != nullptr && !sequence->ended) scheduler_.RequestPreemption(sequence->id);
  }
}

void EngineCore::ClearCache() {
  while (runner_->num_inside() > 0) TakeResults(*runner_->Wait());
  DropForgotten();
  scheduler_.ClearCache();
}

}  // namespace deepinfer
