// model/packed_weights.h: the weights in the order in which the fast CPU forms read them.
//
// A copy of every matrix that LinearOp multiplies (formats/panels.h), made at load time, in huge
// pages where the system gives them. Lookup tables (embeddings, engram rows) and F32 matrices stay
// where they are. Threads: read-only after Pack, from any thread.
#pragma once

#include <cstdint>
#include <memory>

#include "base/thread_pool.h"
#include "model/weight_scan.h"
#include "model/weights.h"

namespace deepinfer {

struct PackOptions {
  ThreadPool* pool = nullptr;  // null: the calling thread alone
  ProgressFn progress;         // bytes written; may be empty
};

class PackedWeights {
 public:
  // `plain` and what it views outlive the result. Matrices with unusual scales get no panels.
  // Errors: kResourceExhausted if the memory cannot be had.
  static StatusOr<std::unique_ptr<PackedWeights>> Pack(const ModelWeights& plain,
                                                       const PackOptions& options = {});
  ~PackedWeights();
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

  // The plain weights, with Matrix::panels set where there are panels.
  const ModelWeights& weights() const { return weights_; }
  int64_t num_bytes() const { return num_bytes_; }

 private:
  PackedWeights() = default;

  ModelWeights weights_;
  uint8_t* memory_ = nullptr;  // num_bytes_, mapped
  int64_t num_bytes_ = 0;
};

}  // namespace deepinfer
