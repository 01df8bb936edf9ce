// model/load_plan.h: which bytes of the checkpoint are read together, and what they are for.
//
// Weights are read in groups of a few MiB that lie side by side in a file, each by one thread into
// its own buffer, and in the order of the files: few large reads, every byte once. Pure: reads
// nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/packed_layout.h"
#include "model/weight_scan.h"

namespace deepinfer {

// Bytes [begin, end) of the stored tensor `item`, from `at` on in the group's buffer.
struct LoadPart {
  size_t item = 0;
  int64_t begin = 0, end = 0;
  int64_t at = 0;
};

// One read: bytes [offset, offset + bytes) of the file, from `at` on in the buffer. `at` and
// `offset` have the same remainder by kDirectAlign, and no read's pages meet another's.
struct LoadRead {
  const ReadableFile* source = nullptr;
  int64_t offset = 0, bytes = 0;
  int64_t at = 0;
  bool again = false;  // holds much of a plain tensor, whose rows are going to be looked up
};

struct LoadPiece {
  static constexpr int32_t kNone = -1;
  int32_t piece = kNone;  // of the image; kNone: a plain tensor that is only looked at
  LoadPart codes;
  LoadPart scales;  // empty range: the format has none
};

struct LoadGroup {
  std::vector<LoadRead> reads;
  std::vector<LoadPiece> pieces;
  int64_t buffer_bytes = 0;  // a multiple of kDirectAlign
  int64_t source_bytes = 0;  // that the pieces are made of
};

// Where the plain form of a matrix of the image lies.
struct MatrixSource {
  const Matrix* matrix = nullptr;
  size_t codes = 0, scales = 0;  // items; the same where there are no scales
};

// Groups that together hold the pieces `wanted` (indices into `pieces`) and the items `looked_at`.
// sources: by entry of the layout. Requires: every item has a source.
std::vector<LoadGroup> PlanLoad(std::span<const ScanItem> items,
                                std::span<const MatrixSource> sources,
                                std::span<const PackedPiece> pieces,
                                std::span<const int32_t> wanted, std::span<const size_t> looked_at);

}  // namespace deepinfer
