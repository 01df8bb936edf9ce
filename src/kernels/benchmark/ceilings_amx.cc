#include <immintrin.h>

#include "kernels/benchmark/ceilings.h"

namespace deepinfer::ceiling_loops {
namespace {

// The operand of LDTILECFG: all tiles have 16 rows of 64 bytes.
struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
constexpr TileShapes kShapes;

}  // namespace

float DotsAmx(int64_t iterations) {
  alignas(64) uint32_t pairs[16 * 16];
  alignas(64) float sums[16 * 16];
  for (uint32_t& pair : pairs) pair = 0x3f003f00;  // 0.5, 0.5
  asm volatile("" : : "r"(pairs) : "memory");      // g++ 12 does not know that TILELOADD reads them
  _tile_loadconfig(&kShapes);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_loadd(6, pairs, 64);
  _tile_loadd(7, pairs, 64);
  for (int64_t n = 0; n < iterations; ++n) {
    _tile_dpbf16ps(0, 6, 7);
    _tile_dpbf16ps(1, 6, 7);
    _tile_dpbf16ps(2, 6, 7);
    _tile_dpbf16ps(3, 6, 7);
    _tile_dpbf16ps(4, 6, 7);
    _tile_dpbf16ps(5, 6, 7);
  }
  _tile_stored(0, sums, 64);
  _tile_release();
  return sums[0];
}

}  // namespace deepinfer::ceiling_loops
