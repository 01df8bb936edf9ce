// kernels/cpu/scratch.h: memory of a thread that is reused from call to call and only grows.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "base/check.h"

namespace deepinfer {

// Contents are not kept when it grows. 64-byte aligned, so that vectors load whole cache lines.
class AlignedScratch {
 public:
  template <typename T>
  T* Get(int64_t count) {
    const int64_t bytes = (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    if (bytes > bytes_) {
      memory_.reset(std::aligned_alloc(64, static_cast<size_t>(bytes)));
      CHECK(memory_ != nullptr);
      bytes_ = bytes;
    }
    return static_cast<T*>(memory_.get());
  }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  int64_t bytes_ = 0;
};

}  // namespace deepinfer
