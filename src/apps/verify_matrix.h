// apps/verify_matrix.h: the determinism matrix: the same requests under many settings, compared bit
// for bit.
//
// A row proves nothing if the thing that it is about did not happen: each says how many tokens,
// chunks, hits, preemptions and page loads it saw, and fails without its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/engine_core.h"

namespace deepinfer {

// How an engine is to be made for a row.
struct VerifySetting {
  std::string replay = "exact";
  bool async = false;
  bool prefix_cache = false;
  int32_t num_threads = 1;
  int32_t max_num_seqs = 1;
  int32_t max_num_batched_tokens = 2048;
  int32_t longest = 0;  // tokens of the longest request, prompt and output
  // Pages of the device for as many of the longest requests as this; 0: for all.
  int32_t pages_for = 0;
  bool host_memory = true;  // for copies of pages and for what is preempted
};

class VerifyEngine {
 public:
  virtual ~VerifyEngine() = default;
  virtual EngineCore& core() = 0;
};
using MakeVerifyEngine =
    std::function<StatusOr<std::unique_ptr<VerifyEngine>>(const VerifySetting&)>;

inline constexpr int32_t kMaxVerifyOutput = 1 << 20;  // tokens

struct VerifyOptions {
  int32_t num_requests = 10;
  int32_t output_tokens = 24;  // of each, at most kMaxVerifyOutput
  int32_t vocab_size = 0;
  int32_t max_model_len = 0;
  int32_t window = 128;  // lengths lie around it and around replay_keep
  int32_t replay_keep = 140;
  int32_t min_token = 0;    // ids of prompts are drawn from [min_token, vocab_size)
  bool structured = false;  // every third request has structured output
  uint64_t seed = 1;
  std::function<void(int64_t done, int64_t total)> progress;
};

struct VerifyRow {
  std::string name;
  std::string about;
  bool ok = false;
  std::string problem;        // why not
  int64_t tokens = 0;         // compared, with their log-probabilities
  int32_t most_together = 0;  // sequences in one step
  int64_t chunks = 0, cached_tokens = 0, preemptions = 0, pages_loaded = 0;
  int64_t recomputed = 0;  // preemptions that saved nothing
  int64_t masks = 0;       // of structured output
};

// Errors: as `make`; a row that differs is no error.
StatusOr<std::vector<VerifyRow>> RunVerifyMatrix(const VerifyOptions& options,
                                                 const MakeVerifyEngine& make);

}  // namespace deepinfer
