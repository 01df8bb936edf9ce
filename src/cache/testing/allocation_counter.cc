#include "cache/testing/allocation_counter.h"

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DI_HOOKED_HEAP 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DI_HOOKED_HEAP 1
#endif

namespace {

constinit thread_local int64_t num_allocations = 0;

}  // namespace

#ifdef DI_HOOKED_HEAP

extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*,
                                                                           size_t),
                                                         void (*on_free)(const volatile void*));

namespace {

[[maybe_unused]] const int installed = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, size_t) { ++num_allocations; }, [](const volatile void*) {});

}  // namespace

#else

extern "C" {

// The C library's own, under the names that it keeps for this purpose.
void* __libc_malloc(size_t num_bytes);
void* __libc_calloc(size_t count, size_t num_bytes);
void* __libc_realloc(void* memory, size_t num_bytes);

void* malloc(size_t num_bytes) noexcept {
  ++num_allocations;
  return __libc_malloc(num_bytes);
}
void* calloc(size_t count, size_t num_bytes) noexcept {
  ++num_allocations;
  return __libc_calloc(count, num_bytes);
}
void* realloc(void* memory, size_t num_bytes) noexcept {
  ++num_allocations;
  return __libc_realloc(memory, num_bytes);
}

}  // extern "C"

#endif

namespace deepinfer::testing {

int64_t NumAllocations() { return num_allocations; }

}  // namespace deepinfer::testing
