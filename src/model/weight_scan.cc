#include "model/weight_scan.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/formats/number_formats.h"

namespace deepinfer {
namespace {

constexpr int64_t kChunkBytes = int64_t{4} << 20;
constexpr int64_t kRoundBytes = 64 * kChunkBytes;  // between two calls of `progress`
constexpr int64_t kNone = ScanFinding::kNone;

struct Chunk {
  size_t item;
  int64_t begin, end;  // bytes of the item
};

// The first loops below are plain maxima and minima, which compilers turn into vectors; only what
// they find fault with is looked at byte by byte.

// The first word with all exponent bits set: infinity or NaN. Any alignment.
template <typename Word>
int64_t FirstNonFinite(std::span<const uint8_t> bytes, Word exponent_mask) {
  const size_t count = bytes.size() / sizeof(Word);
  const auto exponent = [&](size_t i) {
    Word word;
    std::memcpy(&word, bytes.data() + i * sizeof(Word), sizeof(Word));
    return static_cast<Word>(word & exponent_mask);
  };
  Word largest = 0;  // the sign bit is masked: a signed maximum will do
  for (size_t i = 0; i < count; ++i) largest = std::max(largest, exponent(i));
  if (largest != exponent_mask) return kNone;
  size_t first = 0;
  while (exponent(first) != exponent_mask) ++first;
  return static_cast<int64_t>(first * sizeof(Word));
}

int64_t FirstE4m3Nan(std::span<const uint8_t> bytes) {
  uint8_t largest = 0;
  for (const uint8_t byte : bytes) largest = std::max(largest, static_cast<uint8_t>(byte & 0x7f));
  if (largest != 0x7f) return kNone;
  return std::find_if(bytes.begin(), bytes.end(), IsE4m3Nan) - bytes.begin();
}

ScanFinding ScanScales(std::span<const uint8_t> bytes) {
  uint8_t smallest = 255, largest = 0;
  for (const uint8_t byte : bytes) smallest = std::min(smallest, byte);
  for (const uint8_t byte : bytes) largest = std::max(largest, byte);
  ScanFinding result{.scale_min = smallest};
  if (smallest >= kUsualScaleMin && largest <= kUsualScaleMax) return result;
  result.num_unusual = std::count_if(bytes.begin(), bytes.end(), [](uint8_t byte) {
    return byte < kUsualScaleMin || byte > kUsualScaleMax;
  });
  if (largest == kE8m0Nan) {
    result.first_bad = std::find(bytes.begin(), bytes.end(), kE8m0Nan) - bytes.begin();
  }
  return result;
}

std::string_view WhatIsRefused(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF8E4m3:
      return "an FP8 NaN code";
    case Dtype::kF8E8m0:
      return "a NaN scale (255)";
    default:
      return "a value that is not finite";
  }
}

std::vector<Chunk> CutIntoChunks(std::span<const ScanItem> items) {
  std::vector<Chunk> chunks;
  for (size_t item = 0; item < items.size(); ++item) {
    const int64_t size = std::ssize(items[item].bytes);
    for (int64_t begin = 0; begin < size; begin += kChunkBytes) {
      chunks.push_back({item, begin, std::min(size, begin + kChunkBytes)});
    }
  }
  return chunks;
}

}  // namespace

ScanFinding ScanBytes(Dtype dtype, std::span<const uint8_t> bytes) {
  ScanFinding result;
  switch (dtype) {
    case Dtype::kF8E4m3:
      result.first_bad = FirstE4m3Nan(bytes);
      break;
    case Dtype::kF8E8m0:
      return ScanScales(bytes);
    case Dtype::kBf16:
      result.first_bad = FirstNonFinite<int16_t>(bytes, 0x7f80);
      break;
    case Dtype::kF32:
      result.first_bad = FirstNonFinite<int32_t>(bytes, 0x7f800000);
      break;
    default:
      break;  // packed FP4: every byte is two valid codes
  }
  return result;
}

ScanTally::ScanTally(std::span<const ScanItem> items) : items_(items), last_bad_item_(SIZE_MAX) {
  report_.has_unusual.assign(items.size(), 0);
}

void ScanTally::Add(size_t index, int64_t begin, const ScanFinding& finding) {
  const ScanItem& item = items_[index];
  if (finding.first_bad != kNone && index != last_bad_item_) {
    last_bad_item_ = index;
    if (num_bad_tensors_++ == 0) Remember(item, begin + finding.first_bad);
  }
  if (item.spec->dtype != Dtype::kF8E8m0) return;
  if (item.spec->part == Part::kEngramTables) {
    report_.engram_scale_min = std::min(report_.engram_scale_min, finding.scale_min);
  }
  report_.num_unusual_scales += finding.num_unusual;
  if (finding.num_unusual == 0 || report_.has_unusual[index] != 0) return;
  report_.has_unusual[index] = 1;
  if (report_.num_unusual_tensors++ == 0) report_.first_unusual_tensor = item.spec->name;
}

StatusOr<ScanReport> ScanTally::Finish() {
  if (num_bad_tensors_ > 0) {
    if (num_bad_tensors_ > 1) {
      first_bad_ += StrCat("; ", num_bad_tensors_ - 1, " more tensors have such values");
    }
    return DataLoss(first_bad_);
  }
  report_.done = true;
  return std::move(report_);
}

void ScanTally::Remember(const ScanItem& item, int64_t byte) {
  first_bad_ =
      StrCat(item.spec->name, ": expected numbers, found ", WhatIsRefused(item.spec->dtype),
             " at element ", byte / DtypeBytes(item.spec->dtype), " of ", item.spec->num_elements(),
             ", file ", item.file);
}

StatusOr<ScanReport> ScanWeights(std::span<const ScanItem> items, ThreadPool* pool,
                                 const ProgressFn& progress) {
  const std::vector<Chunk> chunks = CutIntoChunks(items);
  int64_t total_bytes = 0, done_bytes = 0;
  for (const ScanItem& item : items) total_bytes += std::ssize(item.bytes);
  ScanTally tally(items);
  std::vector<ScanFinding> results;
  for (int64_t round = 0; round < std::ssize(chunks);) {
    int64_t end = round, round_bytes = 0;
    while (end < std::ssize(chunks) && round_bytes < kRoundBytes) {
      const Chunk& chunk = chunks[static_cast<size_t>(end++)];
      round_bytes += chunk.end - chunk.begin;
    }
    results.assign(static_cast<size_t>(end - round), {});
    const auto scan = [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const Chunk& chunk = chunks[static_cast<size_t>(round + i)];
        const ScanItem& item = items[chunk.item];
        results[static_cast<size_t>(i)] = ScanBytes(
            item.spec->dtype, item.bytes.subspan(static_cast<size_t>(chunk.begin),
                                                 static_cast<size_t>(chunk.end - chunk.begin)));
      }
    };
    if (pool != nullptr) {
      pool->ParallelFor(end - round, 1, scan);
    } else {
      scan(0, end - round);
    }
    for (int64_t i = 0; i < end - round; ++i) {
      const Chunk& chunk = chunks[static_cast<size_t>(round + i)];
      tally.Add(chunk.item, chunk.begin, results[static_cast<size_t>(i)]);
    }
    round = end;
    done_bytes += round_bytes;
    if (progress) progress(done_bytes, total_bytes);
  }
  return tally.Finish();
}

}  // namespace deepinfer
