// Oracle of the indexer ops: every score by itself, every choice by a full stable sort.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/fault.h"
#include "kernels/indexer/indexer.h"

namespace deepinfer {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

struct Scored {
  int32_t index = 0;  // entry or block
  float score = 0;
};

// The `count` best by score, lowest index first among equals; ascending indices.
std::vector<Scored> Best(std::vector<Scored> items, int32_t count) {
  std::stable_sort(items.begin(), items.end(),
                   [](const Scored& a, const Scored& b) { return a.score > b.score; });
  if (items.size() > static_cast<size_t>(count)) items.resize(static_cast<size_t>(count));
  std::sort(items.begin(), items.end(),
            [](const Scored& a, const Scored& b) { return a.index < b.index; });
  return items;
}

std::vector<double> DecodeKey(const PagedSource& source, int32_t entry, int32_t dim) {
  const uint8_t* key = source.IndexKey(entry, dim);
  const uint8_t* scale = source.IndexScale(entry, dim);
  if (DI_FAULT("index_page_interleaved")) {  // reads a planar page as records of key and scales
    key = source.PageOf(entry) + source.section.index_keys +
          int64_t{entry % source.section.entries_per_page} *
              (IndexKeyBytes(dim) + IndexScaleBytes(dim));
    scale = key + IndexKeyBytes(dim);
  }
  std::vector<double> values;
  for (int32_t i = 0; i < dim; ++i) {
    const int code = i % 2 == 0 ? key[i / 2] & 15 : key[i / 2] >> 4;
    const float factor = scale[i / 32] == kE8m0Nan ? kNan : E8m0ToFloat(scale[i / 32]);
    values.push_back(double{E2m1ToFloat(static_cast<uint8_t>(code))} * factor);
  }
  return values;
}

// Score of one entry for row t. Dots of FP4 values are exact in F64.
float Score(const IndexSelectParams& params, int32_t t, int32_t entry) {
  const std::vector<double> key = DecodeKey(*params.sources[t], entry, params.dim);
  const bool official = params.scores == IndexScores::kOfficial;
  float official_sum = 0;
  double sum = 0;
  for (int32_t h = 0; h < params.num_heads; ++h) {
    const int64_t head = int64_t{t} * params.num_heads + h;
    double dot = 0;
    for (int32_t i = 0; i < params.dim; ++i) {
      dot += ToFloat(params.q[head * params.dim + i]) * key[static_cast<size_t>(i)];
    }
    const float weight = ToFloat(ToBf16(ToFloat(params.head_weights[head]) * params.head_scale));
    // relu keeps a NaN, as max(x, 0) with a NaN x does in the official code.
    const float relu = dot < 0 ? 0.0f : ToFloat(ToBf16(dot));
    official_sum += ToFloat(ToBf16(relu * weight));
    sum += (dot < 0 ? 0.0 : dot) * weight;
  }
  const float score = official ? ToFloat(ToBf16(official_sum)) : static_cast<float>(sum);
  return std::isnan(score) ? kMinusInfinity : score;
}

// Entries that row t may choose from, ascending.
std::vector<int32_t> Candidates(const IndexSelectParams& params, int32_t t) {
  std::vector<int32_t> entries;
  const int32_t visible = params.num_visible[t];
  if (params.blocks_in == nullptr) {
    for (int32_t j = 0; j < visible; ++j) entries.push_back(j);
    return entries;
  }
  for (int32_t b = 0; b < params.topk_blocks; ++b) {
    const int32_t block = params.blocks_in[int64_t{t} * params.topk_blocks + b];
    if (block < 0) break;
    for (int32_t j = block * params.block_size; j < (block + 1) * params.block_size; ++j) {
      if (j < visible) entries.push_back(j);
    }
  }
  return entries;
}

void ChooseBlocks(const IndexSelectParams& params, const std::vector<Scored>& scored,
                  int32_t* blocks_out) {
  std::vector<Scored> blocks;
  for (const Scored& entry : scored) {
    const int32_t block = entry.index / params.block_size;
    if (blocks.empty() || blocks.back().index != block) blocks.push_back({block, kMinusInfinity});
    blocks.back().score = std::max(blocks.back().score, entry.score);
  }
  // The newest block is last; nothing outranks it.
  if (!blocks.empty()) blocks.back().score = std::numeric_limits<float>::infinity();
  if (!blocks.empty()) std::rotate(blocks.begin(), blocks.end() - 1, blocks.end());
  std::fill_n(blocks_out, params.topk_blocks, -1);
  for (const Scored& block : Best(blocks, params.topk_blocks)) *blocks_out++ = block.index;
}

void SelectRow(const IndexSelectParams& params, int32_t t) {
  std::vector<Scored> scored;
  for (const int32_t entry : Candidates(params, t)) {
    scored.push_back({entry, Score(params, t, entry)});
  }
  int32_t* selection = params.selection + int64_t{t} * params.topk;
  std::fill_n(selection, params.topk, -1);
  float* scores = params.selected_scores;
  if (scores != nullptr) {
    scores += int64_t{t} * params.topk;
    std::fill_n(scores, params.topk, kMinusInfinity);
  }
  for (const Scored& chosen : Best(scored, params.topk)) {
    *selection++ = chosen.index;
    if (scores != nullptr) *scores++ = chosen.score;
  }
  if (params.blocks_out != nullptr) {
    ChooseBlocks(params, scored, params.blocks_out + int64_t{t} * params.topk_blocks);
  }
}

}  // namespace

void QuantiseIndexQueryRef(const Backend&, const QuantiseIndexQueryParams& params) {
  for (int64_t first = 0; first < int64_t{params.num_rows} * params.dim; first += 32) {
    bf16* x = params.x + first;
    float amax = 0;
    bool finite = true;
    for (int i = 0; i < 32; ++i) {
      finite = finite && std::isfinite(ToFloat(x[i]));
      amax = std::fmax(amax, std::fabs(ToFloat(x[i])));
    }
    const float scale = E8m0ToFloat(Fp4GroupScaleE8m0(finite ? amax : 0));
    for (int i = 0; i < 32; ++i) {
      // A group with a NaN or an infinity becomes all NaN, as the official amax makes it.
      x[i] = ToBf16(finite ? E2m1ToFloat(FloatToE2m1(ToFloat(x[i]) / scale)) * scale : kNan);
    }
  }
}

void IndexSelectRef(const Backend&, const IndexSelectParams& params) {
  for (int32_t t = 0; t < params.num_tokens; ++t) SelectRow(params, t);
}

}  // namespace deepinfer
