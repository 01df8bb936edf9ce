// request/api.h: the OpenAI-shaped endpoints.
//
//   POST /v1/chat/completions, /chat/completions, /beta/chat/completions
//   POST /v1/completions, /completions, /beta/completions
//   GET  /v1/models, /models, /v1/models/{id}, /models/{id}
//   POST /tokenize, /detokenize, /render
//   GET  /openapi.json
// Every field, and what differs from OpenAI and vLLM: docs/api.md.
// Threads: the server's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/rng.h"
#include "request/engine_client.h"
#include "request/router.h"
#include "request/timers.h"

namespace deepinfer {

struct ApiOptions {
  // The hosted API's own rules: 422 for wrong values, temperature and penalties without effect
  // while thinking, and reasoning_content must come back once tools were used.
  bool deepseek_api = false;
  // Takes forced_token_ids and forced_drafts. For tests.
  bool scripted = false;
  // How long an answer may be silent before a sign of life goes out: a comment in a stream, else an
  // empty line.
  Duration keep_alive = std::chrono::seconds(15);
  // A request that has not begun to run after this is refused with 503.
  Duration queue_timeout = std::chrono::minutes(10);
  // Prompts of more text than this are turned into tokens beside the server's thread.
  int64_t background_prompt_bytes = 64 << 10;
  // Of what is remembered of sampled tool calls, so that later turns repeat them token by token.
  int64_t call_memory_bytes = 64 << 20;
  std::string version;  // of this program, for /openapi.json
};

// What the endpoints use; all pointers outlive the router that they are added to.
struct ApiContext {
  EngineClient* engine = nullptr;
  Timers* timers = nullptr;
  Background* background = nullptr;
  Clock* clock = nullptr;  // `created`
  Rng* rng = nullptr;      // ids of answers and calls
  ApiOptions options;
};

void AddApiRoutes(const ApiContext& context, Router& router);

}  // namespace deepinfer
