// model/expert_source.h: where the routed experts' weights come from when they are not all in
// memory.
//
// A block is a text layer, or number of text layers + a draft block. Routing says which experts a
// pass needs of a block; the source brings them in while other work of the block goes on.
// Threads: the step loop only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "kernels/experts/experts.h"

namespace deepinfer {

// Some experts of a block on their way in, then in use. One object serves one set after the other;
// after the first largest one nothing is allocated.
class ExpertFetch {
 public:
  virtual ~ExpertFetch() = default;  // ends
  // Begins to bring in these experts, each named once; waits for none of them. They stay in memory
  // until End(). Requires: ended; none of them in another fetch; at most capacity() with all of
  // those.
  virtual void Start(int32_t block, std::span<const int32_t> experts) = 0;
  // Returns when the experts can be used, with matrices[e] set for each expert e of the fetch.
  // Errors: as ReadableFile::ReadAt, naming the block; matrices are then not to be used.
  virtual Status Wait(ExpertMatrices* matrices) = 0;
  virtual void End() = 0;  // in any state
};

// Since the start.
struct ExpertCounts {
  int64_t fetched = 0;     // experts asked for
  int64_t read = 0;        // those of them that were read from the disk
  int64_t bytes_read = 0;  // of the disk
  double hit_rate() const {
    return fetched == 0 ? 0 : static_cast<double>(fetched - read) / static_cast<double>(fetched);
  }
};

class ExpertSource {
 public:
  virtual ~ExpertSource() = default;

  // The most experts that fetches may have together at a time; at least 2.
  virtual int32_t capacity() const = 0;
  // Takes the memory for fetches of this many experts now. The source outlives the fetch.
  virtual std::unique_ptr<ExpertFetch> NewFetch(int32_t max_experts) = 0;

  virtual int64_t memory_bytes() const = 0;  // taken for experts
  const ExpertCounts& counts() const { return counts_; }

 protected:
  ExpertCounts counts_;
};

}  // namespace deepinfer
