#include "model/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "model/logprobs.h"
#include "model/noise.h"

namespace deepinfer {
namespace {

constexpr double kMasked = -std::numeric_limits<double>::infinity();

Status CheckRange(std::string_view field, double value, double min, double max) {
  if (value >= min && value <= max) return OkStatus();  // false for NaN
  return InvalidArgument(field, ": found ", value, ", expected ", min, "..", max);
}

Status CheckIds(std::string_view field, const std::vector<int32_t>& ids, int32_t vocab_size) {
  for (const int32_t id : ids) {
    if (id >= 0 && id < vocab_size) continue;
    return InvalidArgument(field, ": found token id ", id, ", the model has 0..", vocab_size - 1);
  }
  return OkStatus();
}

bool NeedsCounts(const SamplingParams& p) {
  return p.repetition_penalty != 1 || p.frequency_penalty != 0 || p.presence_penalty != 0;
}

bool Allows(const uint32_t* allowed, size_t id) {
  return allowed == nullptr || (allowed[id / 32] >> (id % 32) & 1) != 0;
}

// In lanes, so that the compiler makes it vectors. Requires: finite, not empty.
float Largest(std::span<const float> values) {
  constexpr size_t kLanes = 16;
  float lanes[kLanes];
  std::ranges::fill(lanes, values[0]);
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) {
      const float value = values[i + j];
      lanes[j] = value > lanes[j] ? value : lanes[j];
    }
  }
  for (; i < values.size(); ++i) lanes[0] = std::max(lanes[0], values[i]);
  return *std::ranges::max_element(lanes);
}

// The first of the largest: which block it is in, then where in there.
int32_t Argmax(std::span<const float> values) {
  constexpr size_t kBlock = 1024;
  std::span<const float> best;
  float largest = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < values.size(); i += kBlock) {
    const auto block = values.subspan(i, std::min(kBlock, values.size() - i));
    const float block_largest = Largest(block);
    if (block_largest <= largest) continue;
    largest = block_largest;
    best = block;
  }
  return static_cast<int32_t>(std::ranges::find(best, largest) - best.begin() +
                              (best.data() - values.data()));
}

}  // namespace

Status CheckSamplingParams(const SamplingParams& p, int32_t vocab_size) {
  DI_RETURN_IF_ERROR(CheckRange("temperature", p.temperature, 0, 100));
  DI_RETURN_IF_ERROR(CheckRange("min_p", p.min_p, 0, 1));
  if (p.top_k < -1) {
    return InvalidArgument("top_k: found ", p.top_k, ", expected at least 1, or 0 or -1 for all");
  }
  if (!(p.top_p > 0 && p.top_p <= 1)) {
    return InvalidArgument("top_p: found ", p.top_p, ", expected more than 0 and at most 1");
  }
  if (!(p.repetition_penalty > 0 && p.repetition_penalty <= 100)) {
    return InvalidArgument("repetition_penalty: found ", p.repetition_penalty,
                           ", expected more than 0 and at most 100");
  }
  DI_RETURN_IF_ERROR(CheckRange("frequency_penalty", p.frequency_penalty, -2, 2));
  DI_RETURN_IF_ERROR(CheckRange("presence_penalty", p.presence_penalty, -2, 2));
  for (const auto& [id, bias] : p.logit_bias) {
    DI_RETURN_IF_ERROR(CheckIds("logit_bias", {id}, vocab_size));
    DI_RETURN_IF_ERROR(CheckRange("logit_bias", bias, -100, 100));
  }
  if (p.min_tokens < 0) {
    return InvalidArgument("min_tokens: found ", p.min_tokens, ", expected at least 0");
  }
  if (p.logprobs) DI_RETURN_IF_ERROR(CheckRange("logprobs", *p.logprobs, 0, 1000));
  DI_RETURN_IF_ERROR(CheckIds("banned_token_ids", p.banned_token_ids, vocab_size));
  DI_RETURN_IF_ERROR(CheckIds("stop_token_ids", p.stop_token_ids, vocab_size));
  return CheckIds("forced_token_ids", p.forced_token_ids, vocab_size);
}

