// apps/serve_prompts.h: planned requests written as the JSON bodies of an OpenAI-shaped API.
//
// A prompt is token ids where the endpoint takes them (completions): exactly as long as planned.
// Where it takes text (chat), it is English words, as many as bring the planned number of tokens
// by the server's own count; what the template adds is part of the plan.
#pragma once

#include <optional>
#include <string>

#include "apps/serve_traffic.h"
#include "tokens/json.h"

namespace deepinfer {

enum class ServeApi { kCompletions, kChat };

// How many tokens a server counts for text: overhead + per_word * words.
struct WordTokens {
  double overhead = 0, per_word = 1;
};

struct ServeBodyOptions {
  ServeApi api = ServeApi::kCompletions;
  std::string model;
  bool streams = true, ignore_eos = true;
  double temperature = 0;
  int32_t vocab_size = 1000;  // prompts' ids are drawn in [100, vocab_size)
  WordTokens words;
  uint64_t seed = 1;
  JsonValue extra = JsonValue::Object();  // members put into every body, over ours
};

// One line of JSON.
std::string ServeBody(const PlannedRequest& request, const ServeBodyOptions& options);

// A chat of `num_words` words that asks for one token: its usage shows what words cost.
std::string ProbeBody(int32_t num_words, const ServeBodyOptions& options);

}  // namespace deepinfer
