// cache/key_index.h: which page or slot has which key. Private to cache/.
//
// An open hash over ids [0, num_ids), at most one key an id. Probes go to the next place; erasing
// moves later entries forward, so nothing but keys takes room and no table is ever rebuilt. At most
// half full. Every operation takes constant expected time; nothing allocates after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache/page_key.h"

namespace deepinfer {

class KeyIndex {
 public:
  explicit KeyIndex(int32_t num_ids);

  int32_t Find(const PageKey& key) const;  // an id, or -1
  bool Contains(int32_t id) const { return has_key_[static_cast<size_t>(id)] != 0; }
  const PageKey& KeyOf(int32_t id) const;  // Requires: Contains(id)
  // Requires: the key is new, the id has none.
  void Insert(int32_t id, const PageKey& key);
  void Erase(int32_t id);  // Requires: Contains(id)
  int32_t size() const { return size_; }
  void CheckInvariants() const;

 private:
  size_t HomeOf(int32_t id) const { return PageKeyHash()(keys_[static_cast<size_t>(id)]) & mask_; }
  // The place that holds `key`, or the empty one where it would go.
  size_t PlaceOf(const PageKey& key) const;

  std::vector<int32_t> table_;    // ids, -1: empty; a power of two of places
  size_t mask_;                   // table_.size() - 1
  std::vector<PageKey> keys_;     // [num_ids]
  std::vector<uint8_t> has_key_;  // [num_ids]
  int32_t size_ = 0;
};

}  // namespace deepinfer
