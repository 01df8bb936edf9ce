// apps/config_file.h: a TOML file of options as plain texts. The TOML library stays behind
// config_file.cc.
//
// Keys are flag names. Those at the top are read by every command; those in a table [generate] by
// that command alone, and win over the top. Tables of other commands are left to them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/status.h"

namespace deepinfer {

struct ConfigValue {
  std::vector<std::string> texts;  // one, or the elements of an array
  std::string where;               // "a.toml:3: max-tokens"
};

// Flag name -> value. Errors: kInvalidArgument with file and line (not TOML, or a value that is no
// text, number, switch or array of these); as Disk::ReadText.
StatusOr<std::map<std::string, ConfigValue>> ReadConfigFile(const std::string& path,
                                                            const std::string& command, Disk& disk);

}  // namespace deepinfer
