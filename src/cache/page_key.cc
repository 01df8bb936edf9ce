#include "cache/page_key.h"

#include "base/check.h"

namespace deepinfer {
namespace {

std::span<const uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Numbers are little endian whatever the machine is.
void AddU32(Sha256& hash, uint32_t value) {
  const std::array<uint8_t, 4> bytes = {
      static_cast<uint8_t>(value), static_cast<uint8_t>(value >> 8),
      static_cast<uint8_t>(value >> 16), static_cast<uint8_t>(value >> 24)};
  hash.Update(bytes);
}

void BeginPageHash(Sha256& hash, const PageKey& previous, uint32_t num_tokens) {
  hash.Update(BytesOf("dkv1.page"));
  hash.Update(previous);
  AddU32(hash, num_tokens);
}

PageKey EndPageHash(Sha256& hash, std::span<const MediaSpan> media) {
  AddU32(hash, static_cast<uint32_t>(media.size()));
  int32_t end = 0;
  for (const MediaSpan& span : media) {
    CHECK_GE(span.offset_in_page, end);  // sorted, and no two overlap
    end = span.offset_in_page + span.length;
    AddU32(hash, static_cast<uint32_t>(span.offset_in_page));
    AddU32(hash, static_cast<uint32_t>(span.start_in_item));
    AddU32(hash, static_cast<uint32_t>(span.length));
    hash.Update(span.digest);
  }
  return hash.Finish();
}

void Append(std::vector<uint8_t>& bytes, std::span<const uint8_t> more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}
void AppendNumber(std::vector<uint8_t>& bytes, uint64_t value, int num_bytes) {
  for (int i = 0; i < num_bytes; ++i) bytes.push_back(static_cast<uint8_t>(value >> 8 * i));
}

}  // namespace

Sha256Digest ModelFingerprint(std::span<const std::string_view> fields) {
  Sha256 hash;
  hash.Update(BytesOf("dkv1.model"));
  for (const std::string_view field : fields) {
    AddU32(hash, static_cast<uint32_t>(field.size()));
    hash.Update(BytesOf(field));
  }
  return hash.Finish();
}

Sha256Digest MediaDigest(std::string_view preprocessor_fingerprint,
                         std::span<const uint8_t> original_bytes) {
  Sha256 hash;
  hash.Update(BytesOf("dkv1.media"));
  hash.Update(BytesOf(preprocessor_fingerprint));
  hash.Update(original_bytes);
  return hash.Finish();
}

PageKey CacheRoot(const std::array<uint8_t, 32>& secret, uint64_t generation,
                  const Sha256Digest& fingerprint, int32_t page_tokens) {
  std::vector<uint8_t> message;
  Append(message, BytesOf("dkv1.root"));
  AppendNumber(message, generation, 8);
  Append(message, fingerprint);
  AppendNumber(message, static_cast<uint32_t>(page_tokens), 4);
  return HmacSha256(secret, message);
}

PageKey NarrowedRoot(const PageKey& root, std::string_view salt) {
  std::vector<uint8_t> message;
  Append(message, BytesOf("dkv1.salt"));
  Append(message, BytesOf(salt));
  return HmacSha256(root, message);
}

PageKey SwitchedRoot(const PageKey& public_page, const PageKey& tenant_root) {
  Sha256 hash;
  hash.Update(BytesOf("dkv1.switch"));
  hash.Update(public_page);
  hash.Update(tenant_root);
  return hash.Finish();
}

PageKey NextPageKey(const PageKey& previous, std::span<const int32_t> tokens,
                    std::span<const MediaSpan> media) {
  CHECK(!tokens.empty());
  Sha256 hash;
  BeginPageHash(hash, previous, static_cast<uint32_t>(tokens.size()));
  for (const int32_t token : tokens) AddU32(hash, static_cast<uint32_t>(token));
  return EndPageHash(hash, media);
}

PageKeyChain::PageKeyChain(const PageKey& root, int32_t max_tokens) : last_(root) {
  Reserve(max_tokens);
  BeginPage();
}

void PageKeyChain::Reserve(int32_t max_tokens) {
  keys_.reserve(static_cast<size_t>(max_tokens / kTokensPerPage));
}

void PageKeyChain::Append(int32_t token) {
  AddU32(hash_, static_cast<uint32_t>(token));
  if (++num_tokens_ % kTokensPerPage != 0) return;
  last_ = EndPageHash(hash_, {});
  keys_.push_back(last_);
  hash_.Reset();
  BeginPage();
}

void PageKeyChain::BeginPage() { BeginPageHash(hash_, last_, kTokensPerPage); }

}  // namespace deepinfer
