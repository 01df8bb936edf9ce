// apps/bench_service.h: runs timed requests through an engine and notes when what happened.
#pragma once

#include <cstdint>
#include <vector>

#include "apps/bench_traffic.h"
#include "base/clock.h"
#include "base/status.h"
#include "engine/engine_core.h"

namespace deepinfer {

// Seconds since the start of the service.
struct RequestTimes {
  double arrival_s = 0;  // when it was to arrive, not when the loop had time to look
  double first_s = 0, last_s = 0;
  int32_t num_prompt = 0, num_cached = 0, num_output = 0;

  double Ttft() const { return first_s - arrival_s; }
  // Time per output token after the first. Requires: num_output > 1.
  double Tpot() const { return (last_s - first_s) / (num_output - 1); }
};

struct StepMark {  // a step whose results came
  double time_s = 0;
  int32_t num_tokens = 0;  // output tokens of the step
};

struct Service {
  std::vector<RequestTimes> requests;  // in the order of the traffic
  std::vector<StepMark> steps;
  std::vector<std::vector<int32_t>> outputs;  // of the requests
  double duration_s = 0;                      // until the last token
  // Of this service alone.
  int64_t plans_in_time = 0, plans_late = 0;
  std::vector<StepTimes> step_times;  // as many as the engine keeps

  int64_t num_output() const;
  double TokensPerSecond() const { return static_cast<double>(num_output()) / duration_s; }
  // Cached prompt tokens out of all.
  double HitRate() const;
  // Times between steps that each gave `num_tokens`, without anything between them.
  std::vector<double> Periods(int32_t num_tokens) const;
};

// Submits each request at its time and steps until all have ended. Requires: arrivals ascend; the
// engine has no work. Errors: as EngineCore::Submit; kInternal for a request that failed.
StatusOr<Service> Serve(EngineCore& core, Clock& clock, std::vector<TimedRequest> traffic);

// The same for requests that are all there at the start.
StatusOr<Service> ServeAtOnce(EngineCore& core, Clock& clock, std::vector<Request> requests);

}  // namespace deepinfer
