// `deepinfer chat`: a conversation in the terminal. With piped input, a line is a turn, and only
// answers go to stdout.
#include "apps/answer_view.h"
#include "apps/chat_session.h"
#include "apps/command.h"
#include "apps/engine_flags.h"
#include "apps/sampling_flags.h"
#include "apps/structured_flags.h"
#include "apps/terminal.h"
#include "base/log.h"

namespace deepinfer {
namespace {

constexpr std::string_view kHelp =
    "/system TEXT  starts anew with this system text (without TEXT: none)\n"
    "/reset        starts anew, the system text stays\n"
    "/quit         leaves (Ctrl-D too)\n"
    "Ctrl-C        stops the answer\n";

class ChatLoop {
 public:
  ChatLoop(ChatSession session, const CommandContext& context, bool show_thinking)
      : session_(std::move(session)),
        clock_(context.clock),
        terminal_(StdinIsTerminal() && StdoutIsTerminal()),
        show_thinking_(show_thinking) {}

  void SetSystem(const std::string& text) { session_.Reset(text); }

  StatusOr<int> Run() {
    if (terminal_) DI_RETURN_IF_ERROR(WriteStdout("/help lists what else can be typed\n"));
    for (;;) {
      if (terminal_) DI_RETURN_IF_ERROR(WriteStdout("> "));
      const auto line = lines_.Next();
      if (!line && interrupts_.seen()) {
        if (!terminal_) return kExitInterrupted;
        interrupts_.Clear();
        DI_RETURN_IF_ERROR(WriteStdout("\n(/quit or Ctrl-D leaves)\n"));
        continue;
      }
      if (!line || *line == "/quit" || *line == "/exit") return any_failed_ ? kExitFailed : kExitOk;
      if (line->empty()) continue;
      DI_RETURN_IF_ERROR(line->front() == '/' ? Command(*line) : Turn(*line));
    }
  }

 private:
  Status Command(const std::string& line) {
    const size_t space = std::min(line.find(' '), line.size());
    const std::string name = line.substr(0, space);
    const std::string rest = line.substr(std::min(space + 1, line.size()));
    if (name == "/system") {
      session_.Reset(rest);
    } else if (name == "/reset") {
      session_.Reset(session_.system());
    } else if (name == "/help") {
      return WriteStdout(kHelp);
    } else {
      PrintError(StrCat("no command ", name, "; /help lists them"));
    }
    return OkStatus();
  }

  Status Turn(const std::string& text) {
    AnswerView view({.dim_thinking = terminal_, .show_thinking = show_thinking_}, WriteStdout);
    Status output;
    const MonotonicTime start = clock_.Now();
    const auto outcome = session_.Ask(text, {.show =
                                                 [&](const AnswerDelta& delta) {
                                                   output = view.Show(delta);
                                                   return output;
                                                 },
                                             .stop = [&] { return interrupts_.seen(); }});
    DI_RETURN_IF_ERROR(output);
    if (!outcome.ok()) {
      any_failed_ = true;
      PrintError(StrCat("deepinfer chat: ", MessageOf(outcome.status())));
      return OkStatus();
    }
    DI_RETURN_IF_ERROR(view.End());
    DI_RETURN_IF_ERROR(WriteStdout("\n"));
    const double seconds = Seconds(clock_.Now() - start);
    LogInfo(outcome->num_tokens, " tokens in ", seconds, " s; seed ", outcome->seed,
            outcome->reason == FinishReason::kLength      ? "; cut at the length limit"
            : outcome->reason == FinishReason::kCancelled ? "; stopped"
                                                          : "");
    if (outcome->reason == FinishReason::kCancelled) interrupts_.Clear();
    return OkStatus();
  }

  ChatSession session_;
  Clock& clock_;
  const bool terminal_, show_thinking_;
  StdinLines lines_;
  Interrupts interrupts_;
  bool any_failed_ = false;
};

}  // namespace

StatusOr<int> RunChatCommand(const CommandContext& context) {
  EngineFlags engine_flags;
  SamplingFlags sampling;
  StructuredFlags structured;
  sampling.max_tokens = 4096;
  std::string system, effort = "high";
  bool show_thinking = true;
  OptionSet options("chat",
                    "A conversation in the terminal; /help lists what can be typed. With piped "
                    "input, every line is a turn and only answers go to stdout.");
  options.Add({.flag = "system", .help = "the system text"}, &system);
  options.Add({.flag = "effort",
               .help = "how long to think: none, low (50), high (75), max (100) or 1..100"},
              &effort);
  options.Add({.flag = "show-thinking",
               .help = "shows the thinking, dimmed on a terminal; not given: only there"},
              &show_thinking);
  sampling.AddTo(options);
  structured.AddTo(options);
  engine_flags.AddTo(options);
  if (const auto code = ParseOptions(options, context)) return *code;
  if (options.SourceOf("show-thinking") == OptionSource::kDefault) {
    show_thinking = StdinIsTerminal() && StdoutIsTerminal();
  }
  DI_ASSIGN_OR_RETURN(Request request, sampling.ToRequest());
  DI_ASSIGN_OR_RETURN(request.structured, structured.Read(context.disk));
  const auto thinking = ParseEffort(effort);
  if (!thinking.ok()) return Annotate(thinking.status(), "--effort");
  if (request.num_choices != 1) return InvalidArgument("--n: a chat has one answer a turn");
  DI_ASSIGN_OR_RETURN(const auto engine, LoadWithProgress(engine_flags, context));
  if (!request.seed) request.seed = context.rng.NextU64();
  DI_ASSIGN_OR_RETURN(ChatSession session, ChatSession::Create(*engine, request, *thinking));
  ChatLoop loop(std::move(session), context, show_thinking);
  loop.SetSystem(system);
  return loop.Run();
}

}  // namespace deepinfer
