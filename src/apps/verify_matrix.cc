#include "apps/verify_matrix.h"

#include <algorithm>
#include <map>

#include "base/rng.h"

namespace deepinfer {
namespace {

// What a request gave, as far as it must not depend on anything else.
struct Given {
  std::vector<int32_t> ids;
  std::vector<double> logprobs;  // of each token and of the likeliest ones
  std::string failure;
};

struct Row {
  std::string name, about;
  VerifySetting setting;
  bool together = true;       // all requests at once; else one after the other
  int32_t preempt_every = 0;  // steps; 0: never
  int32_t runs = 1;           // the last one counts
  const char* reference = "exact";
  // What must have happened.
  int32_t needs_together = 0;
  int64_t needs_chunks = 0;    // more than one a request
  bool needs_waiting = false;  // never all of them in one step
  bool needs_hits = false, needs_preemptions = false, needs_loads = false, needs_recomputed = false;
};

std::vector<Row> Rows(const VerifyOptions& options) {
  const int32_t n = options.num_requests;
  std::vector<Row> rows;
  const auto add = [&](Row row) { rows.push_back(std::move(row)); };
  add({.name = "alone", .about = "each request again by itself", .together = false});
  add({.name = "batch",
       .about = "all requests together",
       .setting = {.max_num_seqs = n},
       .needs_together = std::min(n, 2)});
  for (const int32_t budget : {1, 7, 64}) {
    add({.name = StrCat("chunk-", budget),
         .about = StrCat("prompts in chunks of at most ", budget, " rows"),
         .setting = {.max_num_batched_tokens = budget},
         .together = false,
         .needs_chunks = 1});
  }
  add({.name = "preempted",
       .about = "everything that runs is preempted again and again",
       .setting = {.max_num_seqs = n},
       .preempt_every = 3,
       .needs_together = std::min(n, 2),
       .needs_preemptions = true});
  add({.name = "recomputed",
       .about = "the same without host memory: what is preempted is computed again",
       .setting = {.max_num_seqs = n, .host_memory = false},
       .preempt_every = 3,
       .needs_together = std::min(n, 2),
       .needs_recomputed = true});
  add({.name = "few-pages",
       .about = "pages for one long request: the others wait their turn",
       .setting = {.max_num_seqs = n, .pages_for = 1},
       .needs_waiting = true});
  add({.name = "cache-hit",
       .about = "each prompt a second time, from cached pages and window states",
       .setting = {.prefix_cache = true, .max_num_seqs = n},
       .runs = 2,
       .needs_hits = true});
  add({.name = "host-tier",
       .about = "hits on pages that had been evicted to host memory",
       .setting = {.prefix_cache = true, .pages_for = 1},
       .together = false,
       .runs = 2,
       .needs_hits = true,
       .needs_loads = true});
  add({.name = "async",
       .about = "the next step planned while one runs",
       .setting = {.async = true, .prefix_cache = true, .max_num_seqs = n},
       .preempt_every = 3,
       .runs = 2,
       .needs_together = std::min(n, 2),
       .needs_hits = true,
       .needs_preemptions = true});
  add({.name = "threads-2",
       .about = "two threads instead of one",
       .setting = {.num_threads = 2, .max_num_seqs = n},
       .needs_together = std::min(n, 2)});
  add({.name = "bounded",
       .about = "bounded replay against its oracle, mask, alone",
       .setting = {.replay = "bounded"},
       .together = false,
       .reference = "mask"});
  add({.name = "bounded-chunks",
       .about = "the same in chunks of 64, in a batch, preempted, planned ahead",
       .setting = {.replay = "bounded",
                   .async = true,
                   .max_num_seqs = n,
                   .max_num_batched_tokens = std::max(64, n)},
       .preempt_every = 3,
       .reference = "mask",
       .needs_together = std::min(n, 2),
       .needs_chunks = 1,
       .needs_preemptions = true});
  return rows;
}

class Matrix {
 public:
  Matrix(const VerifyOptions& options, const MakeVerifyEngine& make)
      : options_(options), make_(make), requests_(MakeRequests()) {}

