// CPU forms of IndexSelect. Scores equal the oracle's bit for bit, hence the choices too.
#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/cpu/scratch_sizes.h"
#include "kernels/indexer/cpu/choose_best.h"
#include "kernels/indexer/cpu/score_keys.h"

namespace deepinfer {
namespace {

using choose_best::RankedList;
using index_scores::KeyPlaces;
using index_scores::kKeys;

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr int32_t kEntriesPerPiece = 256;
constexpr int64_t kLeastTile = 16;  // however small the budget

// What a row may choose from, ascending.
struct Candidates {
  Candidates(const IndexSelectParams& params, int32_t t)
      : blocks(params.blocks_in == nullptr ? nullptr
                                           : params.blocks_in + int64_t{t} * params.topk_blocks),
        block_size(params.block_size) {
    const int32_t visible = params.num_visible[t];
    if (blocks == nullptr) {
      count = visible;
      return;
    }
    // All blocks are whole, but for the last one of the visible entries.
    for (int32_t b = 0; b < params.topk_blocks && blocks[b] >= 0; ++b) {
      count += std::clamp(visible - blocks[b] * block_size, 0, block_size);
    }
  }

  // The entry of candidate i, and how many candidates from it on, up to `end`, are the entries that
  // follow it.
  struct Run {
    int32_t entry;
    int64_t length;
  };
  Run RunAt(int64_t i, int64_t end) const {
    if (blocks == nullptr) return {static_cast<int32_t>(i), end - i};
    const auto offset = static_cast<int32_t>(i % block_size);
    return {blocks[i / block_size] * block_size + offset,
            std::min<int64_t>(end - i, block_size - offset)};
  }

  const int32_t* blocks;
  int32_t block_size;
  int64_t count = 0;
};

// Of the thread that runs a row. Candidates are scored `tile` at a time, and the best so far kept:
// the choice is the same for any tile.
struct RowScratch {
  template <typename Memory>
  RowScratch(Memory& memory, const IndexSelectParams& params, int64_t tile)
      : num_groups(params.dim / index_scores::kGroup),
        num_quads(index_scores::NumQuads(params.num_heads)),
        groups(memory.template Get<index_scores::QueryGroup>(int64_t{num_quads} * num_groups)),
        weights(memory.template Get<float>(int64_t{num_quads} * index_scores::kHeads)),
        scores(memory.template Get<float>(tile)),
        most_entries(params.topk + tile),
        most_blocks(
            params.blocks_out == nullptr ? 0 : params.topk_blocks + tile / params.block_size + 1),
        entries(memory, most_entries),
        blocks(memory, most_blocks),
        work(memory.template Get<uint32_t>(std::max(most_entries, most_blocks))) {}

  index_scores::Queries queries() const { return {groups, weights, num_quads, num_groups}; }

  int32_t num_groups, num_quads;     // of a head's dims; of heads, padded
  index_scores::QueryGroup* groups;  // [quads, groups]
  float* weights;                    // [quads * 4]
  float* scores;                     // [tile]
  int64_t most_entries, most_blocks;
  RankedList entries, blocks;
  uint32_t* work;

  // The block to which the last candidates belong; it may go on in the next tile.
  int32_t open_block = -1;
  float open_best = 0;
};

// Of every thread that scores.
struct PieceScratch {
  template <typename Memory>
  PieceScratch(Memory& memory, const IndexSelectParams& params)
      : keys(memory.template Get<index_scores::KeyGroup>(params.dim / index_scores::kGroup)) {}

