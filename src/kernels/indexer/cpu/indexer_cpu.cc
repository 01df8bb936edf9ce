// Plain CPU forms of the indexer ops. Scores equal the oracle's bit for bit, hence the choices too.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "kernels/indexer/cpu/index_dot.h"
#include "kernels/indexer/indexer.h"
#include "kernels/kv_records/cpu/kv_codes.h"

namespace deepinfer {
namespace {

constexpr int32_t kEntriesPerPiece = 256;

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

// Keeps the best `count` keys, in the order in which they are. Their upper bits are counted first,
// so that only the keys around the last place are compared.
void KeepBest(std::vector<uint64_t>& keys, int32_t count, std::vector<uint64_t>& work) {
  constexpr int kBits = 13;  // sign, exponent and four bits of a score
  if (std::ssize(keys) <= count) return;
  if (count == 0) return keys.clear();
  static thread_local std::array<int32_t, 1 << kBits> sizes;
  sizes.fill(0);
  for (const uint64_t key : keys) ++sizes[key >> (64 - kBits)];
  size_t bucket = sizes.size() - 1;
  int32_t wanted = count;  // of the bucket and those below it
  for (; sizes[bucket] < wanted; --bucket) wanted -= sizes[bucket];
  work.clear();
  for (const uint64_t key : keys) {
    if (key >> (64 - kBits) == bucket) work.push_back(key);
  }
  std::nth_element(work.begin(), work.begin() + wanted - 1, work.end(), std::greater<>());
  const uint64_t last = work[static_cast<size_t>(wanted) - 1];  // keys differ, by their index
  std::erase_if(keys, [last](uint64_t key) { return key < last; });
}

// What one row needs while it is scored; kept per thread.
struct RowScratch {
  index_dot::Codes queries;      // [heads]
  std::vector<float> weights;    // [heads]
  std::vector<int32_t> entries;  // candidates, ascending
  std::vector<float> scores;     // of the candidates
  std::vector<uint64_t> keys;    // ascending by index
  std::vector<uint64_t> work;
};

void ListCandidates(const IndexSelectParams& params, int32_t t, std::vector<int32_t>& entries) {
  const int32_t visible = params.num_visible[t];
  entries.clear();
  if (params.blocks_in == nullptr) {
    for (int32_t j = 0; j < visible; ++j) entries.push_back(j);
    return;
  }
  const int32_t* blocks = params.blocks_in + int64_t{t} * params.topk_blocks;
  for (int32_t b = 0; b < params.topk_blocks && blocks[b] >= 0; ++b) {
    const int32_t begin = blocks[b] * params.block_size;
    const int32_t end = std::min(visible, begin + params.block_size);
    for (int32_t j = begin; j < end; ++j) entries.push_back(j);
  }
}

void StartRow(const IndexSelectParams& params, int32_t t, RowScratch& row) {
  const int64_t first = int64_t{t} * params.num_heads;
  index_dot::EncodeQueries(params.q + first * params.dim, params.num_heads, params.dim,
                           row.queries);
  row.weights.clear();
  for (int32_t h = 0; h < params.num_heads; ++h) {
    const float scaled = ToFloat(params.head_weights[first + h]) * params.head_scale;
    row.weights.push_back(ToFloat(ToBf16(scaled)));
  }
  ListCandidates(params, t, row.entries);
  row.scores.resize(row.entries.size());
}

float OfficialScore(const double* dots, const RowScratch& row) {
  float sum = 0;
  for (size_t h = 0; h < row.weights.size(); ++h) {
    const float relu = dots[h] < 0 ? 0.0f : ToFloat(ToBf16(dots[h]));
    sum += ToFloat(ToBf16(relu * row.weights[h]));
  }
  return ToFloat(ToBf16(sum));
}

float ExactScore(const double* dots, const RowScratch& row) {
  double sum = 0;
  for (size_t h = 0; h < row.weights.size(); ++h) {
    sum += (dots[h] < 0 ? 0.0 : dots[h]) * row.weights[h];
  }
  return static_cast<float>(sum);
}

// Scores candidates [begin, end) of the row. Any split gives the same scores.
void ScoreCandidates(const IndexSelectParams& params, const PagedSource& source, int64_t begin,
                     int64_t end, RowScratch& row) {
  index_dot::Key key(params.dim);
  std::vector<double> dots(row.weights.size());
  for (int64_t i = begin; i < end; ++i) {
    const auto candidate = static_cast<size_t>(i);
    const int32_t entry = row.entries[candidate];
    index_dot::UnpackKey(source.IndexKey(entry, params.dim), source.IndexScale(entry, params.dim),
                         params.dim, key);
    for (int32_t h = 0; h < params.num_heads; ++h) {
      dots[static_cast<size_t>(h)] = index_dot::Dot(row.queries, h, key);
    }
    const float score = params.scores == IndexScores::kOfficial ? OfficialScore(dots.data(), row)
                                                                : ExactScore(dots.data(), row);
    row.scores[candidate] = std::isnan(score) ? -std::numeric_limits<float>::infinity() : score;
  }
}

void ChooseEntries(const IndexSelectParams& params, int32_t t, RowScratch& row) {
  row.keys.clear();
  for (size_t i = 0; i < row.entries.size(); ++i) {
    row.keys.push_back(RankKey(row.scores[i], row.entries[i]));
  }
  KeepBest(row.keys, params.topk, row.work);
  int32_t* selection = params.selection + int64_t{t} * params.topk;
  std::fill_n(selection, params.topk, -1);
  for (size_t i = 0; i < row.keys.size(); ++i) selection[i] = IndexOf(row.keys[i]);
  if (params.selected_scores == nullptr) return;
  float* scores = params.selected_scores + int64_t{t} * params.topk;
  std::fill_n(scores, params.topk, -std::numeric_limits<float>::infinity());
  for (size_t i = 0; i < row.keys.size(); ++i) scores[i] = ScoreOf(row.keys[i]);
}

void ChooseBlocks(const IndexSelectParams& params, int32_t t, RowScratch& row) {
  row.keys.clear();
  for (size_t i = 0; i < row.entries.size();) {
    const int32_t block = row.entries[i] / params.block_size;
    float best = -std::numeric_limits<float>::infinity();
    for (; i < row.entries.size() && row.entries[i] / params.block_size == block; ++i) {
      best = std::max(best, row.scores[i]);
    }
    row.keys.push_back(RankKey(best, block));
  }
  // Entries ascend, so the newest visible one lies in the last block: forced in.
  if (!row.keys.empty()) row.keys.back() |= kForcedRank;
  KeepBest(row.keys, params.topk_blocks, row.work);
  int32_t* blocks = params.blocks_out + int64_t{t} * params.topk_blocks;
  std::fill_n(blocks, params.topk_blocks, -1);
  for (size_t i = 0; i < row.keys.size(); ++i) blocks[i] = IndexOf(row.keys[i]);
}

void FinishRow(const IndexSelectParams& params, int32_t t, RowScratch& row) {
  ChooseEntries(params, t, row);
  if (params.blocks_out != nullptr) ChooseBlocks(params, t, row);
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
  const int32_t num_threads = backend.threads == nullptr ? 1 : backend.threads->num_threads();
  if (params.num_tokens >= num_threads) {
    backend.ParallelFor(params.num_tokens, 1, [&](int64_t begin, int64_t end) {
      static thread_local RowScratch row;
      for (auto t = static_cast<int32_t>(begin); t < end; ++t) {
        StartRow(params, t, row);
        ScoreCandidates(params, *params.sources[t], 0, std::ssize(row.entries), row);
        FinishRow(params, t, row);
      }
    });
    return;
  }
  // Fewer rows than threads: the threads share the entries of one row after the other.
  static thread_local RowScratch of_caller;
  RowScratch& row = of_caller;  // the loop's body runs on other threads, too
  for (int32_t t = 0; t < params.num_tokens; ++t) {
    StartRow(params, t, row);
    backend.ParallelFor(std::ssize(row.entries), kEntriesPerPiece, [&](int64_t begin, int64_t end) {
      ScoreCandidates(params, *params.sources[t], begin, end, row);
    });
    FinishRow(params, t, row);
  }
}

}  // namespace deepinfer
