// cache/page_key.h: under which name a full KV page is found again.
//
// A keyed SHA-256 chain: a page's key covers its own tokens and, through the key before it, all
// tokens before them. Nobody without the root's secret can form another tenant's keys, and a change
// of the model gives other keys. Source: kvstore.md 2; vectors in tests/cache/page_keys.json.
// Threads: one at a time per object.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "base/sha256.h"
#include "kernels/kv_layout.h"

namespace deepinfer {

using PageKey = Sha256Digest;

struct PageKeyHash {
  size_t operator()(const PageKey& key) const {
    size_t h;  // a digest's bytes are as random as any hash of them
    std::memcpy(&h, key.data(), sizeof h);
    return h;
  }
};

// Part of an image (or other media item) that lies in a page.
struct MediaSpan {
  int32_t offset_in_page = 0;
  int32_t start_in_item = 0;  // first position of the item that lies in this page
  int32_t length = 0;
  Sha256Digest digest = {};  // of the preprocessed bytes, see MediaDigest()
};

// MF of kvstore.md 2: SHA-256("dkv1.model" | fields), each field with its length before it.
Sha256Digest ModelFingerprint(std::span<const std::string_view> fields);
Sha256Digest MediaDigest(std::string_view preprocessor_fingerprint,
                         std::span<const uint8_t> original_bytes);

// The root of a namespace's chains.
PageKey CacheRoot(const std::array<uint8_t, 32>& secret, uint64_t generation,
                  const Sha256Digest& fingerprint, int32_t page_tokens);
// A namespace inside that of `root`: what a client's cache_salt does. It can only narrow.
PageKey NarrowedRoot(const PageKey& root, std::string_view salt);
// Where a public prefix ends and a tenant's own chain goes on.
PageKey SwitchedRoot(const PageKey& public_page, const PageKey& tenant_root);

// H(i) from H(i-1) and the page's tokens (1..page_tokens of them; fewer only for a last page).
PageKey NextPageKey(const PageKey& previous, std::span<const int32_t> tokens,
                    std::span<const MediaSpan> media = {});

// The chain of one sequence. Tokens are hashed as they come, so that a page's last token costs no
// more than any other. Allocates nothing in Append() up to the reserved length.
class PageKeyChain {
 public:
  // max_tokens: what memory is taken for; Reserve() takes more.
  PageKeyChain(const PageKey& root, int32_t max_tokens);
  void Reserve(int32_t max_tokens);

  void Append(int32_t token);
  int32_t num_tokens() const { return num_tokens_; }
  // Of the full pages so far, in order.
  std::span<const PageKey> keys() const { return keys_; }

 private:
  void BeginPage();

  PageKey last_;
  Sha256 hash_;  // of the open page
  int32_t num_tokens_ = 0;
  std::vector<PageKey> keys_;
};

}  // namespace deepinfer
