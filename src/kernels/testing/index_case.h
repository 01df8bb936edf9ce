// kernels/testing/index_case.h: made-up index keys and queries for tests of the indexer.
#pragma once

#include <vector>

#include "kernels/indexer/indexer.h"
#include "kernels/kv_records/kv_records.h"
#include "kernels/testing/compare.h"
#include "kernels/testing/data.h"
#include "kernels/testing/kv_pages.h"

namespace deepinfer::testing {

struct IndexShape {
  int32_t heads = 4;
  int32_t dim = 32;
  int32_t topk = 8;
  int32_t block_size = 4;
  int32_t topk_blocks = 8;
  int32_t ratio = 1;
  IndexScores scores = IndexScores::kOfficial;
  DataKind kind = DataKind::kNormal;
  int64_t scratch_bytes = 0;
  bool wants_scores = true;  // of the selection; without, a result has none
};

struct IndexResult {
  std::vector<int32_t> selection, blocks;
  std::vector<float> scores;
  bool operator==(const IndexResult&) const = default;
};

// One source with `num_entries` keys, and rows that see the first visible[t] of them.
class IndexCase {
 public:
  IndexCase(const IndexShape& shape, int32_t num_entries, std::vector<int32_t> visible,
            uint64_t seed)
      : shape_(shape),
        visible_(std::move(visible)),
        random_(seed),
        pages_(32, shape.dim, shape.ratio, num_entries, random_),
        source_(pages_.Source()),
        sources_(visible_.size(), &source_) {
    const Backend oracle{.variant = kRefVariant};
    const std::vector<bf16> keys = MakeBf16(shape.kind, num_entries, shape.dim, random_);
    WriteIndexKey(oracle, {.num_rows = num_entries,
                           .dim = shape.dim,
                           .x = keys.data(),
                           .keys = pages_.IndexKeys().data(),
                           .scales = pages_.IndexScales().data()});
    const auto rows = std::ssize(visible_) * shape.heads;
    q = MakeBf16(shape.kind, rows, shape.dim, random_);
    QuantiseIndexQuery(oracle,
                       {.num_rows = static_cast<int32_t>(rows), .dim = shape.dim, .x = q.data()});
    for (int64_t i = 0; i < rows; ++i) {
      weights.push_back(ToBf16(static_cast<float>(random_.Normal() / 8)));
    }
  }

  IndexCase(const IndexCase&) = delete;  // rows point at source_
  IndexCase& operator=(const IndexCase&) = delete;

  // All rows, or only row `only`. `topk` <= 0 means the shape's.
  IndexResult Run(const Backend& backend, bool make_blocks, const std::vector<int32_t>& blocks_in,
                  int32_t only = -1, int32_t topk = 0) const {
    const int32_t first = only < 0 ? 0 : only;
    const int32_t count = only < 0 ? static_cast<int32_t>(visible_.size()) : 1;
    if (topk <= 0) topk = shape_.topk;
    Guarded<int32_t> selection(int64_t{count} * topk), blocks(int64_t{count} * shape_.topk_blocks);
    Guarded<float> scores(int64_t{count} * topk);
    IndexSelect(backend, {.num_tokens = count,
                          .num_heads = shape_.heads,
                          .dim = shape_.dim,
                          .topk = topk,
                          .scores = shape_.scores,
                          .q = q.data() + int64_t{first} * shape_.heads * shape_.dim,
                          .head_weights = weights.data() + int64_t{first} * shape_.heads,
                          .sources = sources_.data() + first,
                          .num_visible = visible_.data() + first,
                          .selection = selection.data(),
                          .selected_scores = shape_.wants_scores ? scores.data() : nullptr,
                          .block_size = shape_.block_size,
                          .topk_blocks = shape_.topk_blocks,
                          .blocks_out = make_blocks ? blocks.data() : nullptr,
                          .blocks_in = blocks_in.empty()
                                           ? nullptr
                                           : blocks_in.data() + int64_t{first} * shape_.topk_blocks,
                          .scratch_bytes = shape_.scratch_bytes});
    if (!selection.GuardsIntact() || !scores.GuardsIntact() || !blocks.GuardsIntact()) return {};
    return {selection.ToVector(), make_blocks ? blocks.ToVector() : std::vector<int32_t>(),
            shape_.wants_scores ? scores.ToVector() : std::vector<float>()};
  }

  const IndexShape& shape() const { return shape_; }
  void set_scratch_bytes(int64_t bytes) { shape_.scratch_bytes = bytes; }
  const std::vector<int32_t>& visible() const { return visible_; }
  PagedSource& source() { return source_; }

  // Inputs that a test may spoil. [rows * heads, dim] and [rows, heads].
  std::vector<bf16> q, weights;

 private:
  IndexShape shape_;
  std::vector<int32_t> visible_;
  Random random_;
  KvPages pages_;
  PagedSource source_;
  std::vector<const PagedSource*> sources_;
};

}  // namespace deepinfer::testing
