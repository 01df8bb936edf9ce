// model/scratch.h: buffers of a forward pass that grow to the largest pass seen and are then
// reused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

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

 private:
  std::unique_ptr<T[]> memory_;
  int64_t capacity_ = 0;
};

}  // namespace deepinfer
