// kernels/cpu/scratch.h: memory that CPU forms of ops need while they run.
//
// Every thread has one stack of it (ThreadScratch). A form opens a frame and takes arrays, which go
// back with the frame; after the largest call seen, or after Reserve(), nothing is allocated. What
// a form takes is written once, as a struct whose constructor asks a frame, or a meter that only
// counts, for its arrays; so the sizes for a plan cannot differ from those in use.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#include "base/check.h"

namespace deepinfer {

// Arrays begin at cache lines, so that vectors load whole ones.
inline constexpr int64_t kScratchAlignment = 64;
inline constexpr int64_t ScratchRounded(int64_t bytes) {
  return (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
}

// A block that only grows. Contents are not kept when it does.
class AlignedScratch {
 public:
  template <typename T>
  T* Get(int64_t count) {
    const int64_t bytes = ScratchRounded(count * static_cast<int64_t>(sizeof(T)));
    if (bytes > bytes_) {
      memory_.reset();
      // Where there is no memory, what the program does about that happens (set_new_handler).
      memory_.reset(
          ::operator new(static_cast<size_t>(bytes), std::align_val_t{kScratchAlignment}));
      bytes_ = bytes;
    }
    return static_cast<T*>(memory_.get());
  }
  int64_t num_bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(void* memory) const {
      ::operator delete(memory, std::align_val_t{kScratchAlignment});
    }
  };
  std::unique_ptr<void, Free> memory_;
  int64_t bytes_ = 0;
};

// The stack of the calling thread. AddressSanitizer sees what frames have taken as valid, and
// nothing else of it.
class ThreadScratch {
 public:
  static ThreadScratch& Mine();

  // Takes this much, and touches it, unless it is there. Requires: no frame is open.
  void Reserve(int64_t bytes);
  int64_t capacity_bytes() const { return memory_.num_bytes(); }
  // The most that frames had at a time since the last ResetPeak().
  int64_t peak_bytes() const { return peak_; }
  void ResetPeak() { peak_ = used_; }

 private:
  friend class ScratchFrame;
  void* Take(int64_t bytes);
  void Close(int64_t mark, size_t num_extra);
  void Grow(int64_t bytes);

  AlignedScratch memory_;
  std::vector<AlignedScratch> extra_;  // what did not fit; joins `memory_` when no frame is open
  int64_t used_ = 0, peak_ = 0;
  int32_t num_frames_ = 0;
};

// Arrays until the end of a scope, for the thread that opened it; others may use them meanwhile.
class ScratchFrame {
 public:
  ScratchFrame()
      : scratch_(ThreadScratch::Mine()), mark_(scratch_.used_), num_extra_(scratch_.extra_.size()) {
    ++scratch_.num_frames_;
  }
  ~ScratchFrame() { scratch_.Close(mark_, num_extra_); }
  ScratchFrame(const ScratchFrame&) = delete;
  ScratchFrame& operator=(const ScratchFrame&) = delete;

  // Contents unspecified.
  template <typename T>
  T* Get(int64_t count) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= kScratchAlignment);
    return static_cast<T*>(scratch_.Take(count * int64_t{sizeof(T)}));
  }

 private:
  ThreadScratch& scratch_;
  const int64_t mark_;
  const size_t num_extra_;
};

// Counts what a frame would take.
class ScratchMeter {
 public:
  template <typename T>
  T* Get(int64_t count) {
    bytes_ += ScratchRounded(count * int64_t{sizeof(T)});
    return nullptr;
  }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

// What a call takes: on the calling thread, and on every other thread that helps it.
struct ScratchBytes {
  int64_t caller = 0, worker = 0;

  // Of ops that run one after the other.
  void Include(const ScratchBytes& other) {
    caller = std::max(caller, other.caller);
    worker = std::max(worker, other.worker);
  }
  // Of an op whose caller holds `bytes` meanwhile.
  ScratchBytes Under(int64_t bytes) const { return {caller + bytes, worker}; }
};
// Of a loop whose pieces take `bytes` on every thread.
inline ScratchBytes OnAllThreads(int64_t bytes) { return {bytes, bytes}; }

}  // namespace deepinfer
