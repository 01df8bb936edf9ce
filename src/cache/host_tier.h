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

#include "cache/page_key.h"

namespace deepinfer {

class HostTier {
 public:
  explicit HostTier(int32_t num_pages);  // 0: no host tier

  // A page under this key, or -1. Does not count as use.
  int32_t Find(const PageKey& key) const;
  bool IsExact(int32_t page) const;
  void Touch(int32_t page);
  // A page for `key`, not pinned, whose bytes the caller copies in this step. -1: all are pinned.
  // Requires: Find(key) == -1.
  int32_t Insert(const PageKey& key, bool exact);
  // A page without a key, pinned once. -1: all are pinned.
  int32_t InsertAnonymous();
  void Pin(int32_t page);
  // The last Unpin of an anonymous page frees it.
  void Unpin(int32_t page);
  // Forgets a page whose bytes turned out damaged. Pins of others stay valid; it is found no more.
  void Forget(int32_t page);

  int32_t num_pages() const;
  int32_t num_free() const;
  int32_t num_pinned() const;
  int32_t num_evictable() const;  // keyed and not pinned
  void CheckInvariants() const;
};

}  // namespace deepinfer