SequenceSampling::SequenceSampling(const SamplingParams& params, uint64_t seed,
                                   std::vector<int32_t> end_ids, std::span<const int32_t> prompt)
    : params_(params), seed_(seed), end_ids_(std::move(end_ids)) {
  if (!NeedsCounts(params_)) return;
  for (const int32_t id : prompt) counts_[id].in_prompt = true;
}

void SequenceSampling::Accept(int32_t token) {
  ++num_output_;
  if (NeedsCounts(params_)) ++counts_[token].in_output;
}

StatusOr<SampledToken> Sampler::Sample(const SequenceSampling& sequence,
                                       std::span<const float> logits, int64_t position,
                                       const uint32_t* allowed) {
  const SamplingParams& p = sequence.params_;
  DI_RETURN_IF_ERROR(CheckFinite(logits));
  const auto output_idx = static_cast<size_t>(sequence.num_output_);
  const bool forced = output_idx < p.forced_token_ids.size() &&
                      Allows(allowed, static_cast<size_t>(p.forced_token_ids[output_idx]));
  const bool filtered = p.logprobs && p.filtered_logprobs;

  SampledToken result;
  // Now, so that no later row takes memory in the middle of a step.
  scores_.reserve(logits.size());
  candidates_.reserve(logits.size());
  if (p.temperature == 0 && allowed == nullptr && !filtered && LeavesLogitsAlone(sequence)) {
    candidates_ = {{0, Argmax(logits)}};
  } else if (!forced || filtered) {
    scores_.assign(logits.begin(), logits.end());
    Mask(sequence, allowed);
    for (const auto& [id, bias] : p.logit_bias) scores_[static_cast<size_t>(id)] += bias;
    Penalise(sequence);
    CollectCandidates();
    if (candidates_.empty()) {
      return InvalidArgument(allowed == nullptr
                                 ? "banned_token_ids: every token is banned, one must be left"
                                 : "banned_token_ids: all that the grammar allows here is banned");
    }
    if (p.temperature == 0) {
      candidates_ = {{0, Greedy()}};
    } else {
      Temper(p.temperature);
      if (p.min_p > 0) KeepMinP(p.min_p);
      if (p.top_k > 0) KeepTopK(p.top_k);
      if (p.top_p < 1) KeepTopP(p.top_p);
    }
  }
  result.id = forced ? p.forced_token_ids[output_idx] : Draw(sequence.seed_, position);
  if (p.logprobs) {
    result.logprobs = filtered ? FilteredLogprobs(result.id, *p.logprobs)
                               : RawLogprobs(logits, result.id, *p.logprobs);
  }
  return result;
}

bool Sampler::LeavesLogitsAlone(const SequenceSampling& sequence) {
  const SamplingParams& p = sequence.params_;
  const bool may_end = sequence.num_output_ >= p.min_tokens || sequence.end_ids_.empty();
  return may_end && p.banned_token_ids.empty() && p.logit_bias.empty() && sequence.counts_.empty();
}

void Sampler::Mask(const SequenceSampling& sequence, const uint32_t* allowed) {
  const SamplingParams& p = sequence.params_;
  for (const int32_t id : p.banned_token_ids) scores_[static_cast<size_t>(id)] = kMasked;
  if (allowed != nullptr) {
    for (size_t id = 0; id < scores_.size(); ++id) {
      if (!Allows(allowed, id)) scores_[id] = kMasked;
    }
  }
  if (sequence.num_output_ >= p.min_tokens) return;
  if (allowed != nullptr && OnlyEndsAreLeft(sequence)) return;
  for (const int32_t id : sequence.end_ids_) scores_[static_cast<size_t>(id)] = kMasked;
}

bool Sampler::OnlyEndsAreLeft(const SequenceSampling& sequence) const {
  const std::vector<int32_t>& ends = sequence.end_ids_;
  for (size_t id = 0; id < scores_.size(); ++id) {
    if (scores_[id] == kMasked) continue;
    if (std::find(ends.begin(), ends.end(), static_cast<int32_t>(id)) == ends.end()) return false;
  }
  return true;
}

