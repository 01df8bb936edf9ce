// request/api_keys.h: who may ask, and as whom.
//
// Only digests of the keys are kept. Threads: any, once built.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"
#include "base/sha256.h"
#include "base/status.h"
#include "request/http.h"

namespace deepinfer {

class ApiKeys {
 public:
  // text: KEY or KEY=TENANT; without a tenant: "default". Keys with the same tenant are one client
  // as far as limits, fairness and the prefix cache are concerned.
  // Errors: kInvalidArgument for an empty key, a key or tenant with spaces or control characters,
  // or a key that is there already; the message does not hold the key.
  Status Add(std::string_view text);
  // A line a key; empty lines and those that begin with # are left out. Errors: as Disk::ReadText
  // and Add, naming the line.
  Status AddFile(const std::string& path, Disk& disk);

  bool empty() const { return keys_.empty(); }
  // The tenant of a key; "" where no keys are configured, whatever the key. Takes the same time for
  // every key. Nothing: not a key of ours.
  std::optional<std::string> TenantOf(std::string_view key) const;

 private:
  struct Entry {
    Sha256Digest digest;
    std::string tenant;
  };
  std::vector<Entry> keys_;
};

// What stands in "Authorization: Bearer KEY", else in x-api-key; empty: nothing.
std::string_view KeyOf(const HttpRequest& request);

}  // namespace deepinfer
