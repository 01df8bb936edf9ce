#include "kernels/kv_records/kv_records.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/kv_layout.h"
#include "kernels/testing/compare.h"
#include "kernels/testing/data.h"

namespace deepinfer {
namespace {

using testing::DataKind;
using testing::Guarded;
using testing::Random;

enum class RecordKind { kSwa, kGlobal, kIndexKey };
constexpr RecordKind kAllRecordKinds[] = {RecordKind::kSwa, RecordKind::kGlobal,
                                          RecordKind::kIndexKey};

int32_t RecordBytes(RecordKind kind, int32_t dim) {
  switch (kind) {
    case RecordKind::kSwa:
      return SwaRecordBytes(dim);
    case RecordKind::kGlobal:
      return GlobalRecordBytes(dim);
    case RecordKind::kIndexKey:
      return IndexKeyBytes(dim) + IndexScaleBytes(dim);
  }
  return 0;
}

// Writes `rows` records one after the other (index keys: key, then scales).
std::vector<uint8_t> Write(RecordKind kind, const std::vector<bf16>& x, int32_t dim,
                           const Backend& backend) {
  const auto rows = static_cast<int32_t>(std::ssize(x) / dim);
  const int32_t bytes = RecordBytes(kind, dim);
  Guarded<uint8_t> out(int64_t{rows} * bytes);
  std::vector<uint8_t*> places, scales;
  for (int32_t n = 0; n < rows; ++n) {
    places.push_back(out.data() + int64_t{n} * bytes);
    scales.push_back(places.back() + IndexKeyBytes(dim));
  }
  switch (kind) {
    case RecordKind::kSwa:
      WriteSwa(backend, {.num_rows = rows, .dim = dim, .x = x.data(), .records = out.data()});
      break;
    case RecordKind::kGlobal:
      WriteGlobal(backend, {.num_rows = rows, .dim = dim, .x = x.data(), .records = places.data()});
      break;
    case RecordKind::kIndexKey:
      WriteIndexKey(backend, {.num_rows = rows,
                              .dim = dim,
                              .x = x.data(),
                              .keys = places.data(),
                              .scales = scales.data()});
      break;
  }
  EXPECT_TRUE(out.GuardsIntact());
  return out.ToVector();
}

std::vector<float> Decode(RecordKind kind, const uint8_t* record, int32_t dim) {
  std::vector<float> out(static_cast<size_t>(dim));
  if (kind == RecordKind::kSwa) DecodeSwaRecord(record, dim, out.data());
  if (kind == RecordKind::kGlobal) DecodeGlobalRecord(record, dim, out.data());
  if (kind == RecordKind::kIndexKey) {
    DecodeIndexKey(record, record + IndexKeyBytes(dim), dim, out.data());
  }
  return out;
}

// Stored fake-quantised vectors of the official quantisers, group by group.
TEST(KvRecords, ReproduceTheStoredQuantiserVectors) {
  std::ifstream file(DI_SOURCE_DIR "/tests/golden/real_checks.json");
  const nlohmann::json vectors = nlohmann::json::parse(file).at("quantisers");
  int seen = 0;
  for (const nlohmann::json& v : vectors) {
    const std::string name = v["kind"];
    RecordKind kind = RecordKind::kSwa;
    if (name == "fp4_group16_e4m3") kind = RecordKind::kGlobal;
    if (name == "fp4_group32_e8m0") kind = RecordKind::kIndexKey;
    const size_t group = v["in_bf16"].size();
    std::vector<bf16> x(32, ToBf16(0.0f));
    for (size_t i = 0; i < group; ++i) x[i] = {v["in_bf16"][i].get<uint16_t>()};
    for (const VariantId variant : {kRefVariant, kCpuVariant}) {
      const auto out = Decode(kind, Write(kind, x, 32, {.variant = variant}).data(), 32);
      for (size_t i = 0; i < group; ++i) {
        EXPECT_EQ(ToBf16(out[i]).bits, v["out_bf16"][i].get<uint16_t>()) << name << " " << i;
        EXPECT_EQ(ToFloat(ToBf16(out[i])), out[i]);  // decoding is exact in BF16
      }
    }
    ++seen;
  }
  EXPECT_EQ(seen, 33);
}

TEST(KvRecords, CpuWritesTheOraclesBytes) {
  ThreadPool two(2);
  Random random(3);
  for (const RecordKind record : kAllRecordKinds) {
    for (const int32_t dim : {32, 64, 128, 512}) {
      for (const int32_t rows : {1, 2, 17, 65}) {
        for (const DataKind kind : testing::kAllDataKinds) {
          const auto x = testing::MakeBf16(kind, rows, dim, random);
          const auto want = Write(record, x, dim, {.variant = kRefVariant});
          EXPECT_EQ(Write(record, x, dim, {}), want) << dim << " " << static_cast<int>(kind);
          EXPECT_EQ(Write(record, x, dim, {.threads = &two}), want);
        }
      }
    }
  }
}

// All 65,536 BF16 patterns: subnormal, infinite and NaN inputs too.
TEST(KvRecords, CpuWritesTheOraclesBytesForEveryBf16) {
  std::vector<bf16> x;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    x.push_back({static_cast<uint16_t>(bits * 40503u)});  // odd factor: neighbours far apart
  }
  for (uint32_t bits = 0; bits < 0x10000; ++bits) x.push_back({static_cast<uint16_t>(bits)});
  for (const RecordKind record : kAllRecordKinds) {
    EXPECT_EQ(Write(record, x, 512, {}), Write(record, x, 512, {.variant = kRefVariant}));
  }
}

TEST(KvRecords, BytesLieWhereTheLayoutSays) {
  std::vector<bf16> x(32, ToBf16(0.0f));
  x[0] = ToBf16(6.0f);
  x[1] = ToBf16(-0.5f);
  x[17] = ToBf16(448.0f);
  for (const VariantId variant : {kRefVariant, kCpuVariant}) {
    const auto swa = Write(RecordKind::kSwa, x, 32, {.variant = variant});
    EXPECT_EQ(swa[17], 0x7e);  // 448
    EXPECT_EQ(swa[32], 127);   // scale 1
    const auto global = Write(RecordKind::kGlobal, x, 32, {.variant = variant});
    EXPECT_EQ(global[0], 0x97);  // even dim low: 6 -> 7; -0.5 -> 9
    EXPECT_EQ(E4m3ToFloat(global[16]), 1.0f);
    EXPECT_EQ(E4m3ToFloat(global[17]), 72.0f);  // RN(448 / 6), ties and all
    EXPECT_EQ(global[8], 0x70);                 // dim 17 = high nibble
  }
}

TEST(KvRecords, BrokenGroupsStayVisible) {
  for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
    std::vector<bf16> x(64, ToBf16(6.0f));
    x[5] = ToBf16(bad);
    for (const VariantId variant : {kRefVariant, kCpuVariant}) {
      for (const RecordKind record : kAllRecordKinds) {
        const auto out = Decode(record, Write(record, x, 64, {.variant = variant}).data(), 64);
        for (size_t i = 0; i < 16; ++i) EXPECT_TRUE(std::isnan(out[i])) << i;
        for (size_t i = 32; i < 64; ++i) EXPECT_EQ(out[i], 6.0f) << i;
      }
    }
  }
}

TEST(KvRecords, NullPlacesAreSkipped) {
  Random random(4);
  const auto x = testing::MakeBf16(DataKind::kNormal, 3, 64, random);
  for (const VariantId variant : {kRefVariant, kCpuVariant}) {
    Guarded<uint8_t> out(3 * 64);
    uint8_t* records[] = {nullptr, out.data() + 64, nullptr};
    uint8_t* scales[] = {nullptr, out.data() + 128, nullptr};
    WriteGlobal({.variant = variant},
                {.num_rows = 3, .dim = 64, .x = x.data(), .records = records});
    WriteIndexKey({.variant = variant},
                  {.num_rows = 3, .dim = 64, .x = x.data(), .keys = records, .scales = scales});
    for (int64_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], 0xff);
    for (int64_t i = 64 + GlobalRecordBytes(64); i < 128; ++i) EXPECT_EQ(out[i], 0xff);
    for (int64_t i = 130; i < 192; ++i) EXPECT_EQ(out[i], 0xff);
    EXPECT_NE(out[128], 0xff);
  }
}

}  // namespace
}  // namespace deepinfer
