// base/no_wait.h: a trap for implicit waits.
//
// While a NoWaitScope lives, its thread must not block on another: planning the next step has to
// fit beside the running one. Whatever blocks calls CheckMayWait() first, so that a wait that slips
// in stops the process at once instead of costing a little of every step.
#pragma once

#include "base/check.h"

namespace deepinfer {

namespace no_wait_internal {
inline thread_local int depth = 0;
}

class NoWaitScope {
 public:
  NoWaitScope() { ++no_wait_internal::depth; }
  ~NoWaitScope() { --no_wait_internal::depth; }
  NoWaitScope(const NoWaitScope&) = delete;
  NoWaitScope& operator=(const NoWaitScope&) = delete;
};

// For what may block: waits for a step, for workers, for the disk, for the clock.
inline void CheckMayWait() { CHECK_EQ(no_wait_internal::depth, 0); }

}  // namespace deepinfer
