// cache/host_tier.h: KV pages in host memory: copies of cached pages, and what preempted sequences
// left there. Ids only; the bytes are cache/kv_memory.h's.
//
// Threads: the planning thread only. A page is free, or keyed (found by its PageKey, evicted least
// recently used first unless pinned), or anonymous (a preempted sequence's unfinished page; always
// pinned). An entry may be found as soon as it was inserted: copies run in the order in which they
// were planned. Nothing allocates after construction.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/key_index.h"
#include "cache/lru_list.h"
#include "cache/page_key.h"

namespace deepinfer {

class HostTier {
 public:
  explicit HostTier(int32_t num_pages);  // 0: no host tier

  // A page under this key, or -1. Does not count as use.
  int32_t Find(const PageKey& key) const;
  bool HasKey(int32_t page) const { return index_.Contains(page); }
  bool IsExact(int32_t page) const;  // Requires: keyed
  void Touch(int32_t page);          // counts as use. Requires: not free
  // A page for `key`, not pinned, whose bytes the caller copies in this step. -1: all are pinned.
  // Requires: Find(key) == -1.
  int32_t Insert(const PageKey& key, bool exact);
  // A page without a key, pinned once. -1: all are pinned.
  int32_t InsertAnonymous();
  void Pin(int32_t page);  // counts as use. Requires: not free
  // The last Unpin of a page without a key frees it.
  void Unpin(int32_t page);
  // Forgets a page whose bytes turned out damaged: it is found no more, and free when its last pin
  // goes. Requires: keyed.
  void Forget(int32_t page);
  void Clear();  // forgets every keyed page

  int32_t num_pages() const { return static_cast<int32_t>(pins_.size()); }
  int32_t num_free() const { return static_cast<int32_t>(free_.size()); }
  int32_t num_pinned() const { return num_pages() - num_free() - num_evictable(); }
  int32_t num_evictable() const { return evictable_.size(); }  // keyed and not pinned
  // CHECKs every invariant; O(num_pages). For tests and debug builds.
  void CheckInvariants() const;

 private:
  bool IsFree(int32_t page) const;
  int32_t TakeOne();  // -1: all are pinned

  std::vector<int32_t> pins_;  // [num_pages]
  std::vector<int32_t> free_;  // the last is handed out first
  LruList evictable_;
  KeyIndex index_;
  std::vector<uint8_t> is_exact_;  // [num_pages], of keyed ones
};

}  // namespace deepinfer