  index_scores::KeyGroup* keys;  // [groups]
};

void StartRow(RowScratch& row) {
  row.entries.size = row.blocks.size = 0;
  row.open_block = -1;
}

void EncodeRow(const IndexSelectParams& params, int32_t t, RowScratch& row) {
  const int64_t first = int64_t{t} * params.num_heads;
  index_scores::EncodeQueries(params.q + first * params.dim, params.num_heads, row.num_groups,
                              row.groups);
  std::fill_n(row.weights, row.num_quads * index_scores::kHeads, 0.0f);
  for (int32_t h = 0; h < params.num_heads; ++h) {
    const float scaled = ToFloat(params.head_weights[first + h]) * params.head_scale;
    row.weights[h] = ToFloat(ToBf16(scaled));
  }
}

// Sixteen candidates from `begin` on; the last before `end` is repeated where there are fewer.
KeyPlaces PlacesOf(const PagedSource& source, int32_t dim, const Candidates& candidates,
                   int64_t begin, int64_t end) {
  KeyPlaces places;
  const auto count = static_cast<int32_t>(std::min<int64_t>(end - begin, kKeys));
  for (int32_t j = 0; j < count;) {
    const auto [entry, length] = candidates.RunAt(begin + j, begin + count);
    const int32_t per_page = source.section.entries_per_page;
    const auto in_page =
        static_cast<int32_t>(std::min<int64_t>(length, per_page - entry % per_page));
    const uint8_t* const codes = source.IndexKey(entry, dim);
    const uint8_t* const scales = source.IndexScale(entry, dim);
    for (int32_t k = 0; k < in_page; ++k, ++j) {
      places.codes[j] = codes + k * IndexKeyBytes(dim);
      places.scales[j] = scales + k * IndexScaleBytes(dim);
    }
  }
  std::fill(places.codes + count, places.codes + kKeys, places.codes[count - 1]);
  std::fill(places.scales + count, places.scales + kKeys, places.scales[count - 1]);
  return places;
}

// What scoring a row's candidates takes.
struct RowToScore {
  // Candidates [begin, end) into scores[0, end - begin). Any split gives the same scores.
  void Score(int64_t begin, int64_t end, const PieceScratch& scratch, float* scores) const {
    for (int64_t i = begin; i < end; i += kKeys) {
      float together[kKeys];
      score_keys(queries, PlacesOf(source, dim, candidates, i, end), scratch.keys, together);
      std::copy_n(together, std::min<int64_t>(kKeys, end - i), scores + (i - begin));
    }
  }

