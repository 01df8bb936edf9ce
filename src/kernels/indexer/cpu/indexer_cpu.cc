// Plain CPU forms of the indexer ops. Scores equal the oracle's bit for bit, hence the choices too.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <span>

#include "kernels/cpu/scratch_sizes.h"
#include "kernels/indexer/cpu/index_dot.h"
#include "kernels/kv_records/cpu/kv_codes.h"

namespace deepinfer {
namespace {

constexpr int32_t kEntriesPerPiece = 256;
constexpr int64_t kLeastTile = 16;  // however small the budget

// Orders items by score descending, then index ascending: a larger key is a better item.
uint64_t RankKey(float score, int32_t index) {
  const uint32_t bits = std::bit_cast<uint32_t>(score == 0 ? 0.0f : score);  // -0 ties with +0
  const uint32_t ordered = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return uint64_t{ordered} << 32 | (0xffffffffu - static_cast<uint32_t>(index));
}
constexpr uint64_t kForcedRank = uint64_t{0xffffffffu} << 32;  // above every score

int32_t IndexOf(uint64_t key) {
  return static_cast<int32_t>(0xffffffffu - static_cast<uint32_t>(key));
}
float ScoreOf(uint64_t key) {
  const auto ordered = static_cast<uint32_t>(key >> 32);
  return std::bit_cast<float>((ordered & 0x80000000u) != 0 ? ordered & 0x7fffffffu : ~ordered);
}

// Keys in a fixed place.
struct KeyList {
  uint64_t* keys;
  int64_t size = 0;

  void Add(uint64_t key) { keys[size++] = key; }
};

// Keeps the best `count` keys, in the order in which they are. Their upper bits are counted first,
// so that only the keys around the last place are compared. work: as many as the list has.
void KeepBest(KeyList& list, int32_t count, uint64_t* work) {
  constexpr int kBits = 13;  // sign, exponent and four bits of a score
  if (list.size <= count) return;
  if (count == 0) {
    list.size = 0;
    return;
  }
  const std::span keys(list.keys, static_cast<size_t>(list.size));
  static thread_local std::array<int32_t, 1 << kBits> sizes;
  sizes.fill(0);
  for (const uint64_t key : keys) ++sizes[key >> (64 - kBits)];
  size_t bucket = sizes.size() - 1;
  int32_t wanted = count;  // of the bucket and those below it
  for (; sizes[bucket] < wanted; --bucket) wanted -= sizes[bucket];
  uint64_t* const end = std::copy_if(keys.begin(), keys.end(), work, [bucket](uint64_t key) {
    return key >> (64 - kBits) == bucket;
  });
  std::nth_element(work, work + wanted - 1, end, std::greater<>());
  const uint64_t last = work[wanted - 1];  // keys differ, by their index
  list.size =
      std::remove_if(keys.begin(), keys.end(), [last](uint64_t key) { return key < last; }) -
      keys.begin();
}

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
  int32_t At(int64_t i) const {
    return blocks == nullptr
               ? static_cast<int32_t>(i)
               : blocks[i / block_size] * block_size + static_cast<int32_t>(i % block_size);
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
      : queries(memory, params.num_heads, params.dim),
        weights(memory.template Get<float>(params.num_heads)),
        scores(memory.template Get<float>(tile)),
        most_entries(params.topk + tile),
        most_blocks(
            params.blocks_out == nullptr ? 0 : params.topk_blocks + tile / params.block_size + 1),
        entries{memory.template Get<uint64_t>(most_entries)},
        blocks{memory.template Get<uint64_t>(most_blocks)},
        work(memory.template Get<uint64_t>(std::max(most_entries, most_blocks))) {}

  index_dot::Codes queries;  // [heads]
  float* weights;            // [heads]
  float* scores;             // [tile]
  int64_t most_entries, most_blocks;
  KeyList entries, blocks;  // ascending by index
  uint64_t* work;

  // The block to which the last candidates belong; it may go on in the next tile.
  int32_t open_block = -1;
  float open_best = 0;
};

// Of every thread that scores.
struct PieceScratch {
  template <typename Memory>
  PieceScratch(Memory& memory, const IndexSelectParams& params)
      : key(memory, params.dim), dots(memory.template Get<double>(params.num_heads)) {}

