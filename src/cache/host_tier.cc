#include "cache/host_tier.h"

#include "base/check.h"

namespace deepinfer {

HostTier::HostTier(int32_t num_pages)
    : pins_(static_cast<size_t>(num_pages), 0),
      evictable_(num_pages),
      index_(num_pages),
      is_exact_(static_cast<size_t>(num_pages), 0) {
  free_.reserve(pins_.size());
  for (int32_t page = num_pages - 1; page >= 0; --page) free_.push_back(page);
}

int32_t HostTier::Find(const PageKey& key) const { return index_.Find(key); }

bool HostTier::IsExact(int32_t page) const {
  CHECK(index_.Contains(page));
  return is_exact_[static_cast<size_t>(page)] != 0;
}

bool HostTier::IsFree(int32_t page) const {
  return pins_[static_cast<size_t>(page)] == 0 && !index_.Contains(page);
}

void HostTier::Touch(int32_t page) {
  CHECK(!IsFree(page));
  if (evictable_.Contains(page)) evictable_.MoveToNewest(page);  // else its last Unpin does
}

int32_t HostTier::TakeOne() {
  if (!free_.empty()) {
    const int32_t page = free_.back();
    free_.pop_back();
    return page;
  }
  const int32_t page = evictable_.oldest();
  if (page == -1) return -1;
  evictable_.Remove(page);
  index_.Erase(page);
  return page;
}

int32_t HostTier::Insert(const PageKey& key, bool exact) {
  CHECK_EQ(Find(key), -1);
  const int32_t page = TakeOne();
  if (page == -1) return -1;
  index_.Insert(page, key);
  is_exact_[static_cast<size_t>(page)] = exact ? 1 : 0;
  evictable_.AddNewest(page);
  return page;
}

int32_t HostTier::InsertAnonymous() {
  const int32_t page = TakeOne();
  if (page != -1) pins_[static_cast<size_t>(page)] = 1;
  return page;
}

void HostTier::Pin(int32_t page) {
  CHECK(!IsFree(page));
  if (pins_[static_cast<size_t>(page)]++ == 0) evictable_.Remove(page);
}

void HostTier::Unpin(int32_t page) {
  int32_t& pins = pins_[static_cast<size_t>(page)];
  CHECK_GT(pins, 0);
  if (--pins > 0) return;
  if (index_.Contains(page)) {
    evictable_.AddNewest(page);
  } else {
    free_.push_back(page);
  }
}

void HostTier::Forget(int32_t page) {
  index_.Erase(page);  // CHECKs that it has a key
  if (pins_[static_cast<size_t>(page)] > 0) return;
  evictable_.Remove(page);
  free_.push_back(page);
}

void HostTier::Clear() {
  for (int32_t page = 0; page < num_pages(); ++page) {
    if (HasKey(page)) Forget(page);
  }
}

void HostTier::CheckInvariants() const {
  evictable_.CheckInvariants();
  index_.CheckInvariants();
  std::vector<bool> listed(pins_.size(), false);
  for (const int32_t page : free_) {
    CHECK(IsFree(page) && !listed[static_cast<size_t>(page)]);
    listed[static_cast<size_t>(page)] = true;
  }
  int32_t num_with_pins = 0;
  for (int32_t page = 0; page < num_pages(); ++page) {
    const int32_t pins = pins_[static_cast<size_t>(page)];
    CHECK_GE(pins, 0);
    num_with_pins += pins > 0 ? 1 : 0;
    CHECK_EQ(evictable_.Contains(page), pins == 0 && index_.Contains(page));
    CHECK_EQ(bool{listed[static_cast<size_t>(page)]}, IsFree(page));
  }
  CHECK_EQ(num_with_pins, num_pinned());
}

}  // namespace deepinfer
