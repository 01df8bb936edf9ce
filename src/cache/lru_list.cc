#include "cache/lru_list.h"

#include "base/check.h"

namespace deepinfer {

LruList::LruList(int32_t num_ids) : links_(static_cast<size_t>(num_ids) + 1), ends_(num_ids) {
  At(ends_) = {ends_, ends_};
}

int32_t LruList::oldest() const { return NewerThan(ends_); }

int32_t LruList::NewerThan(int32_t id) const {
  const int32_t newer = At(id).newer;
  return newer == ends_ ? -1 : newer;
}

void LruList::AddNewest(int32_t id) {
  CHECK(!Contains(id));
  const int32_t newest = At(ends_).older;
  At(id) = {.newer = ends_, .older = newest};
  At(newest).newer = id;
  At(ends_).older = id;
  ++size_;
}

void LruList::Remove(int32_t id) {
  CHECK(Contains(id));
  const Link link = At(id);
  At(link.older).newer = link.newer;
  At(link.newer).older = link.older;
  At(id) = {};
  --size_;
}

void LruList::MoveToNewest(int32_t id) {
  Remove(id);
  AddNewest(id);
}

void LruList::CheckInvariants() const {
  int32_t length = 0;
  for (int32_t id = oldest(), older = ends_; id != -1; older = id, id = NewerThan(id)) {
    CHECK_EQ(At(id).older, older);
    CHECK_LE(++length, size_);  // no circle
  }
  CHECK_EQ(length, size_);
}

}  // namespace deepinfer
