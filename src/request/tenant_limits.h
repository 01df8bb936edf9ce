// request/tenant_limits.h: how many requests of one tenant may be under way and wait.
//
// Counted from admission to the end of the answer. Threads: the server's.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

namespace deepinfer {

struct TenantLimitOptions {
  int32_t max_running = 0;  // under way, waiting ones among them; 0: any number
  int32_t max_waiting = 0;  // of them, not started yet; 0: any number
};

class TenantLimits {
 public:
  enum class Answer { kYes, kTooManyRunning, kTooManyWaiting };

  explicit TenantLimits(const TenantLimitOptions& options) : options_(options) {}

  // kYes: counts one more, which waits.
  Answer Enter(const std::string& tenant);
  void Start(const std::string& tenant);  // one of the waiting ones started
  void Leave(const std::string& tenant, bool was_started);

  const TenantLimitOptions& options() const { return options_; }

 private:
  struct Counts {
    int32_t running = 0, waiting = 0;
  };
  const TenantLimitOptions options_;
  std::unordered_map<std::string, Counts> tenants_;  // those with something under way
};

}  // namespace deepinfer
