// cache/page_pool.h: which KV page of this machine belongs to whom.
//
// A page holds kTokensPerPage consecutive tokens of one sequence over all kv sources; its bytes are
// described in kernels/kv_layout.h. All memory is taken at construction.
// Threads: the step loop only. Life of a page: free -> held -> free.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"

namespace deepinfer {

class PagePool {
 public:
  PagePool(int64_t page_bytes, int32_t num_pages);

  // Appends `count` page ids to `pages`. Errors: kResourceExhausted; then nothing was taken.
  Status Acquire(int32_t count, std::vector<int32_t>& pages);
  // Gives pages back. Requires: each is held.
  void Release(const std::vector<int32_t>& pages);

  uint8_t* data() const { return memory_.get(); }
  int64_t page_bytes() const { return page_bytes_; }
  int32_t num_pages() const { return static_cast<int32_t>(held_.size()); }
  int32_t num_free() const { return static_cast<int32_t>(free_.size()); }

 private:
  const int64_t page_bytes_;
  std::unique_ptr<uint8_t[]> memory_;
  std::vector<int32_t> free_;  // the last is handed out first
  std::vector<bool> held_;
};

}  // namespace deepinfer
