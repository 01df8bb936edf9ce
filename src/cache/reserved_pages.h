// cache/reserved_pages.h: KV pages reserved for a sequence's whole length when it starts, with
// their memory. What the engine uses while a sequence's length bounds what it takes.
//
// Threads: the step loop only. Life of a page: free -> held -> free.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "cache/sequence_kv.h"

namespace deepinfer {

class ReservedPages {
 public:
  // Takes all memory.
  ReservedPages(int64_t page_bytes, int32_t num_pages);

  // Appends `count` page ids to `pages`. Errors: kResourceExhausted; then nothing was taken.
  Status Acquire(int32_t count, std::vector<int32_t>& pages);
  // Gives pages back. Requires: each is held.
  void Release(const std::vector<int32_t>& pages);

  uint8_t* data() const { return memory_.get(); }
  int32_t num_pages() const { return static_cast<int32_t>(held_.size()); }
  int32_t num_free() const { return static_cast<int32_t>(free_.size()); }

 private:
  std::unique_ptr<uint8_t[]> memory_;
  std::vector<int32_t> free_;  // the last is handed out first
  std::vector<bool> held_;
};

// One sequence's rings and tails, and its pages of `pool`; these go back with the object.
class ReservedKv {
 public:
  // `pool` outlives the object.
  ReservedKv(const KvShape& shape, ReservedPages* pool);
  ~ReservedKv();
  ReservedKv(const ReservedKv&) = delete;
  ReservedKv& operator=(const ReservedKv&) = delete;

  // Makes room for positions [0, num_tokens). Errors: kResourceExhausted; then nothing changed.
  Status Reserve(int64_t num_tokens);
  SequenceKv& kv() { return kv_; }

 private:
  const KvShape shape_;
  ReservedPages* const pool_;
  std::vector<uint8_t> rings_;
  std::vector<float> tails_;
  SequenceKv kv_;
};

}  // namespace deepinfer
