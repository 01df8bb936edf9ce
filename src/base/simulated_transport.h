// base/simulated_transport.h: a network inside one thread: delays from a seed, links cut on demand.
//
// Nothing happens by itself: RunUntil() moves the clock from event to event. Same seed and calls,
// same order of events. Threads: one.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/rng.h"
#include "base/transport.h"

namespace deepinfer {

struct SimulatedTransportOptions {
  Duration delay_min = std::chrono::microseconds(20);  // one way
  Duration delay_max = std::chrono::microseconds(200);
};

class SimulatedTransport : public Transport {
 public:
  // `clock` and `rng` outlive this object; the clock is advanced by nobody else.
  SimulatedTransport(SimulatedClock& clock, Rng& rng, SimulatedTransportOptions options = {});

  Status Listen(const std::string& address, Handler handler) override;
  void Call(const std::string& address, Frame request, MonotonicTime deadline,
            Answer answer) override;

  // While cut, requests to `address` and answers from it vanish; calls end at their deadline.
  void Cut(const std::string& address) { cut_.insert(address); }
  void Mend(const std::string& address) { cut_.erase(address); }

  // Runs everything due up to `when`, in order of time, then of posting. Leaves the clock at
  // `when`.
  void RunUntil(MonotonicTime when);

 private:
  using Event = std::function<void()>;

  void Post(MonotonicTime when, Event event);
  MonotonicTime ArrivalTime();
  void Deliver(const std::string& address, Frame request, MonotonicTime deadline, Answer finish);

  SimulatedClock& clock_;
  Rng& rng_;
  const SimulatedTransportOptions options_;
  std::map<std::string, Handler> handlers_;
  std::set<std::string> cut_;
  std::map<std::pair<std::string, uint16_t>, MonotonicTime> lane_end_;  // last arrival planned
  std::multimap<MonotonicTime, Event> events_;  // equal times keep the order of posting
};

}  // namespace deepinfer
