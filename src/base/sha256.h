// base/sha256.h: SHA-256. The cryptography library stays behind sha256.cc.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace deepinfer {

using Sha256Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Update(std::span<const uint8_t> bytes);
  Sha256Digest Finish();  // once; the object is spent afterwards

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Sha256Digest Sha256Of(std::span<const uint8_t> bytes);
Sha256Digest Sha256Of(std::string_view text);

// Lower-case hexadecimal digits.
std::string ToHex(std::span<const uint8_t> bytes);

}  // namespace deepinfer