  StatusOr<std::vector<VerifyRow>> Run() {
    const std::vector<Row> rows = Rows(options_);
    const auto num_runs = static_cast<int64_t>(rows.size() + 2);
    int64_t done = 0;
    const auto step = [&] {
      if (options_.progress) options_.progress(++done, num_runs);
    };
    for (const char* replay : {"exact", "mask"}) {
      VerifyRow ignored;
      DI_ASSIGN_OR_RETURN(
          references_[replay],
          RunOne({.name = "reference", .setting = {.replay = replay}, .together = false}, ignored));
      step();
    }
    std::vector<VerifyRow> results;
    for (const Row& row : rows) {
      VerifyRow& result = results.emplace_back();
      result.name = row.name;
      result.about = row.about;
      DI_ASSIGN_OR_RETURN(const std::vector<Given> given, RunOne(row, result));
      result.problem = Compare(references_[row.reference], given, result);
      if (result.problem.empty()) result.problem = WhatDidNotHappen(row, result);
      result.ok = result.problem.empty();
      step();
    }
    return results;
  }

 private:
  // Lengths around the window, the kept rows and page ends; greedy and sampled in turn, some of
  // them structured.
  std::vector<Request> MakeRequests() const {
    SeededRng rng(options_.seed);
    const int32_t w = options_.window, keep = options_.replay_keep;
    const int32_t lengths[] = {300, 1,  keep + 3,   65,       w + 1,        449,
                               5,   64, 2 * 64 + 9, keep - 1, 2 * keep + 1, w + keep};
    std::vector<Request> requests;
    for (int32_t i = 0; i < options_.num_requests; ++i) {
      const int32_t most = options_.max_model_len - options_.output_tokens;
      const int32_t length = std::clamp(lengths[i % std::ssize(lengths)], 1, most);
      Request request = {
          .max_tokens = options_.output_tokens,
          .sampling = {.temperature = i % 2 * 1.0, .ignore_eos = true, .logprobs = 3},
          .seed = rng.NextU64()};
      if (options_.structured && i % 3 == 2) {
        request.structured = {.kind = StructuredOutput::Kind::kRegex, .text = "[^0-9]*"};
      }
      const auto range = static_cast<uint64_t>(options_.vocab_size - options_.min_token);
      for (int32_t t = 0; t < length; ++t) {
        request.prompt_ids.push_back(options_.min_token + static_cast<int32_t>(rng.Uniform(range)));
      }
      requests.push_back(std::move(request));
    }
    return requests;
  }

  StatusOr<std::vector<Given>> RunOne(const Row& row, VerifyRow& result) {
    VerifySetting setting = row.setting;
    for (const Request& request : requests_) {
      const auto tokens = static_cast<int32_t>(request.prompt_ids.size()) + *request.max_tokens;
      setting.longest = std::max(setting.longest, tokens);
    }
    DI_ASSIGN_OR_RETURN(const std::unique_ptr<VerifyEngine> engine, make_(setting));
    EngineCore& core = engine->core();
    std::vector<Given> given;
    for (int32_t run = 0; run < row.runs; ++run) {
      given.assign(requests_.size(), {});
      if (row.together) {
        DI_RETURN_IF_ERROR(RunSome(core, 0, requests_.size(), row, given));
        continue;
      }
      for (size_t i = 0; i < requests_.size(); ++i) {
        DI_RETURN_IF_ERROR(RunSome(core, i, i + 1, row, given));
      }
    }
    const EngineStats stats = core.stats();
    result.chunks = stats.scheduler.chunks;
    result.cached_tokens = stats.scheduler.cached_tokens;
    result.preemptions = stats.scheduler.preempted;
    result.pages_loaded = stats.scheduler.pages_loaded;
    result.recomputed = stats.scheduler.preempt_recomputed;
    result.masks = stats.masks;
    for (const StepTimes& times : core.step_times()) {
      result.most_together = std::max(result.most_together, times.num_sequences);
    }
    return given;
  }

