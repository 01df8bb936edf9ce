#include "cache/page_pool.h"

#include "base/check.h"

namespace deepinfer {

PagePool::PagePool(int32_t num_pages)
    : references_(static_cast<size_t>(num_pages), 0),
      cached_(num_pages),
      index_(num_pages),
      is_exact_(static_cast<size_t>(num_pages), 0) {
  free_.reserve(references_.size());
  for (int32_t page = num_pages - 1; page >= 0; --page) free_.push_back(page);
}

bool PagePool::Acquire(int32_t count, std::vector<int32_t>& pages) {
  CHECK_GE(count, 0);
  if (count > num_available()) return false;
  for (int32_t i = 0; i < count; ++i) pages.push_back(TakeOne());
  return true;
}

int32_t PagePool::TakeOne() {
  int32_t page;
  if (!free_.empty()) {
    page = free_.back();
    free_.pop_back();
  } else {
    page = cached_.oldest();
    cached_.Remove(page);
    index_.Erase(page);
    ++num_evicted_;
  }
  references_[static_cast<size_t>(page)] = 1;
  return page;
}

void PagePool::AddReference(int32_t page) {
  int32_t& references = references_[static_cast<size_t>(page)];
  if (references == 0) cached_.Remove(page);  // CHECKs that it is there
  ++references;
}

void PagePool::Release(int32_t page) {
  int32_t& references = references_[static_cast<size_t>(page)];
  CHECK_GT(references, 0);
  if (--references > 0) return;
  if (IsPublished(page)) {
    cached_.AddNewest(page);
  } else {
    free_.push_back(page);
  }
}

bool PagePool::Publish(int32_t page, const PageKey& key, bool exact) {
  CHECK_GT(references_[static_cast<size_t>(page)], 0);
  CHECK(!IsPublished(page));
  if (index_.Find(key) != -1) return false;
  index_.Insert(page, key);
  is_exact_[static_cast<size_t>(page)] = exact ? 1 : 0;
  return true;
}

int32_t PagePool::Find(const PageKey& key) const { return index_.Find(key); }

bool PagePool::IsPublished(int32_t page) const { return index_.Contains(page); }

bool PagePool::IsExact(int32_t page) const {
  CHECK(IsPublished(page));
  return is_exact_[static_cast<size_t>(page)] != 0;
}

const PageKey& PagePool::KeyOf(int32_t page) const { return index_.KeyOf(page); }

void PagePool::Unpublish(int32_t page) {
  index_.Erase(page);  // CHECKs that it has a key
  if (references_[static_cast<size_t>(page)] > 0) return;
  cached_.Remove(page);
  free_.push_back(page);
}

void PagePool::Clear() {
  for (int32_t page = cached_.oldest(); page != -1; page = cached_.oldest()) {
    cached_.Remove(page);
    free_.push_back(page);
  }
  for (int32_t page = 0; page < num_pages(); ++page) {
    if (IsPublished(page)) index_.Erase(page);
  }
}

void PagePool::CheckInvariants() const {
  cached_.CheckInvariants();
  index_.CheckInvariants();
  std::vector<bool> is_free(references_.size(), false);
  for (const int32_t page : free_) {
    CHECK(!is_free[static_cast<size_t>(page)]);  // once
    is_free[static_cast<size_t>(page)] = true;
  }
  int32_t num_referenced = 0;
  for (int32_t page = 0; page < num_pages(); ++page) {
    const int32_t references = references_[static_cast<size_t>(page)];
    CHECK_GE(references, 0);
    num_referenced += references > 0 ? 1 : 0;
    // Exactly one of free, held, cached.
    const bool free = is_free[static_cast<size_t>(page)], cached = cached_.Contains(page);
    CHECK_EQ(int{free} + int{cached} + int{references > 0}, 1);
    CHECK(!free || !IsPublished(page));
    CHECK(!cached || IsPublished(page));
  }
  CHECK_EQ(num_referenced, num_held());
}

}  // namespace deepinfer
