#include <csignal>
#include <optional>

#include "apps/command.h"
#include "apps/environment.h"
#include "apps/terminal.h"
#include "kernels/device/device.h"

namespace deepinfer {
namespace {

struct Command {
  std::string_view name;
  std::string_view about;
  StatusOr<int> (*run)(const CommandContext&);
};

constexpr Command kCommands[] = {
    {"generate", "text from prompts: one, or JSONL in and JSONL out", RunGenerateCommand},
    {"chat", "a conversation in the terminal", RunChatCommand},
    {"serve", "an HTTP server with OpenAI's API", RunServeCommand},
    {"eval", "perplexity of a text (eval ppl FILE), accuracy on exercises (eval tasks)",
     RunEvalCommand},
    {"inspect", "what a checkpoint holds, what is wrong with it, what memory it needs",
     RunInspectCommand},
    {"bench", "how fast the ops run here, beside the machine's ceilings", RunBenchCommand},
    {"selftest", "compares every op with its oracle, or a checkpoint with golden data",
     RunSelftestCommand},
    {"verify", "one result, whatever else runs and however it is cut: checked here, bit for bit",
     RunVerifyCommand},
};

std::string Help() {
  std::string text = "Usage: deepinfer COMMAND [options]\n\nCommands:\n";
  for (const Command& c : kCommands) {
    text += StrCat("  ", c.name, std::string(10 - c.name.size(), ' '), c.about, "\n");
  }
  return text +
         "\n`deepinfer COMMAND --help` lists a command's options. --version: how this was built.\n";
}

std::string Version() { return StrCat("deepinfer ", DI_VERSION, "\n", AcceleratorNote(), "\n"); }

// Which device computes is decided by the build; the variable must not say something else.
Status CheckAccelerator(const Environment& environment) {
  const auto at = environment.find("DEEPINFER_ACCELERATOR");
  if (at == environment.end() || at->second.empty() || at->second == "cpu" ||
      at->second == "nvidia") {
    return OkStatus();
  }
  return InvalidArgument("DEEPINFER_ACCELERATOR: found \"", at->second,
                         "\", expected cpu or nvidia");
}

int Print(const std::string& text) {
  const Status written = WriteStdout(text);
  if (!written.ok()) PrintError(StrCat("deepinfer: ", MessageOf(written)));
  return written.ok() ? kExitOk : kExitFailed;
}

}  // namespace

std::optional<int> ParseOptions(OptionSet& options, const CommandContext& context) {
  const Status parsed =
      options.Parse(context.arguments, {.environment = context.environment, .disk = context.disk});
  if (!parsed.ok()) {
    PrintError(StrCat("deepinfer: ", MessageOf(parsed)));
    return kExitUsage;
  }
  if (options.help_requested()) return Print(options.HelpText());
  return std::nullopt;
}

int RunCommandLine(const std::vector<std::string>& arguments) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed stdout is an error that WriteStdout reports
  const std::string name = arguments.empty() ? "--help" : arguments[0];
  if (name == "--help" || name == "-h" || name == "help") {
    return std::max(Print(Help()), arguments.empty() ? kExitUsage : kExitOk);
  }
  if (name == "--version") return Print(Version());
  Environment environment = ProcessEnvironment();
  if (const Status status = CheckAccelerator(environment); !status.ok()) {
    PrintError(StrCat("deepinfer: ", MessageOf(status)));
    return kExitUsage;
  }
  for (const Command& command : kCommands) {
    if (command.name != name) continue;
    const auto code = command.run({.arguments = {arguments.begin() + 1, arguments.end()},
                                   .environment = std::move(environment),
                                   .disk = RealDisk(),
                                   .clock = RealClock(),
                                   .rng = RealRng()});
    if (code.ok()) return *code;
    PrintError(StrCat("deepinfer ", name, ": ", MessageOf(code.status())));
    return kExitFailed;
  }
  PrintError(StrCat("deepinfer: no command \"", name, "\"; `deepinfer --help` lists them"));
  return kExitUsage;
}

}  // namespace deepinfer
