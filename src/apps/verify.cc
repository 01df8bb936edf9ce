// `deepinfer verify`: does this machine give one result, whatever else runs, however it is cut?
#include "apps/answer_collector.h"
#include "apps/command.h"
#include "apps/engine_flags.h"
#include "apps/terminal.h"
#include "apps/verify_matrix.h"
#include "base/progress.h"
#include "model/kv_shape.h"
#include "schedule/replay_plan.h"

namespace deepinfer {
namespace {

constexpr int32_t kNumStepTimes = 1 << 16;

// An engine of a row, with threads of its own, over the weights that are loaded once.
class RowEngine : public VerifyEngine {
 public:
  static StatusOr<std::unique_ptr<VerifyEngine>> Create(LoadedEngine& loaded,
                                                        const VerifySetting& setting,
                                                        int32_t num_requests) {
    EngineCoreOptions options = loaded.core_options();
    options.async = setting.async;
    options.num_step_times = kNumStepTimes;
    options.scheduler.max_num_seqs = setting.max_num_seqs;
    options.scheduler.max_num_batched_tokens = setting.max_num_batched_tokens;
    options.scheduler.prefix_cache = setting.prefix_cache;
    DI_ASSIGN_OR_RETURN(options.scheduler.replay, ParseReplayMode(setting.replay));
    DI_RETURN_IF_ERROR(CheckSchedulerOptions(options.scheduler));

    const KvShape shape = MakeKvShape(loaded.config());
    const int32_t pages_a_request = setting.longest / kTokensPerPage + 1;
    const int32_t at_a_time = setting.pages_for > 0 ? setting.pages_for : num_requests;
    const bool exact = options.scheduler.replay == ReplayMode::kExact;
    const KvMemorySizes sizes = {
        .num_pages = pages_a_request * at_a_time,
        .num_states = setting.max_num_seqs,
        .num_host_pages = setting.host_memory ? pages_a_request * num_requests : 0,
        .num_saves = setting.host_memory ? setting.max_num_seqs : 0,
        .num_slots = setting.prefix_cache ? 3 * num_requests : 0,
        .num_snapshot_rings = exact ? shape.num_rings : options.scheduler.shape.num_encoder_layers};
    auto engine = std::make_unique<RowEngine>();
    engine->threads_ = std::make_unique<ThreadPool>(setting.num_threads);
    DI_ASSIGN_OR_RETURN(engine->instance_,
                        loaded.NewInstance(options, sizes, engine->threads_.get()));
    return engine;
  }

  EngineCore& core() override { return instance_->core(); }

 private:
  std::unique_ptr<ThreadPool> threads_;
  std::unique_ptr<EngineInstance> instance_;
};

std::string Text(const std::vector<VerifyRow>& rows) {
  std::string text;
  const auto cell = [](int64_t number, size_t width) {
    std::string shown = StrCat(number);
    return std::string(width - std::min(width, shown.size()), ' ') + shown;
  };
  text += "                       tokens together chunks cached preempted loaded  masks\n";
  int64_t failed = 0;
  for (const VerifyRow& row : rows) {
    std::string name = row.name;
    name.resize(std::max<size_t>(name.size(), 16), ' ');
    text += StrCat(row.ok ? "ok    " : "FAIL  ", name, cell(row.tokens, 7),
                   cell(row.most_together, 9), cell(row.chunks, 7), cell(row.cached_tokens, 7),
                   cell(row.preemptions, 10), cell(row.pages_loaded, 7), cell(row.masks, 7), "  ",
                   row.ok ? row.about : row.problem, "\n");
    failed += !row.ok;
  }
  return text + StrCat(std::ssize(rows) - failed, " passed, ", failed, " failed\n");
}

std::string Json(const std::vector<VerifyRow>& rows) {
  JsonValue checks{.kind = JsonValue::Kind::kArray};
  int64_t failed = 0;
  for (const VerifyRow& row : rows) {
    JsonValue out = JsonValue::Object();
    out.Set("name", JsonValue::String(row.name));
    out.Set("about", JsonValue::String(row.about));
    out.Set("ok", {.kind = JsonValue::Kind::kBool, .boolean = row.ok});
    if (!row.ok) out.Set("problem", JsonValue::String(row.problem));
    out.Set("tokens", JsonNumber(row.tokens));
    out.Set("most_together", JsonNumber(int64_t{row.most_together}));
    out.Set("chunks", JsonNumber(row.chunks));
    out.Set("cached_tokens", JsonNumber(row.cached_tokens));
    out.Set("preemptions", JsonNumber(row.preemptions));
    out.Set("pages_loaded", JsonNumber(row.pages_loaded));
    out.Set("recomputed", JsonNumber(row.recomputed));
    out.Set("masks", JsonNumber(row.masks));
    checks.items.push_back(std::move(out));
    failed += !row.ok;
  }
  JsonValue out = JsonValue::Object();
  out.Set("checks", std::move(checks));
  out.Set("failed", JsonNumber(failed));
  return DumpJson(out) + "\n";
}

}  // namespace

StatusOr<int> RunVerifyCommand(const CommandContext& context) {
  EngineFlags flags;
  flags.log_level = "warning";
  VerifyOptions verify;
  bool as_json = false;
  OptionSet options("verify",
                    "runs the same requests alone, in batches, in chunks, preempted, from the "
                    "cache, and so on, and compares tokens and log-probabilities bit for bit");
  options.Add({.flag = "requests", .help = "different requests", .min = 4, .max = 1000},
              &verify.num_requests);
  options.Add({.flag = "output-tokens",
               .help = "of each request",
               .unit = "tokens",
               .min = 8,
               .max = kMaxVerifyOutput},
              &verify.output_tokens);
  options.Add({.flag = "seed", .help = "of prompts and sampling"}, &verify.seed);
  options.Add({.flag = "json", .help = "machine-readable"}, &as_json);
  flags.AddLoadingTo(options);  // how requests are run is what the rows vary
  if (const auto code = ParseOptions(options, context)) return *code;
  flags.engine.num_threads = 1;
  flags.engine.max_num_seqs = 1;  // the engine that loads is not the one that runs
  flags.engine.kv_cache_bytes = 1 << 20;
  DI_ASSIGN_OR_RETURN(const auto loaded, LoadWithProgress(flags, context));

  const ModelConfig& config = loaded->config();
  const ReplayShape& shape = loaded->core_options().scheduler.shape;
  verify.vocab_size = config.vocab_size;
  verify.max_model_len = loaded->info().max_model_len;
  verify.window = shape.window;
  verify.replay_keep = shape.keep;
  verify.structured = loaded->grammar_service() != nullptr;
  std::optional<Progress> progress;
  int64_t shown = 0;
  verify.progress = [&](int64_t done, int64_t total) {
    if (!progress) progress.emplace("verifying", "settings", total, context.clock);
    progress->Add(done - std::exchange(shown, done));
  };
  DI_ASSIGN_OR_RETURN(const std::vector<VerifyRow> rows,
                      RunVerifyMatrix(verify, [&](const VerifySetting& setting) {
                        return RowEngine::Create(*loaded, setting, verify.num_requests);
                      }));
  progress.reset();
  DI_RETURN_IF_ERROR(WriteStdout(as_json ? Json(rows) : Text(rows)));
  const bool ok = std::all_of(rows.begin(), rows.end(), [](const VerifyRow& r) { return r.ok; });
  return ok ? kExitOk : kExitFailed;
}

}  // namespace deepinfer
