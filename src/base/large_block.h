// base/large_block.h: large blocks of memory straight from the system, and wishes about memory.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/disk.h"
#include "base/status.h"

namespace deepinfer {

// Zeros, at a page boundary, in huge pages where the system gives them; given back with the object.
// Where the processors of this process belong to several nodes of memory, the pages come from all
// of these in turn, so that the threads together read as fast as the nodes together deliver.
class LargeBlock {
 public:
  // Errors: kResourceExhausted naming `what` it is for and the bytes.
  static StatusOr<LargeBlock> Allocate(int64_t num_bytes, std::string_view what);

  LargeBlock() = default;  // of no bytes
  ~LargeBlock();
  LargeBlock(LargeBlock&& other) noexcept;
  LargeBlock& operator=(LargeBlock&& other) noexcept;

  uint8_t* data() const { return data_; }
  int64_t num_bytes() const { return num_bytes_; }

 private:
  uint8_t* data_ = nullptr;
  int64_t num_bytes_ = 0;
};

// Takes the pages of memory that nobody has written to yet from these nodes in turn. A wish:
// returns whether the system has taken it. Requires: memory begins at a page boundary.
bool InterleavePages(std::span<const uint8_t> memory, std::span<const int> nodes);

// Asks for huge pages where these bytes fill any; before they are touched. A wish.
void AskForHugePages(std::span<const uint8_t> bytes);

// Asks the system to bring the pages of a mapped file that hold these bytes, without waiting for
// them. A wish: nothing happens for memory that is no mapping.
void AskForPages(std::span<const uint8_t> bytes);

// Memory that this process can have by what the system says (/proc/meminfo, the limits of its
// control group); 0 if it says nothing.
int64_t AvailableMemoryBytes(Disk& disk);

}  // namespace deepinfer
