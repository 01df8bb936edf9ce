// base/testing/allocation_counter.h: counts heap allocations of all threads. Tests only.
//
// Linking allocation_counter.cc replaces operator new and malloc and its kin in the whole program,
// so a program that counts is an executable of its own. What stack, thread starts or mapped memory
// take is not counted.
#pragma once

#include <cstdint>

namespace deepinfer {

// Whether allocations can be counted: not under a sanitizer, which replaces malloc itself.
bool CountsAllocations();

// Counts from construction on. One at a time in a program; any thread's allocations count.
class AllocationCounter {
 public:
  AllocationCounter();
  ~AllocationCounter();
  AllocationCounter(const AllocationCounter&) = delete;
  AllocationCounter& operator=(const AllocationCounter&) = delete;

  int64_t count() const;
  // Taken and not given back; what was there before counts when it goes.
  int64_t kept_bytes() const;
  // Writes the calls that led to the first one to stderr: addresses for addr2line.
  void PrintFirst() const;
};

}  // namespace deepinfer
