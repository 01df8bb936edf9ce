// base/sha256.h: SHA-256 and HMAC-SHA-256. The cryptography library stays behind sha256.cc.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace deepinfer {

using Sha256Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Update(std::span<const uint8_t> bytes);
  Sha256Digest Finish();  // once; then the object is spent until Reset()
  void Reset();           // as new. Allocates nothing

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Sha256Digest Sha256Of(std::span<const uint8_t> bytes);
Sha256Digest Sha256Of(std::string_view text);

// RFC 2104 with SHA-256.
Sha256Digest HmacSha256(std::span<const uint8_t> key, std::span<const uint8_t> bytes);

// Lower-case hexadecimal digits.
std::string ToHex(std::span<const uint8_t> bytes);

}  // namespace deepinfer
