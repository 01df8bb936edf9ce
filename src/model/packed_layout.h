// model/packed_layout.h: where every packed matrix lies in one image of the weights.
//
// The image holds each matrix that LinearOp multiplies, in panels (kernels/formats/panels.h). It is
// a pure function of the shapes: the same in memory and in a file (model/weights_cache.h). First
// everything that is not a routed expert, then the routed experts of the text layers, then those of
// the draft blocks. Every matrix begins at a multiple of kPackedAlign; w1, w3 and w2 of an expert
// follow each other, so that one expert is one direct read. A matrix with unusual scales has its
// place but is not used from there. Threads: read-only after construction.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/disk.h"
#include "model/weights.h"

namespace deepinfer {

inline constexpr int64_t kPackedAlign = kDirectAlign;  // bytes; part of the cache's format

// To the next multiple of `unit`.
constexpr int64_t RoundUp(int64_t bytes, int64_t unit = kPackedAlign) {
  return (bytes + unit - 1) / unit * unit;
}

struct PackedRange {  // bytes of the image
  int64_t offset = 0;
  int64_t bytes = 0;
  int64_t end() const { return offset + bytes; }
};

// Panels [first_panel, first_panel + num_panels) of one matrix: a piece of work. Begins at a
// multiple of kPackedAlign and, but for a matrix's last piece, ends at one. Pieces never share a
// row of FP8 scales (an even number of panels).
struct PackedPiece {
  int32_t entry = 0;  // index of the matrix
  int32_t first_panel = 0;
  int32_t num_panels = 0;
  PackedRange range;
};

// The matrices of `weights` that have panels, in the order of the image.
std::vector<Matrix*> PackedMatrices(ModelWeights& weights);

class PackedLayout {
 public:
  explicit PackedLayout(const ModelWeights& weights);

  // One entry a matrix, in the order of PackedMatrices.
  const std::vector<PackedRange>& entries() const { return entries_; }
  int64_t image_bytes() const { return image_bytes_; }  // a multiple of kPackedAlign
  // Everything that is not a routed expert is [0, routed_experts_begin).
  int64_t routed_experts_begin() const { return routed_experts_begin_; }

  int32_t num_blocks() const { return static_cast<int32_t>(first_expert_entry_.size()); }
  // Routed expert `expert` of `block`: a text layer, or their number + a draft block. The
  // range begins and ends at multiples of kPackedAlign.
  PackedRange Expert(int32_t block, int32_t expert) const;
  // Its w1, w3 and w2, in that order: where each lies in the image.
  std::array<PackedRange, 3> ExpertParts(int32_t block, int32_t expert) const;
  // Index of its w1 in entries(); w3 and w2 follow.
  int32_t ExpertEntry(int32_t block, int32_t expert) const;

  // The whole image as pieces of about `target_bytes`, in order.
  std::vector<PackedPiece> Cut(int64_t target_bytes) const;

 private:
  struct Shape {
    int64_t panel_bytes;
    int32_t num_panels;
  };
  void Append(const Matrix& matrix);

  std::vector<PackedRange> entries_;
  std::vector<Shape> shapes_;                // of the entries
  std::vector<int32_t> first_expert_entry_;  // by block
  std::vector<int32_t> num_experts_;         // by block
  int32_t num_text_layers_ = 0;
  int64_t image_bytes_ = 0;
  int64_t routed_experts_begin_ = 0;
};

}  // namespace deepinfer
