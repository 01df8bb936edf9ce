#include "base/testing/allocation_counter.h"

#include <execinfo.h>
#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

#include "base/check.h"
#include "base/sanitizers.h"

namespace deepinfer {
namespace {

std::atomic<bool> armed{false};
std::atomic<int64_t> num_allocations{0}, num_kept_bytes{0};

constexpr int kMaxFrames = 32;
void* first_frames[kMaxFrames];
std::atomic<int> num_first_frames{0};

#if !DI_SANITIZED
void* Taken(void* memory) {
  if (!armed.load(std::memory_order_relaxed)) return memory;
  if (num_allocations.fetch_add(1) == 0) num_first_frames = backtrace(first_frames, kMaxFrames);
  num_kept_bytes.fetch_add(static_cast<int64_t>(malloc_usable_size(memory)));
  return memory;
}
void GivenBack(void* memory) {
  if (!armed.load(std::memory_order_relaxed)) return;
  num_kept_bytes.fetch_sub(static_cast<int64_t>(malloc_usable_size(memory)));
}
#endif

}  // namespace

bool CountsAllocations() { return !DI_SANITIZED; }

AllocationCounter::AllocationCounter() {
  void* frames[1];
  backtrace(frames, 1);  // its first call loads a library
  num_allocations = 0;
  num_kept_bytes = 0;
  num_first_frames = 0;
  CHECK(!armed.exchange(true));
}
AllocationCounter::~AllocationCounter() { armed = false; }
int64_t AllocationCounter::count() const { return num_allocations.load(); }
int64_t AllocationCounter::kept_bytes() const { return num_kept_bytes.load(); }
void AllocationCounter::PrintFirst() const {
  backtrace_symbols_fd(first_frames, num_first_frames.load(), STDERR_FILENO);
}

}  // namespace deepinfer

#if !DI_SANITIZED

// glibc's own names of what is replaced here. operator new of libstdc++ calls malloc; it is
// replaced, too, so that what a compiler merges or elides cannot hide one.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* memory);

void* malloc(size_t bytes) { return deepinfer::Taken(__libc_malloc(bytes)); }
void* calloc(size_t count, size_t bytes) { return deepinfer::Taken(__libc_calloc(count, bytes)); }
void* realloc(void* old, size_t bytes) {
  deepinfer::GivenBack(old);
  return deepinfer::Taken(__libc_realloc(old, bytes));
}
void* memalign(size_t alignment, size_t bytes) {
  return deepinfer::Taken(__libc_memalign(alignment, bytes));
}
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  void* const memory = memalign(alignment, bytes);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}
void free(void* memory) {
  deepinfer::GivenBack(memory);
  __libc_free(memory);
}
}  // extern "C"

namespace {

void* New(size_t bytes, size_t alignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__) {
  void* const memory = alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__
                           ? malloc(bytes == 0 ? 1 : bytes)
                           : memalign(alignment, bytes);
  if (memory == nullptr) abort();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) { return New(bytes); }
void* operator new[](size_t bytes) { return New(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return malloc(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return malloc(bytes); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return New(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return New(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete[](void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }
void operator delete[](void* memory, size_t) noexcept { free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { free(memory); }

#endif
