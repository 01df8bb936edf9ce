// apps/generate_inputs.h: what `deepinfer generate` is to answer, from flags and files, in order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/engine_flags.h"
#include "apps/request_json.h"
#include "apps/sampling_flags.h"
#include "apps/structured_flags.h"

namespace deepinfer {

struct GenerateFlags {
  EngineFlags engine;
  SamplingFlags sampling;
  StructuredFlags structured;
  std::vector<std::string> prompts;    // texts
  std::vector<std::string> token_ids;  // "1,2,3"
  std::string messages;                // a file
  std::string input;                   // JSONL, a file or "-"
  std::string output = "-";
  std::string effort = "high";
  bool chat = false;
  bool json = false;

  void AddTo(OptionSet& options);
  // Errors: kInvalidArgument if no input is named.
  Status Check() const;
};

struct GenerateInput {
  int64_t line = 0;  // of the input file, from 1; 0: from flags
  JsonValue id;      // what the line calls itself; null: nothing
  StatusOr<ParsedRequest> request = ParsedRequest{};
};

// A line that cannot be used is an input whose request is an error that begins with "line 3: ";
// blank lines are no inputs. Keys that nobody reads are told once on stderr.
// Errors: a file that cannot be read; a mistake in the flags.
StatusOr<std::vector<GenerateInput>> ReadInputs(const GenerateFlags& flags, Disk& disk,
                                                const LoadedEngine& engine);

}  // namespace deepinfer
