// cache/page_pool.h: which KV page of the device belongs to whom, and which cached page holds what.
//
// A page holds kTokensPerPage consecutive tokens of one sequence over all kv sources. Only ids move
// here; the bytes are cache/kv_memory.h's. Pages are shared by reference counts: what several
// sequences have in common is held once.
// Threads: the planning thread only. Life of a page: free -> held -> (cached ->) free; a page whose
// last holder goes is cached if it was published, else free. A hit makes a cached page held again.
// A cached page is evicted when free ones run out, the least recently used first. Invariant:
// num_free + num_held + num_cached == num_pages. Nothing allocates after construction.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/key_index.h"
#include "cache/lru_list.h"
#include "cache/page_key.h"

namespace deepinfer {

class PagePool {
 public:
  explicit PagePool(int32_t num_pages);

  // Appends `count` pages with one reference each to `pages`, evicting cached ones when free ones
  // run out. Returns false if free + cached < count; then nothing was taken or evicted.
  bool Acquire(int32_t count, std::vector<int32_t>& pages);
  // One more holder. Requires: held or cached.
  void AddReference(int32_t page);
  // One holder less. A sequence releases its pages from the last to the first, so that of a chain
  // the end is evicted before what leads to it.
  void Release(int32_t page);

  // From now on `key` finds this page. Requires: held, and without a key of its own. exact: its
  // bytes are those that a cold run in exact mode computes. Returns false, and changes nothing, if
  // another page has this key: that one goes on to be found.
  bool Publish(int32_t page, const PageKey& key, bool exact);
  // A held or cached page, or -1. Does not count as use.
  int32_t Find(const PageKey& key) const;
  bool IsPublished(int32_t page) const;
  bool IsExact(int32_t page) const;          // Requires: published
  const PageKey& KeyOf(int32_t page) const;  // Requires: published
  // Its key finds nothing from now on; a cached page becomes free. For bytes that turned out wrong.
  void Unpublish(int32_t page);  // Requires: published
  // Forgets every key; cached pages become free. For a changed namespace and for tests.
  void Clear();

  int32_t num_pages() const { return static_cast<int32_t>(references_.size()); }
  int32_t num_free() const { return static_cast<int32_t>(free_.size()); }
  int32_t num_cached() const { return cached_.size(); }
  int32_t num_held() const { return num_pages() - num_free() - num_cached(); }
  int32_t num_available() const { return num_free() + num_cached(); }
  int64_t num_evicted() const { return num_evicted_; }  // since the start
  // CHECKs every invariant; O(num_pages). For tests and debug builds.
  void CheckInvariants() const;

 private:
  int32_t TakeOne();

  std::vector<int32_t> references_;  // [num_pages]
  std::vector<int32_t> free_;        // the last is handed out first
  LruList cached_;
  KeyIndex index_;
  std::vector<uint8_t> is_exact_;  // [num_pages], of published ones
  int64_t num_evicted_ = 0;
};

}  // namespace deepinfer
