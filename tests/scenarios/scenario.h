// tests/scenarios/scenario.h: runs a scenario, which is what the scheduler is told and what it has
// to answer, as text. README.md has the language.
#pragma once

#include <string_view>

#include "base/status.h"

namespace deepinfer::scenarios {

// name: of the file, for messages. Errors: "name:line: what was expected, what was found".
Status RunScenario(std::string_view name, std::string_view text);

}  // namespace deepinfer::scenarios
