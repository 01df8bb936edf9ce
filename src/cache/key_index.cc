#include "cache/key_index.h"

#include <bit>

#include "base/check.h"

namespace deepinfer {

KeyIndex::KeyIndex(int32_t num_ids)
    : table_(std::bit_ceil(static_cast<size_t>(num_ids) * 2 + 1), -1),
      mask_(table_.size() - 1),
      keys_(static_cast<size_t>(num_ids)),
      has_key_(static_cast<size_t>(num_ids), 0) {}

size_t KeyIndex::PlaceOf(const PageKey& key) const {
  size_t place = PageKeyHash()(key) & mask_;
  while (table_[place] != -1 && keys_[static_cast<size_t>(table_[place])] != key) {
    place = (place + 1) & mask_;
  }
  return place;
}

int32_t KeyIndex::Find(const PageKey& key) const { return table_[PlaceOf(key)]; }

const PageKey& KeyIndex::KeyOf(int32_t id) const {
  CHECK(Contains(id));
  return keys_[static_cast<size_t>(id)];
}

void KeyIndex::Insert(int32_t id, const PageKey& key) {
  CHECK(!Contains(id));
  const size_t place = PlaceOf(key);
  CHECK_EQ(table_[place], -1);
  table_[place] = id;
  keys_[static_cast<size_t>(id)] = key;
  has_key_[static_cast<size_t>(id)] = 1;
  ++size_;
}

// The hole travels: an entry behind it may fill it unless its home lies between the hole and it.
void KeyIndex::Erase(int32_t id) {
  CHECK(Contains(id));
  size_t hole = PlaceOf(keys_[static_cast<size_t>(id)]);
  for (size_t at = (hole + 1) & mask_; table_[at] != -1; at = (at + 1) & mask_) {
    const size_t from_home = (at - HomeOf(table_[at])) & mask_;
    if (from_home < ((at - hole) & mask_)) continue;
    table_[hole] = table_[at];
    hole = at;
  }
  table_[hole] = -1;
  has_key_[static_cast<size_t>(id)] = 0;
  --size_;
}

void KeyIndex::CheckInvariants() const {
  int32_t num_entries = 0;
  for (const int32_t id : table_) {
    if (id == -1) continue;
    ++num_entries;
    CHECK(Contains(id));
    CHECK_EQ(Find(KeyOf(id)), id);
  }
  CHECK_EQ(num_entries, size_);
  int32_t num_keys = 0;
  for (const uint8_t has_key : has_key_) num_keys += has_key;
  CHECK_EQ(num_keys, size_);
}

}  // namespace deepinfer
