// kernels/testing/batch.h: what every CPU form promises about batches, threads and memory.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/backend.h"
#include "kernels/testing/compare.h"

namespace deepinfer::testing {

inline constexpr Backend kRef{.variant = kRefVariant};
inline constexpr Backend kCpu{.variant = kCpuVariant};

// Row counts on both sides of every block size in use.
inline constexpr int32_t kRowCounts[] = {1,  2,  3,  5,  7,  8,  9,   15, 16,
                                         17, 31, 33, 63, 64, 65, 127, 129};
inline constexpr int32_t kMostRows = 257;

// run(backend, begin, count, out) computes rows [begin, begin + count) into out [count, row_size].
// Expects of the variant's form: nothing written outside, everything written inside, the same bits
// in a second run, with two threads, and for every row whatever batch it is part of. Returns all
// `num_rows` rows.
template <typename T, typename Run>
std::vector<T> ExpectBatchInvariant(int32_t num_rows, int64_t row_size, const Run& run,
                                    VariantId variant = kCpuVariant) {
  const Backend backend{.variant = variant};
  Guarded<T> whole(num_rows * row_size), again(num_rows * row_size);
  run(backend, 0, num_rows, whole.data());
  EXPECT_TRUE(whole.GuardsIntact()) << "written outside the output";

  run(backend, 0, num_rows, again.data());
  EXPECT_TRUE(BitEqual(whole.data(), again.data(), whole.size())) << "second run differs";

  ThreadPool pool(2);
  again.Poison();
  run(Backend{.variant = variant, .threads = &pool}, 0, num_rows, again.data());
  EXPECT_TRUE(BitEqual(whole.data(), again.data(), whole.size())) << "two threads differ";

  for (const int32_t count : kRowCounts) {
    if (count >= num_rows) break;
    const int32_t begin = (count * 37) % (num_rows - count + 1);
    Guarded<T> part(count * row_size);
    run(backend, begin, count, part.data());
    EXPECT_TRUE(part.GuardsIntact()) << count << " rows: written outside the output";
    EXPECT_TRUE(BitEqual(part.data(), whole.data() + begin * row_size, part.size()))
        << count << " rows from row " << begin << " differ from the same rows of a batch of "
        << num_rows;
  }
  return whole.ToVector();
}

// The share of elements with the same bits.
template <typename T>
double EqualShare(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return 0;
  size_t equal = 0;
  for (size_t i = 0; i < a.size(); ++i) equal += BitEqual(&a[i], &b[i], 1);
  return a.empty() ? 1 : static_cast<double>(equal) / static_cast<double>(a.size());
}

inline int32_t WorstUlp(const std::vector<bf16>& a, const std::vector<bf16>& b) {
  if (a.size() != b.size()) return 1 << 20;
  int32_t worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, UlpDistance(a[i], b[i]));
  return worst;
}

}  // namespace deepinfer::testing
