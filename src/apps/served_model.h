// apps/served_model.h: what `serve` says of the model it serves: names, limits, defaults.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/status.h"
#include "engine/loaded_engine.h"
#include "request/engine_client.h"

namespace deepinfer {

struct ServedModelOptions {
  std::string model;                      // as given to --model; its last part is a name
  std::vector<std::string> served_names;  // replace all others; empty: deepseek-flash and `model`
  std::optional<std::string> thinking;    // on, off or an effort; none: the checkpoint's
  int64_t created = 0;                    // Unix seconds
};

// `engine` outlives the result. Errors: kInvalidArgument for a default that is none, naming flag or
// file.
StatusOr<ServedModel> DescribeModel(const LoadedEngine& engine, const ServedModelOptions& options,
                                    Disk& disk);

// What a checkpoint's generation_config.json says of thinking: its member "reasoning_effort" holds
// what a request's may ("none", "low", "high", "max", 1..100, ...). Without file or member: 75
// (high), as DeepSeek's own. Errors: kInvalidArgument naming the file.
StatusOr<Thinking> CheckpointThinking(const std::string& directory, Disk& disk);

// --default-thinking: "on" (high), "off", or an effort.
StatusOr<Thinking> ParseThinking(const std::string& text);

}  // namespace deepinfer
