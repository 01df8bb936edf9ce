#include "apps/bench_service.h"

#include <map>
#include <utility>

namespace deepinfer {
namespace {

class ServiceLoop {
 public:
  ServiceLoop(EngineCore& core, Clock& clock, std::vector<TimedRequest> traffic)
      : core_(core), clock_(clock), traffic_(std::move(traffic)), start_(clock.Now()) {
    service_.requests.resize(traffic_.size());
    service_.outputs.resize(traffic_.size());
  }

  StatusOr<Service> Run() {
    const EngineStats before = core_.stats();
    while (next_ < traffic_.size() || core_.HasWork()) {
      DI_RETURN_IF_ERROR(SubmitDue());
      if (core_.HasWork()) {
        DI_RETURN_IF_ERROR(Step());
      } else {
        clock_.SleepUntil(TimeOf(traffic_[next_].arrival_s));
      }
    }
    TakeStats(before);
    return std::move(service_);
  }

 private:
  double Now() const { return Seconds(clock_.Now() - start_); }
  MonotonicTime TimeOf(double seconds) const {
    return start_ + Duration(static_cast<int64_t>(seconds * 1e9) + 1);
  }

  Status SubmitDue() {
    for (; next_ < traffic_.size() && traffic_[next_].arrival_s <= Now(); ++next_) {
      TimedRequest& timed = traffic_[next_];
      RequestTimes& times = service_.requests[next_];
      times.arrival_s = timed.arrival_s;
      times.num_prompt = static_cast<int32_t>(timed.request.prompt_ids.size());
      DI_ASSIGN_OR_RETURN(const RequestId id, core_.Submit(std::move(timed.request)));
      index_of_[id] = next_;
    }
    return OkStatus();
  }

  Status Step() {
    const std::vector<Event> events = core_.Step();
    StepMark mark{.time_s = Now()};
    for (const Event& event : events) {
      if (const auto* failure = std::get_if<FailureEvent>(&event)) {
        return Internal(failure->error.message);
      }
      if (const auto* ready = std::get_if<ReadyEvent>(&event)) {
        service_.requests[index_of_.at(ready->request)].num_cached = ready->cached_tokens;
      }
      const auto* tokens = std::get_if<TokensEvent>(&event);
      if (tokens == nullptr) continue;
      TakeTokens(*tokens, mark.time_s);
      mark.num_tokens += static_cast<int32_t>(tokens->ids.size());
    }
    service_.steps.push_back(mark);
    return OkStatus();
  }

  void TakeTokens(const TokensEvent& tokens, double now) {
    const size_t at = index_of_.at(tokens.request);
    RequestTimes& times = service_.requests[at];
    if (times.num_output == 0) times.first_s = now;
    times.num_output += static_cast<int32_t>(tokens.ids.size());
    times.last_s = service_.duration_s = now;
    std::vector<int32_t>& output = service_.outputs[at];
    output.insert(output.end(), tokens.ids.begin(), tokens.ids.end());
  }

  void TakeStats(const EngineStats& before) {
    const EngineStats after = core_.stats();
    service_.plans_in_time = after.plans_in_time - before.plans_in_time;
    service_.plans_late = after.plans_late - before.plans_late;
    service_.step_times = core_.step_times();
    const int64_t steps = after.steps - before.steps;
    const int64_t older = std::ssize(service_.step_times) - steps;
    if (older > 0) {
      service_.step_times.erase(service_.step_times.begin(), service_.step_times.begin() + older);
    }
  }

  EngineCore& core_;
  Clock& clock_;
  std::vector<TimedRequest> traffic_;
  const MonotonicTime start_;
  size_t next_ = 0;
  std::map<RequestId, size_t> index_of_;
  Service service_;
};

}  // namespace

int64_t Service::num_output() const {
  int64_t sum = 0;
  for (const RequestTimes& request : requests) sum += request.num_output;
  return sum;
}

double Service::HitRate() const {
  int64_t cached = 0, all = 0;
  for (const RequestTimes& request : requests) {
    cached += request.num_cached;
    all += request.num_prompt;
  }
  return static_cast<double>(cached) / static_cast<double>(all);
}

std::vector<double> Service::Periods(int32_t num_tokens) const {
  std::vector<double> periods;
  for (size_t i = 1; i < steps.size(); ++i) {
    if (steps[i - 1].num_tokens == num_tokens && steps[i].num_tokens == num_tokens) {
      periods.push_back(steps[i].time_s - steps[i - 1].time_s);
    }
  }
  return periods;
}

StatusOr<Service> Serve(EngineCore& core, Clock& clock, std::vector<TimedRequest> traffic) {
  return ServiceLoop(core, clock, std::move(traffic)).Run();
}

StatusOr<Service> ServeAtOnce(EngineCore& core, Clock& clock, std::vector<Request> requests) {
  std::vector<TimedRequest> traffic;
  for (Request& request : requests) traffic.push_back({.request = std::move(request)});
  return Serve(core, clock, std::move(traffic));
}

}  // namespace deepinfer
