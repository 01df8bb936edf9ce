// deepinfer/sampling.h: how the next token is chosen, and what is told about the choice. Plain
// data.
//
// The defaults sample from the model's own distribution. Filters act in the order of this struct's
// first part; a tie is always won by the lowest token id.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace deepinfer {

struct SamplingParams {
  // ---- what may be sampled, in the order in which it acts on the logits
  std::vector<int32_t> banned_token_ids;  // never sampled
  // Output tokens before which neither EOS nor a stop id is sampled and stop strings do not count.
  int32_t min_tokens = 0;
  std::vector<std::pair<int32_t, double>> logit_bias;  // (id, added to the logit), -100..100
  // > 1 makes tokens of prompt and output less likely: a logit > 0 is divided by it, else
  // multiplied.
  double repetition_penalty = 1;
  double frequency_penalty = 0;  // subtracted once for each time the token is in the output, -2..2
  double presence_penalty = 0;   // subtracted if the token is in the output, -2..2
  // Divides the logits. 0: the largest logit wins, whatever the seed; the filters below and the
  // seed play no part.
  double temperature = 1;  // 0..100
  double min_p = 0;        // drops tokens less likely than min_p times the likeliest, 0..1
  int32_t top_k = 0;       // keeps the k likeliest; 0 or -1: all
  double top_p = 1;        // keeps the likeliest ones whose sum first reaches top_p, 0 < p <= 1

  // ---- when it ends
  bool ignore_eos = false;              // EOS is a token like any other
  std::vector<int32_t> stop_token_ids;  // end the output as EOS does

  // ---- what is forced: output token i is forced_token_ids[i] as long as there is one.
  // But one that structured output forbids is not forced.
  std::vector<int32_t> forced_token_ids;
  // For tests, with EngineOptions::scripted_drafts: how many of the drafts of each step are the
  // next forced ids, in turn; the others are wrong. Empty: all are right.
  std::vector<int32_t> forced_drafts;

  // ---- what is reported
  // Set: the log-probability of every output token, and of the n likeliest, 0..1000.
  std::optional<int32_t> logprobs;
  // Reported values are of the distribution that was sampled from (after all of the above) instead
  // of the model's own. Tokens that were filtered away are -infinity.
  bool filtered_logprobs = false;
};

struct TokenLogprob {
  int32_t id = 0;
  double logprob = 0;  // natural logarithm of the probability
};

// The log-probabilities at one position.
struct PositionLogprobs {
  TokenLogprob token;             // the one that stands there
  std::vector<TokenLogprob> top;  // the likeliest, likeliest first, lower ids first among equals
};

}  // namespace deepinfer
