// cache/standalone_kv.h: one sequence with memory of its own. For tools and tests.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/sequence_kv.h"

namespace deepinfer {

class StandaloneKv {
 public:
  // Memory for positions [0, max_tokens), the page table complete. All of it is NaN, so that what
  // is read before it was written shows.
  StandaloneKv(const KvShape& shape, int64_t max_tokens);
  StandaloneKv(const StandaloneKv&) = delete;
  StandaloneKv& operator=(const StandaloneKv&) = delete;

  SequenceKv& kv() { return kv_; }
  // Bytes of all pages.
  std::span<uint8_t> pages() { return pages_; }

 private:
  const KvShape shape_;
  std::vector<uint8_t> pages_;
  std::vector<uint8_t> rings_;
  std::vector<float> tails_;
  SequenceKv kv_;
};

}  // namespace deepinfer
