// kernels/testing/kv_pages.h: KV pages of one made-up sequence, for tests of the ops that read
// them.
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/kv_layout.h"
#include "kernels/testing/data.h"

namespace deepinfer::testing {

// Pages of a single source, in shuffled places of a pool that starts as 0xff bytes everywhere.
class KvPages {
 public:
  KvPages(int32_t head_dim, int32_t index_dim, int32_t ratio, int32_t num_entries, Random& random)
      : layout_(MakePageLayout(head_dim, index_dim, {ratio})), num_entries_(num_entries) {
    const int32_t per_page = kTokensPerPage / ratio;
    const int32_t pages = (num_entries + per_page - 1) / per_page;
    // Some pages of the pool belong to nobody.
    table_.resize(static_cast<size_t>(pages + 3));
    std::iota(table_.begin(), table_.end(), 0);
    for (size_t i = table_.size(); i > 1; --i) {
      std::swap(table_[i - 1], table_[static_cast<size_t>(random.Below(static_cast<int32_t>(i)))]);
    }
    pool_.assign(table_.size() * static_cast<size_t>(layout_.page_bytes), 0xff);
  }

  PagedSource Source() {
    return {.pool = pool_.data(),
            .page_bytes = layout_.page_bytes,
            .page_table = table_.data(),
            .section = layout_.sections[0]};
  }

  // Places for the op that writes them, entry by entry.
  std::vector<uint8_t*> GlobalRecords() {
    std::vector<uint8_t*> places;
    for (int32_t j = 0; j < num_entries_; ++j) {
      places.push_back(Source().GlobalRecord(j, layout_.head_dim));
    }
    return places;
  }
  std::vector<uint8_t*> IndexKeys() {
    std::vector<uint8_t*> places;
    for (int32_t j = 0; j < num_entries_; ++j) {
      places.push_back(Source().IndexKey(j, layout_.index_dim));
    }
    return places;
  }
  std::vector<uint8_t*> IndexScales() {
    std::vector<uint8_t*> places;
    for (int32_t j = 0; j < num_entries_; ++j) {
      places.push_back(Source().IndexScale(j, layout_.index_dim));
    }
    return places;
  }

 private:
  PageLayout layout_;
  int32_t num_entries_;
  std::vector<int32_t> table_;
  std::vector<uint8_t> pool_;
};

}  // namespace deepinfer::testing
