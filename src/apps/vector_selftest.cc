// Numbers of the specification that this machine must reproduce. Source: model.md 7b and 6.1.
#include <bit>
#include <cmath>

#include "apps/op_selftest.h"
#include "kernels/formats/number_formats.h"
#include "kernels/rope/rope.h"
#include "model/engram_hash.h"
#include "model/noise.h"

namespace deepinfer {
namespace {

double CountFormatFaults() {
  int faults = 0;
  for (int code = 0; code < 256; ++code) {
    const auto c = static_cast<uint8_t>(code);
    if (!IsE4m3Nan(c)) faults += FloatToE4m3(E4m3ToFloat(c)) != c;
    if (c < 16) faults += FloatToE2m1(E2m1ToFloat(c)) != c;
  }
  faults += E4m3ToFloat(0x7e) != 448 || E4m3ToFloat(0x01) != 0x1p-9f;
  faults += E2m1ToFloat(7) != 6 || E8m0ToFloat(0) != 0x1p-127f || E8m0ToFloat(254) != 0x1p127f;
  return faults;
}

double CountRopeFaults() {
  struct Vector {
    size_t i;
    double value;
  };
  constexpr Vector kYarn[] = {{0, 1},
                              {1, 6.876560e-1},
                              {15, 3.635539e-3},
                              {16, 2.265625e-3},
                              {20, 2.969778e-4},
                              {24, 1.953125e-5},
                              {25, 5.372313e-6},
                              {31, 5.680529e-7}};
  constexpr Vector kPlain[] = {{1, 7.498942e-1}, {16, 1e-2}, {31, 1.333521e-4}};
  const RopeScaling yarn = {.factor = 16, .original_positions = 65536};
  const auto faults = [](const std::vector<float>& freqs, std::span<const Vector> vectors) {
    int count = 0;
    for (const Vector& v : vectors) count += std::fabs(freqs[v.i] - v.value) > 1e-6 * v.value;
    return count;
  };
  return faults(RopeFrequencies(64, 160000, &yarn), kYarn) +
         faults(RopeFrequencies(64, 10000, nullptr), kPlain);
}

double CountEngramFaults() {
  ModelConfig config;
  config.engram_layer_ids = {1, 14};
  config.engram_num_embeddings = {384006168, 384016682};
  config.engram_max_ngram_size = 4;
  config.engram_vocab_size = 16000000;
  config.engram_n_heads = 8;
  config.engram_compressed_vocab_size = 99092;
  const EngramHash hash(config, /*pad_class=*/2);
  constexpr int32_t kHistory[] = {99091, 3000, 2000, 1000};  // position 4 and back
  constexpr size_t kColumns[] = {0, 7, 8, 15, 16, 23};
  constexpr int32_t kRows[2][6] = {
      {9269172, 113170070, 139254896, 249285847, 267192101, 369543647},
      {15375077, 113427231, 138792741, 248082575, 269839604, 383234265}};
  int faults = 0;
  for (int32_t table = 0; table < 2; ++table) {
    std::vector<int32_t> rows(24);
    hash.Rows(table, kHistory, rows.data());
    for (size_t c = 0; c < 6; ++c) faults += rows[kColumns[c]] != kRows[table][c];
  }
  return faults;
}

double CountNoiseFaults() {
  const auto bits = [](double x) { return std::bit_cast<uint64_t>(x); };
  return (bits(PositionNoise(0, 0).Uniform(0)) != 0x3fd5a2a6c2c68b02u) +
         (bits(PositionNoise(1, 5).Uniform(77)) != 0x3fd8c4a885588b8eu) +
         (bits(PositionNoise(~uint64_t{0}, 1 << 20).Gumbel(129279)) != 0x3febb1f267127e1du);
}

}  // namespace

std::vector<SelftestFigure> CheckVectors() {
  return {{.name = "number formats", .measured = CountFormatFaults()},
          {.name = "rope frequencies", .measured = CountRopeFaults()},
          {.name = "engram rows", .measured = CountEngramFaults()},
          {.name = "sampling noise", .measured = CountNoiseFaults()}};
}

}  // namespace deepinfer
