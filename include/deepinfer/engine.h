// deepinfer/engine.h: the C++ API: load a checkpoint, submit requests, take events step by step.
//
//   auto engine = deepinfer::Engine::Load({.model = "/models/DeepSeek-V4.1-Flash"});
//   if (!engine.ok()) { print engine.error().message; return 1; }
//   auto ids = (*engine)->EncodeText("Hello");
//   (*engine)->Submit({.prompt_ids = *ids, .max_tokens = 32});
//   while ((*engine)->HasWork())
//     for (const deepinfer::Event& event : (*engine)->Step()) ...
//
// Nothing here throws. Threads: one at a time for an Engine; Load may use several inside.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "deepinfer/request.h"

namespace deepinfer {

// A value, or why there is none. Requires of value(), * and ->: ok().
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : content_(std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : content_(std::move(error)) {}  // NOLINT

  bool ok() const { return content_.index() == 0; }
  const Error& error() const { return *std::get_if<1>(&content_); }
  T& value() { return *std::get_if<0>(&content_); }
  T& operator*() { return value(); }
  T* operator->() { return &value(); }

 private:
  std::variant<T, Error> content_;
};

// All memory that these decide about is taken by Load().
struct EngineOptions {
  std::string model;        // a checkpoint directory, or org/name of one in `hub_cache`
  std::string hub_cache;    // the Hugging Face hub folder; empty: only directories
  int32_t num_threads = 0;  // 0: one for each core this process may use
  // Of the ops: "auto" (avx512 where this processor runs it, else avx2; also "cpu"), "avx2",
  // "avx512", "amx" (sums in an order of its own), or "ref", the slow oracle.
  std::string variant = "auto";
  int32_t max_model_len = 0;              // prompt + output, tokens; 0: the model's own limit
  int32_t max_num_seqs = 64;              // choices that run at the same time
  int32_t max_num_batched_tokens = 2048;  // rows of a step; at least max_num_seqs
  int64_t kv_cache_bytes = 0;             // 0: what max_num_seqs full sequences need, at most 1 GiB
  // Take the chat texts in encoding/ although they are not those that DeepSeek's tokenizer goes
  // with.
  bool encoding_unchecked = false;
  bool scan_weights = true;  // looks at every weight for damage before it is used
  // Where to keep the weights in the order in which the fast forms read them, so that later starts
  // need not make it again: as many bytes as the checkpoint has. Empty: nowhere.
  std::string weights_cache;
  // Where the routed experts and the engram tables live: "ram", "mmap" (the system's page cache) or
  // "disk" (read when needed, a bounded part in memory). Experts elsewhere than in "ram" are read
  // from weights_cache.
  std::string experts = "ram";
  std::string engram = "mmap";
  int64_t expert_cache_bytes = 0;  // of experts = "disk"; 0: a quarter of the free memory

  // ---- scheduling and caches
  // "exact": a prefix hit gives token for token what a cold run gives. "bounded": the decoder half
  // runs on the last replay_keep rows of a prompt only, and a hit without saved window state is
  // recomputed over a window; nearly halves prefill, results are those of exact within a measured
  // bound. "mask": bounded computed the long way, to check it.
  std::string replay = "bounded";
  int32_t replay_keep = 0;        // KEEP, rows; 0: 140, or what the model's window needs
  bool async = true;              // plans the next step while one runs; results are the same
  bool prefix_cache = true;       // prompts that begin alike are computed once
  int32_t max_waiting = 4096;     // choices that wait, at most 65,536; more are refused
  int64_t host_cache_bytes = -1;  // copies of KV pages, and preempted ones; -1: a quarter of KV
  int32_t swa_slots = -1;  // window states kept for prefix hits; -1: 4 for each of max_num_seqs
  int64_t index_scratch_bytes = int64_t{64} << 20;  // of the index selection, all threads together
  int32_t num_step_times = 0;                       // how many steps' times are kept for benchmarks

  // ---- structured output
  // Processes that build grammars at the same time; 0: requests that need one are refused.
  int32_t grammar_workers = 2;
  int32_t grammar_cpu_seconds = 20;                  // of a build; more is refused
  int64_t grammar_memory_bytes = int64_t{4} << 30;   // of a build; more is refused
  int64_t grammar_cache_bytes = int64_t{512} << 20;  // of grammars that are kept
  // Threads that compute masks beside the forward pass, of each kind: for first ones, for quick
  // ones, and for those that take more than 1 ms.
  int32_t mask_threads = 1;
  // For tests: so many drafts a step are verified, as SamplingParams::forced_drafts says; 0: none.
  int32_t scripted_drafts = 0;
  double scripted_pass_s = 0;  // for tests: a pass of the model takes at least so many seconds

  // Called from Load() while it reads weights, now and then; may be empty.
  std::function<void(int64_t done_bytes, int64_t total_bytes)> progress;
};

struct EngineInfo {
  std::string model_directory;
  int32_t vocab_size = 0;
  int32_t max_model_len = 0;
  bool has_tokenizer = false;   // without: token ids in, token ids out
  bool random_weights = false;  // a test checkpoint: its text is noise
};

class Engine {
 public:
  static Result<std::unique_ptr<Engine>> Load(const EngineOptions& options);
  ~Engine();

  const EngineInfo& info() const;

  // BOS and the text as it stands. Errors: kFailedPrecondition without a tokenizer.
  Result<std::vector<int32_t>> EncodeText(std::string_view text) const;
  // A conversation in OpenAI's JSON: an array of messages, or an object with "messages" and what
  // else steers the prompt ("tools", "response_format", "reasoning_effort", ...).
  // Errors: kInvalidArgument naming the field; kFailedPrecondition without tokenizer or encoding/.
  Result<std::vector<int32_t>> EncodeChat(std::string_view messages_json) const;
  // Errors: kFailedPrecondition without a tokenizer.
  Result<std::string> Decode(const std::vector<int32_t>& ids) const;

  // Queues a request. Errors: kInvalidArgument naming the field, its range and what was found;
  // kResourceExhausted if the KV cache could not hold it even alone.
  Result<RequestId> Submit(Request request);
  // Ends what is left of a request; its memory is free at once. Choices that had not ended get
  // their Finish from the next Step(). Ids of ended requests are ignored.
  void Cancel(RequestId request);
  bool HasWork() const;
  // Runs one forward pass over everything that can run. Returns what happened, in order.
  std::vector<Event> Step();

 private:
  struct Parts;
  explicit Engine(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace deepinfer