  index_scores::ScoreKeysFn score_keys;
  index_scores::Queries queries;
  const PagedSource& source;
  const Candidates& candidates;
  int32_t dim;
};

void CloseBlock(const IndexSelectParams& params, RowScratch& row) {
  if (row.open_block < 0) return;
  if (row.blocks.size == row.most_blocks) KeepBest(row.blocks, params.topk_blocks, row.work);
  row.blocks.Add(choose_best::RankOf(row.open_best), row.open_block);
}

// Candidates [begin, end), whose scores are in row.scores.
void AddEntries(const IndexSelectParams& params, const Candidates& candidates, int64_t begin,
                int64_t end, RowScratch& row) {
  RankedList& list = row.entries;
  if (list.size + end - begin > row.most_entries) KeepBest(list, params.topk, row.work);
  for (int64_t i = begin; i < end;) {
    const auto [entry, length] = candidates.RunAt(i, end);
    std::transform(row.scores + (i - begin), row.scores + (i - begin + length),
                   list.ranks + list.size, choose_best::RankOf);
    std::iota(list.indices + list.size, list.indices + list.size + length, entry);
    list.size += length;
    i += length;
  }
}

void AddBlocks(const IndexSelectParams& params, const Candidates& candidates, int64_t begin,
               int64_t end, RowScratch& row) {
  for (int64_t i = begin; i < end;) {
    const auto [entry, length] = candidates.RunAt(i, end);
    const int32_t block = entry / params.block_size;
    const int64_t in_block = std::min<int64_t>(length, (block + 1) * params.block_size - entry);
    if (block != row.open_block) {
      CloseBlock(params, row);
      row.open_block = block;
      row.open_best = kMinusInfinity;
    }
    const float* const scores = row.scores + (i - begin);
    row.open_best = std::max(row.open_best, *std::max_element(scores, scores + in_block));
    i += in_block;
  }
}

void ChooseEntries(const IndexSelectParams& params, int32_t t, RowScratch& row) {
  RankedList& best = row.entries;
  KeepBest(best, params.topk, row.work);
  int32_t* const selection = params.selection + int64_t{t} * params.topk;
  std::fill(std::copy_n(best.indices, best.size, selection), selection + params.topk, -1);
  if (params.selected_scores == nullptr) return;
  float* const scores = params.selected_scores + int64_t{t} * params.topk;
  std::fill(std::transform(best.ranks, best.ranks + best.size, scores, choose_best::ScoreOf),
            scores + params.topk, kMinusInfinity);
}

void ChooseBlocks(const IndexSelectParams& params, int32_t t, RowScratch& row) {
  CloseBlock(params, row);
  RankedList& best = row.blocks;
  // Entries ascend, so the newest visible one lies in the last block: forced in.
  if (best.size > 0) best.ranks[best.size - 1] = choose_best::kForcedRank;
  KeepBest(best, params.topk_blocks, row.work);
  int32_t* const blocks = params.blocks_out + int64_t{t} * params.topk_blocks;
  std::fill(std::copy_n(best.indices, best.size, blocks), blocks + params.topk_blocks, -1);
}

// Every candidate is chosen whatever its score, which nobody asks for.
bool TakesAll(const IndexSelectParams& params, const Candidates& candidates) {
  return params.selected_scores == nullptr && candidates.count <= params.topk &&
         (params.blocks_out == nullptr ||
          candidates.count <= int64_t{params.topk_blocks} * params.block_size);
}

// The call, as every row of it sees it.
struct Selection {
  const IndexSelectParams& params;
  index_scores::ScoreKeysFn score_keys;
  int64_t tile;
};

// score(to_score, begin, end) puts scores of these candidates into row.scores.
template <typename Score>
void SelectRow(const Selection& of, int32_t t, RowScratch& row, const Score& score) {
  const IndexSelectParams& params = of.params;
  const Candidates candidates(params, t);
  const RowToScore to_score{of.score_keys, row.queries(), *params.sources[t], candidates,
                            params.dim};
  const bool takes_all = TakesAll(params, candidates);
  StartRow(row);
  if (!takes_all) EncodeRow(params, t, row);
  for (int64_t begin = 0; begin < candidates.count; begin += of.tile) {
    const int64_t end = std::min(candidates.count, begin + of.tile);
    if (takes_all) {
      std::fill_n(row.scores, end - begin, 0.0f);
    } else {
      score(to_score, begin, end);
    }
    AddEntries(params, candidates, begin, end, row);
    if (params.blocks_out != nullptr) AddBlocks(params, candidates, begin, end, row);
  }
  ChooseEntries(params, t, row);
  if (params.blocks_out != nullptr) ChooseBlocks(params, t, row);
}

int64_t ThreadBytes(const IndexSelectParams& params, int64_t tile) {
  ScratchMeter meter;
  RowScratch(meter, params, tile);
  PieceScratch(meter, params);
  return meter.bytes();
}

// Candidates that are scored at a time: all of them, or so many as keep all threads together below
// params.scratch_bytes.
int64_t TileOf(int32_t num_threads, const IndexSelectParams& params, int64_t max_visible) {
  const int64_t candidates =
      params.blocks_in == nullptr
          ? max_visible
          : std::min(max_visible, int64_t{params.topk_blocks} * params.block_size);
  int64_t high = std::max<int64_t>(1, candidates);
  if (params.scratch_bytes == 0) return high;
  // The largest that fits, so that a longer row never takes less than a shorter one: plans rely on
  // it.
  int64_t low = std::min(high, kLeastTile);
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    if (num_threads * ThreadBytes(params, middle) <= params.scratch_bytes) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

int32_t NumThreads(const Backend& backend) {
  return backend.threads == nullptr ? 1 : backend.threads->num_threads();
}

void Select(const Backend& backend, const IndexSelectParams& params,
            const index_scores::ScoreKeys& score_keys) {
  if (params.num_tokens == 0) return;
  const int32_t num_threads = NumThreads(backend);
  const int32_t max_visible =
      *std::max_element(params.num_visible, params.num_visible + params.num_tokens);
  const Selection selection{
      params, params.scores == IndexScores::kOfficial ? score_keys.official : score_keys.exact,
      TileOf(num_threads, params, max_visible)};
  if (params.num_tokens >= num_threads) {
    backend.ParallelFor(params.num_tokens, 1, [&](int64_t begin, int64_t end) {
      ScratchFrame frame;
      RowScratch row(frame, params, selection.tile);
      const PieceScratch piece(frame, params);
      for (auto t = static_cast<int32_t>(begin); t < end; ++t) {
        SelectRow(selection, t, row, [&](const RowToScore& of, int64_t first, int64_t last) {
          of.Score(first, last, piece, row.scores);
        });
      }
    });
    return;
  }
  // Fewer rows than threads: the threads share the entries of one row after the other.
  ScratchFrame frame;
  RowScratch row(frame, params, selection.tile);
  for (int32_t t = 0; t < params.num_tokens; ++t) {
    SelectRow(selection, t, row, [&](const RowToScore& of, int64_t first, int64_t last) {
      backend.ParallelFor(last - first, kEntriesPerPiece, [&](int64_t begin, int64_t end) {
        ScratchFrame piece_frame;
        of.Score(first + begin, first + end, PieceScratch(piece_frame, params), row.scores + begin);
      });
    });
  }
}

}  // namespace

void IndexSelectAvx2(const Backend& backend, const IndexSelectParams& params) {
  Select(backend, params, index_scores::kAvx2Scores);
}
void IndexSelectAvx512(const Backend& backend, const IndexSelectParams& params) {
  Select(backend, params, index_scores::kAvx512Scores);
}

ScratchBytes IndexSelectScratchBytes(int32_t num_threads, const IndexSelectParams& params,
                                     int32_t max_visible) {
  return OnAllThreads(ThreadBytes(params, TileOf(num_threads, params, max_visible)));
}

}  // namespace deepinfer
