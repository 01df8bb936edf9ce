// model/engram_source.h: where the rows of the engram tables come from.
//
// Row ids follow from token ids alone, so a pass names all its rows before its first layer runs,
// and they are on their way while the layers before the first engram layer are computed. The op
// sees a table and row ids whatever the place. Threads: the step loop only; what is read in the
// background is over when Rows() returns.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/read_queue.h"
#include "base/status.h"
#include "kernels/formats/matrix.h"
#include "model/weight_place.h"
#include "model/weight_scan.h"

namespace deepinfer {

// One table as the checkpoint stores it.
struct StoredEngramTable {
  EngramTable view;       // the mapped bytes
  FilePlace data, scale;  // the same in the file
};

struct EngramRows {
  EngramTable table;
  const int32_t* ids = nullptr;  // as many as were announced, in their order, into `table`
};

// Since the start. Rows count as often as they are asked for; reads do not.
struct EngramCounts {
  int64_t rows = 0;            // announced
  int64_t rows_read = 0;       // by kDisk: those of a pass without duplicates
  int64_t bytes_read = 0;      // by kDisk
  int64_t ranges_advised = 0;  // by kMmap
};

class EngramSource {
 public:
  virtual ~EngramSource() = default;

  // Takes the memory for passes with so many rows of a table, duplicates included, so that
  // Announce() allocates nothing.
  virtual void Reserve(int64_t max_rows) = 0;
  // The rows that the pass will gather, per table. `rows` stay as they are until the next call.
  // Ends what the pass before left unread.
  virtual void Announce(std::span<const std::span<const int32_t>> rows_of_tables) = 0;
  // The announced rows of a table, valid until the next Announce.
  // Errors: kDisk: as ReadableFile::ReadAt, naming the table.
  virtual StatusOr<EngramRows> Rows(int32_t table) = 0;

  virtual int64_t memory_bytes() const = 0;  // taken now
  const EngramCounts& counts() const { return counts_; }

 protected:
  EngramCounts counts_;
};

// What memory_bytes() says of these tables after Reserve(max_rows); only shapes are looked at.
int64_t EngramMemoryBytes(WeightPlace place, std::span<const EngramTable> tables, int64_t max_rows);

// `tables` in the order of engram_layer_ids. What they view and their files outlive the source.
// `progress`: bytes read for kRam. Errors: kRam: kResourceExhausted, and as ReadableFile::ReadAt.
StatusOr<std::unique_ptr<EngramSource>> MakeEngramSource(WeightPlace place,
                                                         std::vector<StoredEngramTable> tables,
                                                         const ProgressFn& progress = {});

}  // namespace deepinfer
