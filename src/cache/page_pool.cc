#include "cache/page_pool.h"

#include "base/check.h"

namespace deepinfer {

PagePool::PagePool(int64_t page_bytes, int32_t num_pages)
    : page_bytes_(page_bytes),
      memory_(new uint8_t[static_cast<size_t>(page_bytes * num_pages)]()),
      held_(static_cast<size_t>(num_pages), false) {
  free_.reserve(held_.size());
  for (int32_t page = num_pages - 1; page >= 0; --page) free_.push_back(page);
}

Status PagePool::Acquire(int32_t count, std::vector<int32_t>& pages) {
  if (count > num_free()) {
    return ResourceExhausted("KV pages: ", count, " needed, ", num_free(), " of ", num_pages(),
                             " free");
  }
  for (int32_t i = 0; i < count; ++i) {
    const int32_t page = free_.back();
    free_.pop_back();
    held_[static_cast<size_t>(page)] = true;
    pages.push_back(page);
  }
  return OkStatus();
}

void PagePool::Release(const std::vector<int32_t>& pages) {
  for (const int32_t page : pages) {
    CHECK(held_[static_cast<size_t>(page)]);
    held_[static_cast<size_t>(page)] = false;
    free_.push_back(page);
  }
}

}  // namespace deepinfer
