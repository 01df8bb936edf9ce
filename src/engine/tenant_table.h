// engine/tenant_table.h: small numbers for tenants' names, as scheduling wants them.
//
// Under a number scheduling keeps how much of the machine its tenant used. So a tenant without
// sequences is remembered, but of those only the `max_idle` that were here last: names come from
// outside, and memory for them is bounded. Threads: one at a time per object.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>
#include <vector>

namespace deepinfer {

class TenantTable {
 public:
  explicit TenantTable(int32_t max_idle = 1024) : max_idle_(max_idle) {}

  // The number of this tenant, for one more sequence of it.
  int32_t Take(const std::string& name);
  // For each Take(). Returns the number of a tenant that is forgotten now and may come to stand for
  // another; -1: none.
  int32_t GiveBack(int32_t number);

  // Tenants that are remembered.
  int32_t size() const { return static_cast<int32_t>(numbers_.size()); }

 private:
  struct Tenant {
    std::string name;
    int32_t num_sequences = 0;
    std::list<int32_t>::iterator idle;  // while num_sequences is 0
  };

  const int32_t max_idle_;
  std::vector<Tenant> tenants_;  // by number
  std::unordered_map<std::string, int32_t> numbers_;
  std::list<int32_t> idle_;  // the longest idle first
  std::vector<int32_t> free_;
};

}  // namespace deepinfer
