// apps/options.h: what a command can be told, declared once each: flags > environment > TOML file >
// default.
//
// A command owns a plain struct of values, declares one Option per value and calls Parse(). The
// value that stands in the struct at Add() is the default and is printed by --help. The parsing
// library stays behind options.cc, the TOML library behind config_file.cc.
//
//   GenerateFlags flags;
//   OptionSet options("generate", "Produces text from a prompt.");
//   options.Add({.flag = "max-tokens", .help = "most tokens to produce", .unit = "tokens",
//                .min = 1, .max = 1 << 20}, &flags.max_tokens);
//   DI_RETURN_IF_ERROR(options.Parse(arguments, {environment, RealDisk()}));
//   if (options.help_requested()) { print options.HelpText(); return; }
//
// Every set has --help and --config FILE of its own. Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/disk.h"
#include "base/status.h"

namespace deepinfer {

// Name -> value, as the process was started with.
using Environment = std::map<std::string, std::string>;

// Where a value comes from and what it may be. Everything but `flag` and `help` may be left out.
struct Option {
  std::string flag;              // long name without dashes; also its key in a TOML file
  std::string environment = {};  // variable that sets it too; empty: none
  std::string help;              // what it does, without unit, range and default
  std::string unit = {};         // of a number: "tokens", "bytes"; of a text: "DIR", "FILE"
  std::optional<double> min = {}, max = {};  // inclusive; numbers only
  std::vector<std::string> choices = {};     // texts only; empty: any
  bool positional = false;                   // may be given without its flag, in the order of Add()
};

// A bool is a switch (--x, --no-x); a vector may be given several times and by a TOML array (from
// the environment: separated by commas); an optional has no default.
using OptionTarget =
    std::variant<bool*, int32_t*, int64_t*, uint64_t*, double*, std::string*,
                 std::vector<std::string>*, std::optional<int32_t>*, std::optional<int64_t>*,
                 std::optional<uint64_t>*, std::optional<double>*, std::optional<std::string>*>;

enum class OptionSource { kDefault, kFile, kEnvironment, kFlag };

// What Parse() reads beside the arguments.
struct OptionInputs {
  const Environment& environment;
  Disk& disk;  // for --config
};

class OptionSet {
 public:
  // command: as typed after `deepinfer`. about: one or two sentences for --help.
  OptionSet(std::string command, std::string about);

  // Requires: a new flag name; `target` outlives Parse() and is written by it.
  void Add(Option option, OptionTarget target);

  // arguments: what follows the command's name. Fills every target, or none on failure.
  // Errors: kInvalidArgument, one line naming the source (flag, variable, or file and key), what
  // was found and what is accepted; as Disk::ReadText for the file of --config. Variables named
  // DEEPINFER_* that mean nothing: one warning line a call (environment.h).
  Status Parse(const std::vector<std::string>& arguments, const OptionInputs& inputs);

  // True after Parse() saw --help or -h; then no target was written and nothing was checked.
  bool help_requested() const { return help_requested_; }
  std::string HelpText() const;

  // Where the value of a declared flag came from at the last Parse().
  OptionSource SourceOf(const std::string& flag) const;

 private:
  struct Entry {
    Option option;
    OptionTarget target;
    OptionSource source = OptionSource::kDefault;
  };
  struct Given {  // raw texts of one option, before they are checked
    std::vector<std::string> texts;
    std::string where;  // for messages: "--max-tokens", "DEEPINFER_X", "a.toml: max-tokens"
    OptionSource source;
  };
  using GivenByFlag = std::map<std::string, Given>;

  Status ReadFlags(const std::vector<std::string>& arguments, std::string& config_path,
                   GivenByFlag& given);
  void ReadEnvironment(const Environment& environment, GivenByFlag& given) const;
  Status ReadFile(const std::string& path, Disk& disk, GivenByFlag& given) const;
  Status Store(const GivenByFlag& given);

  const std::string command_, about_;
  std::vector<Entry> entries_;
  bool help_requested_ = false;
};

}  // namespace deepinfer
