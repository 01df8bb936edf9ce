#include "cache/kv_memory.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/check.h"
#include "base/hash64.h"

namespace deepinfer {
namespace {

// Parts that vectors are loaded from begin at multiples of this.
int64_t Aligned(int64_t num_bytes) { return (num_bytes + 63) / 64 * 64; }

int64_t AllTailBytes(const KvShape& shape) {
  return shape.AllTailFloats() * static_cast<int64_t>(sizeof(float));
}
int64_t StateStride(const KvShape& shape) {
  return Aligned(shape.AllRingBytes()) + Aligned(AllTailBytes(shape));
}
int64_t SlotStride(const KvShape& shape, int32_t num_rings) {
  return Aligned(SnapshotBytes(shape, num_rings));
}

void Copy(void* to, const void* from, int64_t num_bytes) {
  std::memcpy(to, from, static_cast<size_t>(num_bytes));
}

uint64_t SumOf(const uint8_t* bytes, int64_t num_bytes) {
  return Hash64({bytes, static_cast<size_t>(num_bytes)});
}

}  // namespace

int64_t StateBytes(const KvShape& shape) { return shape.AllRingBytes() + AllTailBytes(shape); }

int64_t SnapshotBytes(const KvShape& shape, int32_t num_rings) {
  return num_rings * shape.RingBytes() + (num_rings == shape.num_rings ? AllTailBytes(shape) : 0);
}

KvMemoryParts PlanKvMemory(const KvShape& shape, const KvMemorySizes& sizes) {
  return {.pages = sizes.num_pages * shape.layout.page_bytes,
          .states = sizes.num_states * StateStride(shape),
          .host_pages = sizes.num_host_pages * shape.layout.page_bytes,
          .saves = sizes.num_saves * StateStride(shape),
          .slots = sizes.num_slots * SlotStride(shape, sizes.num_snapshot_rings)};
}

StatusOr<std::unique_ptr<KvMemory>> KvMemory::Create(const KvShape& shape,
                                                     const KvMemorySizes& sizes) {
  std::unique_ptr<KvMemory> memory(new KvMemory(shape, sizes));
  DI_RETURN_IF_ERROR(memory->Allocate());
  return memory;
}

KvMemory::KvMemory(const KvShape& shape, const KvMemorySizes& sizes)
    : shape_(shape),
      sizes_(sizes),
      state_stride_(StateStride(shape)),
      slot_bytes_(SnapshotBytes(shape, sizes.num_snapshot_rings)),
      slot_stride_(SlotStride(shape, sizes.num_snapshot_rings)) {
  CHECK_LE(sizes.num_snapshot_rings, shape.num_rings);
}

Status KvMemory::Allocate() {
  const KvMemoryParts bytes = PlanKvMemory(shape_, sizes_);
  DI_ASSIGN_OR_RETURN(pages_, LargeBlock::Allocate(bytes.pages, "KV pages"));
  DI_ASSIGN_OR_RETURN(states_,
                      LargeBlock::Allocate(bytes.states, "window state of running sequences"));
  DI_ASSIGN_OR_RETURN(host_pages_,
                      LargeBlock::Allocate(bytes.host_pages, "KV pages of the host tier"));
  DI_ASSIGN_OR_RETURN(saves_,
                      LargeBlock::Allocate(bytes.saves, "window state of preempted sequences"));
  DI_ASSIGN_OR_RETURN(slots_, LargeBlock::Allocate(bytes.slots, "SWA slots"));
  // Small beside the blocks, and so taken only once the machine gave these.
  host_page_sums_.resize(static_cast<size_t>(sizes_.num_host_pages));
  is_saved_.resize(static_cast<size_t>(sizes_.num_saves));
  seals_.resize(static_cast<size_t>(sizes_.num_slots));
  return OkStatus();
}

KvMemoryParts KvMemory::num_bytes() const {
  return {.pages = pages_.num_bytes(),
          .states = states_.num_bytes(),
          .host_pages = host_pages_.num_bytes(),
          .saves = saves_.num_bytes(),
          .slots = slots_.num_bytes()};
}

// ---- Where things lie ---------------------------------------------------------------------------

uint8_t* KvMemory::Page(int32_t page) {
  CHECK(page >= 0 && page < sizes_.num_pages);
  return pages_.data() + page * shape_.layout.page_bytes;
}
uint8_t* KvMemory::HostPage(int32_t host_page) {
  CHECK(host_page >= 0 && host_page < sizes_.num_host_pages);
  return host_pages_.data() + host_page * shape_.layout.page_bytes;
}
uint8_t* KvMemory::State(int32_t state) {
  CHECK(state >= 0 && state < sizes_.num_states);
  return states_.data() + state * state_stride_;
}
float* KvMemory::StateTails(int32_t state) {
  return reinterpret_cast<float*>(State(state) + Aligned(shape_.AllRingBytes()));
}
uint8_t* KvMemory::Save(int32_t save) {
  CHECK(save >= 0 && save < sizes_.num_saves);
  return saves_.data() + save * state_stride_;
}
uint8_t* KvMemory::Slot(int32_t slot) {
  CHECK(slot >= 0 && slot < sizes_.num_slots);
  return slots_.data() + slot * slot_stride_;
}

SequenceKv KvMemory::SequenceOf(int32_t state) {
  return SequenceKv(shape_, pages_.data(), State(state), StateTails(state));
}

// ---- Pages and whole states ---------------------------------------------------------------------

void KvMemory::SavePage(int32_t device_page, int32_t host_page) {
  const int64_t num_bytes = shape_.layout.page_bytes;
  Copy(HostPage(host_page), Page(device_page), num_bytes);
  host_page_sums_[static_cast<size_t>(host_page)] = SumOf(Page(device_page), num_bytes);
}

Status KvMemory::LoadPage(int32_t host_page, int32_t device_page) {
  const uint8_t* const bytes = HostPage(host_page);
  const std::optional<uint64_t> expected = host_page_sums_[static_cast<size_t>(host_page)];
  if (!expected) {
    return DataLoss("KV page ", host_page, " of the host: expected a saved page, found none; it ",
                    "counts as a miss");
  }
  const uint64_t found = SumOf(bytes, shape_.layout.page_bytes);
  if (found != *expected) {
    return DataLoss("KV page ", host_page, " of the host: expected bytes of sum ", *expected,
                    ", found ", found, "; it counts as a miss, check the machine's memory");
  }
  Copy(Page(device_page), bytes, shape_.layout.page_bytes);
  return OkStatus();
}

void KvMemory::SaveState(int32_t state, int32_t save) {
  Copy(Save(save), State(state), state_stride_);
  is_saved_[static_cast<size_t>(save)] = 1;
}

void KvMemory::LoadState(int32_t save, int32_t state) {
  const uint8_t* const saved = Save(save);
  CHECK(is_saved_[static_cast<size_t>(save)] != 0);
  Copy(State(state), saved, state_stride_);
}

void KvMemory::ClearState(int32_t state) {
  std::memset(State(state), kNanByte, static_cast<size_t>(state_stride_));
}

// ---- Snapshots ----------------------------------------------------------------------------------

SnapshotTarget KvMemory::Snapshot(int32_t slot, int32_t end) {
  CHECK_GT(end, 0);
  uint8_t* const rows = Slot(slot);
  seals_[static_cast<size_t>(slot)].reset();
  return {.rows = rows, .num_rings = sizes_.num_snapshot_rings, .end = end};
}

void KvMemory::SealSnapshot(int32_t slot, int32_t state, int32_t end, uint32_t generation) {
  uint8_t* const bytes = Slot(slot);
  if (has_tails_in_slots()) {
    Copy(bytes + shape_.AllRingBytes(), StateTails(state), AllTailBytes(shape_));
  }
  seals_[static_cast<size_t>(slot)] =
      Seal{.end = end, .generation = generation, .sum = SumOf(bytes, slot_bytes_)};
}

Status KvMemory::CheckSeal(int32_t slot, int32_t end, uint32_t generation) {
  const uint8_t* const bytes = Slot(slot);
  const std::optional<Seal>& seal = seals_[static_cast<size_t>(slot)];
  if (!seal) {
    return DataLoss("SWA slot ", slot, ": expected the snapshot of end ", end,
                    ", found one that was not finished; it counts as a miss");
  }
  if (seal->end != end || seal->generation != generation) {
    return DataLoss("SWA slot ", slot, ": expected the snapshot of end ", end, ", generation ",
                    generation, ", found end ", seal->end, ", generation ", seal->generation,
                    "; it counts as a miss");
  }
  if (const uint64_t found = SumOf(bytes, slot_bytes_); found != seal->sum) {
    return DataLoss("SWA slot ", slot, " of end ", end, ": expected bytes of sum ", seal->sum,
                    ", found ", found, "; it counts as a miss, check the machine's memory");
  }
  return OkStatus();
}

Status KvMemory::LoadSnapshot(int32_t slot, int32_t end, int32_t state, uint32_t generation) {
  DI_RETURN_IF_ERROR(CheckSeal(slot, end, generation));
  const int32_t num_rows = shape_.ring_rows, first = end - num_rows;
  const int64_t record = SwaRecordBytes(shape_.layout.head_dim);
  for (int32_t ring = 0; ring < sizes_.num_snapshot_rings; ++ring) {
    const uint8_t* const from = Slot(slot) + ring * shape_.RingBytes();
    uint8_t* const to = State(state) + ring * shape_.RingBytes();
    // At most two pieces: up to the ring's end, and from its begin.
    for (int32_t p = std::max(first, 0), count; p < end; p += count) {
      count = std::min(end - p, num_rows - p % num_rows);
      Copy(to + p % num_rows * record, from + (p - first) * record, count * record);
    }
  }
  if (has_tails_in_slots()) {
    Copy(StateTails(state), Slot(slot) + shape_.AllRingBytes(), AllTailBytes(shape_));
  }
  return OkStatus();
}

// ---- For tests ----------------------------------------------------------------------------------

void KvMemory::DamageHostPage(int32_t host_page, int64_t byte) {
  CHECK_LT(byte, shape_.layout.page_bytes);
  HostPage(host_page)[byte] ^= 0x10;
}

void KvMemory::DamageSnapshot(int32_t slot, int64_t byte) {
  CHECK_LT(byte, slot_bytes_);
  Slot(slot)[byte] ^= 0x10;
}

}  // namespace deepinfer
