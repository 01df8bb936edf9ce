#include "base/sha256.h"

// The plain functions of the library: EVP takes and frees memory at every new digest, and page keys
// are hashed where nothing may be allocated.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include "base/check.h"

namespace deepinfer {

struct Sha256::State {
  SHA256_CTX context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) { Reset(); }
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Reset() { CHECK(SHA256_Init(&state_->context) == 1); }

void Sha256::Update(std::span<const uint8_t> bytes) {
  CHECK(SHA256_Update(&state_->context, bytes.data(), bytes.size()) == 1);
}

Sha256Digest Sha256::Finish() {
  Sha256Digest digest;
  CHECK(SHA256_Final(digest.data(), &state_->context) == 1);
  return digest;
}

Sha256Digest Sha256Of(std::span<const uint8_t> bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Finish();
}

Sha256Digest Sha256Of(std::string_view text) {
  return Sha256Of(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

Sha256Digest HmacSha256(std::span<const uint8_t> key, std::span<const uint8_t> bytes) {
  Sha256Digest digest;
  unsigned int num_bytes = 0;
  CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes.data(), bytes.size(),
             digest.data(), &num_bytes) != nullptr);
  CHECK_EQ(num_bytes, digest.size());
  return digest;
}

std::string ToHex(std::span<const uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const uint8_t byte : bytes) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

}  // namespace deepinfer
