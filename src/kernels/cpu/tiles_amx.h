// kernels/cpu/tiles_amx.h: what a thread says about its AMX tiles before it uses them. For *_amx.cc
// only.
//
// Tables of these lie in constant memory, because g++ 12 believes that LDTILECFG reads eight bytes;
// and it does not know that TILELOADD reads memory (ReadsMemory).
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace deepinfer {

// The operand of LDTILECFG: tiles of up to 16 rows of 64 bytes.
struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  constexpr void Set(int tile, int num_rows) {
    rows[tile] = static_cast<uint8_t>(num_rows);
    row_bytes[tile] = num_rows == 0 ? 0 : 64;
  }
};
static_assert(sizeof(TileShapes) == 64);

// Everything written before is in memory when the next tile is loaded.
inline void ReadsMemory() { asm volatile("" ::: "memory"); }

}  // namespace deepinfer
