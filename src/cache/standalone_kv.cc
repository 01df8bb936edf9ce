#include "cache/standalone_kv.h"

#include <limits>

namespace deepinfer {
namespace {

int64_t NumPages(int64_t num_tokens) { return (num_tokens + kTokensPerPage - 1) / kTokensPerPage; }

}  // namespace

StandaloneKv::StandaloneKv(const KvShape& shape, int64_t max_tokens)
    : shape_(shape),
      pages_(static_cast<size_t>(NumPages(max_tokens) * shape.layout.page_bytes), kNanByte),
      rings_(static_cast<size_t>(shape.AllRingBytes()), kNanByte),
      tails_(static_cast<size_t>(shape.AllTailFloats()), std::numeric_limits<float>::quiet_NaN()),
      kv_(shape_, pages_.data(), rings_.data(), tails_.data()) {
  for (int32_t page = 0; page < NumPages(max_tokens); ++page) kv_.page_table().push_back(page);
}

}  // namespace deepinfer
