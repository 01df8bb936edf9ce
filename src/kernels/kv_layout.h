// kernels/kv_layout.h: the bytes of KV, shared by host and device.
//
// A page holds 64 consecutive tokens of one sequence over all kv sources, source after source. Per
// source, with E = 64 / ratio entries:
//   index part   planar: E keys of index_dim/2 bytes (e2m1), then E times index_dim/32 scale bytes
//   (E8M0) global part  E records of head_dim/2 bytes (e2m1) + head_dim/16 scale bytes (E4M3),
//   interleaved
// An SWA record is head_dim e4m3 bytes + head_dim/32 scale bytes (E8M0); rings hold W + v of them.
// Even dim = low nibble. Source: model.md 4.2. The real shape: 288, 68 and 528 bytes, page 56,960.
#pragma once

#include <cstdint>
#include <vector>

namespace deepinfer {

inline constexpr int32_t kTokensPerPage = 64;

inline constexpr int32_t GlobalRecordBytes(int32_t head_dim) {
  return head_dim / 2 + head_dim / 16;
}
inline constexpr int32_t SwaRecordBytes(int32_t head_dim) { return head_dim + head_dim / 32; }
inline constexpr int32_t IndexKeyBytes(int32_t index_dim) { return index_dim / 2; }
inline constexpr int32_t IndexScaleBytes(int32_t index_dim) { return index_dim / 32; }
static_assert(GlobalRecordBytes(512) == 288 && SwaRecordBytes(512) == 528);
static_assert(IndexKeyBytes(128) + IndexScaleBytes(128) == 68);

// Where one source's bytes lie inside a page.
struct PageSection {
  int32_t ratio = 1;             // tokens per entry
  int32_t entries_per_page = 0;  // kTokensPerPage / ratio
  int32_t index_keys = 0;        // byte offsets inside the page
  int32_t index_scales = 0;
  int32_t global_records = 0;
};

struct PageLayout {
  int32_t head_dim = 0;
  int32_t index_dim = 0;
  int64_t page_bytes = 0;
  std::vector<PageSection> sections;  // one a kv source, in layer order
};

// Requires: every ratio divides kTokensPerPage; head_dim and index_dim are multiples of 32.
inline PageLayout MakePageLayout(int32_t head_dim, int32_t index_dim,
                                 const std::vector<int32_t>& source_ratios) {
  PageLayout layout;
  layout.head_dim = head_dim;
  layout.index_dim = index_dim;
  int32_t offset = 0;
  for (const int32_t ratio : source_ratios) {
    PageSection section{.ratio = ratio, .entries_per_page = kTokensPerPage / ratio};
    section.index_keys = offset;
    offset += section.entries_per_page * IndexKeyBytes(index_dim);
    section.index_scales = offset;
    offset += section.entries_per_page * IndexScaleBytes(index_dim);
    section.global_records = offset;
    offset += section.entries_per_page * GlobalRecordBytes(head_dim);
    layout.sections.push_back(section);
  }
  layout.page_bytes = offset;
  return layout;
}

// One source of one sequence: entry j lies in page page_table[j / entries_per_page].
struct PagedSource {
  uint8_t* pool = nullptr;  // [num_pages, page_bytes]
  int64_t page_bytes = 0;
  const int32_t* page_table = nullptr;  // pages of the sequence, in order
  PageSection section;

  uint8_t* PageOf(int32_t entry) const {
    return pool + page_table[entry / section.entries_per_page] * page_bytes;
  }
  uint8_t* GlobalRecord(int32_t entry, int32_t head_dim) const {
    return PageOf(entry) + section.global_records +
           int64_t{entry % section.entries_per_page} * GlobalRecordBytes(head_dim);
  }
  uint8_t* IndexKey(int32_t entry, int32_t index_dim) const {
    return PageOf(entry) + section.index_keys +
           int64_t{entry % section.entries_per_page} * IndexKeyBytes(index_dim);
  }
  uint8_t* IndexScale(int32_t entry, int32_t index_dim) const {
    return PageOf(entry) + section.index_scales +
           int64_t{entry % section.entries_per_page} * IndexScaleBytes(index_dim);
  }
};

}  // namespace deepinfer
