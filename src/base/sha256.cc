#include "base/sha256.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/check.h"

namespace deepinfer {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(std::span<const uint8_t> bytes) {
  CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

Sha256Digest Sha256::Finish() {
  Sha256Digest digest;
  unsigned int num_bytes = 0;
  CHECK(EVP_DigestFinal_ex(state_->context, digest.data(), &num_bytes) == 1);
  CHECK_EQ(num_bytes, digest.size());
  return digest;
}

// Naming the digest again would look it up again.
void Sha256::Reset() { CHECK(EVP_DigestInit_ex(state_->context, nullptr, nullptr) == 1); }

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
