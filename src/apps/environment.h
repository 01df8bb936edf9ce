// apps/environment.h: the process's environment, and which DEEPINFER_* names mean something here.
//
// DeepInfer's own names are known all; those whose thing does not exist here are accepted without
// effect (one debug line), names that nobody knows get one warning line: a misspelt name is seen.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "apps/options.h"

namespace deepinfer {

// All variables of this process.
Environment ProcessEnvironment();

// DeepInfer's rule for switches: true unless `0`, empty, `false` or `False`.
bool ParseSwitch(std::string_view text);

// Logs about the DEEPINFER_* names in `environment` that `used`, the names this command reads,
// lacks. Returns the names nobody knows, sorted; each kind is logged as one line.
std::set<std::string> ReportUnusedNames(const Environment& environment,
                                        const std::set<std::string>& used);

}  // namespace deepinfer
