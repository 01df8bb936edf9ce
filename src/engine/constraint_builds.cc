#include "engine/constraint_builds.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/no_wait.h"

namespace deepinfer {

struct ConstraintBuilds::Box {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Arrival> arrivals;
};

ConstraintBuilds::ConstraintBuilds(ConstraintSource* source)
    : source_(source), box_(std::make_shared<Box>()) {}

void ConstraintBuilds::Begin(RequestId request, const StructuredOutput& structured) {
  CHECK(source_ != nullptr);
  ++num_pending_;
  source_->Build(structured, [box = box_, request](StatusOr<ConstraintMaker> maker) {
    const std::lock_guard lock(box->mutex);
    box->arrivals.push_back({request, std::move(maker)});
    box->changed.notify_all();
  });
}

std::vector<ConstraintBuilds::Arrival> ConstraintBuilds::Take() {
  if (num_pending_ == 0) return {};
  const std::lock_guard lock(box_->mutex);
  num_pending_ -= static_cast<int32_t>(std::ssize(box_->arrivals));
  return std::exchange(box_->arrivals, {});
}

void ConstraintBuilds::Wait(Duration most) {
  CheckMayWait();
  std::unique_lock lock(box_->mutex);
  box_->changed.wait_for(lock, most, [this] { return !box_->arrivals.empty(); });
}

}  // namespace deepinfer
