#include "kernels/cpu/scratch.h"

#include <sanitizer/asan_interface.h>

#include <cstring>

namespace deepinfer {

ThreadScratch& ThreadScratch::Mine() {
  static thread_local ThreadScratch scratch;
  return scratch;
}

void ThreadScratch::Reserve(int64_t bytes) {
  CHECK_EQ(num_frames_, 0);
  if (bytes > memory_.num_bytes()) Grow(bytes);
}

// Requires: no frame is open.
void ThreadScratch::Grow(int64_t bytes) {
  auto* const memory = memory_.Get<uint8_t>(bytes);
  std::memset(memory, 0, static_cast<size_t>(bytes));  // the system gives memory when it is touched
  ASAN_POISON_MEMORY_REGION(memory, static_cast<size_t>(memory_.num_bytes()));
}

void* ThreadScratch::Take(int64_t bytes) {
  const int64_t at = used_;
  used_ += ScratchRounded(bytes);
  peak_ = std::max(peak_, used_);
  if (used_ > memory_.num_bytes()) {
    return extra_.emplace_back().Get<uint8_t>(std::max(bytes, kScratchAlignment));
  }
  uint8_t* const memory = memory_.Get<uint8_t>(0) + at;
  ASAN_UNPOISON_MEMORY_REGION(memory, static_cast<size_t>(bytes));
  return memory;
}

void ThreadScratch::Close(int64_t mark, size_t num_extra) {
  --num_frames_;
  if (const int64_t end = std::min(used_, memory_.num_bytes()); end > mark) {
    ASAN_POISON_MEMORY_REGION(memory_.Get<uint8_t>(0) + mark, static_cast<size_t>(end - mark));
  }
  used_ = mark;
  if (extra_.size() > num_extra) extra_.resize(num_extra);
  if (num_frames_ > 0 || peak_ <= memory_.num_bytes()) return;
  // A quarter more, so that a context that grows token by token does not take new memory for each.
  Grow(peak_ + peak_ / 4);
}

}  // namespace deepinfer
