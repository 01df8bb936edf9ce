// base/thread_priority.h: how much of a busy processor a thread gets.
#pragma once

namespace deepinfer {

// From now on the calling thread gets little more than what others leave: about 5% of a core that
// somebody else keeps busy. A system that does not let it stays as it is.
void LowerThreadPriority();

}  // namespace deepinfer
