#include "request/tenant_limits.h"

#include "base/check.h"

namespace deepinfer {

TenantLimits::Answer TenantLimits::Enter(const std::string& tenant) {
  const auto at = tenants_.find(tenant);
  const Counts now = at == tenants_.end() ? Counts{} : at->second;
  if (options_.max_running > 0 && now.running >= options_.max_running) {
    return Answer::kTooManyRunning;
  }
  if (options_.max_waiting > 0 && now.waiting >= options_.max_waiting) {
    return Answer::kTooManyWaiting;
  }
  Counts& counts = tenants_[tenant];
  ++counts.running;
  ++counts.waiting;
  return Answer::kYes;
}

void TenantLimits::Start(const std::string& tenant) {
  Counts& counts = tenants_.at(tenant);
  CHECK_GT(counts.waiting, 0);
  --counts.waiting;
}

void TenantLimits::Leave(const std::string& tenant, bool was_started) {
  if (!was_started) Start(tenant);
  Counts& counts = tenants_.at(tenant);
  CHECK_GT(counts.running, 0);
  if (--counts.running == 0) tenants_.erase(tenant);
}

}  // namespace deepinfer
