// apps/command.h: what every subcommand of the one binary gets and gives back.
#pragma once

#include <string>
#include <vector>

#include "apps/options.h"
#include "base/clock.h"
#include "base/disk.h"
#include "base/rng.h"
#include "base/status.h"

namespace deepinfer {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;         // the work failed, in whole or in part
inline constexpr int kExitUsage = 2;          // it never started: flags, environment, configuration
inline constexpr int kExitInterrupted = 130;  // Ctrl-C

struct CommandContext {
  std::vector<std::string> arguments;  // what follows the command's name
  Environment environment;
  Disk& disk;
  Clock& clock;
  Rng& rng;
};

// One a file apps/<command>.cc. An error is printed as one line "deepinfer <command>: ..."; the
// exit code is then kExitFailed.
StatusOr<int> RunGenerateCommand(const CommandContext& context);
StatusOr<int> RunChatCommand(const CommandContext& context);
StatusOr<int> RunServeCommand(const CommandContext& context);
StatusOr<int> RunEvalCommand(const CommandContext& context);
StatusOr<int> RunEvalTasksCommand(const CommandContext& context);  // eval tasks
StatusOr<int> RunInspectCommand(const CommandContext& context);
StatusOr<int> RunBenchCommand(const CommandContext& context);
StatusOr<int> RunBenchServeCommand(const CommandContext& context);  // bench serve
StatusOr<int> RunSelftestCommand(const CommandContext& context);
StatusOr<int> RunVerifyCommand(const CommandContext& context);

// Reads the options; prints and returns the exit code if that is all there is to do (--help, or a
// mistake in them).
std::optional<int> ParseOptions(OptionSet& options, const CommandContext& context);

// The whole program: argv[1] is the command.
int RunCommandLine(const std::vector<std::string>& arguments);

}  // namespace deepinfer
