#include "kernels/kv_layout.h"

#include <gtest/gtest.h>

#include <vector>

namespace deepinfer {
namespace {

TEST(KvLayout, RealPageHas890BytesAToken) {
  const PageLayout layout = MakePageLayout(512, 128, {2, 2, 2, 1});
  EXPECT_EQ(layout.page_bytes, 56960);
  EXPECT_EQ(layout.page_bytes, kTokensPerPage * 890);
  const PageSection& first = layout.sections[0];
  EXPECT_EQ(first.entries_per_page, 32);
  EXPECT_EQ(first.index_keys, 0);
  EXPECT_EQ(first.index_scales, 32 * 64);
  EXPECT_EQ(first.global_records, 32 * 68);
  EXPECT_EQ(layout.sections[3].index_keys, 3 * 32 * 356);
}

// Every byte of every page belongs to exactly one entry of one source.
TEST(KvLayout, EntriesTileThePages) {
  for (const auto& [head_dim, index_dim] : {std::pair{512, 128}, {64, 32}}) {
    const PageLayout layout = MakePageLayout(head_dim, index_dim, {2, 1});
    std::vector<uint8_t> pool(static_cast<size_t>(3 * layout.page_bytes), 0);
    const int32_t table[] = {2, 0};
    const auto touch = [](uint8_t* begin, int32_t bytes) {
      for (int32_t i = 0; i < bytes; ++i) ++begin[i];
    };
    for (const PageSection& section : layout.sections) {
      const PagedSource source{pool.data(), layout.page_bytes, table, section};
      for (int32_t j = 0; j < 2 * section.entries_per_page; ++j) {
        touch(source.GlobalRecord(j, head_dim), GlobalRecordBytes(head_dim));
        touch(source.IndexKey(j, index_dim), IndexKeyBytes(index_dim));
        touch(source.IndexScale(j, index_dim), IndexScaleBytes(index_dim));
      }
    }
    for (size_t i = 0; i < pool.size(); ++i) {
      const auto page = static_cast<int64_t>(i) / layout.page_bytes;
      ASSERT_EQ(pool[i], page == 1 ? 0 : 1) << i;
    }
  }
}

}  // namespace
}  // namespace deepinfer
