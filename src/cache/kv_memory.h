// cache/kv_memory.h: the bytes of KV on this machine: device pages and state slots, host pages,
// saved states and SWA slots. Everything is taken at construction.
//
//   device  pages   [num_pages, page_bytes]
//           states  what a running sequence keeps outside its pages: all rings, then all compressor
//                   rows, each part at a multiple of 64 bytes (the release rounds the real shape's
//                   3,128,352 bytes up to 3,128,928; nothing here needs that)
//   host    pages   copies of device pages, each with a checksum
//           saves   whole states of preempted sequences
//           slots   snapshots at a page end: rows in position order, [ring][ring_rows][record], row
//                   r = position end - ring_rows + r; the first num_snapshot_rings rings, and after
//                   them, without a gap, the compressor rows if these are all rings. 1,415,040
//                   bytes for the encoder half of the real shape, 3,128,352 for all of it. Rows of
//                   positions < 0 are undefined and never loaded. End, generation and checksum lie
//                   outside.
// On a CPU both kinds are plain memory. Threads: the executing thread only; who owns which id is
// decided on the planning thread, and copies run in the order in which they were planned. Nothing
// allocates after construction but messages of errors.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

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

// What Create() takes, in bytes, the gaps of alignment included.
struct KvMemoryParts {
  int64_t pages = 0, states = 0, host_pages = 0, saves = 0, slots = 0;
  int64_t total() const { return pages + states + host_pages + saves + slots; }
};
KvMemoryParts PlanKvMemory(const KvShape& shape, const KvMemorySizes& sizes);

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

  const KvShape& shape() const { return shape_; }
  const KvMemorySizes& sizes() const { return sizes_; }
  KvMemoryParts num_bytes() const;  // taken
  // The view of a sequence that has this state slot; its page table is empty.
  SequenceKv SequenceOf(int32_t state);
  uint8_t* Page(int32_t page);

  void SavePage(int32_t device_page, int32_t host_page);
  // Errors: kDataLoss if the host page's bytes are not those that were saved; then the device page
  // is as it was. The engine takes this, and the same of LoadSnapshot, as a miss.
  Status LoadPage(int32_t host_page, int32_t device_page);
  void SaveState(int32_t state, int32_t save);
  void LoadState(int32_t save, int32_t state);  // Requires: SaveState(..., save) was called
  // For a new sequence. Every row becomes NaN in its format, so that one that is read before it was
  // written cannot pass for a number of whoever had the state before.
  void ClearState(int32_t state);

  // Begins to write a slot; until it is sealed it holds nothing.
  SnapshotTarget Snapshot(int32_t slot, int32_t end);
  // After the pass that wrote the rows: stamps the slot with its end, generation (see
  // SnapshotTable) and a checksum; with all rings also copies the compressor rows of `state`.
  void SealSnapshot(int32_t slot, int32_t state, int32_t end, uint32_t generation = 0);
  // Puts a slot's rows below `end` back into the rings of `state`, and the compressor rows that it
  // has.
  // Errors: kDataLoss if the slot does not hold a sealed snapshot of this end and generation, or
  // its bytes changed; then the state is as it was.
  Status LoadSnapshot(int32_t slot, int32_t end, int32_t state, uint32_t generation = 0);

  // For tests: flips a bit of a byte.
  void DamageHostPage(int32_t host_page, int64_t byte = 0);
  void DamageSnapshot(int32_t slot, int64_t byte = 0);

 private:
  struct Seal {
    int32_t end = 0;
    uint32_t generation = 0;
    uint64_t sum = 0;
  };

  KvMemory(const KvShape& shape, const KvMemorySizes& sizes);
  Status Allocate();
  uint8_t* HostPage(int32_t host_page);
  uint8_t* State(int32_t state);
  float* StateTails(int32_t state);
  uint8_t* Save(int32_t save);
  uint8_t* Slot(int32_t slot);
  bool has_tails_in_slots() const { return sizes_.num_snapshot_rings == shape_.num_rings; }
  // Errors: see LoadSnapshot.
  Status CheckSeal(int32_t slot, int32_t end, uint32_t generation);

  const KvShape shape_;
  const KvMemorySizes sizes_;
  const int64_t state_stride_, slot_bytes_, slot_stride_;
  LargeBlock pages_, states_, host_pages_, saves_, slots_;
  std::vector<std::optional<uint64_t>> host_page_sums_;  // [num_host_pages], none: nothing saved
  std::vector<uint8_t> is_saved_;                        // [num_saves]
  std::vector<std::optional<Seal>> seals_;               // [num_slots], none: not sealed
};

}  // namespace deepinfer
