// cache/testing/test_key.h: keys by number. Tests only.
#pragma once

#include "base/strings.h"
#include "cache/page_key.h"

namespace deepinfer::testing {

inline PageKey TestKey(int64_t number) { return Sha256Of(StrCat("key ", number)); }

}  // namespace deepinfer::testing
