// kernels/indexer/cpu/score_keys.h: scores of sixteen FP4 keys at a time, on integers; one form per
// instruction set.
//
// Lanes are keys. Twice an e2m1 code is an integer of at most 12. Keys are raised by 12, as the
// instructions multiply unsigned by signed bytes, and what that adds to a sum comes off again. A
// group of 32 sums exactly in int32; groups are joined in F64, in their order, with their
// power-of-two scales. That is exact, too, unless scales inside one dot lie 2^38 apart.
// Files that define a form hold nothing but its loops: what else they instantiated, the linker
// could hand to a processor without the instructions.
#pragma once

#include <cstdint>

#include "kernels/formats/number_formats.h"

namespace deepinfer::index_scores {

inline constexpr int32_t kGroup = 32;  // values that share a scale
inline constexpr int32_t kChunks = 8;  // of a group, four values each
inline constexpr int32_t kHeads = 4;   // a quad, which shares what is loaded of the keys
inline constexpr int32_t kKeys = 16;
inline constexpr int32_t kRaise = 12;

// One group of a quad's queries. Chunk 2k holds the values 8k + 0, 2, 4, 6 and chunk 2k + 1 the
// values 8k + 1, 3, 5, 7: the order in which a key's nibbles unpack.
struct QueryGroup {
  int32_t chunks[kChunks][kHeads];  // four int8 each, twice the code
  int32_t raise[kHeads];            // -kRaise times their sum
  double scales[kHeads];            // half the scale; NaN spoils the head
};

// Heads are padded to whole quads with zeros, which add nothing to a score.
inline int32_t NumQuads(int32_t num_heads) { return (num_heads + kHeads - 1) / kHeads; }

// q: [num_heads, num_groups * 32], on the FP4 grid. out: [NumQuads(num_heads), num_groups].
void EncodeQueries(const bf16* q, int32_t num_heads, int32_t num_groups, QueryGroup* out);

// One row.
struct Queries {
  const QueryGroup* groups;  // [num_quads, num_groups]
  const float* weights;      // [num_quads * 4]
  int32_t num_quads;
  int32_t num_groups;
};

// Where sixteen keys lie; where there are fewer, one stands in several places.
struct KeyPlaces {
  const uint8_t* codes[kKeys];   // [num_groups * 16]
  const uint8_t* scales[kKeys];  // [num_groups]
};

// One group of sixteen keys, unpacked. Chunks as those of the queries.
struct alignas(64) KeyGroup {
  uint8_t chunks[kChunks][kKeys][4];  // twice the code, plus kRaise
  double scales[kKeys];               // half the scale; NaN spoils the key
};

// Half of an E8M0 scale, 2^(e-128), as the bits of an F64; NaN for the NaN code.
__attribute__((always_inline)) inline uint64_t HalfScaleBits(uint8_t e) {
  return e == 255 ? uint64_t{0x7ff8} << 48 : (uint64_t{e} + 1023 - 128) << 52;
}

// scores: [16]; NaN has become minus infinity. unpacked: [num_groups], contents unspecified.
using ScoreKeysFn = void (*)(const Queries& queries, const KeyPlaces& keys, KeyGroup* unpacked,
                             float* scores);
struct ScoreKeys {
  ScoreKeysFn official, exact;  // IndexScores::kOfficial, kF32
};
extern const ScoreKeys kAvx2Scores;
extern const ScoreKeys kAvx512Scores;

}  // namespace deepinfer::index_scores
