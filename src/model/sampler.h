// model/sampler.h: from a row of logits to the next token of one sequence.
//
// Order of what acts on the logits: banned ids, the grammar's mask, min_tokens, logit_bias,
// repetition penalty (tokens of prompt and output), frequency and presence penalties (output),
// temperature, min_p, top_k, top_p; each filter sees the distribution that the ones before it left.
// That is the order of vLLM. Ties are won by the lowest id everywhere: among equal logits at
// temperature 0, at the border of top_k and top_p, in the lists of log-probabilities.
// All arithmetic is F64 in a fixed order, so a choice depends on logits, parameters, seed, position
// and the sequence's own tokens alone. Threads: one at a time for a Sampler (it owns scratch).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "deepinfer/sampling.h"

namespace deepinfer {

// Ranges of every field. Errors: kInvalidArgument naming field, range and what was found.
Status CheckSamplingParams(const SamplingParams& params, int32_t vocab_size);

// What sampling knows of one sequence: its parameters, its seed and the tokens it counts.
class SequenceSampling {
 public:
  // end_ids: tokens that would end the output (EOS, stop ids), kept away for min_tokens.
  // Requires: CheckSamplingParams passed.
  SequenceSampling(const SamplingParams& params, uint64_t seed, std::vector<int32_t> end_ids,
                   std::span<const int32_t> prompt);

  // The next output token is `token`.
  void Accept(int32_t token);

  const SamplingParams& params() const { return params_; }
  uint64_t seed() const { return seed_; }
  int32_t num_output() const { return num_output_; }

 private:
  friend class Sampler;
  struct Count {
    bool in_prompt = false;
    int32_t in_output = 0;
  };

  const SamplingParams params_;
  const uint64_t seed_;
  const std::vector<int32_t> end_ids_;
  int32_t num_output_ = 0;
  std::unordered_map<int32_t, Count> counts_;  // only when a penalty needs it
};

struct SampledToken {
  int32_t id = 0;
  std::optional<PositionLogprobs> logprobs;
};

class Sampler {
 public:
  // The token at `position` (its index in prompt + output) of `sequence`, from raw logits [V].
  // allowed: what a grammar allows, bit i % 32 of word i / 32; null: all. It goes before
  // forced_token_ids, and before min_tokens where it leaves nothing but what ends the output.
  // Errors: kDataLoss for a logit that is not finite, kInvalidArgument if nothing may be sampled.
  StatusOr<SampledToken> Sample(const SequenceSampling& sequence, std::span<const float> logits,
                                int64_t position, const uint32_t* allowed = nullptr);

 private:
  struct Candidate {
    double score = 0;  // processed logit; after Temper(): (it - the largest) / temperature
    int32_t id = 0;
  };
  // Higher score first, then lower id.
  static bool Before(const Candidate& a, const Candidate& b) {
    return a.score != b.score ? a.score > b.score : a.id < b.id;
  }

  // Whether no ban, min_tokens, bias or penalty acts on the logits.
  static bool LeavesLogitsAlone(const SequenceSampling& sequence);
  void Penalise(const SequenceSampling& sequence);
  void Mask(const SequenceSampling& sequence, const uint32_t* allowed);
  bool OnlyEndsAreLeft(const SequenceSampling& sequence) const;
  void CollectCandidates();
  void Temper(double temperature);
  void KeepMinP(double min_p);
  void KeepTopK(int32_t top_k);
  void KeepTopP(double top_p);
  int32_t Greedy() const;
  int32_t Draw(uint64_t seed, int64_t position) const;
  PositionLogprobs FilteredLogprobs(int32_t token, int32_t num_top) const;

  std::vector<double> scores_;         // [V] processed logits, -infinity: masked
  std::vector<Candidate> candidates_;  // what may still be sampled
};

}  // namespace deepinfer
