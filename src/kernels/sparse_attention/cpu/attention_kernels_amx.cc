// AMX-BF16: up to 16 heads at a time are the rows of a tile. A block's keys and pairs of slots, as
// the set for AVX-512 decodes them, lie as TDPBF16PS wants its second operand. Its sums add even
// and odd elements apart.
#include <immintrin.h>

#include <cstring>

#include "kernels/cpu/tiles_amx.h"
#include "kernels/sparse_attention/cpu/attention_avx512.h"

namespace deepinfer {
namespace {

using namespace attention_avx512;  // NOLINT: this file and that set are one

constexpr int32_t kMostHeads = 16, kTileDwords = 16, kColumns = 64;
constexpr int64_t kRowBytes = kColumns * 4;  // of the sums that four tiles leave

// Tiles 0..3 are sums, 4 is the heads' part of a product, 5 and 6 the block's.
struct ShapesOfHeads {
  TileShapes shapes[kMostHeads + 1];
  constexpr ShapesOfHeads() {
    for (int heads = 1; heads <= kMostHeads; ++heads) {
      for (int tile = 0; tile <= 4; ++tile) shapes[heads].Set(tile, heads);
      for (int tile = 5; tile <= 6; ++tile) shapes[heads].Set(tile, kTileDwords);
    }
  }
};
constexpr ShapesOfHeads kShapes;

template <int kTiles>
void ZeroSums() {
  _tile_zero(0);
  if constexpr (kTiles > 1) _tile_zero(1);
  if constexpr (kTiles > 2) _tile_zero(2);
  if constexpr (kTiles > 3) _tile_zero(3);
}

// sums [heads, kColumns], 16 columns a tile.
template <int kTiles>
void StoreSums(float* sums) {
  _tile_stored(0, sums, kRowBytes);
  if constexpr (kTiles > 1) _tile_stored(1, sums + 16, kRowBytes);
  if constexpr (kTiles > 2) _tile_stored(2, sums + 32, kRowBytes);
  if constexpr (kTiles > 3) _tile_stored(3, sums + 48, kRowBytes);
}

// Sums += 32 elements of every head, `stride` bytes apart, times kTiles tiles of the block, of 16
// rows of `row_bytes` each.
template <int kTiles>
void AddTiles(const void* heads, int64_t stride, const uint32_t* block, int64_t row_bytes) {
  _tile_loadd(4, heads, stride);
  _tile_loadd(5, block, row_bytes);
  _tile_dpbf16ps(0, 4, 5);
  if constexpr (kTiles > 1) {
    _tile_loadd(6, block + kTileDwords, row_bytes);
    _tile_dpbf16ps(1, 4, 6);
  }
  if constexpr (kTiles > 2) {
    _tile_loadd(5, block + 2 * kTileDwords, row_bytes);
    _tile_dpbf16ps(2, 4, 5);
  }
  if constexpr (kTiles > 3) {
    _tile_loadd(6, block + 3 * kTileDwords, row_bytes);
    _tile_dpbf16ps(3, 4, 6);
  }
}

// What a call keeps in memory between its products.
struct Work {
  alignas(64) float scores[kMostHeads][kColumns], sums[kMostHeads][kColumns];
  alignas(64) uint16_t p[kMostHeads][kSlots];
};

// work.scores[h][s] = q[h] . key of slot s, for 16 kTiles slots.
template <int kTiles>
void Dots(const bf16* q, int32_t num_heads, const uint32_t* keys, int32_t dim, Work& work) {
  for (int32_t begin = 0; begin < dim; begin += kChain) {
    const int32_t end = begin + kChain < dim ? begin + kChain : dim;
    ZeroSums<kTiles>();
    for (int32_t c = begin; c < end; c += 32) {
      AddTiles<kTiles>(q + c, dim * int64_t{sizeof(bf16)}, keys + int64_t{c} / 2 * kSlots,
                       kSlots * 4);
    }
    if (begin == 0) {
      StoreSums<kTiles>(work.scores[0]);
      continue;
    }
    StoreSums<kTiles>(work.sums[0]);
    for (int32_t h = 0; h < num_heads; ++h) {
      for (int v = 0; v < kTiles; ++v) {
        float* const score = work.scores[h] + v * kLanes;
        _mm512_store_ps(score, _mm512_add_ps(_mm512_load_ps(score),
                                             _mm512_load_ps(work.sums[h] + v * kLanes)));
      }
    }
  }
}

// sum[h] = sum[h] * correction[h] + sum over slots of p[h] * kv, 16 kTiles dims from `c` on.
template <int kTiles>
void AddProducts(const AttentionHeads& heads, int32_t num_heads, const uint32_t* pairs,
                 int32_t num_pairs, int32_t dim, int32_t c, const float* correction, Work& work) {
  ZeroSums<kTiles>();
  for (int32_t s = 0; s < num_pairs; s += kTileDwords) {
    AddTiles<kTiles>(work.p[0] + 2 * s, sizeof work.p[0], pairs + s * PairStride(dim) + c,
                     PairStride(dim) * 4);
  }
  StoreSums<kTiles>(work.sums[0]);
  for (int32_t h = 0; h < num_heads; ++h) {
    const __m512 factor = _mm512_set1_ps(correction[h]);
    for (int v = 0; v < kTiles; v += 2) {
      __m512 added[2] = {_mm512_load_ps(work.sums[h] + v * kLanes),
                         _mm512_load_ps(work.sums[h] + (v + 1) * kLanes)};
      InOrder(added[0], added[1]);
      for (int i = 0; i < 2; ++i) {
        float* const sum = heads.sum + int64_t{h} * dim + c + (v + i) * kLanes;
        const __m512 shrunk = _mm512_mul_ps(_mm512_loadu_ps(sum), factor);
        _mm512_storeu_ps(sum, _mm512_add_ps(shrunk, added[i]));
      }
    }
  }
}

template <int kTiles>
void AddBlock(const AttentionHeads& heads, int32_t num_heads, const void* block, int32_t n,
              int32_t dim, float scale, Work& work) {
  const uint32_t *const keys = Keys(block), *const pairs = Pairs(block, dim);
  Dots<kTiles>(heads.q, num_heads, keys, dim, work);
  float correction[kMostHeads];
  for (int32_t h = 0; h < num_heads; ++h) {
    __m512 scores[kTiles];
    for (int v = 0; v < kTiles; ++v) scores[v] = _mm512_load_ps(work.scores[h] + v * kLanes);
    correction[h] = SoftmaxBlock<kTiles>(scores, n, scale, heads.max[h], heads.denominator[h],
                                         work.p[h]);
    // Tiles take 32 slots of a head.
    if (kTiles % 2 == 1) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(work.p[h] + kTiles * kLanes),
                         _mm256_setzero_si256());
    }
  }
  ReadsMemory();
  const int32_t num_pairs = (n + 1) / 2;
  int32_t c = 0;
  for (; c + 64 <= dim; c += 64) {
    AddProducts<4>(heads, num_heads, pairs, num_pairs, dim, c, correction, work);
  }
  if (c < dim) AddProducts<2>(heads, num_heads, pairs, num_pairs, dim, c, correction, work);
}

