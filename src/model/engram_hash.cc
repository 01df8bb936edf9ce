#include "model/engram_hash.h"

#include "base/check.h"

namespace deepinfer {
namespace {

// NumPy's SeedSequence for one integer of entropy: a pool of four 32-bit words, hashed and mixed.
class SeedSequence {
 public:
  explicit SeedSequence(uint64_t entropy) {
    const std::array<uint32_t, 4> words = {static_cast<uint32_t>(entropy),
                                           static_cast<uint32_t>(entropy >> 32), 0, 0};
    for (size_t i = 0; i < 4; ++i) pool_[i] = HashMix(words[i]);
    for (size_t source = 0; source < 4; ++source) {
      for (size_t target = 0; target < 4; ++target) {
        if (source != target) pool_[target] = Mix(pool_[target], HashMix(pool_[source]));
      }
    }
  }

  // Four 64-bit words of state.
  std::array<uint64_t, 4> Generate() const {
    std::array<uint64_t, 4> state = {};
    uint32_t hash = 0x8b51f9dd;
    for (size_t i = 0; i < 8; ++i) {
      uint32_t value = pool_[i % 4] ^ hash;
      hash *= 0x58f38ded;
      value *= hash;
      value ^= value >> 16;
      state[i / 2] |= uint64_t{value} << (32 * (i % 2));
    }
    return state;
  }

 private:
  uint32_t HashMix(uint32_t value) {
    value ^= hash_;
    hash_ *= 0x931e8875;
    value *= hash_;
    return value ^ (value >> 16);
  }
  static uint32_t Mix(uint32_t x, uint32_t y) {
    const uint32_t value = 0xca01f9ddu * x - 0x4973f715u * y;
    return value ^ (value >> 16);
  }

  uint32_t hash_ = 0x43b0d7e5;
  std::array<uint32_t, 4> pool_ = {};
};

// PCG64 (XSL-RR 128/64), seeded as NumPy does.
class Pcg64 {
 public:
  explicit Pcg64(uint64_t seed) {
    const std::array<uint64_t, 4> s = SeedSequence(seed).Generate();
    increment_ = (Wide(s[2], s[3]) << 1) | 1;
    state_ = 0;
    Step();
    state_ += Wide(s[0], s[1]);
    Step();
  }

  // Unbiased integer in [0, bound), by the high half of a product (Lemire).
  uint64_t Below(uint64_t bound) {
    for (;;) {
      const unsigned __int128 product = static_cast<unsigned __int128>(Next()) * bound;
      if (static_cast<uint64_t>(product) >= (0 - bound) % bound) {
        return static_cast<uint64_t>(product >> 64);
      }
    }
  }

 private:
  static unsigned __int128 Wide(uint64_t high, uint64_t low) {
    return (static_cast<unsigned __int128>(high) << 64) | low;
  }
  void Step() { state_ = state_ * Wide(0x2360ed051fc65da4u, 0x4385df649fccf645u) + increment_; }
  uint64_t Next() {
    Step();
    const uint64_t folded = static_cast<uint64_t>(state_ >> 64) ^ static_cast<uint64_t>(state_);
    const auto rotation = static_cast<unsigned>(state_ >> 122);
    return (folded >> rotation) | (folded << ((64 - rotation) & 63));
  }

  unsigned __int128 state_ = 0, increment_ = 0;
};

bool IsPrime(int64_t n) {
  if (n < 4) return n > 1;
  if (n % 2 == 0) return false;
  for (int64_t d = 3; d * d <= n; d += 2) {
    if (n % d == 0) return false;
  }
  return true;
}

}  // namespace

EngramHash::EngramHash(const ModelConfig& config, int32_t pad_class)
    : max_ngram_(config.engram_max_ngram_size),
      num_heads_(config.engram_n_heads),
      pad_class_(pad_class) {
  const uint64_t half_range =
      static_cast<uint64_t>(INT64_MAX / config.engram_compressed_vocab_size) / 2;
  int64_t candidate = config.engram_vocab_size;  // primes continue from table to table
  for (const int32_t layer : config.engram_layer_ids) {
    Table table;
    Pcg64 generator(uint64_t{10007} * static_cast<uint64_t>(layer));
    for (int32_t i = 0; i < max_ngram_; ++i) {
      table.multipliers.push_back(static_cast<int64_t>(generator.Below(half_range) * 2 + 1));
    }
    for (int32_t column = 0; column < config.EngramColumns(); ++column, ++candidate) {
      while (!IsPrime(candidate)) ++candidate;
      table.offsets.push_back(table.num_rows);
      table.primes.push_back(candidate);
      table.num_rows += candidate;
    }
    tables_.push_back(std::move(table));
  }
}

void EngramHash::Rows(int32_t table_index, std::span<const int32_t> history, int32_t* rows) const {
  const Table& table = tables_[Index(table_index)];
  CHECK_EQ(history.size(), static_cast<size_t>(max_ngram_));
  int64_t mixed = 0;
  bool alive = true;
  for (int32_t distance = 0; distance < max_ngram_; ++distance) {
    const auto d = static_cast<size_t>(distance);
    alive = alive && history[d] >= 0;  // look-back never crosses the start or an image span
    const int64_t token_class = alive ? history[d] : pad_class_;
    mixed ^= token_class * table.multipliers[d];
    if (distance == 0) continue;
    for (int32_t head = 0; head < num_heads_; ++head) {
      const auto column = static_cast<size_t>((distance - 1) * num_heads_ + head);
      rows[column] = static_cast<int32_t>(mixed % table.primes[column] + table.offsets[column]);
    }
  }
}

}  // namespace deepinfer
