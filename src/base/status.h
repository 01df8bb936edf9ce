// base/status.h: how failures of the world or of a caller travel (style: absl's codes, no
// exceptions).
//
// Our own bugs are CHECKs (base/check.h). A Status carries one line: what, where, expected, found.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/strings.h"

namespace deepinfer {

using Status = absl::Status;
template <typename T>
using StatusOr = absl::StatusOr<T>;
using StatusCode = absl::StatusCode;

inline Status OkStatus() { return Status(); }

// absl's string_view is a type of its own in older releases, so text enters and leaves here. What a
// message quotes cannot break its line.
inline Status MakeStatus(StatusCode code, std::string_view message) {
  const std::string line = OneLine(message);
  return Status(code, absl::string_view(line.data(), line.size()));
}
inline std::string MessageOf(const Status& status) {
  return std::string(status.message().data(), status.message().size());
}

template <typename... Args>
Status InvalidArgument(const Args&... args) {
  return MakeStatus(StatusCode::kInvalidArgument, StrCat(args...));
}
template <typename... Args>
Status NotFound(const Args&... args) {
  return MakeStatus(StatusCode::kNotFound, StrCat(args...));
}
template <typename... Args>
Status FailedPrecondition(const Args&... args) {
  return MakeStatus(StatusCode::kFailedPrecondition, StrCat(args...));
}
template <typename... Args>
Status ResourceExhausted(const Args&... args) {
  return MakeStatus(StatusCode::kResourceExhausted, StrCat(args...));
}
template <typename... Args>
Status DeadlineExceeded(const Args&... args) {
  return MakeStatus(StatusCode::kDeadlineExceeded, StrCat(args...));
}
template <typename... Args>
Status DataLoss(const Args&... args) {
  return MakeStatus(StatusCode::kDataLoss, StrCat(args...));
}
template <typename... Args>
Status Unimplemented(const Args&... args) {
  return MakeStatus(StatusCode::kUnimplemented, StrCat(args...));
}
template <typename... Args>
Status Internal(const Args&... args) {
  return MakeStatus(StatusCode::kInternal, StrCat(args...));
}

// Puts who and what in front of a failure's message; the code stays. An OK status stays OK.
template <typename... Args>
Status Annotate(const Status& status, const Args&... args) {
  if (status.ok()) return status;
  return MakeStatus(status.code(), StrCat(args..., ": ", MessageOf(status)));
}

}  // namespace deepinfer

#define DI_CONCAT_INNER(a, b) a##b
#define DI_CONCAT(a, b) DI_CONCAT_INNER(a, b)

#define DI_RETURN_IF_ERROR(expr)                                                   \
  do {                                                                             \
    if (::deepinfer::Status di_status = (expr); !di_status.ok()) return di_status; \
  } while (false)

// DI_ASSIGN_OR_RETURN(auto x, F()): x = the value, or returns the status.
#define DI_ASSIGN_OR_RETURN(lhs, expr) \
  DI_ASSIGN_OR_RETURN_IMPL(DI_CONCAT(di_result_, __LINE__), lhs, expr)
#define DI_ASSIGN_OR_RETURN_IMPL(result, lhs, expr) \
  auto result = (expr);                             \
  if (!result.ok()) return result.status();         \
  lhs = std::move(result).value()
