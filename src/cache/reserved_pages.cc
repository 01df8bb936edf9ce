#include "cache/reserved_pages.h"

#include "base/check.h"

namespace deepinfer {

ReservedPages::ReservedPages(int64_t page_bytes, int32_t num_pages)
    : memory_(new uint8_t[static_cast<size_t>(page_bytes * num_pages)]()),
      held_(static_cast<size_t>(num_pages), false) {
  free_.reserve(held_.size());
  for (int32_t page = num_pages - 1; page >= 0; --page) free_.push_back(page);
}

Status ReservedPages::Acquire(int32_t count, std::vector<int32_t>& pages) {
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

void ReservedPages::Release(const std::vector<int32_t>& pages) {
  for (const int32_t page : pages) {
    CHECK(held_[static_cast<size_t>(page)]);
    held_[static_cast<size_t>(page)] = false;
    free_.push_back(page);
  }
}

ReservedKv::ReservedKv(const KvShape& shape, ReservedPages* pool)
    : shape_(shape),
      pool_(pool),
      rings_(static_cast<size_t>(shape_.AllRingBytes())),
      tails_(static_cast<size_t>(shape_.AllTailFloats())),
      kv_(shape_, pool->data(), rings_.data(), tails_.data()) {}

ReservedKv::~ReservedKv() { pool_->Release(kv_.page_table()); }

Status ReservedKv::Reserve(int64_t num_tokens) {
  const auto needed = static_cast<int32_t>((num_tokens + kTokensPerPage - 1) / kTokensPerPage);
  const auto held = static_cast<int32_t>(kv_.page_table().size());
  return needed > held ? pool_->Acquire(needed - held, kv_.page_table()) : OkStatus();
}

}  // namespace deepinfer
