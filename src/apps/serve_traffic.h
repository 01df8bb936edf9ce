// apps/serve_traffic.h: what a load generator asks of a server, and when: made up from a seed, or
// read from a recorded trace.
//
// Prompts are named, not written: a list of parts, each an id and a length. Parts of the same id
// are the same tokens, so common prefixes are common in the prompts made of them
// (serve_prompts.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/rng.h"
#include "base/status.h"

namespace deepinfer {

struct PromptPart {
  uint64_t id = 0;
  int32_t num_tokens = 0;  // the first ones of that id
  bool operator==(const PromptPart&) const = default;
};

struct PlannedRequest {
  double due_s = 0;  // after the start
  std::vector<PromptPart> prompt;
  int32_t output_tokens = 0;

  int64_t PromptTokens() const;
};

// Requests in the order in which they are due.
class ServeTraffic {
 public:
  virtual ~ServeTraffic() = default;
  virtual std::optional<PlannedRequest> Next() = 0;
};

// A length in tokens: `typical` +- `spread`.
struct LengthDraw {
  enum class Shape {
    kUniform,    // in [typical * (1 - spread), typical * (1 + spread)]
    kLogNormal,  // median `typical`; spread is the deviation of the logarithm
  };
  int32_t typical = 1;
  double spread = 0;  // kUniform: below 1
  Shape shape = Shape::kUniform;

  int32_t Draw(Rng& rng) const;  // at least 1
};

struct RandomTrafficOptions {
  int64_t num_requests = 0;    // 0: without end
  double requests_per_s = 0;   // 0: all are due at once
  bool constant_gaps = false;  // else a Poisson process
  LengthDraw prompt, output;
  int32_t prefix_tokens = 0;  // that begin prompts, beyond `prompt`
  int32_t num_prefixes = 1;   // of which each prompt begins with one, drawn
  uint64_t seed = 1;
};

std::unique_ptr<ServeTraffic> MakeRandomTraffic(const RandomTrafficOptions& options);

struct TraceOptions {
  int64_t num_requests = 0;    // the first ones; 0: all
  double speed = 1;            // 2: arrivals come twice as fast
  double length_scale = 1;     // of prompts, their blocks and outputs; each at least one token
  int32_t block_tokens = 512;  // of a hash id
  uint64_t seed = 1;
};

// A recorded trace, in the order of its times, the first of which becomes 0:
//   JSON lines {"timestamp": ms, "input_length":, "output_length":, "hash_ids": [...]} (Mooncake),
//   where equal ids are equal blocks of the prompt; without hash_ids prompts have nothing in common
//   CSV with the head TIMESTAMP,ContextTokens,GeneratedTokens (Azure), times as
//   "2023-11-16 18:17:03.9799600"
// Errors: as Disk::ReadText; kInvalidArgument naming file and line.
StatusOr<std::unique_ptr<ServeTraffic>> ReadTrace(Disk& disk, const std::string& path,
                                                  const TraceOptions& options);

}  // namespace deepinfer