  Status RunSome(EngineCore& core, size_t begin, size_t end, const Row& row,
                 std::vector<Given>& given) {
    std::map<RequestId, size_t> place;
    for (size_t i = begin; i < end; ++i) {
      DI_ASSIGN_OR_RETURN(const RequestId id, core.Submit(requests_[i]));
      place[id] = i;
    }
    for (int32_t step = 1; core.HasWork(); ++step) {
      if (row.preempt_every > 0 && step % row.preempt_every == 0) core.PreemptAll();
      for (const Event& event : core.Step()) {
        if (const auto* tokens = std::get_if<TokensEvent>(&event)) {
          Given& to = given[place[tokens->request]];
          to.ids.insert(to.ids.end(), tokens->ids.begin(), tokens->ids.end());
          for (const PositionLogprobs& at : tokens->logprobs) {
            to.logprobs.push_back(at.token.logprob);
            for (const TokenLogprob& top : at.top) to.logprobs.push_back(top.logprob);
          }
        } else if (const auto* failure = std::get_if<FailureEvent>(&event)) {
          given[place[failure->request]].failure = failure->error.message;
        }
      }
    }
    return OkStatus();
  }

  // The first difference, or "".
  std::string Compare(const std::vector<Given>& expected, const std::vector<Given>& given,
                      VerifyRow& result) const {
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto where = StrCat("request ", i, " (", requests_[i].prompt_ids.size(), " tokens)");
      if (!given[i].failure.empty()) return StrCat(where, ": ", given[i].failure);
      result.tokens += std::ssize(given[i].ids);
      const auto [a, b] = std::mismatch(expected[i].ids.begin(), expected[i].ids.end(),
                                        given[i].ids.begin(), given[i].ids.end());
      if (a != expected[i].ids.end() || b != given[i].ids.end()) {
        return StrCat(where, ": other tokens from output ", a - expected[i].ids.begin(), " on");
      }
      if (expected[i].logprobs != given[i].logprobs) {
        return StrCat(where, ": the same tokens with other log-probabilities");
      }
    }
    return "";
  }

  std::string WhatDidNotHappen(const Row& row, const VerifyRow& seen) const {
    if (seen.tokens == 0) return "no tokens were compared";
    if (seen.most_together < row.needs_together) return "no two requests shared a step";
    if (row.needs_waiting && seen.most_together >= options_.num_requests) {
      return "no request had to wait";
    }
    const auto whole = static_cast<int64_t>(requests_.size()) * row.runs;
    if (row.needs_chunks > 0 && seen.chunks <= whole) return "no prompt was cut into chunks";
    if (row.needs_hits && seen.cached_tokens == 0) return "nothing was found in the cache";
    if (row.needs_preemptions && seen.preemptions == 0) return "nothing was preempted";
    if (row.needs_loads && seen.pages_loaded == 0) return "no page came from host memory";
    if (options_.structured && seen.masks == 0) return "no structured output had masks";
    if (row.needs_recomputed && seen.recomputed == 0) return "nothing was computed again";
    return "";
  }

  const VerifyOptions& options_;
  const MakeVerifyEngine& make_;
  const std::vector<Request> requests_;
  std::map<std::string, std::vector<Given>> references_;
};

}  // namespace

StatusOr<std::vector<VerifyRow>> RunVerifyMatrix(const VerifyOptions& options,
                                                 const MakeVerifyEngine& make) {
  if (options.output_tokens > kMaxVerifyOutput) {
    return InvalidArgument("output_tokens: found ", options.output_tokens, ", expected at most ",
                           kMaxVerifyOutput);
  }
  if (options.max_model_len < 2 * options.output_tokens) {
    return InvalidArgument("max_model_len: found ", options.max_model_len, ", expected at least ",
                           2 * options.output_tokens, ", twice the output tokens");
  }
  return Matrix(options, make).Run();
}

}  // namespace deepinfer