// Tiles are given back after every call: a thread that waits with tiles in use keeps its core from
// sleeping deeply.
void Add(const AttentionHeads& heads, int32_t num_heads, const void* block, int32_t n, int32_t dim,
         float scale, void*) {
  Work work;
  ReadsMemory();
  _tile_loadconfig(&kShapes.shapes[num_heads]);
  switch ((n + kLanes - 1) / kLanes) {
    case 1:
      AddBlock<1>(heads, num_heads, block, n, dim, scale, work);
      break;
    case 2:
      AddBlock<2>(heads, num_heads, block, n, dim, scale, work);
      break;
    case 3:
      AddBlock<3>(heads, num_heads, block, n, dim, scale, work);
      break;
    default:
      AddBlock<4>(heads, num_heads, block, n, dim, scale, work);
  }
  _tile_release();
}

// Pairs past the last are zeros up to a whole tile: their probabilities are 0, but what lies there
// may be NaN.
void DecodeForTiles(const AttentionSlot* slots, int32_t n, int32_t dim, void* block, void* work) {
  DecodeBlock(slots, n, dim, block, work);
  for (int32_t s = (n + 1) / 2; s % kTileDwords != 0; ++s) {
    std::memset(Pairs(block, dim) + s * PairStride(dim), 0, static_cast<size_t>(dim) * 4);
  }
}

}  // namespace

const AttentionKernels kAmxAttention = {.heads_abreast = kMostHeads,
                                        .block_bytes = BlockBytes,
                                        .work_bytes = WorkBytes,
                                        .decode = DecodeForTiles,
                                        .add = Add};

}  // namespace deepinfer