  index_dot::Key key;
  double* dots;  // [heads]
};

void StartRow(const IndexSelectParams& params, int32_t t, RowScratch& row) {
  const int64_t first = int64_t{t} * params.num_heads;
  index_dot::EncodeQueries(params.q + first * params.dim, params.num_heads, params.dim,
                           row.queries);
  for (int32_t h = 0; h < params.num_heads; ++h) {
    const float scaled = ToFloat(params.head_weights[first + h]) * params.head_scale;
    row.weights[h] = ToFloat(ToBf16(scaled));
  }
  row.entries.size = row.blocks.size = 0;
  row.open_block = -1;
}

float OfficialScore(const double* dots, const float* weights, int32_t num_heads) {
  float sum = 0;
  for (int32_t h = 0; h < num_heads; ++h) {
    const float relu = dots[h] < 0 ? 0.0f : ToFloat(ToBf16(dots[h]));
    sum += ToFloat(ToBf16(relu * weights[h]));
  }
  return ToFloat(ToBf16(sum));
}

float ExactScore(const double* dots, const float* weights, int32_t num_heads) {
  double sum = 0;
  for (int32_t h = 0; h < num_heads; ++h) {
    sum += (dots[h] < 0 ? 0.0 : dots[h]) * weights[h];
  }
  return static_cast<float>(sum);
}

// Scores candidates [begin, end) of the row into scores[0, end - begin). Any split gives the same
// scores.
void ScoreCandidates(const IndexSelectParams& params, const PagedSource& source,
                     const Candidates& candidates, int64_t begin, int64_t end,
                     const RowScratch& row, float* scores, const PieceScratch& scratch) {
  scratch.key.Clear();
  for (int64_t i = begin; i < end; ++i) {
    const int32_t entry = candidates.At(i);
    index_dot::UnpackKey(source.IndexKey(entry, params.dim), source.IndexScale(entry, params.dim),
                         params.dim, scratch.key);
    for (int32_t h = 0; h < params.num_heads; ++h) {
      scratch.dots[h] = index_dot::Dot(row.queries, h, scratch.key);
    }
    const float score = params.scores == IndexScores::kOfficial
                            ? OfficialScore(scratch.dots, row.weights, params.num_heads)
                            : ExactScore(scratch.dots, row.weights, params.num_heads);
    scores[i - begin] = std::isnan(score) ? -std::numeric_limits<float>::infinity() : score;
  }
}

void CloseBlock(const IndexSelectParams& params, RowScratch& row) {
  if (row.open_block < 0) return;
  if (row.blocks.size == row.most_blocks) KeepBest(row.blocks, params.topk_blocks, row.work);
  row.blocks.Add(RankKey(row.open_best, row.open_block));
}

// Candidates [begin, end), whose scores are in row.scores.
void AddCandidates(const IndexSelectParams& params, const Candidates& candidates, int64_t begin,
                   int64_t end, RowScratch& row) {
  if (row.entries.size + end - begin > row.most_entries) {
    KeepBest(row.entries, params.topk, row.work);
  }
  for (int64_t i = begin; i < end; ++i) {
    row.entries.Add(RankKey(row.scores[i - begin], candidates.At(i)));
  }
  if (params.blocks_out == nullptr) return;
  for (int64_t i = begin; i < end; ++i) {
    const int32_t block = candidates.At(i) / params.block_size;
    if (block != row.open_block) {
      CloseBlock(params, row);
      row.open_block = block;
      row.open_best = -std::numeric_limits<float>::infinity();
    }
    row.open_best = std::max(row.open_best, row.scores[i - begin]);
  }
}

void ChooseEntries(const IndexSelectParams& params, int32_t t, RowScratch& row) {
  KeepBest(row.entries, params.topk, row.work);
  int32_t* const selection = params.selection + int64_t{t} * params.topk;
  std::fill_n(selection, params.topk, -1);
  for (int64_t i = 0; i < row.entries.size; ++i) selection[i] = IndexOf(row.entries.keys[i]);
  if (params.selected_scores == nullptr) return;
  float* const scores = params.selected_scores + int64_t{t} * params.topk;
  std::fill_n(scores, params.topk, -std::numeric_limits<float>::infinity());
  for (int64_t i = 0; i < row.entries.size; ++i) scores[i] = ScoreOf(row.entries.keys[i]);
}

void ChooseBlocks(const IndexSelectParams& params, int32_t t, RowScratch& row) {
  CloseBlock(params, row);
  // Entries ascend, so the newest visible one lies in the last block: forced in.
  if (row.blocks.size > 0) row.blocks.keys[row.blocks.size - 1] |= kForcedRank;
  KeepBest(row.blocks, params.topk_blocks, row.work);
  int32_t* const blocks = params.blocks_out + int64_t{t} * params.topk_blocks;
  std::fill_n(blocks, params.topk_blocks, -1);
  for (int64_t i = 0; i < row.blocks.size; ++i) blocks[i] = IndexOf(row.blocks.keys[i]);
}

// score(candidates, begin, end) fills row.scores.
template <typename Score>
void SelectRow(const IndexSelectParams& params, int32_t t, int64_t tile, RowScratch& row,
               const Score& score) {
  const Candidates candidates(params, t);
  StartRow(params, t, row);
  for (int64_t begin = 0; begin < candidates.count; begin += tile) {
    const int64_t end = std::min(candidates.count, begin + tile);
    score(candidates, begin, end);
    AddCandidates(params, candidates, begin, end, row);
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

}  // namespace

void QuantiseIndexQueryCpu(const Backend& backend, const QuantiseIndexQueryParams& params) {
  backend.ParallelFor(params.num_rows, 16, [&](int64_t begin, int64_t end) {
    float group[32];
    for (int64_t first = begin * params.dim; first < end * params.dim; first += 32) {
      bf16* x = params.x + first;
      const float amax = kv_codes::WidenGroup(x, 32, group);
      const bool finite = std::isfinite(amax);
      const float scale =
          finite ? E8m0ToFloat(Fp4GroupScaleE8m0(amax)) : std::numeric_limits<float>::quiet_NaN();
      for (int32_t i = 0; i < 32; ++i) {
        const auto code = static_cast<uint8_t>(kv_codes::E2m1Code(group[i] / scale));
        x[i] = ToBf16(E2m1ToFloat(code) * scale);
      }
    }
  });
}

void IndexSelectCpu(const Backend& backend, const IndexSelectParams& params) {
  if (params.num_tokens == 0) return;
  const int32_t num_threads = NumThreads(backend);
  const int64_t tile =
      TileOf(num_threads, params,
             *std::max_element(params.num_visible, params.num_visible + params.num_tokens));
  if (params.num_tokens >= num_threads) {
    backend.ParallelFor(params.num_tokens, 1, [&](int64_t begin, int64_t end) {
      ScratchFrame frame;
      RowScratch row(frame, params, tile);
      const PieceScratch piece(frame, params);
      for (auto t = static_cast<int32_t>(begin); t < end; ++t) {
        SelectRow(params, t, tile, row, [&](const Candidates& of, int64_t first, int64_t last) {
          ScoreCandidates(params, *params.sources[t], of, first, last, row, row.scores, piece);
        });
      }
    });
    return;
  }
  // Fewer rows than threads: the threads share the entries of one row after the other.
  ScratchFrame frame;
  RowScratch row(frame, params, tile);
  for (int32_t t = 0; t < params.num_tokens; ++t) {
    SelectRow(params, t, tile, row, [&](const Candidates& of, int64_t first, int64_t last) {
      backend.ParallelFor(last - first, kEntriesPerPiece, [&](int64_t begin, int64_t end) {
        ScratchFrame piece_frame;
        const PieceScratch piece(piece_frame, params);
        ScoreCandidates(params, *params.sources[t], of, first + begin, first + end, row,
                        row.scores + begin, piece);
      });
    });
  }
}

ScratchBytes IndexSelectScratchBytes(int32_t num_threads, const IndexSelectParams& params,
                                     int32_t max_visible) {
  return OnAllThreads(ThreadBytes(params, TileOf(num_threads, params, max_visible)));
}

}  // namespace deepinfer
