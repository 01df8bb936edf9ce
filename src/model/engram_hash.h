// model/engram_hash.h: token classes -> rows of the engram tables.
//
// Row ids depend on token ids alone, so they can be computed (and prefetched) as soon as a token is
// known. Source: model.md 3.9. The constants are derived as NumPy's PCG64 draws them; test vectors
// pin them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "model/config.h"

namespace deepinfer {

class EngramHash {
 public:
  // `config` gives layers, heads, n-gram size, search start and class count. pad_class = class of
  // the pad token.
  EngramHash(const ModelConfig& config, int32_t pad_class);

  // Rows of one position of table `table` (index into engram_layer_ids).
  // history[k] = class of the token k positions back (0 = current), -1 = before the start or inside
  // an image span. rows: [columns], n-gram size major, head minor, each in [0, table rows).
  void Rows(int32_t table, std::span<const int32_t> history, int32_t* rows) const;

  const std::vector<int64_t>& multipliers(int32_t table) const {
    return tables_[Index(table)].multipliers;
  }
  const std::vector<int64_t>& primes(int32_t table) const { return tables_[Index(table)].primes; }
  int64_t num_rows(int32_t table) const { return tables_[Index(table)].num_rows; }
  int32_t max_ngram() const { return max_ngram_; }

 private:
  struct Table {
    std::vector<int64_t> multipliers;  // [max_ngram], index = look-back distance
    std::vector<int64_t> primes;       // [columns]
    std::vector<int64_t> offsets;      // [columns]: sum of the primes before
    int64_t num_rows = 0;
  };
  static size_t Index(int32_t table) { return static_cast<size_t>(table); }

  const int32_t max_ngram_;
  const int32_t num_heads_;
  const int32_t pad_class_;
  std::vector<Table> tables_;
};

}  // namespace deepinfer
