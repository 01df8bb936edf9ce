// kernels/backend.h: which variant of every op runs, and the threads it may use.
//
// An op is one function over a params struct; its variants sit in a table indexed by VariantId. A
// variant that lacks an op falls back to its parent, so a new accelerator adds a folder of variants
// and nothing else. Variants of the tree: "ref" (the oracle), "avx2" (parent ref), "avx512" (parent
// avx2), "amx" (parent avx512; never chosen by itself); cpu/features.h says which of them this
// processor runs.
// Threads: variants are registered before the first forward; running ops is the step loop's alone.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "base/thread_pool.h"

namespace deepinfer {

using VariantId = int;
inline constexpr VariantId kRefVariant = 0;
inline constexpr VariantId kAvx2Variant = 1;
inline constexpr VariantId kAvx512Variant = 2;
inline constexpr VariantId kAmxVariant = 3;
inline constexpr VariantId kCpuVariant = kAvx2Variant;  // the least that every machine has
inline constexpr int kMaxVariants = 16;

// Names a further variant whose missing ops run as `parent` does. Returns its id.
VariantId RegisterVariant(std::string_view name, VariantId parent);
// Errors: kInvalidArgument listing the names there are.
StatusOr<VariantId> FindVariant(std::string_view name);
// The variant to run by name: "auto" and "cpu" are avx512 where this processor runs it, else avx2.
// Errors: as FindVariant; kFailedPrecondition naming the instruction sets that the processor lacks.
StatusOr<VariantId> ChooseVariant(std::string_view name);
std::vector<std::string> VariantNames();
VariantId VariantParent(VariantId variant);  // -1 for the oracle

// Handed to every op. Cheap to copy; `threads` is not owned, null = the calling thread alone.
struct Backend {
  VariantId variant = kCpuVariant;
  ThreadPool* threads = nullptr;

  // body(begin, end) over [0, count) in pieces of at least min_piece; see ThreadPool::ParallelFor.
  template <typename Body>
  void ParallelFor(int64_t count, int64_t min_piece, const Body& body) const {
    if (threads != nullptr) {
      threads->ParallelFor(count, min_piece, body);
    } else if (count > 0) {
      body(int64_t{0}, count);
    }
  }
};

template <typename Params>
class Op {
 public:
  using Fn = void (*)(const Backend&, const Params&);

  using CheckFn = void (*)(const Params&);

  // `check` asserts what every variant may rely on; it runs before each of them.
  Op(Fn ref, Fn avx2, CheckFn check = nullptr, Fn avx512 = nullptr, Fn amx = nullptr)
      : check_(check) {
    table_[kRefVariant] = ref;
    table_[kAvx2Variant] = avx2;
    table_[kAvx512Variant] = avx512;
    table_[kAmxVariant] = amx;
  }
  // Adds or replaces a variant's form.
  void Register(VariantId variant, Fn fn) { table_[static_cast<size_t>(variant)] = fn; }

  void Run(const Backend& backend, const Params& params) const {
    if (check_ != nullptr) check_(params);
    VariantId variant = backend.variant;
    while (table_[static_cast<size_t>(variant)] == nullptr) {
      variant = VariantParent(variant);
      CHECK_GE(variant, 0);
    }
    table_[static_cast<size_t>(variant)](backend, params);
  }

 private:
  std::array<Fn, kMaxVariants> table_ = {};
  CheckFn check_ = nullptr;
};

}  // namespace deepinfer
