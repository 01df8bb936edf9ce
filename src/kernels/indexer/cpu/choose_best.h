// kernels/indexer/cpu/choose_best.h: the best of many scores, lowest index first among equals.
#pragma once

#include <bit>
#include <cstdint>

namespace deepinfer::choose_best {

// Orders scores that are not NaN as integers; -0 ties with +0.
inline uint32_t RankOf(float score) {
  const uint32_t bits = std::bit_cast<uint32_t>(score + 0.0f);  // no -0
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
inline float ScoreOf(uint32_t rank) {
  return std::bit_cast<float>((rank & 0x80000000u) != 0 ? rank & 0x7fffffffu : ~rank);
}
inline constexpr uint32_t kForcedRank = 0xffffffffu;  // above every score

// Items in fixed places, ascending by index.
struct RankedList {
  template <typename Memory>
  RankedList(Memory& memory, int64_t most)
      : ranks(memory.template Get<uint32_t>(most)), indices(memory.template Get<int32_t>(most)) {}

  void Add(uint32_t rank, int32_t index) {
    ranks[size] = rank;
    indices[size++] = index;
  }

  uint32_t* ranks;
  int32_t* indices;
  int64_t size = 0;
};

// Keeps the best `count` items, in the order in which they are. work: as many as the list has.
// Requires: count > 0.
void KeepBest(RankedList& list, int32_t count, uint32_t* work);

}  // namespace deepinfer::choose_best
