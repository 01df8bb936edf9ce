// base/check.h: CHECK, for our own bugs only. On in release builds: prints the fact and aborts.
#pragma once

#include <string>

#include "base/strings.h"

namespace deepinfer {

[[noreturn]] void CheckFailed(const char* file, int line, const std::string& what);

}  // namespace deepinfer

#define CHECK(cond)                                                         \
  do {                                                                      \
    if (!(cond)) [[unlikely]]                                               \
      ::deepinfer::CheckFailed(__FILE__, __LINE__, "CHECK failed: " #cond); \
  } while (false)

#define DI_CHECK_OP(a, op, b)                                                                     \
  do {                                                                                            \
    const auto& di_a = (a);                                                                       \
    const auto& di_b = (b);                                                                       \
    if (!(di_a op di_b)) [[unlikely]]                                                             \
      ::deepinfer::CheckFailed(__FILE__, __LINE__,                                                \
                               ::deepinfer::StrCat("CHECK failed: " #a " " #op " " #b " (", di_a, \
                                                   " against ", di_b, ")"));                      \
  } while (false)

#define CHECK_EQ(a, b) DI_CHECK_OP(a, ==, b)
#define CHECK_NE(a, b) DI_CHECK_OP(a, !=, b)
#define CHECK_LT(a, b) DI_CHECK_OP(a, <, b)
#define CHECK_LE(a, b) DI_CHECK_OP(a, <=, b)
#define CHECK_GT(a, b) DI_CHECK_OP(a, >, b)
#define CHECK_GE(a, b) DI_CHECK_OP(a, >=, b)
