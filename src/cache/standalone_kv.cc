#include "cache/standalone_kv.h"

namespace deepinfer {
namespace {

int64_t NumPages(int64_t num_tokens) { return (num_tokens + kTokensPerPage - 1) / kTokensPerPage; }

}  // namespace

StandaloneKv::StandaloneKv(const KvShape& shape, int64_t max_tokens)
    : shape_(shape),
      pages_(static_cast<size_t>(NumPages(max_tokens) * shape.layout.page_bytes)),
      rings_(static_cast<size_t>(shape.AllRingBytes())),
      tails_(static_cast<size_t>(shape.AllTailFloats())),
      kv_(shape_, pages_.data(), rings_.data(), tails_.data()) {
  for (int32_t page = 0; page < NumPages(max_tokens); ++page) kv_.page_table().push_back(page);
}

}  // namespace deepinfer
