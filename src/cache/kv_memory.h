// cache/kv_memory.h: the bytes of KV on this machine: device pages and state slots, host pages,
// saved states and SWA slots. Everything is taken at construction.
//
//   device  pages   [num_pages, page_bytes]
//           states  what a running sequence keeps outside its pages: all rings and compressor rows
//   host    pages   copies of device pages, each with a checksum
//           saves   whole states of preempted sequences
//           slots   snapshots at a page end: rows in position order, [ring][ring_rows][record], row
//                   r = position end - ring_rows + r; the first num_snapshot_rings rings, and after
//                   them the compressor rows if these are all rings. 1,415,040 bytes for the
//                   encoder half of the real shape.
// On a CPU both kinds are plain memory. Threads: the executing thread only; who owns which id is
// decided on the planning thread, and copies run in the order in which they were planned.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/large_block.h"
#include "base/status.h"
#include "cache/sequence_kv.h"

namespace deepinfer {

struct KvMemorySizes {
  int32_t num_pages = 0;
  int32_t num_states = 0;
  int32_t num_host_pages = 0;
  int32_t num_saves = 0;
  int32_t num_slots = 0;
  int32_t num_snapshot_rings = 0;  // the encoder's, or all
};

// Formulas, printed by the memory plan.
int64_t StateBytes(const KvShape& shape);                        // rings and compressor rows
int64_t SnapshotBytes(const KvShape& shape, int32_t num_rings);  // payload of a slot
int64_t KvMemoryBytes(const KvShape& shape, const KvMemorySizes& sizes);

// Where a forward pass writes a snapshot.
struct SnapshotTarget {
  uint8_t* rows = nullptr;  // null: none
  int32_t num_rings = 0;
  int32_t end = 0;  // the page end
};

class KvMemory {
 public:
  // Errors: kResourceExhausted if the machine does not give the memory.
  static StatusOr<std::unique_ptr<KvMemory>> Create(const KvShape& shape,
                                                    const KvMemorySizes& sizes);

  const KvShape& shape() const;
  const KvMemorySizes& sizes() const;
  // The view of a sequence that has this state slot; its page table is empty.
  SequenceKv SequenceOf(int32_t state);
  uint8_t* Page(int32_t page);

  void SavePage(int32_t device_page, int32_t host_page);
  // Errors: kDataLoss if the host page's bytes are not those that were saved.
  Status LoadPage(int32_t host_page, int32_t device_page);
  void SaveState(int32_t state, int32_t save);
  void LoadState(int32_t save, int32_t state);
  // Marks a state as new: no old row may be taken for a valid one in a debug check.
  void ClearState(int32_t state);

  SnapshotTarget Snapshot(int32_t slot, int32_t end);
  // After the pass that wrote the rows: stamps the slot with its end and a checksum; with all rings
  // also copies the compressor rows of `state`.
  void SealSnapshot(int32_t slot, int32_t state, int32_t end);
  // Puts a slot's rows below `end` back into the rings of `state`.
  // Errors: kDataLoss if the slot does not hold a sealed snapshot of `end`, or its bytes changed.
  Status LoadSnapshot(int32_t slot, int32_t end, int32_t state);

  // For tests: flips a byte.
  void DamageHostPage(int32_t host_page);
  void DamageSnapshot(int32_t slot);
};

}  // namespace deepinfer
