// `deepinfer serve`: the HTTP server with the engine inside.
#include <csignal>
#include <cstdlib>
#include <memory>
#include <thread>

#include "apps/bundled_model.h"
#include "apps/command.h"
#include "apps/local_engine_client.h"
#include "apps/paced_engine_client.h"
#include "apps/serve_flags.h"
#include "apps/served_model.h"
#include "apps/terminal.h"
#include "base/log.h"
#include "request/api.h"
#include "request/event_loop.h"
#include "request/page.h"
#include "request/server.h"

namespace deepinfer {
namespace {

// Drafts a step that requests of tests may force.
constexpr int32_t kScriptedDrafts = 5;

// From the bound port to the last answer. The server's thread runs beside the command's, which
// loads the model.
class Serving {
 public:
  Serving(const ServeFlags& flags, const CommandContext& context)
      : flags_(flags), context_(context), loop_(context.clock) {}

  StatusOr<int> Run() {
    DI_ASSIGN_OR_RETURN(ServerOptions options, flags_.ToServerOptions(context_.disk));
    DI_ASSIGN_OR_RETURN(server_,
                        Server::Listen(loop_, context_.clock, context_.rng, std::move(options)));
    AddPageRoutes(server_->router());
    loop_.OnSignals({SIGINT, SIGTERM}, [this](int) { OnSignal(); });
    std::thread thread([this] { loop_.RunUntilStopped(); });
    const Status loaded = Load();
    if (!loaded.ok()) loop_.Stop();
    thread.join();
    server_.reset();  // its requests end before the engine does
    DI_RETURN_IF_ERROR(loaded);
    return exit_code_;
  }

 private:
  // The command's thread.
  Status Load() {
    EngineFlags flags = flags_.engine;
    if (flags_.scripted) flags.engine.scripted_drafts = kScriptedDrafts;
    flags.engine.scripted_pass_s = flags_.scripted_pass_ms / 1000;
    ApplyLogLevel(flags.log_level);
    DI_RETURN_IF_ERROR(ChooseModel(context_.disk, &flags.engine.model));
    DI_ASSIGN_OR_RETURN(engine_, LoadWithProgress(flags, context_));
    DI_ASSIGN_OR_RETURN(ServedModel model,
                        DescribeModel(*engine_,
                                      {.model = flags.engine.model,
                                       .served_names = flags_.served_names,
                                       .thinking = flags_.default_thinking,
                                       .created = context_.clock.Wall().ns / 1'000'000'000},
                                      context_.disk));
    if (flags_.paced_tokens_per_s > 0) {
      if (model.tokenizer == nullptr) return InvalidArgument("--scripted-engine: no tokenizer");
      client_ =
          std::make_unique<PacedEngineClient>(std::move(model), loop_, flags_.paced_tokens_per_s);
    } else {
      client_ = std::make_unique<LocalEngineClient>(
          engine_->core(), std::move(model), loop_, context_.clock,
          LocalEngineOptions{.stall_timeout = StallTimeout(),
                             .fill_snapshot = [this](EngineSnapshot& now) { AddGrammars(now); }});
    }
    loop_.Post([this] { Open(); });
    return OkStatus();
  }

  void AddGrammars(EngineSnapshot& now) const {
    if (engine_->grammar_service() == nullptr) return;
    const GrammarServiceStats stats = engine_->grammar_service()->stats();
    now.grammars_compiled = stats.built + stats.failed;
    now.grammars_cached = stats.hits + stats.joined;
    now.grammar_compile_seconds = stats.build_seconds;
  }

  Duration StallTimeout() const {
    return std::chrono::milliseconds(static_cast<int64_t>(flags_.stall_timeout_s * 1000));
  }

  // ---- the server's thread
  void Open() {
    AddApiRoutes({.engine = client_.get(),
                  .timers = &loop_,
                  .background = &loop_,
                  .clock = &context_.clock,
                  .rng = &context_.rng,
                  .options = flags_.ToApiOptions()},
                 server_->router());
    server_->SetEngine(client_.get());
    open_ = true;
    LogInfo("serving ", client_->model().names.front(), " at ", server_->url(), ", up to ",
            client_->model().max_model_len, " tokens a request (Ctrl-C ends it)");
  }

  void OnSignal() {
    if (!open_) {  // loading cannot be interrupted, and nothing would be lost
      PrintError("deepinfer serve: interrupted while loading");
      std::_Exit(kExitInterrupted);
    }
    if (draining_) return End(kExitInterrupted);
    draining_ = true;
    LogInfo("ending: running requests may go on for ", flags_.drain_timeout_s,
            " s; a second signal ends them at once");
    server_->Drain([this] { End(kExitOk); });
    drain_timer_ = loop_.RunAfter(
        std::chrono::milliseconds(static_cast<int64_t>(flags_.drain_timeout_s * 1000)), [this] {
          LogWarning("requests still ran after --drain-timeout; they are cut off");
          End(kExitFailed);
        });
  }

  void End(int exit_code) {
    exit_code_ = exit_code;
    drain_timer_.reset();
    server_->Close();
    loop_.Stop();
  }

  const ServeFlags& flags_;
  const CommandContext& context_;
  EventLoop loop_;
  std::unique_ptr<LoadedEngine> engine_;
  std::unique_ptr<EngineClient> client_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Timer> drain_timer_;
  bool open_ = false, draining_ = false;
  int exit_code_ = kExitOk;
};

}  // namespace

StatusOr<int> RunServeCommand(const CommandContext& context) {
  ServeFlags flags;
  OptionSet options("serve",
                    "An HTTP server with the API of OpenAI (docs/api.md, docs/serving.md).");
  flags.AddTo(options);
  if (const auto code = ParseOptions(options, context)) return *code;
  SetLogFormat(flags.log_format == "json" ? LogFormat::kJson : LogFormat::kText);
  return Serving(flags, context).Run();
}

}  // namespace deepinfer
