#include "base/simulated_transport.h"

#include <algorithm>

#include "base/check.h"

namespace deepinfer {

SimulatedTransport::SimulatedTransport(SimulatedClock& clock, Rng& rng,
                                       SimulatedTransportOptions options)
    : clock_(clock), rng_(rng), options_(options) {
  CHECK_LE(options_.delay_min.count(), options_.delay_max.count());
}

Status SimulatedTransport::Listen(const std::string& address, Handler handler) {
  if (!handlers_.emplace(address, std::move(handler)).second) {
    return MakeStatus(StatusCode::kAlreadyExists, StrCat(address, ": somebody listens already"));
  }
  return OkStatus();
}

void SimulatedTransport::Call(const std::string& address, Frame request, MonotonicTime deadline,
                              Answer answer) {
  // Whichever comes first, answer or deadline, takes the callback away from the other.
  const auto pending = std::make_shared<Answer>(std::move(answer));
  const Answer finish = [pending](StatusOr<Frame> result) {
    if (const Answer taken = std::exchange(*pending, nullptr)) taken(std::move(result));
  };
  Post(deadline, [finish, address] {
    finish(MakeStatus(StatusCode::kDeadlineExceeded, StrCat(address, ": no answer in time")));
  });
  MonotonicTime& lane_end = lane_end_[{address, request.lane}];
  lane_end = std::max(lane_end, ArrivalTime());
  Post(lane_end, [this, address, request = std::move(request), deadline, finish]() mutable {
    Deliver(address, std::move(request), deadline, finish);
  });
}

void SimulatedTransport::Deliver(const std::string& address, Frame request, MonotonicTime deadline,
                                 Answer finish) {
  if (cut_.contains(address)) return;
  const auto handler = handlers_.find(address);
  if (handler == handlers_.end()) {
    finish(MakeStatus(StatusCode::kUnavailable, StrCat(address, ": nobody listens")));
    return;
  }
  const Answer reply = [this, address, finish](StatusOr<Frame> result) {
    Post(ArrivalTime(), [this, address, finish, result = std::move(result)] {
      if (!cut_.contains(address)) finish(result);
    });
  };
  const Duration budget = std::max(deadline - clock_.Now(), Duration(0));
  handler->second(std::move(request), budget, reply);
}

void SimulatedTransport::RunUntil(MonotonicTime when) {
  while (!events_.empty() && events_.begin()->first <= when) {
    auto event = events_.extract(events_.begin());
    if (event.key() > clock_.Now()) clock_.Advance(event.key() - clock_.Now());
    event.mapped()();
  }
  if (when > clock_.Now()) clock_.Advance(when - clock_.Now());
}

void SimulatedTransport::Post(MonotonicTime when, Event event) {
  events_.emplace(when, std::move(event));
}

MonotonicTime SimulatedTransport::ArrivalTime() {
  const uint64_t spread = static_cast<uint64_t>((options_.delay_max - options_.delay_min).count());
  return clock_.Now() + options_.delay_min +
         Duration(static_cast<int64_t>(rng_.Uniform(spread + 1)));
}

}  // namespace deepinfer
