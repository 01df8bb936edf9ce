// cache/lru_list.h: ids in the order of their last use. Private to cache/.
//
// A doubly linked list whose links lie in arrays by id: every operation takes constant time, and
// nothing allocates after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace deepinfer {

class LruList {
 public:
  explicit LruList(int32_t num_ids);

  int32_t size() const { return size_; }
  bool Contains(int32_t id) const { return links_[static_cast<size_t>(id)].newer != kOut; }
  int32_t oldest() const;               // -1: empty
  void AddNewest(int32_t id);           // Requires: !Contains(id)
  void Remove(int32_t id);              // Requires: Contains(id)
  void MoveToNewest(int32_t id);        // Requires: Contains(id)
  int32_t NewerThan(int32_t id) const;  // -1: none. Requires: Contains(id)
  void CheckInvariants() const;

 private:
  static constexpr int32_t kOut = -1;
  struct Link {
    int32_t newer = kOut;
    int32_t older = kOut;
  };
  Link& At(int32_t id) { return links_[static_cast<size_t>(id)]; }
  const Link& At(int32_t id) const { return links_[static_cast<size_t>(id)]; }

  std::vector<Link> links_;  // [num_ids + 1]; the last, `ends_`, closes the ring
  int32_t ends_;
  int32_t size_ = 0;
};

}  // namespace deepinfer