void Sampler::Penalise(const SequenceSampling& sequence) {
  const SamplingParams& p = sequence.params_;
  for (const auto& [id, count] : sequence.counts_) {
    double& score = scores_[static_cast<size_t>(id)];
    score = score > 0 ? score / p.repetition_penalty : score * p.repetition_penalty;
    score -= p.frequency_penalty * count.in_output;
    if (count.in_output > 0) score -= p.presence_penalty;
  }
}

void Sampler::CollectCandidates() {
  candidates_.clear();
  for (size_t id = 0; id < scores_.size(); ++id) {
    if (scores_[id] != kMasked) candidates_.push_back({scores_[id], static_cast<int32_t>(id)});
  }
}

int32_t Sampler::Greedy() const {
  return std::min_element(candidates_.begin(), candidates_.end(), Before)->id;
}

// Subtracting the largest first keeps tiny temperatures from overflowing, and equal logits equal.
void Sampler::Temper(double temperature) {
  const double largest = std::min_element(candidates_.begin(), candidates_.end(), Before)->score;
  for (Candidate& c : candidates_) c.score = (c.score - largest) / temperature;
}

// p(token) / p(likeliest) = exp(score), because the likeliest has score 0.
void Sampler::KeepMinP(double min_p) {
  const double least = std::log(min_p);
  std::erase_if(candidates_, [&](const Candidate& c) { return c.score < least; });
}

void Sampler::KeepTopK(int32_t top_k) {
  if (static_cast<size_t>(top_k) >= candidates_.size()) return;
  std::partial_sort(candidates_.begin(), candidates_.begin() + top_k, candidates_.end(), Before);
  candidates_.resize(static_cast<size_t>(top_k));
}

// Takes candidates from a heap, likeliest first, until their share reaches top_p: the tail of a
// large vocabulary is never sorted.
void Sampler::KeepTopP(double top_p) {
  double total = 0;
  for (const Candidate& c : candidates_) total += std::exp(c.score);
  const auto after = [](const Candidate& a, const Candidate& b) { return Before(b, a); };
  std::make_heap(candidates_.begin(), candidates_.end(), after);
  double sum = 0;
  auto end = candidates_.end();
  while (end != candidates_.begin() && sum < top_p * total) {
    std::pop_heap(candidates_.begin(), end, after);
    --end;
    sum += std::exp(end->score);
  }
  // What was taken lies from there on, likeliest last.
  candidates_.erase(candidates_.begin(), end);
  std::reverse(candidates_.begin(), candidates_.end());
}

// Gumbel-max. A token whose score cannot reach the best one even with the largest noise is skipped
// without computing its noise; that changes no result.
int32_t Sampler::Draw(uint64_t seed, int64_t position) const {
  if (candidates_.size() == 1) return candidates_[0].id;
  const PositionNoise noise(seed, position);
  const Candidate first = *std::min_element(candidates_.begin(), candidates_.end(), Before);
  Candidate best = {first.score + noise.Gumbel(first.id), first.id};
  for (const Candidate& c : candidates_) {
    if (c.score + kGumbelMax < best.score) continue;
    const Candidate next = {c.score + noise.Gumbel(c.id), c.id};
    if (Before(next, best)) best = next;
  }
  return best.id;
}

PositionLogprobs Sampler::FilteredLogprobs(int32_t token, int32_t num_top) const {
  std::vector<Candidate> sorted = candidates_;
  std::sort(sorted.begin(), sorted.end(), Before);
  double sum = 0;
  for (const Candidate& c : sorted) sum += std::exp(c.score - sorted[0].score);
  const double log_sum = sorted[0].score + std::log(sum);
  PositionLogprobs result{.token = {token, kMasked}};
  for (const Candidate& c : sorted) {
    if (c.id == token) result.token.logprob = c.score - log_sum;
    if (static_cast<int32_t>(result.top.size()) < num_top) {
      result.top.push_back({c.id, c.score - log_sum});
    }
  }
  return result;
}

}  // namespace deepinfer
