// model/scratch.h: buffers of a forward pass that grow to the largest pass seen and are then
// reused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/large_block.h"

namespace deepinfer {

template <typename T>
class Scratch {
 public:
  // At least `count` elements, contents unspecified; earlier pointers die when it grows.
  // Never null, also for none: ops tell their outputs apart by null.
  T* Get(int64_t count) {
    if (memory_ == nullptr || count > capacity_) {
      memory_.reset(new T[static_cast<size_t>(count)]);
      capacity_ = count;
    }
    return memory_.get();
  }
  T* data() const { return memory_.get(); }

  // The same, and touches it: the system gives memory when it is touched.
  void Reserve(int64_t count) {
    const auto num_bytes = static_cast<size_t>(count) * sizeof(T);
    const T* const before = data();
    T* const at = Get(count);
    if (at != before) AskForHugePages({reinterpret_cast<const uint8_t*>(at), num_bytes});
    std::memset(at, 0, num_bytes);
  }
  static int64_t BytesOf(int64_t count) { return count * static_cast<int64_t>(sizeof(T)); }

 private:
  std::unique_ptr<T[]> memory_;
  int64_t capacity_ = 0;
};

}  // namespace deepinfer
