// schedule/id_pool.h: a fixed set of ids 0..n-1, taken and given back. Allocates only when made.
#pragma once

#include <cstdint>
#include <vector>

#include "base/check.h"

namespace deepinfer {

class IdPool {
 public:
  explicit IdPool(int32_t size) : taken_(static_cast<size_t>(size), false) {
    for (int32_t id = size - 1; id >= 0; --id) free_.push_back(id);
  }

  // -1 if none is free.
  int32_t Take() {
    if (free_.empty()) return -1;
    const int32_t id = free_.back();
    free_.pop_back();
    taken_[static_cast<size_t>(id)] = true;
    return id;
  }
  void GiveBack(int32_t id) {
    CHECK(taken_[static_cast<size_t>(id)]);
    taken_[static_cast<size_t>(id)] = false;
    free_.push_back(id);
  }
  int32_t size() const { return static_cast<int32_t>(taken_.size()); }
  int32_t num_free() const { return static_cast<int32_t>(free_.size()); }

 private:
  std::vector<int32_t> free_;
  std::vector<bool> taken_;
};

}  // namespace deepinfer
