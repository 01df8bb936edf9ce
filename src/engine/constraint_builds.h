// engine/constraint_builds.h: grammars that are being built, and how they come to the planning
// thread.
//
// Threads: the planning thread; results arrive on any.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "deepinfer/request.h"
#include "engine/token_constraint.h"

namespace deepinfer {

class ConstraintBuilds {
 public:
  struct Arrival {
    RequestId request;
    StatusOr<ConstraintMaker> maker;
  };

  // source: outlives the object; null: nothing is ever begun.
  explicit ConstraintBuilds(ConstraintSource* source);

  void Begin(RequestId request, const StructuredOutput& structured);
  // What came since the last call, in order.
  std::vector<Arrival> Take();
  // Begun, not taken.
  int32_t num_pending() const { return num_pending_; }
  // Waits until something can be taken, at most this long.
  void Wait(Duration most);

 private:
  struct Box;  // shared with builds that nobody waits for any more

  ConstraintSource* const source_;
  const std::shared_ptr<Box> box_;
  int32_t num_pending_ = 0;
};

}  // namespace deepinfer
