// request/engine_client.h: the engine as HTTP sees it: requests in, events out.
//
// In this process (apps/local_engine_client) or, later, behind a socket. Everything happens on the
// server's thread: an implementation whose engine lives elsewhere brings events over in one batch a
// step. Handlers run there too, never inside Submit() or Cancel(), and must not block.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "deepinfer/request.h"
#include "tokens/conversation.h"
#include "tokens/prompt_texts.h"
#include "tokens/tokenizer.h"

namespace deepinfer {

// What is served. Does not change while the server runs.
struct ServedModel {
  std::vector<std::string> names;  // the first is the default; GET /v1/models lists them
  std::string fingerprint;         // of weights and settings: system_fingerprint
  int64_t created = 0;             // Unix seconds
  int32_t max_model_len = 0;       // prompt + output, tokens
  int32_t vocab_size = 0;
  const Tokenizer* tokenizer = nullptr;  // null: token ids in and out only
  const PromptTexts* texts = nullptr;    // null: no chat
  Thinking thinking;                     // where a request says nothing
};

// Gauges of now and counters since the start, as of the last step.
struct EngineSnapshot {
  int32_t num_running = 0, num_waiting = 0, num_preempted = 0;
  int32_t max_num_seqs = 0, max_waiting = 0;
  int64_t pages_used = 0, pages_cached = 0, pages_total = 0;
  int64_t steps = 0;
  double step_seconds = 0;  // sum over steps
  int64_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;
  int64_t prefill_rows = 0, decode_rows = 0, replay_rows = 0;
  int64_t preempted = 0, resumed = 0;
  int64_t drafts_verified = 0, drafts_accepted = 0;
  int64_t grammars_compiled = 0, grammars_cached = 0, masks_late = 0;
  double grammar_compile_seconds = 0, mask_seconds = 0;
  int64_t masks = 0;
  double engine_cpu_seconds = 0;  // of the planning thread
  // How long ago the last step ended, while requests run; 0 when idle.
  double seconds_since_step = 0;
};

class EngineClient {
 public:
  using Handler = std::function<void(const Event&)>;

  virtual ~EngineClient() = default;

  virtual const ServedModel& model() const = 0;

  // Events of this request go to `handler`: Ready, then Tokens, then one Finish or Failure a
  // choice. A request that is refused or whose grammar cannot be built gives one Failure (choice 0)
  // and no Ready; then nothing follows, whatever num_choices is.
  virtual RequestId Submit(Request request, Handler handler) = 0;
  // No event of this request comes any more. Ids of ended requests are ignored.
  virtual void Cancel(RequestId request) = 0;

  virtual EngineSnapshot Snapshot() const = 0;
};

}  // namespace deepinfer
