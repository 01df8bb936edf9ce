// base/sanitizers.h: DI_ASAN and DI_TSAN: 1 in builds with AddressSanitizer, ThreadSanitizer, else
// 0; DI_SANITIZED: with one of them.
#pragma once

#if defined(__has_feature)  // clang, g++ 14
#if __has_feature(address_sanitizer)
#define DI_ASAN 1
#elif __has_feature(thread_sanitizer)
#define DI_TSAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)  // g++
#define DI_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define DI_TSAN 1
#endif

#ifndef DI_ASAN
#define DI_ASAN 0
#endif
#ifndef DI_TSAN
#define DI_TSAN 0
#endif
#define DI_SANITIZED (DI_ASAN || DI_TSAN)
