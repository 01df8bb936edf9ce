// model/config_check.h: what must hold between the numbers of a configuration for the engine to run
// it.
#pragma once

#include "base/status.h"
#include "model/config.h"

namespace deepinfer {

// Errors: kInvalidArgument naming the first rule that does not hold, with both values.
Status CheckModelConfig(const ModelConfig& config);

}  // namespace deepinfer
