#include "engine/tenant_table.h"

#include "base/check.h"

namespace deepinfer {

int32_t TenantTable::Take(const std::string& name) {
  if (const auto known = numbers_.find(name); known != numbers_.end()) {
    Tenant& tenant = tenants_[static_cast<size_t>(known->second)];
    if (tenant.num_sequences++ == 0) idle_.erase(tenant.idle);
    return known->second;
  }
  if (free_.empty()) {
    free_.push_back(static_cast<int32_t>(tenants_.size()));
    tenants_.emplace_back();
  }
  const int32_t number = free_.back();
  free_.pop_back();
  tenants_[static_cast<size_t>(number)] = {.name = name, .num_sequences = 1, .idle = {}};
  numbers_.emplace(name, number);
  return number;
}

int32_t TenantTable::GiveBack(int32_t number) {
  Tenant& tenant = tenants_[static_cast<size_t>(number)];
  CHECK_GT(tenant.num_sequences, 0);
  if (--tenant.num_sequences > 0) return -1;
  tenant.idle = idle_.insert(idle_.end(), number);
  if (static_cast<int32_t>(idle_.size()) <= max_idle_) return -1;
  const int32_t forgotten = idle_.front();
  idle_.pop_front();
  numbers_.erase(tenants_[static_cast<size_t>(forgotten)].name);
  free_.push_back(forgotten);
  return forgotten;
}

}  // namespace deepinfer
