// apps/structured_flags.h: the flags that say what an output must match.
#pragma once

#include <optional>
#include <string>

#include "apps/options.h"
#include "base/disk.h"
#include "base/status.h"
#include "deepinfer/structured_output.h"

namespace deepinfer {

struct StructuredFlags {
  bool json_object = false;
  std::string json_schema, regex, grammar;
  std::string trigger_token_ids;
  std::optional<int32_t> bound_token_id;

  void AddTo(OptionSet& options);
  // Reads the files that are named. Errors: kInvalidArgument naming the flag; a file that cannot be
  // read.
  StatusOr<StructuredOutput> Read(Disk& disk) const;
};

}  // namespace deepinfer
