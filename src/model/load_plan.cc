#include "model/load_plan.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "kernels/formats/panels.h"

namespace deepinfer {
namespace {

constexpr int64_t kGroupBytes = int64_t{2} << 20;
constexpr int64_t kScanBytes = int64_t{1} << 20;  // of a plain tensor at a time
constexpr int64_t kManyBytes = int64_t{64} << 10;
constexpr int64_t kGapBytes = int64_t{32} << 10;  // read over rather than sought over

int64_t Size(const LoadPart& part) { return part.end - part.begin; }

LoadPiece SourceOf(const MatrixSource& source, const PackedPiece& piece, int32_t index) {
  const Matrix& m = *source.matrix;
  const int64_t first_row = int64_t{piece.first_panel} * kPanelRows;
  const int64_t end_row =
      std::min<int64_t>(m.rows, first_row + int64_t{piece.num_panels} * kPanelRows);
  LoadPiece out{.piece = index};
  const auto part = [](size_t item, int64_t begin, int64_t end) {
    return LoadPart{.item = item, .begin = begin, .end = end};
  };
  switch (m.format) {
    case WeightFormat::kFp4:
      out.codes = part(source.codes, first_row * m.cols / 2, end_row * m.cols / 2);
      out.scales = part(source.scales, first_row * m.cols / 32, end_row * m.cols / 32);
      break;
    case WeightFormat::kFp8:
      out.codes = part(source.codes, first_row * m.cols, end_row * m.cols);
      out.scales = part(source.scales, first_row * m.cols / 1024, end_row * m.cols / 1024);
      break;
    default:
      out.codes = part(source.codes, first_row * m.cols * 2, end_row * m.cols * 2);
      break;
  }
  return out;
}

class Planner {
 public:
  explicit Planner(std::span<const ScanItem> items) : items_(items) {}

  std::vector<LoadGroup> Plan(std::vector<LoadPiece> pieces) {
    std::sort(pieces.begin(), pieces.end(), [&](const LoadPiece& a, const LoadPiece& b) {
      return Place(a.codes) < Place(b.codes);
    });
    for (LoadPiece& piece : pieces) {
      const int64_t bytes = Size(piece.codes) + Size(piece.scales);
      const bool other_file =
          !group_.pieces.empty() &&
          items_[group_.pieces.back().codes.item].source != items_[piece.codes.item].source;
      if (other_file || group_.source_bytes + bytes > kGroupBytes) Close();
      group_.pieces.push_back(piece);
      group_.source_bytes += bytes;
    }
    Close();
    return std::move(groups_);
  }

 private:
  // Files in the order of their names, so that the plan is the same in every run.
  std::tuple<std::string_view, int64_t> Place(const LoadPart& part) const {
    const ScanItem& item = items_[part.item];
    return {item.file, item.offset + part.begin};
  }

  // Reads for what the group's pieces need, neighbours in one.
  void Close() {
    if (group_.pieces.empty()) return;
    std::vector<std::pair<LoadPart*, bool>> parts;
    for (LoadPiece& piece : group_.pieces) {
      const bool again = piece.piece == LoadPiece::kNone && Size(piece.codes) >= kManyBytes;
      for (LoadPart* part : {&piece.codes, &piece.scales}) {
        if (Size(*part) > 0) parts.emplace_back(part, again);
      }
    }
    std::sort(parts.begin(), parts.end(),
              [&](const auto& a, const auto& b) { return Place(*a.first) < Place(*b.first); });
    for (const auto& [part, again] : parts) AddToReads(again, part);
    if (!group_.reads.empty()) group_.buffer_bytes = EndPage(group_.reads.back());
    groups_.push_back(std::move(group_));
    group_ = {};
  }

  static int64_t EndPage(const LoadRead& read) {
    return RoundUp(read.at + read.bytes, kDirectAlign);
  }

  void AddToReads(bool again, LoadPart* part) {
    const ScanItem& item = items_[part->item];
    const int64_t offset = item.offset + part->begin;
    std::vector<LoadRead>& reads = group_.reads;
    const bool near = !reads.empty() && reads.back().source == item.source &&
                      offset - (reads.back().offset + reads.back().bytes) <= kGapBytes;
    if (!near) {
      const int64_t at = (reads.empty() ? 0 : EndPage(reads.back())) + offset % kDirectAlign;
      reads.push_back({.source = item.source, .offset = offset, .at = at});
    }
    LoadRead& read = reads.back();
    part->at = read.at + offset - read.offset;
    read.bytes = std::max(read.bytes, offset + Size(*part) - read.offset);
    read.again |= again;
  }

  std::span<const ScanItem> items_;
  LoadGroup group_;
  std::vector<LoadGroup> groups_;
};

}  // namespace

std::vector<LoadGroup> PlanLoad(std::span<const ScanItem> items,
                                std::span<const MatrixSource> sources,
                                std::span<const PackedPiece> pieces,
                                std::span<const int32_t> wanted,
                                std::span<const size_t> looked_at) {
  std::vector<LoadPiece> parts;
  for (const int32_t index : wanted) {
    const PackedPiece& piece = pieces[static_cast<size_t>(index)];
    parts.push_back(SourceOf(sources[static_cast<size_t>(piece.entry)], piece, index));
  }
  for (const size_t item : looked_at) {
    const int64_t bytes = std::ssize(items[item].bytes);
    for (int64_t begin = 0; begin < bytes; begin += kScanBytes) {
      parts.push_back(
          {.codes = {.item = item, .begin = begin, .end = std::min(bytes, begin + kScanBytes)}});
    }
  }
  return Planner(items).Plan(std::move(parts));
}

}  // namespace deepinfer
