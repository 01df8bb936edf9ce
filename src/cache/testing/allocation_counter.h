// cache/testing/allocation_counter.h: how often this thread took memory of the host heap. Tests
// only.
#pragma once

#include <cstdint>

namespace deepinfer::testing {

// malloc, calloc, realloc and operator new, by whatever library, since the thread began. The
// program's own malloc counts; under a sanitizer its hooks do.
int64_t NumAllocations();

}  // namespace deepinfer::testing
