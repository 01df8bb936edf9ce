// base/status_fwd.h: forward declarations for headers that only name Status (and for .cu files).
#pragma once

namespace absl {
class Status;
template <typename T>
class StatusOr;
}  // namespace absl

namespace deepinfer {
using Status = absl::Status;
template <typename T>
using StatusOr = absl::StatusOr<T>;
}  // namespace deepinfer
